//! Proof 3: everything that begins ends.

use super::matching::Partners;
use super::{Place, Violation};
use crate::schedule::{After, LaneIndex, Schedule, Stream};
use crate::units::Rank;

/// A run in which each step takes place as soon as what it waits for has.
struct Run<'a, S> {
    schedules: &'a [S],
    /// Per rank and lane, how many steps have completed.
    completed: Vec<Vec<u64>>,
    /// Per rank and receive lane, the send lanes of that rank that wait for it.
    waiting: Vec<Vec<Vec<LaneIndex>>>,
}

pub(super) fn check<S: Schedule>(schedules: &[S], partners: &Partners) -> Result<(), Violation> {
    let lanes = |schedule: &S| schedule.lanes().len();
    let mut run = Run {
        schedules,
        completed: schedules.iter().map(|s| vec![0; lanes(s)]).collect(),
        waiting: schedules.iter().map(|s| vec![Vec::new(); lanes(s)]).collect(),
    };
    let mut may_go: Vec<(Rank, LaneIndex)> = (0..)
        .map(Rank)
        .zip(schedules)
        .flat_map(|(rank, schedule)| (0..lanes(schedule)).map(move |lane| (rank, lane)))
        .filter(|(rank, lane)| schedules[rank.index()].lanes()[*lane].is_send())
        .collect();
    while let Some((rank, lane)) = may_go.pop() {
        let Some(Stream { peer, .. }) = schedules[rank.index()].lanes()[lane].stream() else { continue };
        run.advance((rank, lane), (peer, partners[rank.index()][lane]), |woken| may_go.push((peer, woken)));
    }
    run.first_stuck().map_or(Ok(()), Err)
}

impl<S: Schedule> Run<'_, S> {
    /// Lets a send lane go as far as it can, and calls `wake` for the peer's lanes that may then go on.
    fn advance(
        &mut self,
        (rank, lane): (Rank, LaneIndex),
        (peer, peer_lane): (Rank, LaneIndex),
        mut wake: impl FnMut(LaneIndex),
    ) {
        let description = &self.schedules[rank.index()].lanes()[lane];
        while self.completed[rank.index()][lane] < description.steps {
            if let Some(blocker) = self.blocker(rank, lane) {
                self.waiting[rank.index()][blocker].push(lane);
                return;
            }
            self.completed[rank.index()][lane] += 1;
            self.completed[peer.index()][peer_lane] += 1;
            self.waiting[peer.index()][peer_lane].drain(..).for_each(&mut wake);
        }
    }

    /// A receive lane for which the next step of `lane` has to wait.
    fn blocker(&self, rank: Rank, lane: LaneIndex) -> Option<LaneIndex> {
        let schedule = &self.schedules[rank.index()];
        let completed = &self.completed[rank.index()];
        let is_open = |lane: &LaneIndex| completed[*lane] == schedule.lanes()[*lane].steps;
        let opener = schedule.lanes()[lane].opens_after.filter(|opener| !is_open(opener));
        opener.or_else(|| match schedule.step(lane, completed[lane]).after {
            After::Start => None,
            After::Steps { lane, count } => (completed[lane] < count).then_some(lane),
            After::LanesBelow(end) => {
                (0..end).find(|lane| schedule.lanes()[*lane].is_receive() && !is_open(lane))
            }
        })
    }

    fn first_stuck(&self) -> Option<Violation> {
        (0..).map(Rank).zip(self.schedules).find_map(|(rank, schedule)| {
            let lanes = schedule.lanes().iter().enumerate();
            lanes.filter(|(_, lane)| lane.is_send()).find_map(|(lane, description)| {
                let step = self.completed[rank.index()][lane];
                let waits_for = (step < description.steps).then(|| self.blocker(rank, lane))??;
                Some(Violation::Deadlock { at: Place { rank, lane, step }, waits_for })
            })
        })
    }
}
