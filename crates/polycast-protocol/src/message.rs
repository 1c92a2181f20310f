//! What neighbours in the ring tell each other over MPI, and what a receiver tells the root.
//!
//! ```text
//! byte 0       1       2                4                        8
//!     ├─ kind ─┼ flags ┼──── runs ──────┼───── communicator ─────┤
//!   8 ├──────────────────────── operation ────────────────────────┤ 16
//!  16 ├────────────────────── message bytes ──────────────────────┤ 24
//!  24 ├ runs: first u32, count u32 … │ fragments, or a report
//! ```
//!
//! | kind | from, to | says |
//! |---|---|---|
//! | fragments | predecessor ▶ successor | these fragments, in the order of the runs |
//! | end | predecessor ▶ successor | nothing more comes by multicast: ask for what you miss |
//! | request | successor ▶ predecessor | send me these |
//! | done | successor ▶ predecessor | I have everything |
//! | arrived | a receiver ▶ root | I have called; and what I have missed lately |
//! | bye | to both neighbours | the communicator goes: nothing more will come |
//! | failed | predecessor ▶ successor | I have no message for you: the root has none, or I have no memory for it |
//! | deaf | to the predecessor | some node does not hear multicast any more: hand it on |
//! | loss probe | to a neighbour | nothing: the transport below notices that the message before got lost |
//!
//! They come over MPI, from processes of the same job, so there is no tag; the decoder still trusts nothing.

use super::fragmentation::{Fragmentation, Run};
use super::root_sync::ReceptionReport;

/// Bytes in front of the runs.
const HEADER_BYTES: usize = 24;
/// Bytes of a run.
pub(super) const RUN_BYTES: usize = 8;
/// Bits of the flags.
const ROOT_WAITED: u8 = 1;
const LEAVES: u8 = 2;
const DEAF: u8 = 4;

/// The longest message to a successor. Below the size from which MPIs ask before they send, so that what has been sent
/// arrives even if its sender does not call MPI for a while.
pub const MAX_TO_SUCCESSOR_BYTES: usize = 16 << 10;
/// The longest fragment: one must fit into a message to a successor.
pub const MAX_FRAGMENT_BYTES: usize = MAX_TO_SUCCESSOR_BYTES - HEADER_BYTES - RUN_BYTES;
/// The longest message to a predecessor.
pub const MAX_TO_PREDECESSOR_BYTES: usize = 4 << 10;
/// The length of the message that a receiver sends to the root.
pub const ARRIVED_BYTES: usize = HEADER_BYTES + ReceptionReport::BYTES;
/// The most runs that fit into one message to a predecessor.
pub const MAX_REQUEST_RUNS: usize = (MAX_TO_PREDECESSOR_BYTES - HEADER_BYTES) / RUN_BYTES;

/// The fields that every message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The communicator within the job: an MPI may deliver what was sent on a communicator that is freed by now.
    pub communicator: u32,
    /// The broadcast that the message is about.
    pub operation: u64,
    /// Bytes of the root's message; 0 if the sender does not know them.
    pub message_bytes: u64,
    /// True if the root had waited (root synchronisation); only with fragments.
    pub root_waited: bool,
    /// True if the root has said that the ranks are to leave multicast.
    pub leaves: bool,
    /// True if the sender knows of a node that does not hear multicast any more.
    pub knows_of_deaf: bool,
}

/// The kinds of messages, with their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Fragments, whose bytes follow each other in the order of the runs.
    Fragments(Runs<'a>, &'a [u8]),
    /// Everything has been sent by multicast.
    End,
    /// The successor misses the fragments of these runs.
    Request(Runs<'a>),
    /// The successor has everything.
    Done,
    /// A receiver has called the broadcast; with its report on earlier ones.
    Arrived(ReceptionReport),
    /// The communicator goes: nothing more will come.
    Bye,
    /// Empty; see the comment of `loss_probe.rs`.
    LossProbe,
    /// The predecessor has no message, and will have none.
    Failed,
    /// A node does not hear multicast any more.
    Deaf,
}

/// Runs of fragments as they stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs<'a>(&'a [u8]);

impl<'a> Runs<'a> {
    /// Reads runs; `None` if the bytes are no whole number of them.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Runs<'a>> {
        bytes.len().is_multiple_of(RUN_BYTES).then_some(Runs(bytes))
    }

    /// The runs, one after the other.
    pub fn iter(self) -> impl Iterator<Item = Run> {
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        self.0.chunks_exact(RUN_BYTES).map(move |run| Run { first: number(run), count: number(&run[4..]) })
    }
}

/// Takes a message apart; `None` if it is none.
pub fn decode(message: &[u8]) -> Option<(MessageHeader, Body<'_>)> {
    let (header, rest) = message.split_at_checked(HEADER_BYTES)?;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    let runs_bytes = usize::from(u16::from_le_bytes([header[2], header[3]])) * RUN_BYTES;
    let (runs, rest) = rest.split_at_checked(runs_bytes)?;
    let body = match header[0] {
        1 => Body::Fragments(Runs(runs), rest),
        2 => Body::End,
        3 => Body::Request(Runs(runs)),
        4 => Body::Done,
        5 => Body::Arrived(ReceptionReport::from_bytes(rest.try_into().ok()?)),
        6 => Body::Bye,
        7 => Body::LossProbe,
        8 => Body::Failed,
        9 => Body::Deaf,
        _ => return None,
    };
    let header = MessageHeader {
        communicator: (number(0) >> 32) as u32,
        operation: number(8),
        message_bytes: number(16),
        root_waited: header[1] & ROOT_WAITED != 0,
        leaves: header[1] & LEAVES != 0,
        knows_of_deaf: header[1] & DEAF != 0,
    };
    Some((header, body))
}

