//! The strangers: nodes that have connected and not shown yet that they have the key. There are few
//! at a time, and none stays for long. Who comes is let in; of those whose host has the most, the
//! one that has been here longest goes. So who fills the port with connections is in its own way
//! only.

use std::collections::VecDeque;
use std::net::IpAddr;

/// The most strangers at once.
pub const MAX_STRANGERS: usize = 64;

/// The strangers, each with the host that it is from.
pub struct Strangers<T> {
    here: VecDeque<(u64, IpAddr, T)>,
    next: u64,
}

impl<T> Default for Strangers<T> {
    fn default() -> Strangers<T> {
        Strangers { here: VecDeque::new(), next: 0 }
    }
}

impl<T> Strangers<T> {
    /// Takes in a stranger that has connected; returns its number, and the stranger who has to go
    /// for it, if all places are taken.
    pub fn come(&mut self, from: IpAddr, it: T) -> (u64, Option<T>) {
        let goes = (self.here.len() >= MAX_STRANGERS).then(|| self.one_of_most()).flatten();
        let gone = goes.and_then(|index| self.here.remove(index)).map(|(_, _, it)| it);
        let number = self.next;
        self.next += 1;
        self.here.push_back((number, from, it));
        (number, gone)
    }

    /// Forgets the stranger of this number, who has shown the key, or gone.
    pub fn known(&mut self, number: u64) {
        self.here.retain(|(of, ..)| *of != number);
    }

    /// The index of the oldest stranger of the host that has the most; of several such hosts the
    /// one whose oldest came first.
    fn one_of_most(&self) -> Option<usize> {
        let all_of = |host: IpAddr| self.here.iter().filter(|(_, from, _)| *from == host).count();
        (0..self.here.len()).rev().max_by_key(|index| all_of(self.here[*index].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_often_is_in_its_own_way_only() {
        let [one, other] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        let mut strangers = Strangers::default();
        assert_eq!(strangers.come(one, "first"), (0, None));
        for number in 1..MAX_STRANGERS as u64 {
            assert_eq!(strangers.come(other, "flood"), (number, None));
        }
        let (third, gone) = strangers.come(other, "more");
        assert_eq!(gone, Some("flood"));
        assert!(strangers.here.iter().all(|(number, ..)| *number != 1), "the oldest of its host");
        strangers.known(third);
        assert_eq!(strangers.come(one, "second").1, None, "there is room again");
        for _ in 0..1_000 {
            assert_ne!(strangers.come(other, "more").1, Some("first"));
        }
        assert_eq!(strangers.here.len(), MAX_STRANGERS);
    }
}
