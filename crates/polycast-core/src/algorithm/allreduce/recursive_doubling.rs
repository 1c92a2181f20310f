//! Recursive doubling: in round k pairs at distance 2^k exchange what they have combined, and both combine the two.
//!
//! ```text
//!   ranks    0 ▶ 1    2 ▶ 3    4    5         more than a power of two: the first pair up, 1 and 3 go on for both
//!   round 0      1 ◀─────▶ 3   4 ◀─▶ 5        0∘1∘2∘3           4∘5
//!   round 1      1 ◀───────────▶ 4            0∘1∘2∘3∘4∘5
//!                          3 ◀──────▶ 5
//!   at last  0 ◀ 1    2 ◀ 3
//! ```
//!
//! Parts are always those of neighbouring ranks and both of a pair combine them in the same order, so the order of ranks is kept
//! and the result is the same on all ranks: it is this that the tree of combinations is taken from. Whole messages, `ceil(log2 P)` exchanges or two more: for short vectors (Thakur et
//! al. 2005, §3.5).

use crate::algorithm::formulas::doublings;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allreduce],
    "recursive-doubling",
    "pairs at doubling distances exchange and combine what they have",
    "Thakur et al. 2005, §3.5",
    schedule,
)
.by_the_tree()
.in_stages(|ranks| {
    ranks.is_power_of_two().then(|| {
        let rounds = doublings(ranks);
        Stages { rounds, carried: rounds, combined: rounds }
    })
})];

fn schedule(_: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 {
        return Box::new(list);
    }
    let rounds = ranks.ilog2();
    let paired = 2 * (ranks - (1 << rounds));
    let output = || Slice::output(0..bytes);
    let input = if call.is_in_place { output() } else { Slice::input(0..bytes) };
    if rank < paired && rank % 2 == 0 {
        let partner = Rank(rank + 1);
        let lane = list.single(Kind::Messages(Stream::send(partner, 0)), Action::Send(input), After::Start);
        // Its output may be what it sends.
        let result = Stream { posting: Posting::InTurn, ..Stream::receive(partner, 0) };
        list.single(Kind::Messages(result), Action::Receive(output()), After::Steps { lane, count: 1 });
        return Box::new(list);
    }
    // Among those that go on.
    let place = if rank < paired { rank / 2 } else { rank - paired / 2 };
    let rank_at = |place: u32| Rank(if place < paired / 2 { 2 * place + 1 } else { place + paired / 2 });
    let slot = |number: u32| {
        let start = u64::from(number) * bytes;
        Slice::scratch(start..start + bytes)
    };
    list.set_scratch_bytes(u64::from(rounds + 1) * bytes);
    // All lanes of messages stand before the local one, by round, so that a combination can wait for an exchange as a whole.
    let has_partner = rank < paired;
    if has_partner {
        let stream = Stream::receive(Rank(rank - 1), 0);
        list.single(Kind::Messages(stream), Action::Receive(slot(rounds)), After::Start);
    }
    let first = usize::from(has_partner);
    let local = first + 2 * rounds as usize;
    let (mut steps, mut combined) = (Vec::new(), output());
    if !call.is_in_place {
        steps.push((Action::Copy { from: input, to: output() }, After::Start));
    }
    if has_partner {
        let combine = Action::Combine { from: slot(rounds), into: output() };
        steps.push((combine, After::LanesBelow(first)));
    }
    for round in 0..rounds {
        let partner = place ^ (1 << round);
        let after = match steps.len() as u64 {
            0 => After::Start,
            count => After::Steps { lane: local, count },
        };
        let peer = rank_at(partner);
        list.single(Kind::Messages(Stream::receive(peer, 0)), Action::Receive(slot(round)), After::Start);
        list.single(Kind::Messages(Stream::send(peer, 0)), Action::Send(combined.clone()), after);
        let (from, into) = if partner < place { (slot(round), combined) } else { (combined, slot(round)) };
        combined = into.clone();
        let exchanged = After::LanesBelow(first + 2 * (round as usize + 1));
        steps.push((Action::Combine { from, into }, exchanged));
    }
    if combined != output() {
        steps.push((Action::Copy { from: combined, to: output() }, After::Start));
    }
    list.lane(Kind::Local);
    let count = steps.into_iter().map(|(action, after)| list.add(local, action, after)).last();
    if has_partner {
        let stream = Stream { posting: Posting::InTurn, ..Stream::send(Rank(rank - 1), 0) };
        let after = count.map_or(After::Start, |count| After::Steps { lane: local, count });
        list.single(Kind::Messages(stream), Action::Send(output()), after);
    }
    Box::new(list)
}
