//! Dissemination barrier: in round k every rank tells the one 2^k further on that it and all it has heard of are there.
//!
//! `ceil(log2 P)` rounds for any number of ranks (Hensgen, Finkel, Manber 1988).

use crate::algorithm::formulas::doublings;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Barrier],
    "dissemination",
    "in round k every rank tells the one 2^k further on whom it has heard of",
    "Hensgen, Finkel, Manber 1988",
    schedule,
)
.in_stages(|ranks| Some(Stages::of_blocks(doublings(ranks), 0.0)))];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (ranks, mut list) = (call.ranks, Listed::default());
    let rounds = ranks.next_power_of_two().ilog2();
    let signal = || Slice::output(0..0);
    for distance in (0..rounds).map(|round| 1 << round) {
        let from = Rank((rank.0 + ranks - distance) % ranks);
        list.single(Kind::Messages(Stream::receive(from, 0)), Action::Receive(signal()), After::Start);
    }
    for round in 0..rounds {
        let to = Rank((rank.0 + (1 << round)) % ranks);
        let after = if round == 0 { After::Start } else { After::LanesBelow(round as usize) };
        list.single(Kind::Messages(Stream::send(to, 0)), Action::Send(signal()), after);
    }
    Box::new(list)
}
