//! Reduce-scatter around a ring, then allgather around it.
//!
//! ```text
//!   rank 1 of 4   reduce-scatter   sends  0        3∘own    2∘own            receives  3   2   1: ∘ own is the result of block 1
//!                 allgather        sends  1        0        3                receives  0   3   2
//! ```
//!
//! Each link carries `2 (P-1)/P` of the vector, less than which is not possible (Patarasuk and Yuan 2009): for long vectors. `2 (P-1)` hops. A block is combined
//! in the order in which it goes around, beginning behind its owner: for operations that commute. All ranks get what the owner of a block has, so they have the same.

use std::ops::Range;

use crate::algorithm::formulas::{others, others_share};
use crate::algorithm::shares::Shares;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Channel, Kind, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

const COMBINE: Channel = 0;
const RESULT: Channel = 1;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allreduce],
    "ring",
    "blocks are combined around a ring, then go around it; of operations that commute",
    "Patarasuk and Yuan 2009",
    schedule,
)
.in_segments()
.only_commuting()
.around_ring()
.in_stages(|ranks| {
    let share = others_share(ranks);
    Some(Stages { rounds: 2.0 * others(ranks), carried: 2.0 * share, combined: share })
})];

fn schedule(algorithm: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    if ranks == 1 {
        let (from, to) = (Slice::input(0..bytes), Slice::output(0..bytes));
        list.single(Kind::Local, Action::Copy { from, to }, After::Start);
        return Box::new(list);
    }
    let own = |bytes: Range<u64>| if call.is_in_place { Slice::output(bytes) } else { Slice::input(bytes) };
    let shares = Shares::new(call, ranks, algorithm.segment);
    // The segments of the block that is `behind` this rank.
    let behind = |by: u32| shares.segments((rank + 2 * ranks - by) % ranks);
    let [before, next] = [rank + ranks - 1, rank + 1].map(|neighbour| Rank(neighbour % ranks));
    let receives = list.lane(Kind::Messages(Stream::receive(before, COMBINE)));
    let sends = list.lane(Kind::Messages(Stream::send(next, COMBINE)));
    let local = list.lane(Kind::Local);
    list.set_scratch_bytes(bytes);
    for piece in behind(1) {
        list.add(sends, Action::Send(own(piece)), After::Start);
    }
    for step in 2..=ranks {
        let is_mine = step == ranks;
        for piece in behind(step) {
            // The last one, this rank's own block, is put together in the output.
            let free = is_mine && !call.is_in_place;
            let place = if free { Slice::output(piece.clone()) } else { Slice::scratch(piece.clone()) };
            let count = list.add(receives, Action::Receive(place.clone()), After::Start);
            let (from, into) = if is_mine && !free { (place, own(piece)) } else { (own(piece), place) };
            let after = After::Steps { lane: receives, count };
            let count = list.add(local, Action::Combine { from, into: into.clone() }, after);
            if !is_mine {
                list.add(sends, Action::Send(into), After::Steps { lane: local, count });
            }
        }
    }
    // In place, the output holds contributions until all of them are combined or sent.
    let posting = if call.is_in_place { Posting::InTurn } else { Posting::AtOnce };
    let results = list.lane(Kind::Messages(Stream { posting, ..Stream::receive(before, RESULT) }));
    let passed_on = list.lane(Kind::Messages(Stream { posting, ..Stream::send(next, RESULT) }));
    let free = if call.is_in_place { After::LanesBelow(local + 1) } else { After::Start };
    let combined: u64 = (2..ranks).map(|step| behind(step).len() as u64).sum();
    for (index, piece) in (1..).zip(behind(0)) {
        let after = After::Steps { lane: local, count: combined + index };
        list.add(passed_on, Action::Send(Slice::output(piece)), after);
    }
    for step in 1..ranks {
        for piece in behind(step) {
            let count = list.add(results, Action::Receive(Slice::output(piece.clone())), free);
            if step + 1 < ranks {
                let after = After::Steps { lane: results, count };
                list.add(passed_on, Action::Send(Slice::output(piece)), after);
            }
        }
    }
    Box::new(list)
}
