//! Rounds as lanes, for the checker of schedules: a cell is a published stream, and its readers fetch from it.

use super::{Algorithm, CellSource, ROOM, ReductionStep, Rounds};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Fabric, Kind, LaneIndex, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

/// Returns the schedule of `rank` in `call`.
pub(super) fn schedule(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    if call.collective == Collective::Barrier {
        return Box::new(barrier(call, rank));
    }
    let all: Vec<Rounds> =
        (0..call.ranks).map(|rank| Rounds::new(algorithm, call, Rank(rank), ROOM)).collect();
    let rounds = &all[rank.index()];
    let mut lanes = RoundLanes::new(&all, rank);
    // Where the streams of all writers have got to.
    let mut begins = vec![0; all.len()];
    for round in 0..rounds.count() {
        let position = |writer: Rank, at: u64| {
            let mut position = begins[writer.index()];
            for put in all[writer.index()].puts(round) {
                let length = put.from.length();
                if put.at <= at && at < put.at + length {
                    return position + at - put.at;
                }
                position += length;
            }
            position
        };
        lanes.round(rounds, round, position);
        for (position, of) in begins.iter_mut().zip(&all) {
            *position += of.puts(round).map(|put| put.from.length()).sum::<u64>();
        }
    }
    Box::new(lanes.list)
}

/// Returns the schedule of a barrier. Its cells are empty: to fill one is a signal to all who look
/// at it.
fn barrier(call: &Call, rank: Rank) -> Listed {
    let mut list = Listed::default();
    let nothing = || Slice::output(0..0);
    let others = || (0..call.ranks).map(Rank).filter(|other| *other != rank);
    for other in others() {
        list.single(Kind::Messages(Stream::receive(other, 0)), Action::Receive(nothing()), After::Start);
    }
    for other in others() {
        list.single(Kind::Messages(Stream::send(other, 0)), Action::Send(nothing()), After::Start);
    }
    list
}

/// The lanes of one rank, as far as the rounds have got.
struct RoundLanes {
    list: Listed,
    local: Counted,
    publish: Option<Counted>,
    /// The lanes that fetch, by writer.
    fetches: Vec<Option<Counted>>,
    /// The offset of this rank's own cell in the scratch memory, where it stands as far as the rank
    /// takes from it itself, or overwrites what it has filled it with.
    own_cell: Option<u64>,
    /// The offset in the scratch memory at which operands come, a chunk for each rank.
    operands: u64,
}

/// A lane, and the number of its steps.
#[derive(Clone, Copy)]
struct Counted {
    lane: LaneIndex,
    count: u64,
}

impl Counted {
    fn after(self) -> After {
        if self.count == 0 { After::Start } else { After::Steps { lane: self.lane, count: self.count } }
    }

    fn add(&mut self, list: &mut Listed, action: Action, after: After) {
        self.count = list.add(self.lane, action, after);
    }
}

impl RoundLanes {
    fn new(all: &[Rounds], rank: Rank) -> RoundLanes {
        let Rounds { call, chunk, .. } = all[rank.index()];
        let mut list = Listed::default();
        let mut lane = |kind| Counted { lane: list.lane(kind), count: 0 };
        // The first chunk is the longest, so who takes from whom is seen there.
        let takes_from = |reader: Rank, writer: Rank| {
            let rounds = &all[reader.index()];
            let is_its =
                |from: &CellSource| matches!(from, CellSource::Cell { writer: of, .. } if *of == writer);
            (0..rounds.count().min(2)).any(|round| rounds.takes(round).any(|take| is_its(&take.from)))
        };
        let others = || (0..call.ranks).map(Rank).filter(|other| *other != rank);
        let local = lane(Kind::Local);
        let readers: Vec<Rank> = others().filter(|reader| takes_from(*reader, rank)).collect();
        let (fabric, channel) = (Fabric::Cell, 0);
        let publish =
            (!readers.is_empty()).then(|| lane(Kind::Publish { fabric, channel, readers: readers.into() }));
        let mut fetches = vec![None; all.len()];
        for writer in others().filter(|writer| takes_from(rank, *writer)) {
            fetches[writer.index()] = Some(lane(Kind::Fetch { fabric, channel, writer }));
        }
        let result = all[rank.index()].scratch_bytes();
        let is_overwritten =
            matches!(call.collective, Collective::Alltoall | Collective::Reduce | Collective::Allreduce);
        let own_cell = (is_overwritten && call.is_in_place_at(rank)).then_some(result);
        let cell = chunk.min(call.bytes.0) * u64::from(call.ranks);
        let spread = chunk * u64::from(call.ranks);
        let operands = result + own_cell.map_or(0, |_| spread.max(cell));
        list.set_scratch_bytes(operands + spread);
        RoundLanes { list, local, publish, fetches, own_cell, operands }
    }

    /// Adds the steps of a round. `position`: where in a writer's stream a byte of its cell is.
    fn round(&mut self, rounds: &Rounds, round: u64, position: impl Fn(Rank, u64) -> u64) {
        let RoundLanes { list, local, publish, fetches, own_cell, operands } = self;
        let step = rounds.step(round).1;
        let is_combined = rounds.call.collective.combines() && step == ReductionStep::Combine;
        // What was published before is not overwritten until it is.
        let published = publish.map_or(After::Start, Counted::after);
        for put in rounds.puts(round).filter(|put| put.from.length() > 0) {
            let mut from = put.from;
            if let Some(cell) = own_cell.filter(|_| step == ReductionStep::Combine) {
                let to = Slice::scratch(cell + put.at..cell + put.at + from.length());
                local.add(list, Action::Copy { from, to: to.clone() }, published);
                from = to;
            }
            if let Some(publish) = publish {
                publish.add(list, Action::Publish(from), local.after());
            }
        }
        // What this rank has published waits for what it has done before, so whoever waits for that waits for both. Of the parts for several
        // readers one is published after the other, so nobody waits for all.
        let before =
            publish.filter(|_| is_combined && rounds.fills(round)).map_or(local.after(), Counted::after);
        let published = publish.map_or(After::Start, Counted::after);
        for take in rounds.takes(round) {
            let (from, after) = match take.from {
                CellSource::Own(from) => (from, published),
                CellSource::Cell { writer, at } if writer == rounds.rank => {
                    let at = own_cell.unwrap_or(0) + at;
                    (Slice::scratch(at..at + take.to.length()), After::Start)
                }
                CellSource::Cell { writer, at } => {
                    let Some(fetch) = &mut fetches[writer.index()] else { continue };
                    let start = *operands + u64::from(writer.0) * rounds.chunk;
                    let operand = Slice::scratch(start..start + take.to.length());
                    let to = if is_combined { operand.clone() } else { take.to.clone() };
                    fetch.add(list, Action::Fetch { at: position(writer, at), to }, before);
                    if !is_combined {
                        continue;
                    }
                    (operand, fetch.after())
                }
            };
            let action = match take.combines {
                true => Action::Combine { from, into: take.to },
                false => Action::Copy { from, to: take.to },
            };
            local.add(list, action, after);
        }
    }
}
