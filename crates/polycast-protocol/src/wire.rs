//! The datagram.
//!
//! ```text
//! byte 0         1         2                   4                             8
//!     ├ version ─┼─ kind ──┼────── flags ──────┼──────────── job ────────────┤
//!   8 ├──────────── communicator ──────────────┼────────── fragment ─────────┤ 16
//!  16 ├──────────────────────────── operation ───────────────────────────────┤ 24
//!  24 ├────────────────────────────── tag ───────────────────────────────────┤ 32
//!  32 ├ payload …
//! ```
//! Numbers are little-endian. The tag is keyed and covers all that stands before and behind it.

use super::tag::Key;

/// Bytes in front of the payload.
pub const HEADER_BYTES: usize = 32;
const TAG_AT: usize = 24;
/// The offset of the job's four bytes, for programs that tell strangers' datagrams apart before
/// anything else.
pub const JOB_AT: usize = 4;
/// The version of the datagrams; the first byte of each.
pub const VERSION: u8 = 2;

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fragment of the message; with [`FLAG_LAST`] the last one, which so says how long the message is.
    Data,
    /// Every fragment has been sent; `fragment` is their number, the payload the message's length, if it has room for that.
    End,
    /// The exclusive or of all fragments, or with [`FLAG_CLASS`] of some, each filled up with zeroes; `fragment` is the
    /// message's length in 32 bits.
    Parity,
    /// A test whether multicast works between these nodes; `fragment` is the sender's node,
    /// `operation` the round.
    Probe,
    /// A node misses what the payload says, as runs; `fragment` is its number.
    Request,
    /// A node has everything; `fragment` is its number, the payload how many messages it has sent its predecessor.
    Done,
    /// A node, `fragment`, waits for its successor's "done", or the root for the "arrived" of a receiver: say it again if you have said it.
    Question,
    /// A receiver that was drawn has called; `fragment` is its node.
    Arrived,
}

impl Kind {
    /// True for kinds that nodes tell each other, beside the root's multicast.
    pub fn is_of_repairs(self) -> bool {
        matches!(self, Kind::Request | Kind::Done | Kind::Question | Kind::Arrived)
    }
}

/// Flag: a fragment is sent a second time, because the root's successor missed it.
pub const FLAG_AGAIN: u16 = 1;
/// Flag: the root had waited for a receiver before it began (root synchronisation).
pub const FLAG_WAITED: u16 = 2;
/// Flag: a node does not hear multicast any more, so the ranks are to leave it.
pub const FLAG_LEAVE: u16 = 4;
/// Flag: an answer to a request, not from the root on its own account.
pub const FLAG_ANSWER: u16 = 8;
/// Flag of a request: the node that asks need not be told that everything has been sent.
pub const FLAG_KNOWS_END: u16 = 16;
/// Flag of a request: the node has asked before, and got no answer.
pub const FLAG_REPEATED: u16 = 32;
/// Flag: a parity of a class of fragments, whose index stands in bits 8 to 13.
pub const FLAG_CLASS: u16 = 64;
/// Flag of data: no fragment follows this one.
pub const FLAG_LAST: u16 = 128;
/// Bytes of a length in the payload of an end.
pub const LENGTH_BYTES: usize = 8;

/// The fields in front of the payload, except for version and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the datagram.
    pub kind: Kind,
    /// The flags, `FLAG_*`; unknown ones are ignored.
    pub flags: u16,
    /// The job, so that a stranger's datagram is dropped before its tag is computed.
    pub job: u32,
    /// The communicator within the job.
    pub communicator: u32,
    /// The broadcast within the communicator.
    pub operation: u64,
    /// The fragment of the message, or what the [`Kind`] says.
    pub fragment: u32,
}

/// The reason why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Shorter than a header.
    Short,
    /// A datagram of another job, or of something else that uses the same group.
    Foreign,
    /// A datagram that names our job, but has a wrong tag: damaged on its way, or made by somebody
    /// without the key.
    Forged,
    /// The tag is right, but this version does not know what it says.
    Unknown,
}

/// Appends a datagram to `datagrams`.
pub fn seal(header: &Header, payload: &[u8], key: &Key, datagrams: &mut Vec<u8>) {
    let start = datagrams.len();
    let kind = match header.kind {
        Kind::Data => 1,
        Kind::End => 2,
        Kind::Parity => 3,
        Kind::Probe => 4,
        Kind::Request => 5,
        Kind::Done => 6,
        Kind::Question => 7,
        Kind::Arrived => 8,
    };
    datagrams.extend([VERSION, kind]);
    datagrams.extend(header.flags.to_le_bytes());
    datagrams.extend(header.job.to_le_bytes());
    datagrams.extend(header.communicator.to_le_bytes());
    datagrams.extend(header.fragment.to_le_bytes());
    datagrams.extend(header.operation.to_le_bytes());
    let tag = key.tag([&datagrams[start..], payload]);
    datagrams.extend(tag.to_le_bytes());
    datagrams.extend(payload);
}

