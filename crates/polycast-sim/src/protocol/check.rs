//! The rules that must hold at every step, whatever the network does.

use fixedbitset::FixedBitSet;
use polycast_core::units::Nanos;
use polycast_protocol::message::{self, Body};
use polycast_protocol::{Endpoint, Fragmentation, Mismatch, Run};

/// The most bytes that a node may keep of broadcasts that it has not begun, per communicator.
const MAX_EARLY_BYTES: usize = 4 << 20;

/// A rule that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A byte that is neither the root's nor what stood there before.
    #[error("byte {at} of the buffer is {found:#04x}, which the root has not sent")]
    WrongByte {
        /// The byte's place in the message.
        at: usize,
        /// The byte that stands there.
        found: u8,
    },
    /// Delivered twice, or taken back.
    #[error("byte {at} of the buffer changed after it had been delivered")]
    ChangedByte {
        /// The byte's place in the message.
        at: usize,
    },
    /// A node has returned without all of the data.
    #[error("finished, but byte {at} has not been delivered")]
    Incomplete {
        /// The byte's place in the message.
        at: usize,
    },
    /// Nodes have not finished, and no event is left.
    #[error("nothing happens any more, but these nodes have not finished: {nodes:?}")]
    Stuck {
        /// The nodes that have not finished.
        nodes: Vec<u32>,
    },
    /// The run goes on and on.
    #[error("not finished after {steps} steps")]
    Endless {
        /// The number of steps.
        steps: u64,
    },
    /// A limit was passed.
    #[error("{found} {what}, expected at most {most}")]
    Memory {
        /// The thing that is limited.
        what: &'static str,
        /// The amount that was found.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A fragment was asked for, or sent to the successor, for the second time, or without a reason.
    #[error("fragment {fragment} {what}")]
    Needless {
        /// The fragment's number.
        fragment: u32,
        /// The way in which the fragment was needless.
        what: &'static str,
    },
    /// A message that is sent once per broadcast was sent again.
    #[error("said {word} twice")]
    SaidTwice {
        /// The message.
        word: &'static str,
    },
    /// A node has returned, and somebody still needs it.
    #[error("node {by} asks it for something after it has returned from broadcast {operation}")]
    NeededAgain {
        /// The node that asks.
        by: u32,
        /// The broadcast.
        operation: u64,
    },
    /// A node believes that another one has another message.
    #[error("{0}")]
    Mismatch(#[from] Mismatch),
    /// After a broadcast some nodes were told to leave multicast, and some not.
    #[error("after broadcast {index} of its communicator it {} told to leave multicast, and another node {}", if *.is_told { "is" } else { "is not" }, if *.is_told { "is not" } else { "is" })]
    Disagreement {
        /// The place of the broadcast among the communicator's.
        index: usize,
        /// Whether this node was told.
        is_told: bool,
    },
    /// A node has sent bytes that are no message of the protocol.
    #[error("sent a message that cannot be read")]
    Unreadable,
    /// A datagram that nobody in the job has sent was accepted.
    #[error("accepted a datagram that no node has sent")]
    Forged,
    /// A driver that waits for this would not sleep any more.
    #[error("wants to be asked at {deadline}, which has passed, and has nothing to do")]
    Idle {
        /// The time that has passed.
        deadline: Nanos,
    },
}

/// A receiver's buffer: before a byte is delivered, it is the complement of what the root has sent.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub bytes: Vec<u8>,
    before: Vec<u8>,
}

impl Buffer {
    pub fn begin(&mut self, message: &[u8]) {
        self.bytes.clear();
        self.bytes.extend(message.iter().map(|byte| !byte));
        self.before.clear();
        self.before.extend_from_slice(&self.bytes);
    }

    /// Checks that since the last call only complements have become right bytes.
    pub fn check(&mut self, message: &[u8]) -> Result<(), Violation> {
        let all = || self.bytes.iter().zip(&self.before).zip(message);
        // Without a branch for each byte: after every step all bytes are looked at.
        let is_allowed =
            |found: u8, before: u8, right: u8| (found == before) | ((found == right) & (before != right));
        if all().fold(true, |so_far, ((found, before), right)| so_far & is_allowed(*found, *before, *right)) {
            self.before.copy_from_slice(&self.bytes);
            return Ok(());
        }
        let wrong = all().position(|((found, before), right)| !is_allowed(*found, *before, *right));
        let at = wrong.expect("seen above");
        let (found, was_delivered) = (self.bytes[at], self.before[at] == message[at]);
        Err(if was_delivered { Violation::ChangedByte { at } } else { Violation::WrongByte { at, found } })
    }

