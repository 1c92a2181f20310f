//! The nodes that take by multicast: a ring of the source and all that hear it.
//!
//! ```text
//!   ring 1   source ═══ a, b, c, d                 c stops
//!   ring 2   source ═══ a, b, d        d ─▶ c      begins with the first block that one of them does not have
//! ```
//!
//! A ring that breaks without anybody being gone is made again, a few times; then all go on as a chain.

use polycast_units::Nanos;

use super::{Fleet, SILENT, SOURCE, Standing, Trouble};
use crate::segment::SEGMENTS_UNREAD;

/// The interval at which each node tells how far it is.
const TOLD: Nanos = Nanos(SILENT.0 / 4);
/// Breaks of the ring after which all go on as a chain.
const MAX_BREAKS: u32 = 3;
/// A member that is behind the first one by this part of what may be unread holds all up, if it is so for a whole window.
const HOLDS_UP: (u64, u64) = (3, 4);

/// The source, who is not listed, and the others in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Counts rings from 1.
    pub number: u32,
    /// Empty: there is no ring any more.
    pub members: Vec<u32>,
    /// The first block that not all members have.
    pub first_block: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Rings {
    members: Vec<u32>,
    number: u32,
    is_due: bool,
    breaks: u32,
    /// The time at which a ring that broke is made again: by then it is known who is gone.
    again_at: Option<Nanos>,
    /// Blocks that the source may be ahead of who reads slowest.
    unread: u64,
    /// The member that is last, and since when it holds all up.
    last: Option<(u32, Nanos)>,
    /// The sum of the blocks that the members had when one of them lacked what the source has, and
    /// since when the sum does not grow.
    still: Option<(u64, Nanos)>,
}

impl Rings {
    pub(super) fn remove(&mut self, node: u32) {
        let before = self.members.len();
        self.members.retain(|member| *member != node);
        if self.members.len() < before {
            (self.is_due, self.again_at, self.last) = (true, None, None);
        }
    }
}

impl Fleet {
    /// Begins with the nodes that are ready. Those of them that hear the source by multicast take
    /// by it, if they are two or more. The source may be ahead of the node that reads slowest by
    /// `unread` blocks.
    pub fn begin_by_multicast(
        &mut self,
        order: &[u32],
        hears: impl Fn(u32) -> bool,
        unread: u64,
        now: Nanos,
    ) {
        let takes = |node: &u32| *self.standing(*node) == Standing::Taking;
        let (members, deaf): (Vec<u32>, Vec<u32>) =
            order.iter().copied().filter(takes).partition(|node| hears(*node));
        if members.len() < 2 {
            return self.begin(order, now);
        }
        self.has_begun = true;
        self.line.extend(&members);
        self.rings = Rings { members, is_due: true, unread, ..Rings::default() };
        for node in deaf {
            self.append(node, now);
        }
    }

    /// The ring, if it has changed since the last call.
    pub fn next_ring(&mut self, now: Nanos) -> Option<Ring> {
        if !std::mem::take(&mut self.rings.is_due) {
            return None;
        }
        // Who has all does without.
        let takes = |node: &u32| *self.standing(*node) == Standing::Taking;
        let mut members: Vec<u32> = self.rings.members.iter().copied().filter(takes).collect();
        if members.len() < 2 || self.rings.breaks >= MAX_BREAKS {
            self.leave_ring(now);
            members.clear();
        }
        self.rings.number += 1;
        self.rings.members.clone_from(&members);
        self.rings.still = None;
        let first_block = members.iter().map(|node| self.have(*node)).min().unwrap_or(0);
        Some(Ring { number: self.rings.number, members, first_block })
    }

    /// Notes that a node says that its ring of this number does not work.
    pub fn ring_failed(&mut self, number: u32, now: Nanos) {
        if number == self.rings.number && self.rings.again_at.is_none() && !self.rings.members.is_empty() {
            self.rings.breaks += 1;
            // Twice as long as it takes to notice who is silent.
            self.rings.again_at = Some(now + SILENT + SILENT);
        }
    }

    /// True if some nodes take by multicast.
    pub fn is_ring(&self) -> bool {
        !self.rings.members.is_empty()
    }

    /// True if a node is in a ring whose others get on. Then it gets on, too, for they would wait
    /// for it before long, and its words are on their way.
    pub(super) fn is_in_ring_that_moves(&self, node: u32, now: Nanos) -> bool {
        let moves = |other: &u32| *other != node && now - self.nodes[*other as usize].moved < TOLD;
        self.rings.members.contains(&node) && self.rings.members.iter().any(moves)
    }

    pub(super) fn tick_ring(&mut self, now: Nanos) {
        if self.rings.again_at.is_some_and(|at| now >= at) {
            (self.rings.again_at, self.rings.is_due) = (None, true);
        }
        let is_taking = |node: &u32| *self.standing(*node) == Standing::Taking;
        let taking: Vec<u32> = self.rings.members.iter().copied().filter(is_taking).collect();
        let have = |node: &u32| self.have(*node);
        let Some(last) = taking.iter().copied().min_by_key(have) else { return };
        let (all, least) = (taking.iter().map(have).sum::<u64>(), self.have(last));
        let first = self.rings.members.iter().map(have).max().unwrap_or(0);
        let second = taking.iter().filter(|node| **node != last).map(have).min();
        self.rings.still = match self.rings.still {
            _ if self.have(SOURCE) <= least => None,
            Some((before, since)) if before == all => Some((all, since)),
            _ => Some((all, now)),
        };
        // All that a segment brings is there at once.
        let stalled = self.stalled(self.rings.unread / SEGMENTS_UNREAD);
        if self.rings.still.is_some_and(|(_, since)| now - since >= stalled) {
            (self.rings.breaks, self.rings.is_due) = (MAX_BREAKS, true);
            return;
        }
        let (part, of) = HOLDS_UP;
        let is_far = |have: u64| (first - have) * of >= self.rings.unread * part;
        let holds_up = is_far(least) && second.is_some_and(|second| !is_far(second));
        self.rings.last = match self.rings.last {
            _ if !holds_up => None,
            Some((node, since)) if node == last => Some((node, since)),
            _ => Some((last, now)),
        };
        if let Some((node, since)) = self.rings.last
            && now - since >= stalled
        {
            self.set_aside(node, Trouble::Slow, now);
        }
    }

    /// Lets the nodes in the ring go on as a chain.
    fn leave_ring(&mut self, now: Nanos) {
        let members = std::mem::take(&mut self.rings.members);
        let mut parent = SOURCE;
        for node in members {
            if *self.standing(node) == Standing::Taking {
                self.feed(node, parent, now);
                parent = node;
            }
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
