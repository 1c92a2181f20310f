//! Bruck's allgather: in round k every rank sends all it has, up to 2^k blocks, to the one 2^k before it.
//!
//! ```text
//!   scratch of rank r    r     r+1     r+2 r+3     r+4 …        modulo P; then turned round into the output
//!                       own  round 0   round 1     round 2
//! ```
//!
//! `ceil(log2 P)` hops for any number of ranks, each block once over every port: for short blocks (Bruck et al. 1997; Thakur et al.
//! 2005, §3.1).

use crate::algorithm::formulas::{doublings, others};
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allgather],
    "bruck",
    "in round k every rank sends all it has to the one 2^k before it",
    "Thakur et al. 2005, §3.1",
    schedule,
)
.in_stages(|ranks| Some(Stages::of_blocks(doublings(ranks), others(ranks))))];

fn schedule(_: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    let blocks = |first: u32, end: u32| u64::from(first) * bytes..u64::from(end) * bytes;
    let output = |first, end| Slice::output(blocks(first, end));
    let scratch = |first, end| Slice::scratch(blocks(first, end));
    let own = if call.is_in_place { output(rank, rank + 1) } else { Slice::input(0..bytes) };
    let rounds = ranks.next_power_of_two().ilog2();
    // How many blocks a round brings.
    let brought = |distance: u32| distance.min(ranks - distance);
    if ranks > 1 {
        list.set_scratch_bytes(u64::from(ranks) * bytes);
        let aside = Action::Copy { from: own.clone(), to: scratch(0, 1) };
        list.single(Kind::Local, aside, After::Start);
    }
    for distance in (0..rounds).map(|round| 1 << round) {
        let from = Stream::receive(Rank((rank + distance) % ranks), 0);
        let receive = Action::Receive(scratch(distance, distance + brought(distance)));
        list.single(Kind::Messages(from), receive, After::Start);
    }
    let all = After::LanesBelow(1 + rounds as usize);
    for round in 0..rounds {
        let distance = 1 << round;
        let to = Stream::send(Rank((rank + ranks - distance) % ranks), 0);
        let after = After::LanesBelow(1 + round as usize);
        list.single(Kind::Messages(to), Action::Send(scratch(0, brought(distance))), after);
    }
    let turned = [(1, ranks - rank, rank + 1), (ranks - rank, ranks, 0)];
    let turned = turned.into_iter().filter(|(first, end, _)| first < end).map(|(first, end, to)| {
        (Action::Copy { from: scratch(first, end), to: output(to, to + end - first) }, all)
    });
    let kept =
        (!call.is_in_place).then(|| (Action::Copy { from: own, to: output(rank, rank + 1) }, After::Start));
    let local = list.lane(Kind::Local);
    for (action, after) in kept.into_iter().chain(turned) {
        list.add(local, action, after);
    }
    Box::new(list)
}
