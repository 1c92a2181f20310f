//! Makes a schedule of "these pieces come from there, those go there".
//!
//! # Invariants
//! 1. Receive lanes stand before all others, so that [`After::LanesBelow`] can name a prefix of them.
//! 2. Signals stand before data towards the same peer: what announces this rank is never queued behind data that
//!    itself waits for an announcement.
//! 3. Lanes without pieces do not exist, nor do their signals. Both ends see the same pieces, so they agree.

use std::collections::BTreeMap;
use std::ops::Range;

use super::pieces::Pieces;
use crate::schedule::{
    Action, After, Channel, Direction, Kind, Lane, LaneIndex, Posting, Schedule, Slice, Step, Stream,
};
use crate::units::Rank;

/// The channel of the zero-byte messages by which a rank tells those who will send to it that it has arrived.
pub(super) const READY: Channel = 1;

/// Consecutive pieces that go over a lane one message after the other.
#[derive(Clone, Debug)]
struct PieceRun {
    pieces: Range<u64>,
    pieces_per_message: u64,
    /// The lane's step that carries the first of them.
    first_step: u64,
}

impl PieceRun {
    fn message(&self, index: u64) -> Range<u64> {
        let start = self.pieces.start + index * self.pieces_per_message;
        start..start.saturating_add(self.pieces_per_message).min(self.pieces.end)
    }

    /// Returns the number of the lane's steps after which every piece of this run below `end` has
    /// come.
    fn steps_until(&self, end: u64) -> u64 {
        let last_piece = end.min(self.pieces.end) - 1 - self.pieces.start;
        self.first_step + last_piece / self.pieces_per_message + 1
    }
}

/// A schedule under construction. First all receives, then all sends.
pub(super) struct Plan {
    schedule: PieceSchedule,
    ready: bool,
    phase: u8,
    /// The lane on which each peer's signal arrives, for the peers to which this rank sends.
    signals_from: BTreeMap<Rank, LaneIndex>,
    is_announced: bool,
}

impl Plan {
    /// Starts with no lanes. With `ready`, everybody tells those from whom it receives that it has arrived, and
    /// they wait for that.
    pub fn new(pieces: Pieces, ready: bool) -> Self {
        let schedule = PieceSchedule { pieces, lanes: Vec::new(), runs: Vec::new(), sources: Vec::new() };
        Plan { schedule, ready, phase: 0, signals_from: BTreeMap::new(), is_announced: false }
    }

    /// The pieces of the collective that is planned.
    pub fn pieces(&self) -> Pieces {
        self.schedule.pieces
    }

    /// Adds a receive lane: pieces come from `peer`, in this order, up to `pieces_per_message`
    /// consecutive ones in a message.
    pub fn receive(
        &mut self,
        peer: Rank,
        channel: Channel,
        pieces_per_message: u64,
        runs: impl IntoIterator<Item = Range<u64>>,
    ) {
        debug_assert!(!self.is_announced, "all receives come before all sends");
        let lane = self.schedule.lanes.len();
        if self.push(peer, Direction::Receive, channel, pieces_per_message, runs, None) {
            let sources = self.schedule.runs[lane].iter().map(|run| RunSource { lane, run: run.clone() });
            self.schedule.sources.extend(sources);
        }
    }

    /// Adds a send lane: pieces go to `peer`, in this order, up to `pieces_per_message` consecutive
    /// ones in a message.
    pub fn send(
        &mut self,
        peer: Rank,
        channel: Channel,
        pieces_per_message: u64,
        runs: impl IntoIterator<Item = Range<u64>>,
    ) {
        self.announce();
        let mut runs = runs.into_iter().filter(|run| !run.is_empty()).peekable();
        let opens_after =
            if self.ready && runs.peek().is_some() { Some(self.signal_from(peer)) } else { None };
        self.push(peer, Direction::Send, channel, pieces_per_message, runs, opens_after);
    }

    /// Begins the next phase: sends that are added from here on start only while none of those so
    /// far can.
    pub fn next_phase(&mut self) {
        self.phase += 1;
    }

    /// The finished schedule.
    pub fn finish(mut self) -> PieceSchedule {
        self.announce();
        self.schedule
    }

    /// Ends the receives: their order of arrival does not matter any more, and their senders are told.
    fn announce(&mut self) {
        if std::mem::replace(&mut self.is_announced, true) {
            return;
        }
        self.schedule.sources.sort_unstable_by_key(|source| source.run.pieces.start);
        if self.ready {
            let streams = self.schedule.lanes.iter().filter_map(Lane::stream);
            let mut senders: Vec<Rank> = streams.map(|stream| stream.peer).collect();
            senders.sort_unstable();
            senders.dedup();
            senders.into_iter().for_each(|peer| self.push_signal(peer, Direction::Send));
        }
    }

    fn signal_from(&mut self, peer: Rank) -> LaneIndex {
        let next = self.schedule.lanes.len();
        let lane = *self.signals_from.entry(peer).or_insert(next);
        if lane == next {
            self.push_signal(peer, Direction::Receive);
        }
        lane
    }

    fn push_signal(&mut self, peer: Rank, direction: Direction) {
        self.schedule.lanes.push(Lane::new(messages(peer, direction, READY), 1));
        self.schedule.runs.push(Vec::new());
    }

