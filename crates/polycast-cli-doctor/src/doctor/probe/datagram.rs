//! The datagram of the probe.
//!
//! ```text
//!   0       8       16      20      24         28        …
//!   ┌───────┬───────┬───────┬───────┬──────────┬─────────────────────┐
//!   │ magic │ run   │ round │sender │ sequence │ pattern             │   numbers in network order
//!   └───────┴───────┴───────┴───────┴──────────┴─────────────────────┘
//! ```

/// Bytes before the pattern, and the least that a datagram of the probe has.
pub const HEADER_BYTES: usize = 28;

const MAGIC: [u8; 8] = *b"pcdoctor";

/// The header of a probe datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run of the doctor.
    pub run: u64,
    /// The round of the run.
    pub round: u32,
    /// The sender's number, counted from 0.
    pub sender: u32,
    /// The datagram's number in its series, counted from 0.
    pub sequence: u32,
}

/// Fills a datagram.
pub fn encode(header: Header, datagram: &mut [u8]) {
    let (head, pattern) = datagram.split_at_mut(HEADER_BYTES);
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&header.run.to_be_bytes());
    head[16..20].copy_from_slice(&header.round.to_be_bytes());
    head[20..24].copy_from_slice(&header.sender.to_be_bytes());
    head[24..28].copy_from_slice(&header.sequence.to_be_bytes());
    for (offset, byte) in pattern.iter_mut().enumerate() {
        *byte = pattern_byte(header.sequence, offset);
    }
}

/// Reads a datagram and checks its pattern; `None` if it is not one of ours, whole and unchanged.
pub fn decode(datagram: &[u8]) -> Option<Header> {
    let (head, pattern) = datagram.split_at_checked(HEADER_BYTES)?;
    let word = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    if head[..8] != MAGIC {
        return None;
    }
    let run = u64::from_be_bytes(head[8..16].try_into().ok()?);
    let header = Header { run, round: word(16)?, sender: word(20)?, sequence: word(24)? };
    let is_whole = |(offset, byte): (usize, &u8)| *byte == pattern_byte(header.sequence, offset);
    pattern.iter().enumerate().all(is_whole).then_some(header)
}

/// The byte of the pattern at `offset`; it differs between neighbouring datagrams and neighbouring
/// bytes.
fn pattern_byte(sequence: u32, offset: usize) -> u8 {
    (sequence as usize).wrapping_mul(7).wrapping_add(offset) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { run: u64::MAX - 1, round: 2, sender: 3, sequence: 4 };

    #[test]
    fn what_was_written_is_read() {
        for bytes in [HEADER_BYTES, HEADER_BYTES + 1, 1472] {
            let mut datagram = vec![0; bytes];
            encode(HEADER, &mut datagram);
            assert_eq!(decode(&datagram), Some(HEADER), "{bytes}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(datagram: Vec<u8>) {
            if let Some(header) = decode(&datagram) {
                let mut again = vec![0; datagram.len()];
                encode(header, &mut again);
                assert_eq!(again, datagram);
            }
        }

        #[test]
        fn every_header_is_read_as_it_was_written(run: u64, round: u32, sender: u32, sequence: u32, pattern in 0_usize..2_000) {
            let header = Header { run, round, sender, sequence };
            let mut datagram = vec![0; HEADER_BYTES + pattern];
            encode(header, &mut datagram);
            assert_eq!(decode(&datagram), Some(header));
        }
    }

    #[test]
    fn what_is_short_changed_or_foreign_is_not() {
        let mut whole = vec![0; 64];
        encode(HEADER, &mut whole);
        assert_eq!(decode(&whole[..HEADER_BYTES - 1]), None);
        assert_eq!(decode(b""), None);
        for at in [0, 7, 27, 28, 63] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_ne!(decode(&changed), Some(HEADER), "{at}");
        }
    }
}
