//! What a connection between two nodes of a ring carries: between neighbours in either direction; and to the one above, who tells the one above it what
//! is over on all below, up to the source.
//!
//! ```text
//!   byte 0            4
//!       ├── bytes ────┼ a message of the multicast protocol      24 to 16,384 bytes
//!       ├── 8 ────────┼ u64: so many segments are on this node and on all below it
//! ```

/// Of what stands behind the length.
pub const MAX_FRAME_BYTES: usize = 16 << 10;
const LENGTH_BYTES: usize = 4;
const ACKNOWLEDGED_BYTES: usize = 8;

/// What a neighbour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message of the multicast protocol.
    Message(&'a [u8]),
    /// So many segments are on this node and on all below it, and they are ready for the ones that follow.
    Acknowledged(u64),
}

/// It does not speak this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a neighbour in the ring sends something else than messages")]
pub struct BadFrame;

impl<'a> Frame<'a> {
    /// As it travels.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let number;
        let bytes = match self {
            Frame::Message(bytes) => *bytes,
            Frame::Acknowledged(segments) => {
                number = segments.to_le_bytes();
                &number
            }
        };
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }

    /// The first of what has come, and how many bytes it takes; `None`: it is not whole yet.
    ///
    /// # Errors
    /// A length that none has.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, BadFrame> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(ACKNOWLEDGED_BYTES..=MAX_FRAME_BYTES).contains(&length) {
            return Err(BadFrame);
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = match <[u8; ACKNOWLEDGED_BYTES]>::try_from(bytes) {
            Ok(segments) => Frame::Acknowledged(u64::from_le_bytes(segments)),
            Err(_) => Frame::Message(bytes),
        };
        Ok(Some((frame, LENGTH_BYTES + length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_pieces_and_one_after_the_other() {
        let mut bytes = Vec::new();
        let frames =
            [Frame::Message(&[7; 24]), Frame::Acknowledged(3), Frame::Message(&[1; MAX_FRAME_BYTES])];
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
            [(0u32, false), (7, false), (8, true), (16 << 10, true), ((16 << 10) + 1, false)]
        {
            assert_eq!(Frame::decode(&length.to_le_bytes()).is_ok(), is_good, "{length}");
        }
    }
}
