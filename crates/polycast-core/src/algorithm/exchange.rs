//! Reduce and allreduce by an exchange: every rank owns a share of the vector, gets everybody's part of it, and combines these by the tree.
//!
//! ```text
//!   rank 1 of 4   sends    its parts of shares 2, 3, 0        in step s to the one s further on, from the one s before
//!                 gets     share 1 from 0, 3, 2
//!                 combines (0∘1)∘(2∘3)
//!                 allreduce: the result goes around a ring      reduce: it goes to the root, which owns no share
//! ```
//!
//! Whatever the number of ranks, each link carries `(P-1)/P` of the vector and as much of the result, less than which is not possible where everybody gets it; and a
//! root gets the vector once. Who owns a share has all contributions to it apart, so any order of combination can be kept: rings cannot do that. `P-1` steps,
//! and as many to spread the result: for long vectors (Thakur et al. 2005, §3.4, for the exchange; the order is ours). In segments, a
//! reduction's results of one go beside contributions to the next, without which it takes twice as long. Each step is granted by who receives, as in an
//! all-to-all (`alltoall/pairwise.rs` says why). A reduction's ranks have not all the same to do, so they are not in step, and a grant may have to wait until a
//! message has left its sender's port. So one step more is granted than what comes: else that takes 1.3 times as long.
//!
//! Who takes part may have several parts of the tree combined already, as nodes do whose ranks are no subtree (two levels): each of
//! these goes apart.

use std::ops::Range;

use super::shares::Shares;
use super::{Algorithm, Entry};
use crate::collective::{Call, Collective, CombinationTree};
use crate::schedule::{Action, After, Channel, Kind, LaneIndex, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

const CONTRIBUTIONS: Channel = 0;
const RESULTS: Channel = 1;
const GRANTS: Channel = 2;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Reduce, Collective::Allreduce],
    "pairwise",
    "each rank combines its share of what all send it; results go around a ring, or to the root",
    "Thakur et al. 2005, §3.4",
    flat,
)
.in_segments()
.by_the_tree()];

fn flat(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let parts: Vec<Vec<Range<u32>>> =
        (0..call.ranks).map(|rank| std::iter::once(rank..rank + 1).collect()).collect();
    Box::new(ShareExchange::new(algorithm, call, &parts, CombinationTree::new(call.ranks), rank).schedule())
}

/// The exchange as one of those who take part sees it.
pub(super) struct ShareExchange<'a> {
    call: &'a Call,
    me: u32,
    /// The parts of the tree that everybody has combined, rising.
    parts: &'a [Vec<Range<u32>>],
    /// All parts, rising, with who has them and which of its parts each is.
    all: Vec<(u32, usize)>,
    combinations: Vec<(usize, usize)>,
    /// Those who own a share.
    owners: Vec<u32>,
    shares: Shares,
    list: Listed,
    scratch_bytes: u64,
}

/// LanesByDistance to and from the one at each distance, 1 first; `None` where nothing goes.
type LanesByDistance = Vec<Option<LaneIndex>>;

