//! The frames on a connection between two nodes of a ring. They go between neighbours in either
//! direction, and up a tree to the source: each node tells the one above it what is over on itself
//! and on all below.
//!
//! ```text
//!   byte 0            4
//!       ├── bytes ────┼ a message of the multicast protocol      24 to 16,384 bytes
//!       ├── 16 ───────┼ u64, u64: so many segments are over on this node and on all below it, and so many have been read
//! ```

/// The most bytes that stand behind the length of a frame.
pub const MAX_FRAME_BYTES: usize = 16 << 10;
const LENGTH_BYTES: usize = 4;
const REACHED_BYTES: usize = 16;

/// The numbers of segments that a node is done with, or the lowest of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Segments that are over: the node and its successor have them, and the node is ready for
    /// those that follow.
    pub over: u64,
    /// Segments of which nothing more comes by multicast: they are out of the node's receive
    /// buffer.
    pub read: u64,
}

impl Reached {
    /// The numbers that both nodes have reached.
    pub fn least(self, other: Reached) -> Reached {
        Reached { over: self.over.min(other.over), read: self.read.min(other.read) }
    }

    /// The numbers that at least one of both has reached.
    pub fn most(self, other: Reached) -> Reached {
        Reached { over: self.over.max(other.over), read: self.read.max(other.read) }
    }

    /// The bytes of the numbers on the wire.
    pub fn to_bytes(self) -> [u8; REACHED_BYTES] {
        (u128::from(self.over) | u128::from(self.read) << 64).to_le_bytes()
    }

    /// Reads the numbers; `None` if the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Reached> {
        let both = u128::from_le_bytes(bytes.try_into().ok()?);
        Some(Reached { over: both as u64, read: (both >> 64) as u64 })
    }
}

/// A frame from a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message of the multicast protocol.
    Message(&'a [u8]),
    /// The numbers that this node and all below it have reached.
    Reached(Reached),
}

/// The error for bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a neighbour in the ring sends something else than messages")]
pub struct BadFrame;

impl<'a> Frame<'a> {
    /// Appends the bytes of the frame on the wire to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let numbers;
        let bytes = match self {
            Frame::Message(bytes) => *bytes,
            Frame::Reached(reached) => {
                numbers = reached.to_bytes();
                &numbers
            }
        };
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }

    /// Reads the first frame of the bytes that came, and says how many bytes it takes; `None` if it
    /// is not whole yet.
    ///
    /// # Errors
    /// A length that none has.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, BadFrame> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(REACHED_BYTES..=MAX_FRAME_BYTES).contains(&length) {
            return Err(BadFrame);
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = Reached::from_bytes(bytes).map_or(Frame::Message(bytes), Frame::Reached);
        Ok(Some((frame, LENGTH_BYTES + length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_pieces_and_one_after_the_other() {
        let mut bytes = Vec::new();
        let frames = [
            Frame::Message(&[7; 24]),
            Frame::Reached(Reached { over: 3, read: 1 << 40 }),
            Frame::Message(&[1; MAX_FRAME_BYTES]),
        ];
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let mut rest = &bytes[..];
        for frame in frames {
            let (read, taken) = Frame::decode(rest).unwrap().unwrap();
            assert_eq!(read, frame);
            (0..taken).for_each(|most| assert_eq!(Frame::decode(&rest[..most]), Ok(None)));
            rest = &rest[taken..];
        }
        assert_eq!(rest, []);
    }

    #[test]
    fn lengths_have_limits() {
        for (length, is_good) in
            [(0u32, false), (15, false), (16, true), (16 << 10, true), ((16 << 10) + 1, false)]
        {
            assert_eq!(Frame::decode(&length.to_le_bytes()).is_ok(), is_good, "{length}");
        }
    }
}
