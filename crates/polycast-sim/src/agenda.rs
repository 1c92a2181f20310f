use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What will happen when. Of what happens at the same time, that which was entered first comes first, so that every
/// run is the same.
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    entered: u64,
}

struct Entry<E> {
    at_ns: u64,
    number: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub fn new() -> Self {
        Agenda { entries: BinaryHeap::new(), entered: 0 }
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.entered = 0;
    }

    pub fn enter(&mut self, at_ns: u64, event: E) {
        self.entries.push(Reverse(Entry { at_ns, number: self.entered, event }));
        self.entered += 1;
    }

    /// The next event and its time.
    pub fn next(&mut self) -> Option<(u64, E)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_order_of_time_then_of_entry() {
        let mut agenda = Agenda::new();
        for (at_ns, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            agenda.enter(at_ns, event);
        }
        let events: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        assert_eq!(events, [(3, 'a'), (3, 'b'), (5, 'c'), (5, 'd')]);
    }
}
