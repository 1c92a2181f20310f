use polycast_core::units::Nanos;
use polycast_protocol::{ControlChannel, Delivery, Mismatch, Peer};

use super::inbox::Inbox;
use super::store::Store;
use super::timeline::Timeline;

/// The messages of one node and one communicator, in memory. Only one is handed over at a time, so
/// that its cost comes between it and the next one. A message that the node sends stays in the
/// buffer for the world to carry.
pub(super) struct MemoryChannel<'a> {
    inbox: &'a mut Inbox,
    store: &'a mut Store,
    timeline: &'a mut Timeline,
    now: Nanos,
    node: u32,
    /// The lane that is looked at first.
    pub first_lane: usize,
    pub has_capacity: bool,
    /// The peer that a message has been sent to.
    pub sent_to: Option<Peer>,
    /// The lane and the sender of the message that has been taken.
    pub taken: Option<(usize, u32)>,
}

impl<'a> MemoryChannel<'a> {
    /// A channel without capacity for sending, which looks at all lanes in their order.
    pub fn new(
        inbox: &'a mut Inbox,
        store: &'a mut Store,
        timeline: &'a mut Timeline,
        now: Nanos,
        node: u32,
    ) -> MemoryChannel<'a> {
        let (first_lane, has_capacity, sent_to, taken) = (0, false, None, None);
        MemoryChannel { inbox, store, timeline, now, node, first_lane, has_capacity, sent_to, taken }
    }
}

impl ControlChannel for MemoryChannel<'_> {
    type Error = Mismatch;

    fn has_capacity(&self) -> bool {
        self.has_capacity
    }

    fn send(&mut self, to: Peer, _message: &mut Vec<u8>) -> Result<(), Mismatch> {
        self.sent_to = Some(to);
        Ok(())
    }

    fn receive(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<bool, Mismatch> {
        let Some((lane, message)) = self.inbox.next(self.first_lane) else { return Ok(false) };
        let bytes = self.store.bytes(message.id);
        let delivery = take(bytes)?;
        self.timeline.message(self.now, self.node, format_args!("{delivery:?} from {}", message.from), bytes);
        match delivery {
            Delivery::Early => self.inbox.keep(lane, message),
            Delivery::Taken => {
                self.taken = Some((lane, message.from));
                self.store.release(message.id);
            }
        }
        Ok(true)
    }
}
