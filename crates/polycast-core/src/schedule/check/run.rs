//! Proofs 2 and 3: a run in which each step takes place as soon as what it waits for has, with values in place of bytes.

use super::clock::Clock;
use super::matching::Partners;
use super::member::{CheckedLane, Member};
use super::value::{self, Contributors, Run as Values, Value};
use super::{Place, Summary, Violation};
use crate::collective::Collective;
use crate::schedule::{
    Action, Contract, Direction, Fabric, Holding, Kind, LaneIndex, Schedule, Step, Stream,
};
use crate::units::{Bytes, Rank};

/// A lane of a rank.
pub(super) type LaneOf = (Rank, LaneIndex);

pub(super) struct CheckRun<'a, S> {
    contract: Contract,
    members: Vec<Member<'a, S>>,
    partners: &'a Partners,
    /// The counts of what each rank has sent.
    sent: Vec<Summary>,
}

pub(super) fn check<S: Schedule>(
    schedules: &[S],
    contract: Contract,
    partners: &Partners,
) -> Result<Summary, Violation> {
    let member = |(rank, schedule)| Member::new(rank, schedule, &contract);
    let members = (0..).map(Rank).zip(schedules).map(member).collect();
    let mut run = CheckRun { contract, members, partners, sent: vec![Summary::default(); schedules.len()] };
    let mut may_go: Vec<LaneOf> = Vec::new();
    for (rank, schedule) in (0..).map(Rank).zip(schedules) {
        let active = (0..).zip(schedule.lanes()).filter(|(_, lane)| !lane.is_receive());
        may_go.extend(active.map(|(lane, _)| (rank, lane)));
    }
    while let Some(lane) = may_go.pop() {
        run.advance(lane, &mut may_go)?;
    }
    run.all_is_done()?;
    run.is_fulfilled()?;
    Ok(run.summary())
}

/// The answer to the question if a step can go.
enum Gate {
    /// The step can go, and so can its receive, here with its place, if it is a send.
    Open(Option<(Place, Step)>),
    /// The step cannot go: it, or its receive, waits for a lane.
    Closed { at: Place, by: LaneOf },
}

