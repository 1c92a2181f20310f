//! What a communicator turns out to have: multicast between its nodes, memory that the ranks of a node share.

use super::super::Capabilities;
use super::words::{Again, RankExchange};

/// Calls for which multicast would have been chosen, until it is tried again where it did not work;
/// then twice as many, and so on up to the most. So it is tried before twice the time is over after
/// which the leaders hold it worth its time. Such a try takes a second, any other one message to
/// and from each rank.
const RETRY_AFTER_CALLS: u32 = 16;
const MAX_RETRY_AFTER_CALLS: u32 = 1 << 16;

/// Calls for which multicast is chosen, from one look whether a root has told the ranks to leave it
/// to the next. All ranks look before the same calls, when those before are over.
const CALLS_UNTIL_LOOK: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Multicast {
    Untried,
    Works,
    /// It does not work, and is tried again after so many calls for which it would have been chosen.
    Lost {
        calls_until_retry: u32,
        interval: u32,
    },
}

/// Capabilities of a communicator, as far as they were tried.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    /// The capabilities; what was not tried is assumed to be there.
    pub capabilities: Capabilities,
    multicast: Multicast,
    /// `None`: not tried.
    has_memory: Option<bool>,
    shares_nodes: bool,
    calls_until_look: u32,
}

impl Tried {
    pub fn new(has_multicast: bool, shares_nodes: bool) -> Tried {
        let multicast = if has_multicast { Multicast::Works } else { Multicast::Untried };
        let (capabilities, calls_until_look) = (Capabilities::ALL, CALLS_UNTIL_LOOK);
        Tried { capabilities, multicast, has_memory: None, shares_nodes, calls_until_look }
    }

    /// Capabilities that have not been tried. Where ranks share nodes, data that comes by multicast
    /// is handed on through memory, if there is any: so multicast counts as untried until memory is
    /// tried, or some ranks would go another way later.
    pub fn untried(&self) -> Capabilities {
        let is_memory_untried = self.has_memory.is_none();
        let is_multicast_untried =
            self.multicast == Multicast::Untried || self.shares_nodes && is_memory_untried;
        let multicast = if is_multicast_untried { Capabilities::MULTICAST } else { Capabilities::NONE };
        let memory = if is_memory_untried { Capabilities::SHARED } else { Capabilities::NONE };
        multicast | memory
    }

    /// True if calls are looked at because multicast is to be tried again.
    pub fn waits_for_multicast(&self) -> bool {
        matches!(self.multicast, Multicast::Lost { .. })
    }

    /// Whether the communicator has what `needs` names; if that is not known, the ranks learn it
    /// first.
    pub fn provides(&mut self, needs: Capabilities) -> Result<bool, RankExchange> {
        let mut has_multicast = true;
        if needs.has(Capabilities::MULTICAST) {
            match self.multicast {
                Multicast::Untried => return Err(RankExchange::Multicast),
                Multicast::Works if self.calls_until_look == 0 => return Err(RankExchange::Look),
                _ => {}
            }
            has_multicast = self.multicast == Multicast::Works;
        }
        // Through memory ranks of a node hand on what has come; without it they send messages.
        let hands_on = needs.has(Capabilities::MULTICAST) && self.shares_nodes;
        if has_multicast && self.has_memory.is_none() && (hands_on || needs.has(Capabilities::SHARED)) {
            return Err(RankExchange::Memory);
        }
        if needs.has(Capabilities::MULTICAST) {
            self.calls_until_look = self.calls_until_look.saturating_sub(1);
        }
        let has_memory = !needs.has(Capabilities::SHARED) || self.has_memory == Some(true);
        Ok(has_multicast && has_memory)
    }

    /// Counts a call for which multicast would be chosen. True if it is to be tried again before.
    pub fn is_time_to_retry(&mut self) -> bool {
        let Multicast::Lost { calls_until_retry, .. } = &mut self.multicast else { return false };
        *calls_until_retry = calls_until_retry.saturating_sub(1);
        *calls_until_retry == 0
    }

    pub fn tried_multicast(&mut self, outcome: Result<(), Again>) {
        match outcome {
            Ok(()) => {
                (self.multicast, self.calls_until_look) = (Multicast::Works, CALLS_UNTIL_LOOK);
                self.capabilities = self.capabilities | Capabilities::MULTICAST;
            }
            Err(again) => self.lose_multicast(match (self.multicast, again) {
                (_, Again::Never) => u32::MAX,
                (Multicast::Lost { interval, .. }, Again::Later) => {
                    interval.saturating_mul(2).min(MAX_RETRY_AFTER_CALLS)
                }
                _ => RETRY_AFTER_CALLS,
            }),
        }
    }

    pub fn looked(&mut self, has_died: bool) {
        self.calls_until_look = CALLS_UNTIL_LOOK;
        if has_died {
            self.lose_multicast(RETRY_AFTER_CALLS);
        }
    }

    fn lose_multicast(&mut self, interval: u32) {
        self.multicast = Multicast::Lost { calls_until_retry: interval, interval };
        self.capabilities = self.capabilities.without(Capabilities::MULTICAST);
    }

    pub fn tried_memory(&mut self, has_memory: bool) {
        self.has_memory = Some(has_memory);
        if !has_memory {
            self.capabilities = self.capabilities.without(Capabilities::SHARED);
        }
    }
}
