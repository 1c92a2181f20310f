//! Recursive doubling: in round k pairs at distance 2^k exchange all blocks that they have.
//!
//! ```text
//!   ranks    0 ▶ 1    2 ▶ 3    4    5         more than a power of two: the first pair up, 1 and 3 go on for both
//!   round 0      1 ◀─────▶ 3   4 ◀─▶ 5
//!   round 1      1 ◀───────────▶ 4
//!                          3 ◀──────▶ 5
//!   at last  0 ◀ 1    2 ◀ 3
//! ```
//!
//! `log2 P` exchanges, or two hops more, in which one of a pair gets everything once more over its link: for blocks that are not long, on a power of two
//! (Thakur et al. 2005, §3.1).

use std::ops::Range;

use crate::algorithm::formulas::{doublings, others};
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allgather],
    "recursive-doubling",
    "pairs at doubling distances exchange all they have",
    "Thakur et al. 2005, §3.1",
    schedule,
)
.in_stages(|ranks| ranks.is_power_of_two().then(|| Stages::of_blocks(doublings(ranks), others(ranks))))];

fn schedule(_: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    let blocks = |of: Range<u32>| Slice::output(u64::from(of.start) * bytes..u64::from(of.end) * bytes);
    let own = || if call.is_in_place { blocks(rank..rank + 1) } else { Slice::input(0..bytes) };
    if !call.is_in_place {
        list.single(Kind::Local, Action::Copy { from: own(), to: blocks(rank..rank + 1) }, After::Start);
    }
    let rounds = ranks.ilog2();
    let paired = 2 * (ranks - (1 << rounds));
    if rank < paired && rank % 2 == 0 {
        let partner = Rank(rank + 1);
        list.single(Kind::Messages(Stream::send(partner, 0)), Action::Send(own()), After::Start);
        // Everything but its own block, in two messages around it.
        let result = list.lane(Kind::Messages(Stream::receive(partner, 0)));
        for of in [0..rank, rank + 1..ranks].into_iter().filter(|of| !of.is_empty()) {
            list.add(result, Action::Receive(blocks(of)), After::Start);
        }
        return Box::new(list);
    }
    // Among those that go on, and the blocks of so many of these.
    let place = if rank < paired { rank / 2 } else { rank - paired / 2 };
    let first_of = |place: u32| if place < paired / 2 { 2 * place } else { place + paired / 2 };
    let rank_at = |place: u32| Rank(if place < paired / 2 { 2 * place + 1 } else { place + paired / 2 });
    if rank < paired {
        let stream = Stream::receive(Rank(rank - 1), 0);
        list.single(Kind::Messages(stream), Action::Receive(blocks(rank - 1..rank)), After::Start);
    }
    let mut lanes = usize::from(!call.is_in_place) + usize::from(rank < paired);
    for round in 0..rounds {
        let partner = place ^ (1 << round);
        let held = |place: u32| {
            let first = place >> round << round;
            first_of(first)..first_of(first + (1 << round))
        };
        let peer = rank_at(partner);
        let send = Action::Send(blocks(held(place)));
        let after = if lanes == 0 { After::Start } else { After::LanesBelow(lanes) };
        list.single(Kind::Messages(Stream::send(peer, 0)), send, after);
        list.single(
            Kind::Messages(Stream::receive(peer, 0)),
            Action::Receive(blocks(held(partner))),
            After::Start,
        );
        lanes += 2;
    }
    if rank < paired {
        let partner = rank - 1;
        let lane = list.lane(Kind::Messages(Stream::send(Rank(partner), 0)));
        for of in [0..partner, partner + 1..ranks].into_iter().filter(|of| !of.is_empty()) {
            list.add(lane, Action::Send(blocks(of)), After::LanesBelow(lanes));
        }
    }
    Box::new(list)
}