/// Checks a datagram from the network and takes it apart. Nothing but the job is looked at before the tag is right.
pub fn open<'a>(datagram: &'a [u8], job: u32, key: &Key) -> Result<(Header, &'a [u8]), Reject> {
    let (front, behind) = datagram.split_at_checked(TAG_AT).ok_or(Reject::Short)?;
    let (tag, payload) = behind.split_first_chunk::<8>().ok_or(Reject::Short)?;
    if u32_at(front, JOB_AT) != job {
        return Err(Reject::Foreign);
    }
    if key.tag([front, payload]) != u64::from_le_bytes(*tag) {
        return Err(Reject::Forged);
    }
    let kind = match (front[0], front[1]) {
        (VERSION, 1) => Kind::Data,
        (VERSION, 2) => Kind::End,
        (VERSION, 3) => Kind::Parity,
        (VERSION, 4) => Kind::Probe,
        (VERSION, 5) => Kind::Request,
        (VERSION, 6) => Kind::Done,
        (VERSION, 7) => Kind::Question,
        (VERSION, 8) => Kind::Arrived,
        _ => return Err(Reject::Unknown),
    };
    let header = Header {
        kind,
        flags: u16::from_le_bytes([front[2], front[3]]),
        job,
        communicator: u32_at(front, 8),
        fragment: u32_at(front, 12),
        operation: u64::from(u32_at(front, 16)) | u64::from(u32_at(front, 20)) << 32,
    };
    Ok((header, payload))
}

/// Reads a little-endian number; `bytes` has at least 4 bytes behind `at`.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tag::KEY_BYTES;
    use super::*;

    fn key(seed: u8) -> Key {
        Key::from_bytes([seed; KEY_BYTES])
    }

    fn header() -> Header {
        Header { kind: Kind::Data, flags: 2, job: 7, communicator: 3, operation: u64::MAX - 1, fragment: 9 }
    }

    fn sealed(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        seal(header, payload, &key(1), &mut datagram);
        datagram
    }

    #[test]
    fn what_is_dropped_is_dropped_for_the_right_reason() {
        let datagram = sealed(&header(), b"data");
        assert_eq!(datagram.len(), HEADER_BYTES + 4);
        assert_eq!(open(&datagram[..31], 7, &key(1)), Err(Reject::Short));
        assert_eq!(open(&[], 7, &key(1)), Err(Reject::Short));
        assert_eq!(open(&datagram, 8, &key(1)), Err(Reject::Foreign));
        assert_eq!(open(&datagram, 7, &key(2)), Err(Reject::Forged));
        assert_eq!(open(&datagram[..35], 7, &key(1)), Err(Reject::Forged), "cut short");

        let mut from_the_future = datagram.clone();
        from_the_future[0] = VERSION + 1;
        let tag = key(1).tag([&from_the_future[..TAG_AT], b"data"]);
        from_the_future[TAG_AT..HEADER_BYTES].copy_from_slice(&tag.to_le_bytes());
        assert_eq!(open(&from_the_future, 7, &key(1)), Err(Reject::Unknown));
    }

    proptest! {
        #[test]
        fn a_datagram_survives_the_wire_and_no_changed_one_is_accepted(
            kind in prop::sample::select(vec![
                Kind::Data, Kind::End, Kind::Parity, Kind::Probe, Kind::Request, Kind::Done, Kind::Question, Kind::Arrived,
            ]),
            (flags, job, communicator, operation, fragment) in any::<(u16, u32, u32, u64, u32)>(),
            payload in prop::collection::vec(any::<u8>(), 0..1500),
            flipped in any::<prop::sample::Index>(),
            bit in 0..8u32,
        ) {
            let header = Header { kind, flags, job, communicator, operation, fragment };
            let mut datagram = sealed(&header, &payload);
            prop_assert_eq!(open(&datagram, job, &key(1)), Ok((header, &payload[..])));
            let at = flipped.index(datagram.len());
            datagram[at] ^= 1u8 << bit;
            prop_assert!(open(&datagram, job, &key(1)).is_err());
        }
    }
}
