//! Who held which channel when, and who waited.

use super::workload::Load;
use super::{Channel, Letter, Message};

/// What a network keeps while it is asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// In the order in which it became known until when they would be.
    pub holds: Vec<Hold>,
    /// In the order of their ends.
    pub waits: Vec<Wait>,
}

/// A message holds a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which message.
    pub message: Message,
    /// Which channel.
    pub channel: Channel,
    /// Its head starts over the channel.
    pub from: u64,
    /// Its last flit has left the channel's buffer.
    pub until: u64,
}

/// A message's head waits for a channel, and all that it holds stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Which message.
    pub message: Message,
    /// The channel that it was given.
    pub channel: Channel,
    /// It asks.
    pub from: u64,
    /// It is given the channel.
    pub until: u64,
}

/// One multicast, and all that was in the network meanwhile.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The root's call.
    pub called: u64,
    /// The last receipt.
    pub received: u64,
    /// The multicast's messages.
    pub letters: Vec<Letter<Load>>,
    /// Everybody's, between these two.
    pub record: Record,
}

impl Trace {
    /// Whether a message is one of the multicast's.
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
