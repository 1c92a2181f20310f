//! Events in the order of virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in the order of their times. Of those at the same time the one that was scheduled first
/// comes first, so that every run is the same.
#[derive(Debug)]
pub struct EventQueue<E> {
    entries: BinaryHeap<Reverse<ScheduledEvent<E>>>,
    scheduled: u64,
}

#[derive(Debug)]
struct ScheduledEvent<E> {
    at_ns: u64,
    from: u32,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// A queue without events.
    pub fn new() -> Self {
        EventQueue::default()
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.scheduled = 0;
    }

    /// Schedules an event behind all others at the same time.
    pub fn schedule(&mut self, at_ns: u64, event: E) {
        self.schedule_from(0, at_ns, event);
    }

    /// Schedules an event with a place among those at the same time: the one with the lowest `from`
    /// comes first, in whatever order they were scheduled.
    pub fn schedule_from(&mut self, from: u32, at_ns: u64, event: E) {
        self.entries.push(Reverse(ScheduledEvent { at_ns, from, number: self.scheduled, event }));
        self.scheduled += 1;
    }

    /// The time of the next event.
    pub fn soonest(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.at_ns)
    }
}

/// Takes the next event, with its time.
impl<E> Iterator for EventQueue<E> {
    type Item = (u64, E);

    fn next(&mut self) -> Option<(u64, E)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue { entries: BinaryHeap::new(), scheduled: 0 }
    }
}

impl<E> PartialEq for ScheduledEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for ScheduledEvent<E> {}

impl<E> PartialOrd for ScheduledEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for ScheduledEvent<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.from, self.number).cmp(&(other.at_ns, other.from, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_order_of_time_then_of_scheduling() {
        let mut events = EventQueue::new();
        for (at_ns, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            events.schedule(at_ns, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(order, [(3, 'a'), (3, 'b'), (5, 'c'), (5, 'd')]);
    }
}
