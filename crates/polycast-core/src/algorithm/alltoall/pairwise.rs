//! Pairwise exchange: in step s every rank sends to the one s further on and receives from the one s before.
//!
//! So in each step every port carries one block out and one in; a send waits for the block of the step before. `P-1` steps, for
//! large blocks (Thakur et al. 2005, §3.4).
//!
//! In place, a rank first puts its blocks aside one after the other, and receives a block only where it has done so.

use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Alltoall],
    "pairwise",
    "in step s every rank exchanges with those s before and behind it",
    "Thakur et al. 2005, §3.4",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    exchange(call, rank, true)
}

/// Every rank sends its block to each other one: in steps, each after what the step before has brought, or all at once.
pub(super) fn exchange(call: &Call, rank: Rank, is_in_steps: bool) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    let further = |by: u32| (rank.0 + by) % ranks;
    let block = |of: u32| u64::from(of) * bytes..u64::from(of + 1) * bytes;
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    let local = list.lane(Kind::Local);
    if call.is_in_place {
        list.set_scratch_bytes(u64::from(ranks) * bytes);
        for aside in (1..ranks).map(|by| block(further(by))) {
            let (from, to) = (Slice::output(aside.clone()), Slice::scratch(aside));
            list.add(local, Action::Copy { from, to }, After::Start);
        }
    } else {
        let (from, to) = (Slice::input(block(rank.0)), Slice::output(block(rank.0)));
        list.add(local, Action::Copy { from, to }, After::Start);
    }
    // The block for, and from, the rank that is `by` further on is aside after this many steps.
    let aside = |by: u32| match call.is_in_place {
        true => After::Steps { lane: local, count: by.into() },
        false => After::Start,
    };
    let posting = if call.is_in_place { Posting::InTurn } else { Posting::AtOnce };
    let mut received = None;
    for by in 1..ranks {
        let (to, from) = (further(by), further(ranks - by));
        let receives = Stream { posting, ..Stream::receive(Rank(from), 0) };
        let receive = Action::Receive(Slice::output(block(from)));
        let receives = list.single(Kind::Messages(receives), receive, aside(ranks - by));
        let sent = if call.is_in_place { Slice::scratch(block(to)) } else { Slice::input(block(to)) };
        let sends = Stream { posting, ..Stream::send(Rank(to), 0) };
        let sends = list.single(Kind::Messages(sends), Action::Send(sent), aside(by));
        list.lane_mut(sends).opens_after = received;
        received = is_in_steps.then_some(receives);
    }
    Box::new(list)
}
