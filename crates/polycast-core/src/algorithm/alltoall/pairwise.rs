//! Pairwise exchange: in step s every rank sends to the one s further on and receives from the one s before.
//!
//! So in each step every port carries one block out and one in. `P-1` steps, for large blocks (Thakur et al. 2005, §3.4). A rank begins step s
//! when it has the block of step s-1, and tells so the one that sends to it then; that one waits for it. Without this grant a block that is
//! late meets the next one at their receiver's port, which makes both late, and lateness doubles with each step until all steps take twice as
//! long. The grant is sent before the rank's own block, behind which it would have to wait for the port.
//!
//! ```text
//!   rank r    ◀── block s-1 ──┐
//!             grant ──▶ r-s   │   grant ◀── r+s          no grants in step 1, where all ports are free
//!             ── block s ──▶ r+s
//! ```
//!
//! In segments no message is so long that the MPI asks before it sends it: its answer would stand behind a block, as grants would.
//!
//! In place, a rank first puts its blocks aside one after the other, and receives when it has done so.

use crate::algorithm::formulas::others;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Channel, Kind, Listed, Posting, Schedule, Slice, Stream, cut};
use crate::units::Rank;

/// The channels of blocks, and of grants.
const BLOCKS: Channel = 0;
const GRANTS: Channel = 1;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Alltoall],
    "pairwise",
    "in step s every rank exchanges with those s before and behind it, when they are ready",
    "Thakur et al. 2005, §3.4",
    schedule,
)
.in_segments()
.in_stages(|ranks| Some(Stages::of_blocks(others(ranks), others(ranks))))];

fn schedule(algorithm: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let whole = exchange(call, rank, true);
    match algorithm.segment {
        Some(segment) => cut(whole, segment.get()),
        None => whole,
    }
}

/// Returns the schedule of `rank`, which sends each other rank its block: in steps, each after what
/// the step before has brought, or all at once.
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
    // In place, blocks come when all are aside.
    let (posting, is_aside) = match call.is_in_place {
        true => (Posting::InTurn, After::Steps { lane: local, count: u64::from(ranks) - 1 }),
        false => (Posting::AtOnce, After::Start),
    };
    let nothing = || Slice::output(0..0);
    // What the next step's sends wait for.
    let mut received = call.is_in_place.then_some(local);
    for by in 1..ranks {
        let (to, from) = (further(by), further(ranks - by));
        let has_grants = is_in_steps && by > 1;
        if has_grants {
            let grants = Kind::Messages(Stream::send(Rank(from), GRANTS));
            let grants = list.single(grants, Action::Send(nothing()), After::Start);
            list.lane_mut(grants).opens_after = received;
        }
        let receives = Stream { posting, ..Stream::receive(Rank(from), BLOCKS) };
        let receive = Action::Receive(Slice::output(block(from)));
        let receives = list.single(Kind::Messages(receives), receive, is_aside);
        let granted = if has_grants {
            let grants = Kind::Messages(Stream::receive(Rank(to), GRANTS));
            After::Steps { lane: list.single(grants, Action::Receive(nothing()), After::Start), count: 1 }
        } else {
            After::Start
        };
        let sent = if call.is_in_place { Slice::scratch(block(to)) } else { Slice::input(block(to)) };
        let sends = Stream { posting, ..Stream::send(Rank(to), BLOCKS) };
        let sends = list.single(Kind::Messages(sends), Action::Send(sent), granted);
        list.lane_mut(sends).opens_after = received;
        if is_in_steps {
            received = Some(receives);
        }
    }
    Box::new(list)
}