impl<'a> ShareExchange<'a> {
    /// `parts`: what everybody who takes part has combined. The first of the parts is where the
    /// call has its contribution, the others lie one behind the other in the input, which is not
    /// used otherwise where there are several.
    pub fn new(
        algorithm: &Algorithm,
        call: &'a Call,
        parts: &'a [Vec<Range<u32>>],
        tree: CombinationTree,
        me: Rank,
    ) -> ShareExchange<'a> {
        let of = |(who, parts): (u32, &Vec<Range<u32>>)| -> Vec<_> {
            parts.iter().cloned().enumerate().map(|(part, ranks)| (ranks, (who, part))).collect()
        };
        let mut sorted: Vec<_> = (0..).zip(parts).flat_map(of).collect();
        sorted.sort_unstable_by_key(|(ranks, _)| ranks.start);
        let (ranges, all): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
        let root = call.root.0;
        // A root that owned a share would have to get contributions beside the results.
        let owns = |who: &u32| match call.collective {
            Collective::Reduce if call.ranks <= 2 => *who == root,
            Collective::Reduce => *who != root,
            _ => true,
        };
        let owners: Vec<u32> = (0..call.ranks).filter(owns).collect();
        let shares = Shares::new(call, owners.len() as u32, algorithm.segment);
        let combinations = tree.combinations_of(&ranges);
        let list = Listed::default();
        ShareExchange { call, me: me.0, parts, all, combinations, owners, shares, list, scratch_bytes: 0 }
    }

    fn segments(&self, owner: u32) -> Vec<Range<u64>> {
        self.owners.binary_search(&owner).map_or(Vec::new(), |share| self.shares.segments(share as u32))
    }

    fn is_in_place(&self) -> bool {
        self.call.is_in_place_at(Rank(self.me))
    }

    /// Returns bytes of one of this rank's own parts.
    fn own(&self, part: usize, bytes: &Range<u64>) -> Slice {
        match part.checked_sub(1) {
            None if self.is_in_place() => Slice::output(bytes.clone()),
            None => Slice::input(bytes.clone()),
            Some(before) => {
                let start = before as u64 * self.call.bytes.0;
                Slice::input(start + bytes.start..start + bytes.end)
            }
        }
    }

    /// True if this rank gets the result of all shares.
    fn is_told(&self) -> bool {
        self.call.collective == Collective::Allreduce || self.me == self.call.root.0
    }

    fn at(&self, further: u32) -> u32 {
        (self.me + further) % self.call.ranks
    }

    pub fn schedule(mut self) -> Listed {
        if self.call.bytes.0 == 0 || self.call.ranks == 1 && self.is_in_place() {
            return self.list;
        }
        let (receives, sends) = self.exchange();
        let mine = self.segments(self.me);
        // Who owns nothing combines nothing.
        let local = if mine.is_empty() { 0 } else { self.list.lane(Kind::Local) };
        let results = self.combine(local, &mine, &receives);
        match self.call.collective {
            Collective::Reduce => self.result_to_root(local, &mine, &results, &sends),
            _ => self.around(local, &results, &sends),
        }
        self.list.set_scratch_bytes(self.scratch_bytes);
        self.list
    }

    /// The number of segments that go in a round of steps. Results of a reduction go beside later
    /// contributions, so it has a round for each segment; where all get the result, ports are busy
    /// anyway.
    fn segments_per_round(&self, segments: usize) -> usize {
        if self.call.collective == Collective::Reduce { 1 } else { segments.max(1) }
    }

    /// The number of steps that are granted before what they bring has come.
    fn window(&self) -> u32 {
        if self.call.collective == Collective::Reduce { 2 } else { 1 }
    }

    /// Adds lanes for contributions; where they come is said by [`ShareExchange::combine`].
    fn exchange(&mut self) -> (LanesByDistance, LanesByDistance) {
        let (distances, window) = (1..self.call.ranks, self.window());
        let is_owner = !self.segments(self.me).is_empty();
        let mut receives: LanesByDistance = Vec::new();
        for further in distances.clone() {
            let from = Rank(self.at(self.call.ranks - further));
            let lane = Kind::Messages(Stream::receive(from, CONTRIBUTIONS));
            receives.push(is_owner.then(|| self.list.lane(lane)));
        }
        self.grant(&receives);
        let mut sends: LanesByDistance = Vec::new();
        for further in distances {
            let to = self.at(further);
            let segments = self.segments(to);
            if segments.is_empty() {
                sends.push(None);
                continue;
            }
            let per_round = self.segments_per_round(segments.len());
            let grants = self.has_grants().then(|| {
                let grants = Kind::Messages(Stream::receive(Rank(to), GRANTS));
                let lane = self.list.lane(grants);
                for _ in usize::from(further <= window)..segments.len().div_ceil(per_round) {
                    self.list.add(lane, Action::Receive(Slice::scratch(0..0)), After::Start);
                }
                lane
            });
            let lane = self.list.lane(Kind::Messages(Stream::send(Rank(to), CONTRIBUTIONS)));
            self.list.lane_mut(lane).phase = 1;
            for (index, segment) in segments.iter().enumerate() {
                let granted = (index / per_round + usize::from(further > window)) as u64;
                let after = match grants {
                    Some(lane) if granted > 0 => After::Steps { lane, count: granted },
                    _ => After::Start,
                };
                for part in 0..self.parts[self.me as usize].len() {
                    let given = self.own(part, segment);
                    self.list.add(lane, Action::Send(given), after);
                }
            }
            sends.push(Some(lane));
        }
        (receives, sends)
    }

    /// True if steps are granted: of two there is nobody else who could send.
    fn has_grants(&self) -> bool {
        self.call.ranks > 2
    }

    /// Adds lanes on which this rank tells each other one that it has what an earlier step should
    /// bring; the first steps of the first round need no grant.
    fn grant(&mut self, receives: &LanesByDistance) {
        let segments = self.segments(self.me).len();
        if segments == 0 || !self.has_grants() {
            return;
        }
        let (per_round, window) = (self.segments_per_round(segments), self.window());
        for further in 1..self.call.ranks {
            let to = Rank(self.at(self.call.ranks - further));
            let lane = self.list.lane(Kind::Messages(Stream::send(to, GRANTS)));
            let is_of_round = further > window;
            let before = if is_of_round { further - window } else { self.call.ranks - 1 + further - window };
            let parts = self.parts[self.at(self.call.ranks - before) as usize].len();
            for round in usize::from(!is_of_round)..segments.div_ceil(per_round) {
                let rounds = round + usize::from(is_of_round);
                let count = (parts * (rounds * per_round).min(segments)) as u64;
                let after = receives[before as usize - 1].map(|lane| After::Steps { lane, count });
                let nothing = Action::Send(Slice::scratch(0..0));
                self.list.add(lane, nothing, after.unwrap_or(After::Start));
            }
        }
    }

    /// Adds what receives and combines the segments of this rank's share; returns where the result of
    /// each is.
    fn combine(&mut self, local: LaneIndex, mine: &[Range<u64>], receives: &LanesByDistance) -> Vec<Slice> {
        let Some((first, end)) = mine.first().zip(mine.last()).map(|(first, last)| (first.start, last.end))
        else {
            return Vec::new();
        };
        let last = self.all.len() - 1;
        let is_output_free = self.is_told() && !self.is_in_place();
        let is_right = |at: usize| self.combinations.iter().any(|(_, right)| *right == at);
        // The offset of each part's share in the scratch memory.
        let mut apart: Vec<Option<u64>> = Vec::new();
        for (at, (who, part)) in self.all.iter().enumerate() {
            let is_mine = *who == self.me;
            // In place, nobody else reads this rank's share of what it hands in.
            let is_read_only = *part == 0 && !self.is_in_place();
            let is_here = match at == last {
                true => is_output_free || is_mine && (!is_read_only || self.all.len() == 1),
                false => is_mine && !(is_read_only && is_right(at)),
            };
            apart.push((!is_here).then(|| {
                self.scratch_bytes += end - first;
                self.scratch_bytes - (end - first)
            }));
        }
        let place = |exchange: &Self, at: usize, segment: &Range<u64>| match apart[at] {
            Some(start) => Slice::scratch(start + segment.start - first..start + segment.end - first),
            None if at == last && is_output_free => Slice::output(segment.clone()),
            None => exchange.own(exchange.all[at].1, segment),
        };
        let mut results = Vec::new();
        for segment in mine {
            let mut comes = vec![After::Start; self.all.len()];
            for (at, comes) in comes.iter_mut().enumerate() {
                let (who, part) = self.all[at];
                let to = place(self, at, segment);
                if who == self.me {
                    let own = self.own(part, segment);
                    if own != to {
                        self.list.add(local, Action::Copy { from: own, to }, After::Start);
                    }
                    continue;
                }
                let further = (self.me + self.call.ranks - who) % self.call.ranks;
                if let Some(lane) = receives[further as usize - 1] {
                    // Parts of one who takes part come in the order in which it has them.
                    let count = self.list.add(lane, Action::Receive(to), After::Start);
                    *comes = After::Steps { lane, count };
                }
            }
            for (left, right) in self.combinations.clone() {
                let mut when = [left, right].map(|of| std::mem::replace(&mut comes[of], After::Start));
                when.sort_unstable_by_key(|when| *when == After::Start);
                if when[1] != After::Start {
                    self.list.add(local, Action::nothing(), when[1]);
                }
                let [from, into] = [left, right].map(|of| place(self, of, segment));
                self.list.add(local, Action::Combine { from, into }, when[0]);
            }
            let mut result = place(self, last, segment);
            if self.is_told() && result != Slice::output(segment.clone()) {
                let to = Slice::output(segment.clone());
                self.list.add(local, Action::Copy { from: result, to: to.clone() }, After::Start);
                result = to;
            }
            results.push(result);
        }
        results
    }

    /// The number of the local lane's steps after which the result of each segment is there.
    fn ends(&self, local: LaneIndex, results: usize) -> impl Fn(usize) -> After + use<> {
        let per_segment = self.list.lanes()[local].steps / results.max(1) as u64;
        move |index| After::Steps { lane: local, count: (index as u64 + 1) * per_segment }
    }

    /// Adds lanes on which results go to the root.
    fn result_to_root(
        &mut self,
        local: LaneIndex,
        mine: &[Range<u64>],
        results: &[Slice],
        sends: &LanesByDistance,
    ) {
        let root = self.call.root.0;
        let stream = |stream: Stream| Kind::Messages(Stream { posting: Posting::InTurn, ..stream });
        if self.me != root {
            if !mine.is_empty() {
                let lane = self.list.lane(stream(Stream::send(Rank(root), RESULTS)));
                let end = self.ends(local, results.len());
                for (index, result) in results.iter().enumerate() {
                    self.list.add(lane, Action::Send(result.clone()), end(index));
                }
            }
            return;
        }
        for further in 1..self.call.ranks {
            let owner = self.at(further);
            let segments = self.segments(owner);
            let Some(sent) = sends[further as usize - 1] else { continue };
            let lane = self.list.lane(stream(Stream::receive(Rank(owner), RESULTS)));
            let parts = self.parts[self.me as usize].len() as u64;
            for (index, segment) in (1..).zip(segments) {
                // In place, its contribution stands there until it is sent.
                let after = After::Steps { lane: sent, count: index * parts };
                self.list.add(lane, Action::Receive(Slice::output(segment)), after);
            }
        }
    }

    /// Adds lanes on which results go around the ring.
    fn around(&mut self, local: LaneIndex, results: &[Slice], sends: &LanesByDistance) {
        if self.call.ranks == 1 {
            return;
        }
        let posting = if self.is_in_place() { Posting::InTurn } else { Posting::AtOnce };
        let [before, next] = [self.at(self.call.ranks - 1), self.at(1)].map(Rank);
        let come = Kind::Messages(Stream { posting, ..Stream::receive(before, RESULTS) });
        let pass = Kind::Messages(Stream { posting, ..Stream::send(next, RESULTS) });
        let (come, pass) = (self.list.lane(come), self.list.lane(pass));
        if !results.is_empty() {
            let end = self.ends(local, results.len());
            for (index, result) in results.iter().enumerate() {
                self.list.add(pass, Action::Send(result.clone()), end(index));
            }
        }
        for step in 1..self.call.ranks {
            let of = self.at(self.call.ranks - step);
            let sent = sends[(self.call.ranks - step) as usize - 1].filter(|_| self.is_in_place());
            let parts = self.parts[self.me as usize].len() as u64;
            for (index, segment) in (1..).zip(self.segments(of)) {
                let free = sent.map_or(After::Start, |lane| After::Steps { lane, count: index * parts });
                let count = self.list.add(come, Action::Receive(Slice::output(segment.clone())), free);
                if step + 1 < self.call.ranks {
                    let after = After::Steps { lane: come, count };
                    self.list.add(pass, Action::Send(Slice::output(segment)), after);
                }
            }
        }
    }
}