    pub fn finished(&self, message: &[u8]) -> Result<(), Violation> {
        if self.bytes == message {
            return Ok(());
        }
        let at = self.bytes.iter().zip(message).position(|(found, right)| found != right);
        Err(Violation::Incomplete { at: at.unwrap_or(self.bytes.len()) })
    }
}

/// The messages that one node has sent in one broadcast.
#[derive(Debug, Default)]
pub(super) struct Said {
    asked: FixedBitSet,
    forwarded: FixedBitSet,
    done: bool,
    end: bool,
    arrived: bool,
    /// True once the node has said in any broadcast that it is deaf: that may be said once only.
    deaf: bool,
}

impl Said {
    pub fn begin(&mut self, fragments: u32) {
        for set in [&mut self.asked, &mut self.forwarded] {
            set.clear();
            set.grow(fragments as usize);
        }
        (self.done, self.end, self.arrived) = (false, false, false);
    }

    /// Checks a message that the node sends. `has` says whether the node has a fragment.
    pub fn message(
        &mut self,
        bytes: &[u8],
        cut: Fragmentation,
        has: impl Fn(u32) -> bool,
    ) -> Result<(), Violation> {
        let (_, body) = message::decode(bytes).ok_or(Violation::Unreadable)?;
        let once = |said: &mut bool, word| {
            if std::mem::replace(said, true) { Err(Violation::SaidTwice { word }) } else { Ok(()) }
        };
        let each = |set: &mut FixedBitSet, runs: message::Runs<'_>, what: [&'static str; 2], wanted: bool| {
            for fragment in runs.iter().flat_map(Run::fragments) {
                if fragment >= cut.fragments() {
                    return Err(Violation::Needless { fragment, what: "does not exist" });
                } else if set.put(fragment as usize) {
                    return Err(Violation::Needless { fragment, what: what[0] });
                } else if has(fragment) != wanted {
                    return Err(Violation::Needless { fragment, what: what[1] });
                }
            }
            if runs.iter().next().is_none() { Err(Violation::Unreadable) } else { Ok(()) }
        };
        match body {
            Body::Fragments(runs, _) => each(
                &mut self.forwarded,
                runs,
                ["sent to the successor twice", "sent to the successor before it is here"],
                true,
            ),
            Body::Request(runs) => {
                each(&mut self.asked, runs, ["asked for twice", "asked for though it is here"], false)
            }
            Body::End => once(&mut self.end, "end"),
            Body::Done => once(&mut self.done, "done"),
            Body::Arrived(_) => once(&mut self.arrived, "arrived"),
            // A job's driver says it, when no broadcast is in progress.
            Body::Bye => Err(Violation::Unreadable),
            // Nodes here have the same message.
            Body::Failed => Err(Violation::Unreadable),
            Body::Deaf => once(&mut self.deaf, "deaf"),
            Body::LossProbe => Ok(()),
        }
    }
}

/// Checks that no message that needs an answer comes to a node that has ended its broadcast, unless
/// the sender has everything: then a datagram that said so has overtaken the message.
pub(super) fn not_needed(
    bytes: &[u8],
    from: u32,
    sender: &Endpoint,
    next_operation: u64,
) -> Result<(), Violation> {
    let (header, body) = message::decode(bytes).ok_or(Violation::Unreadable)?;
    let is_over = |next: u64| (header.operation.wrapping_sub(next) as i64) < 0;
    let sender_has_all =
        is_over(sender.operation()) || header.operation == sender.operation() && sender.is_complete();
    if is_over(next_operation) && !sender_has_all && matches!(body, Body::Request(_) | Body::Done) {
        return Err(Violation::NeededAgain { by: from, operation: header.operation });
    }
    Ok(())
}

/// Checks the limits of what a node keeps for later: early datagrams, and one early message from
/// each neighbour and from each receiver that was drawn.
pub(super) fn memory(early_bytes: usize, kept: usize, nodes: u32) -> Result<(), Violation> {
    let bounded = |what, found, most| {
        if found > most { Err(Violation::Memory { what, found, most }) } else { Ok(()) }
    };
    bounded("bytes of early datagrams", early_bytes, MAX_EARLY_BYTES)?;
    bounded("early messages", kept, nodes as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_only_ever_becomes_right() {
        let mut buffer = Buffer::default();
        buffer.begin(b"data");
        assert_eq!(buffer.finished(b"data"), Err(Violation::Incomplete { at: 0 }));
        buffer.bytes[1] = b'a';
        assert_eq!(buffer.check(b"data"), Ok(()));
        buffer.bytes[1] = !b'a';
        assert_eq!(buffer.check(b"data"), Err(Violation::ChangedByte { at: 1 }));
        buffer.begin(b"data");
        buffer.bytes[3] = b'x';
        assert_eq!(buffer.check(b"data"), Err(Violation::WrongByte { at: 3, found: b'x' }));
    }
}