fn start(kind: u8, header: &MessageHeader, runs: &[Run], message: &mut Vec<u8>) {
    message.clear();
    let flags = [(header.root_waited, ROOT_WAITED), (header.leaves, LEAVES), (header.knows_of_deaf, DEAF)];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
    message.extend([kind, flags]);
    message.extend((runs.len() as u16).to_le_bytes());
    message.extend(header.communicator.to_le_bytes());
    message.extend(header.operation.to_le_bytes());
    message.extend(header.message_bytes.to_le_bytes());
    runs.iter().for_each(|run| run.write(message));
}

/// Bytes of a message with these runs of fragments of `cut`.
pub fn fragments_bytes(runs: usize, fragments: usize, cut: Fragmentation) -> usize {
    HEADER_BYTES + runs * RUN_BYTES + fragments * cut.payload_bytes() as usize
}

/// Replaces `message` by one with fragments of `data`.
pub fn encode_fragments(
    header: &MessageHeader,
    runs: &[Run],
    cut: Fragmentation,
    data: &[u8],
    message: &mut Vec<u8>,
) {
    start(1, header, runs, message);
    for range in runs.iter().filter_map(|run| cut.run_range(*run)) {
        message.extend(&data[range]);
    }
}

/// Replaces `message` by an end.
pub fn encode_end(header: &MessageHeader, message: &mut Vec<u8>) {
    start(2, header, &[], message);
}

/// Replaces `message` by a request; at most [`MAX_REQUEST_RUNS`] runs.
pub fn encode_request(header: &MessageHeader, runs: &[Run], message: &mut Vec<u8>) {
    start(3, header, runs, message);
}

/// Replaces `message` by a done.
pub fn encode_done(header: &MessageHeader, message: &mut Vec<u8>) {
    start(4, header, &[], message);
}

/// Replaces `message` by a bye.
pub fn encode_bye(header: &MessageHeader, message: &mut Vec<u8>) {
    start(6, header, &[], message);
}

/// Replaces `message` by a loss probe.
pub fn encode_loss_probe(header: &MessageHeader, message: &mut Vec<u8>) {
    start(7, header, &[], message);
}

/// Replaces `message` by a failed.
pub fn encode_failed(header: &MessageHeader, message: &mut Vec<u8>) {
    start(8, header, &[], message);
}

/// Replaces `message` by a deaf.
pub fn encode_deaf(header: &MessageHeader, message: &mut Vec<u8>) {
    start(9, header, &[], message);
}

/// Replaces `message` by an arrived.
pub fn encode_arrived(header: &MessageHeader, report: &ReceptionReport, message: &mut Vec<u8>) {
    start(5, header, &[], message);
    message.extend(report.to_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: MessageHeader = MessageHeader {
        communicator: 7,
        operation: u64::MAX,
        message_bytes: 10,
        root_waited: true,
        leaves: false,
        knows_of_deaf: true,
    };

    #[test]
    fn messages_are_read_as_they_were_written() {
        let mut message = Vec::new();
        let cut = Fragmentation::new(10, 3).unwrap();
        let runs = [Run { first: 3, count: 1 }, Run { first: 0, count: 2 }];
        encode_fragments(&HEADER, &runs, cut, b"0123456789", &mut message);
        let (header, body) = decode(&message).unwrap();
        assert_eq!(header, HEADER);
        let Body::Fragments(read, bytes) = body else { panic!("{body:?}") };
        assert_eq!(read.iter().collect::<Vec<_>>(), runs);
        assert_eq!(bytes, b"9012345");
        assert!(message.len() <= fragments_bytes(2, 3, cut));

        encode_request(&HEADER, &runs, &mut message);
        assert!(matches!(decode(&message), Some((HEADER, Body::Request(read))) if read.iter().eq(runs)));
        encode_end(&HEADER, &mut message);
        assert_eq!(decode(&message), Some((HEADER, Body::End)));
        encode_done(&HEADER, &mut message);
        assert_eq!(decode(&message), Some((HEADER, Body::Done)));
        encode_bye(&HEADER, &mut message);
        assert_eq!(decode(&message), Some((HEADER, Body::Bye)));
        encode_loss_probe(&HEADER, &mut message);
        assert_eq!(decode(&message), Some((HEADER, Body::LossProbe)));
        encode_failed(&HEADER, &mut message);
        assert_eq!(decode(&message), Some((HEADER, Body::Failed)));
        let leaves = MessageHeader { root_waited: false, leaves: true, knows_of_deaf: false, ..HEADER };
        encode_deaf(&leaves, &mut message);
        assert_eq!(decode(&message), Some((leaves, Body::Deaf)));
        let report = ReceptionReport { seen: [1, 2], repaired: [3, 4] };
        encode_arrived(&HEADER, &report, &mut message);
        assert_eq!(message.len(), ARRIVED_BYTES);
        assert_eq!(decode(&message), Some((HEADER, Body::Arrived(report))));
    }

    #[test]
    fn the_longest_request_fits() {
        let runs = vec![Run { first: 0, count: 1 }; MAX_REQUEST_RUNS];
        let mut message = Vec::new();
        encode_request(&HEADER, &runs, &mut message);
        assert!(message.len() <= MAX_TO_PREDECESSOR_BYTES);
    }

    proptest! {
        #[test]
        fn nothing_makes_the_decoder_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some((_, Body::Fragments(runs, _) | Body::Request(runs))) = decode(&bytes) {
                prop_assert!(runs.iter().count() <= 25);
            }
        }
    }
}
