//! How many segments are over on this node and on all below it in the tree by which the source learns that.
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

use polycast_copy::{CONFIRMATION, Frame, places_below};
use polycast_core::units::Nanos;
use rustix::event::PollFlags;

use super::lane::Broken;
use super::neighbour::Neighbour;

/// Said again after so long, a few times, so that one that got lost is noticed by what follows it.
const SAY_AGAIN: (Nanos, u32) = (Nanos::from_micros(4_000), 6);
/// The same by multicast, as long as there is no other way.
const MULTICAST_AGAIN: Nanos = Nanos::from_micros(20_000);

/// Behind the first byte, which whoever took the connection has read.
pub const REST_OF_CONFIRMATION: usize = CONFIRMATION.len() - 1;

/// One of those right below.
#[derive(Default)]
struct Below {
    link: Option<Neighbour>,
    said: Option<u64>,
}

/// See the module.
pub struct Tally {
    is_source: bool,
    above: Neighbour,
    /// By their places, all of them.
    below: BTreeMap<u32, Below>,
    /// What was said above: how much, when again, how often still.
    said: (Option<u64>, Nanos, u32),
}

impl Tally {
    /// Of the node in this place.
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

    /// It has said by multicast that so many are over.
    pub fn heard(&mut self, place: u32, segments: u64) {
        if let Some(one) = self.below.get_mut(&place) {
            one.said = one.said.max(Some(segments));
        }
    }

    /// Takes what has come. Nobody goes before these many are over.
    pub fn read(&mut self, over: u64, count: u64) -> Result<(), Broken> {
        // It says nothing, but it may go.
        self.above.read(|_| ())?;
        if self.above.is_gone && over < count {
            return Err(Broken);
        }
        for Below { link, said } in self.below.values_mut() {
            let Some(link) = link else { continue };
            link.read(|frame| {
                if let Frame::Acknowledged(segments) = frame {
                    *said = (*said).max(Some(segments));
                }
            })?;
            if link.is_gone && *said < Some(count) {
                return Err(Broken);
            }
        }
        Ok(())
    }

    /// What is over on all below; `None`: not all have said anything yet.
    pub fn below(&self) -> Option<u64> {
        self.below.values().try_fold(u64::MAX, |least, one| Some(least.min(one.said?)))
    }

    /// Tells the one above, when so many are over here; `Some`: to be said by multicast.
    pub fn tell(&mut self, over: u64, now: Nanos) -> Option<u64> {
        let all = self.below().filter(|_| !self.is_source)?.min(over);
        let (said, at, times) = self.said;
        let is_new = said != Some(all);
        if !is_new && (now < at || times == 0) {
            return None;
        }
        let is_connected = self.above.is_connected();
        if is_new || is_connected {
            self.above.say(Frame::Acknowledged(all));
        }
        let left = if is_new { SAY_AGAIN.1 } else { times - u32::from(is_connected) };
        let again = if is_connected { SAY_AGAIN.0 } else { MULTICAST_AGAIN };
        self.said = (Some(all), now + again, left);
        (!is_connected).then_some(all)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.above.flush()
    }

    /// When it is said again.
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

    #[test]
    fn the_least_of_all_below_counts_however_it_was_said() {
        let mut source = Tally::new(0, 3);
        assert_eq!(source.below(), None);
        source.heard(1, 4);
        source.heard(7, 9);
        assert_eq!(source.below(), None, "one has said nothing, and one is not below");
        source.heard(2, 2);
        source.heard(2, 1);
        assert_eq!(source.below(), Some(2), "an older word is late");
        assert_eq!(source.tell(5, Nanos(0)), None, "nobody is above");
    }

    #[test]
    fn what_is_over_is_multicast_until_there_is_a_connection() {
        let mut node = Tally::new(1, 3);
        assert_eq!(node.tell(0, Nanos(0)), Some(0), "it is there");
        assert_eq!(node.tell(0, Nanos(MILLI)), None);
        for again in 1..100 {
            assert_eq!(node.deadline(), Some(Nanos(again * 20 * MILLI)));
            assert_eq!(node.tell(0, Nanos(again * 20 * MILLI)), Some(0));
        }
        assert_eq!(node.tell(1, Nanos(2_000 * MILLI)), Some(1), "at once");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        node.connected_above(stream).unwrap();
        assert_eq!(node.tell(2, Nanos(2_001 * MILLI)), None);
        // So often as if it had been there from the beginning.
        let times = (1..).take_while(|_| {
            let at = node.deadline();
            at.is_some_and(|at| node.tell(2, at).is_none())
        });
        assert_eq!(times.count(), SAY_AGAIN.1 as usize);
    }

    #[test]
    fn who_is_in_between_tells_of_all() {
        // Places 17 to 19 are below place 1.
        let mut node = Tally::new(1, 20);
        assert_eq!(node.tell(3, Nanos(0)), None);
        for place in 17..20 {
            node.heard(place, u64::from(place) - 16);
        }
        assert_eq!(node.tell(3, Nanos(0)), Some(1));
    }
}
