use std::ops::Range;

/// The program's buffer: the root only reads it, since other threads of the program may read it at the same time.
pub enum Data<'a> {
    /// The message to be broadcast.
    Source(&'a [u8]),
    /// The buffer that the message goes to.
    Sink(&'a mut [u8]),
    /// The buffer that the message goes to, and memory, empty at first, for one that is longer: all of it goes there then.
    Growing(&'a mut [u8], &'a mut Vec<u8>),
}

impl Data<'_> {
    /// All bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Source(bytes) => bytes,
            Data::Sink(bytes) => bytes,
            Data::Growing(bytes, memory) => {
                if memory.is_empty() {
                    bytes
                } else {
                    memory
                }
            }
        }
    }

    /// Finds room for the first `bytes` bytes of the message; false if there is none.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        let Data::Growing(own, memory) = self else { return bytes <= self.bytes().len() };
        if bytes <= own.len().max(memory.len()) {
            return true;
        }
        let has_room = memory.try_reserve(bytes - memory.len()).is_ok();
        if has_room {
            if memory.is_empty() {
                memory.extend_from_slice(own);
            }
            memory.resize(bytes, 0);
        }
        has_room
    }

    /// Writes a part that has arrived; a source stays as it is.
    pub(super) fn write(&mut self, range: Range<usize>, bytes: &[u8]) {
        match self {
            Data::Source(_) => {}
            Data::Growing(_, memory) if !memory.is_empty() => memory[range].copy_from_slice(bytes),
            Data::Sink(sink) | Data::Growing(sink, _) => sink[range].copy_from_slice(bytes),
        }
    }
}
