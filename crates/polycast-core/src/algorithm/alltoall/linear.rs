//! Linear all-to-all: every rank sends to all others at once, beginning with the next one.
//!
//! ```text
//!   rank 1 of 4    to 2  ──────────────     the sends share the port; none waits for the step before,
//!                  to 3  ──────────────     so a rank that is late holds up nobody but itself
//!                  to 0  ──────────────
//! ```
//!
//! As many messages on their way as there are ranks: for few of them, as nodes are (Thakur et al. 2005, §3.4).
//!
//! In place, a rank first puts its blocks aside one after the other, and receives a block only where it has done so.

use crate::algorithm::{Algorithm, Entry};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Kind, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Alltoall],
    "linear",
    "every rank sends to all others at once",
    "Thakur et al. 2005, §3.4",
    schedule,
)];

fn schedule(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 || ranks == 1 && call.is_in_place {
        return Box::new(list);
    }
    let further = |by: u32| (rank.0 + by) % ranks;
    let block = |of: u32| u64::from(of) * bytes..u64::from(of + 1) * bytes;
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
    for by in 1..ranks {
        let (to, from) = (further(by), further(ranks - by));
        let receives = Kind::Messages(Stream { posting, ..Stream::receive(Rank(from), 0) });
        list.single(receives, Action::Receive(Slice::output(block(from))), aside(ranks - by));
        let sent = if call.is_in_place { Slice::scratch(block(to)) } else { Slice::input(block(to)) };
        let sends = Kind::Messages(Stream { posting, ..Stream::send(Rank(to), 0) });
        list.single(sends, Action::Send(sent), aside(by));
    }
    Box::new(list)
}