impl<S: Schedule> CheckRun<'_, S> {
    /// Lets a lane go as far as it can, and adds those to `may_go` that may then go on.
    fn advance(&mut self, lane: LaneOf, may_go: &mut Vec<LaneOf>) -> Result<(), Violation> {
        while !self.members[lane.0.index()].is_complete(lane.1) {
            let (at, step) = self.next(lane);
            match self.gate(at, &step)? {
                Gate::Open(receive) => self.perform(at, step, receive, may_go)?,
                Gate::Closed { by, .. } => {
                    self.lane(by).waiting.push(lane);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn lane(&mut self, (rank, lane): LaneOf) -> &mut CheckedLane {
        &mut self.members[rank.index()].lanes[lane]
    }

    /// The next step of a lane that has one.
    fn next(&self, (rank, lane): LaneOf) -> (Place, Step) {
        let member = &self.members[rank.index()];
        let step = member.lanes[lane].completed;
        (Place { rank, lane, step }, member.schedule.step(lane, step))
    }

    fn partners(&self, at: Place) -> &[LaneOf] {
        &self.partners[at.rank.index()][at.lane]
    }

    fn gate(&self, at: Place, step: &Step) -> Result<Gate, Violation> {
        let member = &self.members[at.rank.index()];
        if let Some(lane) = member.blocker(at, step)? {
            return Ok(Gate::Closed { at, by: (at.rank, lane) });
        }
        let mut partners = self.partners(at).iter().copied();
        let stream_bytes = |(rank, lane): LaneOf| self.members[rank.index()].lanes[lane].stream_bytes;
        let by = match (&member.schedule.lanes()[at.lane].kind, &step.action) {
            (Kind::Messages(_), _) => {
                let Some(receiver) = partners.next() else { return Ok(Gate::Open(None)) };
                let (at, step) = self.next(receiver);
                return Ok(match self.members[at.rank.index()].blocker(at, &step)? {
                    Some(lane) => Gate::Closed { at, by: (at.rank, lane) },
                    None => Gate::Open(Some((at, step))),
                });
            }
            (Kind::Publish { fabric: Fabric::Cell, .. }, _) => {
                let published = member.lanes[at.lane].stream_bytes;
                partners.find(|reader| {
                    let is_done = self.members[reader.0.index()].is_complete(reader.1);
                    !is_done
                        && matches!(self.next(*reader).1.action, Action::Fetch { at, .. } if at < published)
                })
            }
            (Kind::Publish { fabric: Fabric::Shared, .. }, _) if member.lanes[at.lane].is_shown => {
                let published = member.lanes[at.lane].stream_bytes;
                for reader in partners {
                    if let Some(by) = self.still_reads(reader, published)? {
                        return Ok(Gate::Closed { at, by });
                    }
                }
                None
            }
            (Kind::Fetch { .. }, Action::Fetch { at, to }) => {
                partners.find(|writer| stream_bytes(*writer) < at + to.length())
            }
            _ => None,
        };
        Ok(by.map_or(Gate::Open(None), |by| Gate::Closed { at, by }))
    }

    /// Returns the lane that has to go on before a reader says that it needs nothing of what was
    /// published up to there: when it has fetched that, has started to fetch something behind it,
    /// or has ended.
    fn still_reads(&self, reader: LaneOf, published: u64) -> Result<Option<LaneOf>, Violation> {
        let member = &self.members[reader.0.index()];
        if member.is_complete(reader.1) || member.lanes[reader.1].stream_bytes >= published {
            return Ok(None);
        }
        let (at, step) = self.next(reader);
        if let Some(lane) = member.blocker(at, &step)? {
            return Ok(Some((reader.0, lane)));
        }
        let is_behind = matches!(step.action, Action::Fetch { at, .. } if at >= published);
        Ok((!is_behind).then_some(reader))
    }

    fn perform(
        &mut self,
        at: Place,
        step: Step,
        receive: Option<(Place, Step)>,
        may_go: &mut Vec<LaneOf>,
    ) -> Result<(), Violation> {
        let contract = self.contract;
        let partner = self.partners(at).first().copied();
        let member = &mut self.members[at.rank.index()];
        let schedule = member.schedule;
        let clock = member.start(at, step.after);
        match (&schedule.lanes()[at.lane].kind, step.action) {
            (Kind::Messages(Stream { direction: Direction::Send, .. }), Action::Send(from)) => {
                let values = member.read(at, &from, &clock)?;
                self.count(at.rank, from.length());
                if let Some(receive) = receive {
                    let receiver = (receive.0.rank, receive.0.lane);
                    self.deliver(at, &clock, receive, (from.length(), values))?;
                    self.complete(receiver, may_go);
                }
            }
            (Kind::Local, Action::Copy { from, to }) if from.length() == to.length() => {
                let values = member.read(at, &from, &clock)?;
                member.write(at, &to, values, &clock)?;
            }
            (Kind::Local, Action::Combine { from, into }) if from.length() == into.length() => {
                member.combine(at, &from, &into, &clock, contract.call)?;
            }
            (Kind::Publish { .. }, Action::Publish(_)) if member.lanes[at.lane].is_shown => {
                member.lanes[at.lane].is_shown = false;
            }
            (Kind::Publish { fabric, .. }, Action::Publish(from)) => {
                let values = member.read(at, &from, &clock)?;
                self.is_paired(at, at.step, from.length())?;
                self.arrives((at.rank, at.lane), at.rank, &clock);
                let lane = self.lane((at.rank, at.lane));
                lane.stream.extend(values);
                lane.stream_bytes += from.length();
                // By address, what is published stays in use until it is fetched.
                if *fabric == Fabric::Shared {
                    lane.is_shown = true;
                    may_go.append(&mut lane.waiting);
                    return Ok(());
                }
            }
            (Kind::Fetch { .. }, Action::Fetch { at: first, to }) => {
                if first < member.lanes[at.lane].stream_bytes {
                    return Err(Violation::Malformed {
                        at,
                        reason: "fetches what lies before what it has fetched",
                    });
                }
                self.is_paired(at, first, to.length())?;
                let (stream, told) = match partner.map(|writer| self.lane(writer)) {
                    Some(writer) => (writer.stream.clone(), writer.arrived.get(at.step as usize).cloned()),
                    None => (Values::new(), None),
                };
                let member = &mut self.members[at.rank.index()];
                member.lanes[at.lane].arrived.extend(told);
                member.write(at, &to, value::part(&stream, first, to.length()), &clock)?;
                member.lanes[at.lane].stream_bytes = first + to.length();
            }
            _ => return Err(Violation::Malformed { at, reason: "is no step of such a lane" }),
        }
        self.complete((at.rank, at.lane), may_go);
        Ok(())
    }

    /// Delivers a message: the receiver's side of a send.
    fn deliver(
        &mut self,
        sent: Place,
        clock: &Clock,
        (at, step): (Place, Step),
        (length, values): (u64, Values),
    ) -> Result<(), Violation> {
        let receiver = (at.rank, at.lane);
        let Action::Receive(to) = step.action else {
            return Err(Violation::Malformed { at, reason: "is no step of such a lane" });
        };
        if to.length() != length {
            return Err(Violation::OtherLength { at: sent, sent: length, received: to.length() });
        }
        self.arrives(receiver, sent.rank, clock);
        let member = &mut self.members[at.rank.index()];
        let clock = member.start(at, step.after);
        member.write(at, &to, values, &clock)
    }

    /// Records for a lane of a barrier which ranks have begun when `from` sends or publishes along
    /// it.
    fn arrives(&mut self, lane: LaneOf, from: Rank, clock: &Clock) {
        if self.is_barrier() {
            let before = self.lane(lane).arrived.last().cloned().unwrap_or_default();
            let arrived = self.arrived(from, clock, before);
            self.lane(lane).arrived.push(arrived);
        }
    }

    /// Checks that the bytes of a barrier are published and fetched one by one, so that it is known
    /// which step of a writer a reader has heard of.
    fn is_paired(&self, at: Place, first: u64, length: u64) -> Result<(), Violation> {
        if self.is_barrier() && (first, length) != (at.step, 1) {
            return Err(Violation::Malformed { at, reason: "is not the next byte of a barrier" });
        }
        Ok(())
    }

    fn is_barrier(&self) -> bool {
        self.contract.call.collective == Collective::Barrier
    }

    /// Adds to `known` the ranks that have begun, as far as a step of `rank` with this knowledge
    /// can tell.
    fn arrived(&self, rank: Rank, clock: &Clock, mut known: Vec<bool>) -> Vec<bool> {
        let member = &self.members[rank.index()];
        known.resize(self.members.len(), false);
        known[rank.index()] = true;
        for (lane, count) in clock.lanes() {
            let told = (count as usize).checked_sub(1).and_then(|step| member.lanes[lane].arrived.get(step));
            told.into_iter()
                .for_each(|told| known.iter_mut().zip(told).for_each(|(known, told)| *known |= told));
        }
        known
    }

    fn complete(&mut self, lane: LaneOf, may_go: &mut Vec<LaneOf>) {
        let state = self.lane(lane);
        state.completed += 1;
        may_go.append(&mut state.waiting);
    }

    fn count(&mut self, rank: Rank, bytes: u64) {
        let sent = &mut self.sent[rank.index()];
        sent.bytes.0 += bytes;
        *(if bytes == 0 { &mut sent.signals } else { &mut sent.messages }) += 1;
    }

    /// Checks that no lane waits for ever.
    fn all_is_done(&self) -> Result<(), Violation> {
        for (rank, member) in (0..).map(Rank).zip(&self.members) {
            let lanes = member.schedule.lanes().iter().enumerate();
            for (lane, _) in lanes.filter(|(lane, of)| !of.is_receive() && !member.is_complete(*lane)) {
                let (at, step) = self.next((rank, lane));
                if let Gate::Closed { at, by: (other, waits_for) } = self.gate(at, &step)? {
                    return Err(Violation::Deadlock { at, other, waits_for });
                }
            }
        }
        Ok(())
    }

    /// Checks that every rank has what the contract promises.
    fn is_fulfilled(&self) -> Result<(), Violation> {
        for (rank, member) in (0..).map(Rank).zip(&self.members) {
            for Holding { slice, ranks, offset } in self.contract.after(rank) {
                let value = Value { contributors: Contributors::run(ranks), offset };
                let memory = &member.memory[slice.buffer as usize];
                match memory.first_other(&slice.bytes, &value) {
                    None => {}
                    Some((byte, None)) => return Err(Violation::Missing { rank, byte }),
                    Some((byte, Some(found))) => {
                        let found = found.to_string();
                        return Err(Violation::Wrong { rank, byte, found });
                    }
                }
            }
            if self.is_barrier() {
                let mut all = Clock::default();
                for (lane, of) in (0..).zip(member.schedule.lanes()) {
                    all.add(lane, of.steps);
                }
                let arrived = self.arrived(rank, &all, Vec::new());
                if let Some(other) = arrived.iter().position(|has_arrived| !has_arrived) {
                    return Err(Violation::NotAwaited { rank, other: Rank(other as u32) });
                }
            }
        }
        Ok(())
    }

    fn summary(&self) -> Summary {
        self.sent.iter().fold(Summary::default(), |sum, sent| Summary {
            messages: sum.messages + sent.messages,
            signals: sum.signals + sent.signals,
            bytes: Bytes(sum.bytes.0 + sent.bytes.0),
            most_messages_sent: sum.most_messages_sent.max(sent.messages),
            most_bytes_sent: sum.most_bytes_sent.max(sent.bytes),
        })
    }
}
