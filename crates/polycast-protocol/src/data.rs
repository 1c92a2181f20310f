use std::ops::Range;

/// The program's buffer: the root only reads it, since other threads of the program may read it at the same time.
pub enum Data<'a> {
    /// The message to be broadcast.
    Source(&'a [u8]),
    /// The buffer that the message goes to.
    Sink(&'a mut [u8]),
}

impl Data<'_> {
    /// All bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Source(bytes) => bytes,
            Data::Sink(bytes) => bytes,
        }
    }

    /// Writes a part that has arrived; a source stays as it is.
    pub(super) fn write(&mut self, range: Range<usize>, bytes: &[u8]) {
        if let Data::Sink(sink) = self {
            sink[range].copy_from_slice(bytes);
        }
    }
}
