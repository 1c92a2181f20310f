//! Does multicast work between these nodes? Every node sends a datagram of full size or some, and listens for those of all others.
//!
//! ```text
//!   round 1    0 │ 1 │ 2 │ 3 │ 4 │ …         each in a slot of its own, so that all together are no faster than a link
//!              who has not heard all says so: what nobody has missed is settled
//!   round 2    1 │ 4 │                        the others once more
//! ```
//!
//! No socket and no clock: whoever drives it sends when it says so, and tells what has come.

use fixedbitset::FixedBitSet;
use polycast_units::Nanos;

/// The time that each round listens after the last slot.
pub const ROUNDS: [Nanos; 3] =
    [Nanos::from_micros(50_000), Nanos::from_micros(150_000), Nanos::from_micros(500_000)];

/// The most copies of a datagram that a node sends in a round, for few nodes: then no second round
/// is needed for single losses.
const MAX_COPIES: u32 = 3;
/// The least copies of a datagram in later rounds.
const MIN_COPIES_AGAIN: u32 = 2;
/// The most datagrams of all nodes in a round, unless one for each node is more.
const DATAGRAMS_OF_FEW: u32 = 96;
/// The datagrams of all nodes take one in this many parts of a link: nodes do not begin at the same
/// time to the microsecond.
const PART_OF_LINK: u64 = 2;
/// The fastest rate that a link is taken to have: a switch has to copy all datagrams to all nodes.
const MAX_BITS_PER_SECOND: u64 = 1_000_000_000;

/// A node's part in the test: its turns to send, and the nodes that it has heard.
#[derive(Debug)]
pub struct Probe {
    node: u32,
    heard: FixedBitSet,
    /// The time of a node's turn for one datagram: the time that it occupies the slowest link, and
    /// as much again.
    slot: Nanos,
    round: usize,
    /// The node's turn among those that send in this round; `None` if it does not send.
    turn: Option<u32>,
    senders: u32,
    send_at: Option<Nanos>,
    end_at: Nanos,
}

/// The next step of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Multicast this many copies, then call [`Probe::sent`].
    Send(u32),
    /// Listen, until this time at the longest.
    Listen(Nanos),
    /// The round is over: all nodes have been heard, or its time has passed.
    Over,
}

impl Probe {
    /// The test of node `node` of `nodes`; a datagram takes `wire_bytes` on links of
    /// `bits_per_second`, 0 if that is not known.
    pub fn new(node: u32, nodes: u32, wire_bytes: usize, bits_per_second: u64) -> Probe {
        let rate = if bits_per_second == 0 { MAX_BITS_PER_SECOND } else { bits_per_second };
        let rate = rate.min(MAX_BITS_PER_SECOND) / PART_OF_LINK;
        let mut heard = FixedBitSet::with_capacity(nodes as usize);
        heard.insert(node as usize);
        Probe {
            node,
            heard,
            slot: Nanos::on_link(wire_bytes, rate),
            round: 0,
            turn: Some(node),
            senders: nodes,
            send_at: None,
            end_at: Nanos(0),
        }
    }

    /// Begins the round.
    pub fn begin(&mut self, now: Nanos) {
        let slot = Nanos(self.slot.0.saturating_mul(self.copies().into()));
        let at = |turn: u32| now + Nanos(slot.0.saturating_mul(turn.into()));
        self.send_at = self.turn.map(at);
        self.end_at = at(self.senders) + ROUNDS[self.round.min(ROUNDS.len() - 1)];
    }

    fn copies(&self) -> u32 {
        let least = if self.round == 0 { 1 } else { MIN_COPIES_AGAIN };
        (DATAGRAMS_OF_FEW / self.senders.max(1)).clamp(least, MAX_COPIES)
    }

    /// The step to take now.
    pub fn step(&self, now: Nanos) -> ProbeStep {
        match self.send_at {
            Some(at) if at <= now => ProbeStep::Send(self.copies()),
            Some(at) => ProbeStep::Listen(at),
            None if self.has_heard_all() || self.end_at <= now => ProbeStep::Over,
            None => ProbeStep::Listen(self.end_at),
        }
    }

    /// The node has done what [`ProbeStep::Send`] says.
    pub fn sent(&mut self) {
        self.send_at = None;
    }

    /// A datagram of full size has come from this node.
    pub fn hear(&mut self, node: u32) {
        if (node as usize) < self.heard.len() {
            self.heard.insert(node as usize);
        }
    }

    /// True if all nodes have been heard.
    pub fn has_heard_all(&self) -> bool {
        self.heard.is_full()
    }

    /// The nodes that have been heard, this node among them: a bit for each; bits behind the last
    /// node are set.
    pub fn heard(&self) -> Vec<u64> {
        self.all_but(self.heard.zeroes())
    }

    /// The nodes that have not been heard, and this node: a bit for each; bits behind the last node
    /// are set.
    pub fn missed(&self) -> Vec<u64> {
        self.all_but(self.heard.ones().filter(|node| *node != self.node as usize))
    }

    fn all_but(&self, nodes: impl Iterator<Item = usize>) -> Vec<u64> {
        let mut words = Probe::no_word(self.heard.len() as u32);
        nodes.for_each(|node| words[node / 64] &= !(1 << (node % 64)));
        words
    }

    /// The word on `nodes` nodes, heard or missed, of a node that has no part in the test: all bits
    /// are set, which changes nobody's word.
    pub fn no_word(nodes: u32) -> Vec<u64> {
        vec![u64::MAX; nodes.div_ceil(64) as usize]
    }

