//! The progress of this node and of all below it, in the tree by which the source learns of it.
//!
//! ```text
//!        source          each tells the one above it by TCP; until that connection is there, by multicast, which needs to ask nobody
//!       ╱  │  ╲          where the other is: a question that gets lost is asked again by the kernel after a second only
//!     n0   n1  n2 …
//! ```

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use polycast_copy::{CONFIRMATION, Frame, Reached, places_below};
use polycast_core::units::Nanos;
use rustix::event::PollFlags;

use super::lane::Broken;
use super::neighbour::Neighbour;

/// The time after which a report is said again, and how many times, so that one that got lost is
/// noticed by what follows it.
const SAY_AGAIN: (Nanos, u32) = (Nanos::from_micros(4_000), 6);
/// The time after which the node says how far it is again by multicast, as long as there is no
/// connection.
const MULTICAST_AGAIN: Nanos = Nanos::from_micros(20_000);

/// The bytes of a confirmation behind the first one, which whoever took the connection has read.
pub const REST_OF_CONFIRMATION: usize = CONFIRMATION.len() - 1;

/// A node right below this one in the tree.
#[derive(Default)]
struct Below {
    link: Option<Neighbour>,
    said: Option<Reached>,
}

impl Below {
    fn says(&mut self, reached: Reached) {
        self.said = Some(self.said.map_or(reached, |before| before.most(reached)));
    }
}

/// The progress of this node and of all below it in the tree.
pub struct Tally {
    is_source: bool,
    above: Neighbour,
    /// The nodes right below this one, by their places.
    below: BTreeMap<u32, Below>,
    /// The last report to the node above: what it said, when it is said again, and how often still.
    said: (Option<Reached>, Nanos, u32),
}

impl Tally {
    /// The tally of the node in this place of a ring of `nodes`.
    pub fn new(place: u32, nodes: u32) -> Tally {
        let below = places_below(place, nodes).map(|place| (place, Below::default())).collect();
        Tally { is_source: place == 0, above: Neighbour::default(), below, said: (None, Nanos(0), 0) }
    }

    pub fn connected_above(&mut self, stream: TcpStream) -> io::Result<()> {
        self.above.connected(stream, 0)
    }

    pub fn connected_below(&mut self, place: u32, stream: TcpStream) -> io::Result<()> {
        let Some(one) = self.below.get_mut(&place) else { return Ok(()) };
        one.link.insert(Neighbour::default()).connected(stream, REST_OF_CONFIRMATION)
    }

    /// Notes how far the node in this place is, as it has said by multicast.
    pub fn heard(&mut self, place: u32, reached: Reached) {
        if let Some(one) = self.below.get_mut(&place) {
            one.says(reached);
        }
    }

    /// Takes what has come. Nobody goes before these many are over.
    pub fn read(&mut self, over: u64, count: u64) -> Result<(), Broken> {
        // It says nothing, but it may go.
        self.above.read(|_| ())?;
        if self.above.is_gone && over < count {
            return Err(Broken);
        }
        for one in self.below.values_mut() {
            let Some(mut link) = one.link.take() else { continue };
            link.read(|frame| {
                if let Frame::Reached(reached) = frame {
                    one.says(reached);
                }
            })?;
            if link.is_gone && one.said.is_none_or(|said| said.over < count) {
                return Err(Broken);
            }
            one.link = Some(link);
        }
        Ok(())
    }

    /// The least that the nodes below have all reached; `None` while some have said nothing yet.
    pub fn below(&self) -> Option<Reached> {
        let all = Reached { over: u64::MAX, read: u64::MAX };
        self.below.values().try_fold(all, |least, one| Some(least.least(one.said?)))
    }

    /// Tells the node above when this node is so far; `Some` is a report to be said by multicast.
    pub fn tell(&mut self, own: Reached, now: Nanos) -> Option<Reached> {
        let all = self.below().filter(|_| !self.is_source)?.least(own);
        let (said, at, times) = self.said;
        let is_new = said != Some(all);
        if !is_new && (now < at || times == 0) {
            return None;
        }
        let is_connected = self.above.is_connected();
        if is_new || is_connected {
            self.above.say(Frame::Reached(all));
        }
        let left = if is_new { SAY_AGAIN.1 } else { times - u32::from(is_connected) };
        let again = if is_connected { SAY_AGAIN.0 } else { MULTICAST_AGAIN };
        self.said = (Some(all), now + again, left);
        (!is_connected).then_some(all)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.above.flush()
    }

    /// The time at which the last report is said again; `None` if it is not.
    pub fn deadline(&self) -> Option<Nanos> {
        (self.said.2 > 0).then_some(self.said.1)
    }

    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let below = self.below.values().filter_map(|one| one.link.as_ref());
        [&self.above].into_iter().chain(below).filter_map(Neighbour::events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn at(over: u64, read: u64) -> Reached {
        Reached { over, read }
    }

    #[test]
    fn the_least_of_all_below_counts_however_it_was_said() {
        let mut source = Tally::new(0, 3);
        assert_eq!(source.below(), None);
        source.heard(1, at(4, 5));
        source.heard(7, at(9, 9));
        assert_eq!(source.below(), None, "one has said nothing, and one is not below");
        source.heard(2, at(2, 7));
        source.heard(2, at(1, 6));
        assert_eq!(source.below(), Some(at(2, 5)), "an older word is late");
        assert_eq!(source.tell(at(5, 5), Nanos(0)), None, "nobody is above");
    }

    #[test]
    fn what_is_over_is_multicast_until_there_is_a_connection() {
        let mut node = Tally::new(1, 3);
        assert_eq!(node.tell(at(0, 0), Nanos(0)), Some(at(0, 0)), "it is there");
        assert_eq!(node.tell(at(0, 0), Nanos(MILLI)), None);
        for again in 1..100 {
            assert_eq!(node.deadline(), Some(Nanos(again * 20 * MILLI)));
            assert_eq!(node.tell(at(0, 0), Nanos(again * 20 * MILLI)), Some(at(0, 0)));
        }
        assert_eq!(node.tell(at(0, 1), Nanos(2_000 * MILLI)), Some(at(0, 1)), "at once");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        node.connected_above(stream).unwrap();
        assert_eq!(node.tell(at(2, 2), Nanos(2_001 * MILLI)), None);
        // So often as if it had been there from the beginning.
        let times = (1..).take_while(|_| {
            let due = node.deadline();
            due.is_some_and(|due| node.tell(at(2, 2), due).is_none())
        });
        assert_eq!(times.count(), SAY_AGAIN.1 as usize);
    }

    #[test]
    fn who_is_in_between_tells_of_all() {
        // Places 17 to 19 are below place 1.
        let mut node = Tally::new(1, 20);
        assert_eq!(node.tell(at(3, 3), Nanos(0)), None);
        for place in 17..20 {
            node.heard(place, at(u64::from(place) - 16, 9));
        }
        assert_eq!(node.tell(at(3, 3), Nanos(0)), Some(at(1, 3)));
    }
}
