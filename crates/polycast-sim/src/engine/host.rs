use std::collections::HashMap;

use polycast_core::executor::{Executor, Limits, StepId};
use polycast_core::schedule::{Schedule, Slice};

use super::Message;
use crate::buffers::Data;

/// A rank with its processor.
pub(crate) struct Host<S> {
    pub executor: Executor<S>,
    /// The time at which the processor has done what it has begun.
    pub processor_free_ns: u64,
    pub finished_ns: Option<u64>,
    /// The number of receives that have been posted on each lane; they are posted in order.
    posted: Vec<u64>,
    /// The messages that came before their receive was posted.
    unexpected: HashMap<StepId, Message>,
    unexpected_bytes: u64,
    pub peak_unexpected_bytes: u64,
    /// The places for the data of posted receives, if data is carried.
    pub targets: HashMap<StepId, Slice>,
    /// The rank's buffers, if data is carried.
    pub data: Option<Data>,
}

impl<S: Schedule> Host<S> {
    pub fn new(schedule: S, limits: Limits, start_ns: u64, data: Option<Data>) -> Self {
        Host {
            posted: vec![0; schedule.lanes().len()],
            executor: Executor::new(schedule, limits),
            processor_free_ns: start_ns,
            finished_ns: None,
            unexpected: HashMap::new(),
            unexpected_bytes: 0,
            peak_unexpected_bytes: 0,
            targets: HashMap::new(),
            data,
        }
    }

    /// Posts the receive of the lane's next step, and returns the message if it had come already.
    pub fn post(&mut self, id: StepId, target: Slice) -> Option<Message> {
        if self.data.is_some() {
            self.targets.insert(id, target);
        }
        debug_assert_eq!(self.posted[id.lane], id.index);
        self.posted[id.lane] += 1;
        let message = self.unexpected.remove(&id)?;
        self.unexpected_bytes -= message.buffered_bytes();
        Some(message)
    }

    /// Takes in a message that has arrived, and hands it back if its receive has been posted.
    pub fn arrive(&mut self, message: Message) -> Option<Message> {
        let id = message.receive;
        if id.index < self.posted[id.lane] {
            return Some(message);
        }
        self.unexpected_bytes += message.buffered_bytes();
        self.peak_unexpected_bytes = self.peak_unexpected_bytes.max(self.unexpected_bytes);
        self.unexpected.insert(id, message);
        None
    }

    /// Occupies the processor, and returns the time at which that is over.
    pub fn work(&mut self, now_ns: u64, duration_ns: u64) -> u64 {
        self.processor_free_ns = self.processor_free_ns.max(now_ns) + duration_ns;
        self.processor_free_ns
    }
}
