//! Bruck's all-to-all: a block goes by the ones in the binary number that says how much further on its destination is.
//!
//! ```text
//!   rank r holds for    r   r+1   r+2   r+3   r+4 …      round 0 sends r+1, r+3, … on by 1; round 1 r+2, r+3, r+6, r+7 … by 2
//! ```
//!
//! `ceil(log2 P)` messages of about half of all blocks, in place of `P-1` of one: for short blocks, at the price of copies (Bruck et al. 1997).

use crate::algorithm::formulas::doublings;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Alltoall],
    "bruck",
    "in round k every block that has to go 2^k further among others does so",
    "Bruck et al. 1997",
    schedule,
)
.in_stages(|ranks| {
    ranks
        .is_power_of_two()
        .then(|| Stages::of_blocks(doublings(ranks), doublings(ranks) * f64::from(ranks) / 2.0))
})];

fn schedule(_: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    let rounds = ranks.next_power_of_two().ilog2();
    let block = |of: u32| u64::from(of) * bytes..u64::from(of + 1) * bytes;
    let given = |of: u32| if call.is_in_place { Slice::output(block(of)) } else { Slice::input(block(of)) };
    // What travels in a round: the blocks that have this bit, one after the other, packed here.
    let travelling = |round: u32| (1..ranks).filter(move |further| further >> round & 1 == 1);
    let packed = |round: u32| (0..round).map(|before| travelling(before).count() as u64).sum::<u64>() * bytes;
    let room = packed(rounds);
    let sent = |round: u32| Slice::scratch(packed(round)..packed(round + 1));
    let come = |round: u32| Slice::scratch(room + packed(round)..room + packed(round + 1));
    list.set_scratch_bytes(2 * room);
    for round in 0..rounds {
        let from = Rank((rank + ranks - (1 << round)) % ranks);
        list.single(Kind::Messages(Stream::receive(from, 0)), Action::Receive(come(round)), After::Start);
    }
    let local = list.lane(Kind::Local);
    // Where the block for the rank so much further on is: with its owner until it travels, then where it came to.
    let mut place: Vec<Slice> = (0..ranks).map(|further| given((rank + further) % ranks)).collect();
    for round in 0..rounds {
        let after = if round == 0 { After::Start } else { After::LanesBelow(round as usize) };
        let mut count = 0;
        for (number, further) in (0..).zip(travelling(round)) {
            let at = |whole: Slice| {
                Slice::scratch(whole.bytes.start + number * bytes..whole.bytes.start + (number + 1) * bytes)
            };
            let from = std::mem::replace(&mut place[further as usize], at(come(round)));
            count = list.add(local, Action::Copy { from, to: at(sent(round)) }, after);
        }
        let to = Rank((rank + (1 << round)) % ranks);
        let packed = After::Steps { lane: local, count };
        list.single(Kind::Messages(Stream::send(to, 0)), Action::Send(sent(round)), packed);
    }
    // What came by so much is from the rank so far before.
    for (before, from) in (0..ranks).zip(place) {
        let to = Slice::output(block((rank + ranks - before) % ranks));
        if from != to {
            list.add(local, Action::Copy { from, to }, After::LanesBelow(rounds as usize));
        }
    }
    Box::new(list)
}
