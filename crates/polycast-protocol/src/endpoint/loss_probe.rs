//! On a network that loses packets, MPI's connections lose them, too. TCP notices at once that a packet is missing when a later
//! one arrives. The messages of the ring are short and alone: if one is lost, nothing follows it, and Linux waits 200 ms
//! before it sends it again. So where losses have been seen, each message is followed by an empty one.

use super::Peer;

/// The number of broadcasts after a loss during which probes are sent.
const BROADCASTS_AFTER_A_LOSS: u32 = 16;

/// Decides which messages are followed by a loss probe, an empty message.
#[derive(Debug, Default)]
pub(super) struct LossProbe {
    /// Broadcasts during which probes are still sent.
    broadcasts: u32,
    /// Broadcasts for which the connection to the predecessor may still stand still.
    urgent_broadcasts: u32,
    due: Option<Peer>,
}

impl LossProbe {
    /// A node has asked for what it misses, or something has been sent again.
    pub fn saw_loss(&mut self) {
        self.broadcasts = BROADCASTS_AFTER_A_LOSS;
    }

    /// The node has asked by multicast, or would have.
    pub fn waited_long(&mut self) {
        self.urgent_broadcasts = BROADCASTS_AFTER_A_LOSS;
    }

    /// True if the node has asked by multicast, in this broadcast or shortly before.
    pub fn is_urgent(&self) -> bool {
        self.urgent_broadcasts > 0
    }

    /// True if losses have been seen, in this broadcast or shortly before.
    pub fn sees_losses(&self) -> bool {
        self.broadcasts > 0
    }

    pub fn broadcast_ended(&mut self) {
        self.broadcasts = self.broadcasts.saturating_sub(1);
        self.urgent_broadcasts = self.urgent_broadcasts.saturating_sub(1);
    }

    /// A message has been sent, so a probe may be due. The message of a drawn receiver gets none:
    /// it is alone on its way, with one receive posted for it.
    pub fn sent(&mut self, to: Peer) {
        self.due = Some(to).filter(|to| self.broadcasts > 0 && !matches!(to, Peer::Drawn(_)));
    }

    pub fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The node that the due probe goes to; `None` when asked again.
    pub fn take(&mut self) -> Option<Peer> {
        self.due.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_followed_by_one_loss_probe_until_losses_are_long_past() {
        let mut probe = LossProbe::default();
        probe.sent(Peer::Successor);
        assert_eq!(probe.take(), None, "nothing has been lost");
        probe.saw_loss();
        probe.sent(Peer::Drawn(3));
        assert!(!probe.is_due());
        for _ in 0..BROADCASTS_AFTER_A_LOSS {
            probe.sent(Peer::Predecessor);
            assert_eq!((probe.take(), probe.take()), (Some(Peer::Predecessor), None));
            probe.broadcast_ended();
        }
        probe.sent(Peer::Successor);
        assert_eq!(probe.take(), None);
    }
}