    /// Adds a lane unless it would be empty; returns true if it was added.
    fn push(
        &mut self,
        peer: Rank,
        direction: Direction,
        channel: Channel,
        pieces_per_message: u64,
        runs: impl IntoIterator<Item = Range<u64>>,
        opens_after: Option<LaneIndex>,
    ) -> bool {
        let mut steps = 0;
        let runs: Vec<PieceRun> = runs
            .into_iter()
            .filter(|pieces| !pieces.is_empty())
            .map(|pieces| {
                let first_step = steps;
                steps += (pieces.end - pieces.start).div_ceil(pieces_per_message);
                PieceRun { pieces, pieces_per_message, first_step }
            })
            .collect();
        if runs.is_empty() {
            return false;
        }
        let kind = messages(peer, direction, channel);
        self.schedule.lanes.push(Lane { kind, steps, phase: self.phase, opens_after });
        self.schedule.runs.push(runs);
        true
    }
}

fn messages(peer: Rank, direction: Direction, channel: Channel) -> Kind {
    Kind::Messages(Stream { peer, direction, channel, posting: Posting::AtOnce })
}

/// The origin of a run of pieces: the lane that brings it.
#[derive(Clone, Debug)]
struct RunSource {
    lane: LaneIndex,
    run: PieceRun,
}

/// A schedule whose lanes carry runs of pieces. A send waits until the last of its pieces has come.
pub(super) struct PieceSchedule {
    pieces: Pieces,
    lanes: Vec<Lane>,
    /// The runs of each lane; none if it carries a signal.
    runs: Vec<Vec<PieceRun>>,
    /// Sorted by pieces, disjoint; empty at the root.
    sources: Vec<RunSource>,
}

impl PieceSchedule {
    fn after(&self, pieces: &Range<u64>) -> After {
        let first = self.sources.partition_point(|source| source.run.pieces.end <= pieces.start);
        let end = self.sources.partition_point(|source| source.run.pieces.start < pieces.end);
        let sources = &self.sources[first..end];
        let Some(highest) = sources.iter().map(|source| source.lane).max() else { return After::Start };
        if sources.iter().all(|source| source.lane == highest) {
            let count = sources.iter().map(|source| source.run.steps_until(pieces.end)).max().unwrap_or(0);
            After::Steps { lane: highest, count }
        } else {
            After::LanesBelow(highest + 1)
        }
    }
}

impl Schedule for PieceSchedule {
    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        let runs = &self.runs[lane];
        let after_run = runs.partition_point(|run| run.first_step <= index);
        let pieces = runs[..after_run].last().map(|run| run.message(index - run.first_step));
        let slice = Slice::output(pieces.clone().map_or(0..0, |pieces| self.pieces.bytes(pieces)));
        if self.lanes[lane].is_receive() {
            return Step { action: Action::Receive(slice), after: After::Start };
        }
        let after = pieces.map_or(After::Start, |pieces| self.after(&pieces));
        Step { action: Action::Send(slice), after }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
mod tests {
    use super::*;

    fn sent(bytes: Range<u64>, after: After) -> Step {
        Step { action: Action::Send(Slice::output(bytes)), after }
    }

    fn ten_pieces() -> Pieces {
        Pieces::new(10, 1, std::num::NonZeroU64::new(1))
    }

    #[test]
    fn a_send_waits_for_its_last_piece() {
        let mut plan = Plan::new(ten_pieces(), false);
        plan.receive(Rank(0), 0, 2, [6..10, 0..3]);
        plan.receive(Rank(1), 0, 1, [3..6]);
        plan.send(Rank(2), 0, 3, [0..3, 6..10]);
        plan.send(Rank(3), 0, u64::MAX, [0..10]);
        let schedule = plan.finish();
        let steps: Vec<_> = (0..3).map(|index| schedule.step(2, index)).collect();
        assert_eq!(schedule.lanes()[2].steps, 3);
        assert_eq!(steps[0], sent(0..3, After::Steps { lane: 0, count: 4 }));
        assert_eq!(steps[1], sent(6..9, After::Steps { lane: 0, count: 2 }));
        assert_eq!(steps[2], sent(9..10, After::Steps { lane: 0, count: 2 }));
        assert_eq!(schedule.step(3, 0), sent(0..10, After::LanesBelow(2)));
    }

    #[test]
    fn one_signal_serves_all_lanes_of_a_pair() {
        let mut plan = Plan::new(ten_pieces(), true);
        plan.receive(Rank(0), 0, 1, [0..3]);
        plan.receive(Rank(0), 2, 1, [3..10]);
        plan.send(Rank(5), 0, 1, [0..3]);
        plan.send(Rank(5), 2, 1, [3..10]);
        plan.send(Rank(6), 0, 1, [4..4]);
        let schedule = plan.finish();
        let lanes = schedule
            .lanes()
            .iter()
            .map(|l| l.stream().map(|s| (s.peer.0, s.direction, s.channel, l.opens_after)));
        let lanes: Vec<_> = lanes.flatten().collect();
        use Direction::{Receive, Send};
        assert_eq!(
            lanes,
            [
                (0, Receive, 0, None),
                (0, Receive, 2, None),
                (0, Send, READY, None),
                (5, Receive, READY, None),
                (5, Send, 0, Some(3)),
                (5, Send, 2, Some(3)),
            ]
        );
        assert_eq!(schedule.step(2, 0), sent(0..0, After::Start));
    }
}
