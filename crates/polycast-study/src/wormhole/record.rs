//! Records of a network: who held which channel when, and who waited.

use super::workload::Load;
use super::{Channel, Letter, Message};

/// A record of what a network did while it was asked to keep one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The channels that messages held, in the order in which it became known until when they
    /// would.
    pub holds: Vec<Hold>,
    /// The waits of messages' heads, in the order of their ends.
    pub waits: Vec<Wait>,
}

/// A time for which a message holds a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The message.
    pub message: Message,
    /// The channel.
    pub channel: Channel,
    /// The time at which the message's head starts over the channel.
    pub from: u64,
    /// The time at which the message's last flit has left the channel's buffer.
    pub until: u64,
}

/// A time for which a message's head waits for a channel, while all that the message holds stands
/// still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The message.
    pub message: Message,
    /// The channel that the message was given in the end.
    pub channel: Channel,
    /// The time at which the head asks.
    pub from: u64,
    /// The time at which the head is given the channel.
    pub until: u64,
}

/// A multicast, and all that was in the network meanwhile.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The time of the root's call.
    pub called: u64,
    /// The time of the last receipt.
    pub received: u64,
    /// The multicast's messages.
    pub letters: Vec<Letter<Load>>,
    /// The holds and waits of all messages between these two times.
    pub record: Record,
}

impl Trace {
    /// True if a message is one of the multicast's.
    pub fn is_own(&self, message: &Message) -> bool {
        self.letters.iter().any(|letter| letter.number == message.number)
    }

    /// The parts of a hold in which its message stood still.
    pub fn blocked(&self, hold: &Hold) -> impl Iterator<Item = (u64, u64)> {
        let waits = self.record.waits.iter().filter(|wait| wait.message.number == hold.message.number);
        let (from, until) = (hold.from, hold.until);
        waits
            .map(move |wait| (wait.from.max(from), wait.until.min(until)))
            .filter(|(from, until)| from < until)
    }
}