    /// Goes on to the next round, in which those nodes send that some node has missed; `by_all` is
    /// the bitwise and of what all nodes have [heard](Probe::heard).
    pub fn repeat(&mut self, by_all: &[u64]) {
        let is_missed =
            |node: u32| by_all.get(node as usize / 64).is_none_or(|word| word & 1 << (node % 64) == 0);
        let before = |end: u32| (0..end).filter(|node| is_missed(*node)).count() as u32;
        self.round += 1;
        self.turn = is_missed(self.node).then(|| before(self.node));
        self.senders = before(self.heard.len() as u32);
    }

    /// The number of the round, from 0.
    pub fn round(&self) -> usize {
        self.round
    }

    /// True if multicast does not reach this node, or does not come from it; `by_all` is the
    /// bitwise and of what all nodes have [missed](Probe::missed). True on each node where nobody
    /// has heard anybody, as in clouds. Of two nodes neither can tell whose fault it is, so false.
    pub fn is_outside(&self, by_all: &[u64]) -> bool {
        let nobody = Probe::no_word(self.heard.len() as u32);
        let me = self.node as usize;
        let (hears_nobody, is_heard) = (self.missed() == nobody, by_all[me / 64] & 1 << (me % 64) == 0);
        self.heard.len() > 2 && (hears_nobody || !is_heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: u64 = 1_000_000_000;

    fn probe(node: u32, nodes: u32) -> Probe {
        Probe::new(node, nodes, 1538, GIGABIT)
    }

    fn and(all: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
        all.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a & b).collect()).unwrap()
    }

    #[test]
    fn each_node_has_a_slot_and_all_together_half_a_link() {
        for (nodes, copies) in [(2, 3), (32, 3), (33, 2), (48, 2), (49, 1), (8192, 1)] {
            let mut last = probe(nodes - 1, nodes);
            last.begin(Nanos(1000));
            let ProbeStep::Listen(at) = last.step(Nanos(1000)) else { panic!("not its turn") };
            let sent_before = Nanos::on_link(1538 * (copies * (nodes - 1)) as usize, GIGABIT / 2);
            assert!(at.0.abs_diff(1000 + sent_before.0) < 1000, "{nodes} nodes: {at}");
            assert_eq!(last.step(at), ProbeStep::Send(copies));
            (0..nodes).for_each(|node| last.hear(node));
            assert_eq!(last.step(at), ProbeStep::Send(copies), "others wait for it");
            last.sent();
            assert_eq!(last.step(at), ProbeStep::Over);
        }
    }

    #[test]
    fn only_those_that_somebody_has_missed_send_again() {
        let mut probes: Vec<Probe> = (0..70).map(|node| probe(node, 70)).collect();
        for (listener, probe) in probes.iter_mut().enumerate() {
            (0..70)
                .filter(|node| !(listener == 3 && [5, 69].contains(node)))
                .for_each(|node| probe.hear(node));
        }
        let heard = and(probes.iter().map(Probe::heard));
        let turns: Vec<_> = probes
            .iter_mut()
            .enumerate()
            .filter_map(|(node, probe)| {
                probe.repeat(&heard);
                probe.begin(Nanos(0));
                matches!(probe.step(Nanos(1_000_000)), ProbeStep::Send(3)).then_some(node)
            })
            .collect();
        assert_eq!(turns, [5, 69]);
        assert_eq!(probes[5].step(Nanos(0)), ProbeStep::Send(3), "at once");
        assert!(matches!(probes[69].step(Nanos(0)), ProbeStep::Listen(Nanos(1..1_000_000))));
        assert_eq!(probes[0].step(Nanos(0)), ProbeStep::Over, "it has nothing to say, and has heard all");
    }

    #[test]
    fn a_round_ends_though_nobody_is_heard() {
        let mut probe = probe(0, 3);
        probe.begin(Nanos(0));
        probe.sent();
        let ProbeStep::Listen(end) = probe.step(Nanos(0)) else { panic!("nobody has been heard") };
        assert!(end > ROUNDS[0] && end < ROUNDS[0] + Nanos(1_000_000));
        assert_eq!(probe.step(end), ProbeStep::Over);
        probe.hear(3);
        probe.hear(u32::MAX);
        assert!(!probe.has_heard_all());
        let heard = probe.heard();
        probe.repeat(&heard);
        probe.begin(end);
        assert_eq!(
            probe.step(end),
            ProbeStep::Listen(end + Nanos(6 * Nanos::on_link(1538, GIGABIT / 2).0) + ROUNDS[1])
        );
    }

    #[test]
    fn who_is_outside_knows_it() {
        // Node 3 of 4 hears nobody, and nobody hears it.
        let mut probes: Vec<Probe> = (0..4).map(|node| probe(node, 4)).collect();
        probes[..3].iter_mut().for_each(|probe| (0..3).for_each(|node| probe.hear(node)));
        let missed = and(probes.iter().map(Probe::missed));
        let outside: Vec<bool> = probes.iter().map(|probe| probe.is_outside(&missed)).collect();
        assert_eq!(outside, [false, false, false, true]);
        let nothing = [0, 1, 2].map(|node| probe(node, 3));
        let missed = and(nothing.iter().map(Probe::missed));
        assert!(nothing.iter().all(|probe| probe.is_outside(&missed)), "a network without multicast");
        let two = [probe(0, 2), probe(1, 2)];
        let missed = and(two.iter().map(Probe::missed));
        assert!(!two[0].is_outside(&missed));
    }
}
