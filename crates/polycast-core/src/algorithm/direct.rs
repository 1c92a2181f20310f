//! On one node, without anybody in between: each rank shows the others where what it hands in stands, and they copy, or combine, what is theirs from
//! there. For long messages: what is published by address is copied once.
//!
//! ```text
//!   scatter     the root shows all blocks, each takes its own
//!   gather      all show their block, the root takes them
//!   allgather   all show their block, all take all
//!   alltoall    all show all blocks, each takes its own of all
//!   reduce      all show all they have; each combines its share of that, and shows the result to the root
//!   allreduce   the same, to all
//! ```
//! [`cells`](super::cells) do the same through buffers, round by round: of long messages all bytes are copied twice, and where ranks outnumber processors each
//! round takes as long as all of them need for their turn.

mod reductions;

use std::ops::Range;

use super::{Algorithm, Entry, Raced};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Channel, Fabric, Kind, LaneIndex, Listed, Schedule, Slice};
use crate::units::Rank;

/// The channel of what ranks hand in.
const GIVEN: Channel = 0;

pub(super) static ENTRIES: [Entry; 2] = [
    Entry::on_one_node(
        &[Collective::Scatter, Collective::Gather, Collective::Allgather, Collective::Alltoall],
        "direct",
        "on one node: each rank shows the others where its data is, and they copy what is theirs from there",
        "Wu 2005, §2.4",
        blocks,
    )
    .raced(&[Raced::PLAIN]),
    reductions::ENTRY,
];

/// Returns the other ranks: those behind this one first, so that not all of them take from the same
/// one at a time.
fn others(call: &Call, rank: Rank) -> impl Iterator<Item = Rank> + use<> {
    let ranks = call.ranks;
    (1..ranks).map(move |distance| Rank((rank.0 + distance) % ranks))
}

fn publishes(list: &mut Listed, channel: Channel, readers: impl Iterator<Item = Rank>) -> LaneIndex {
    let mut readers: Vec<Rank> = readers.collect();
    readers.sort_unstable();
    list.lane(Kind::Publish { fabric: Fabric::Shared, channel, readers: readers.into() })
}

fn fetches(list: &mut Listed, channel: Channel, writer: Rank) -> LaneIndex {
    list.lane(Kind::Fetch { fabric: Fabric::Shared, channel, writer })
}

/// The block of a rank among those of all.
fn block(call: &Call, rank: Rank) -> Range<u64> {
    let start = u64::from(rank.0) * call.bytes.0;
    start..start + call.bytes.0
}

/// Returns the schedule of one rank where nothing is combined.
fn blocks(_: &Algorithm, call: &Call, rank: Rank) -> Box<dyn Schedule> {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return Box::new(list);
    }
    let (is_root, is_in_place) = (rank == call.root, call.is_in_place_at(rank));
    let (own, all) = (0..call.bytes.0, 0..u64::from(call.ranks) * call.bytes.0);
    let (gives, takes) = match call.collective {
        Collective::Scatter => (is_root, !is_root),
        Collective::Gather => (!is_root, is_root),
        _ => (true, true),
    };
    // What stays here, and, of an all-to-all in place, what others still need while this rank takes theirs.
    let local = list.lane(Kind::Local);
    let mut given = match call.collective {
        Collective::Scatter | Collective::Alltoall => Slice::input(all),
        Collective::Allgather if is_in_place => Slice::output(block(call, rank)),
        _ => Slice::input(own.clone()),
    };
    let mut is_saved = After::Start;
    if call.collective == Collective::Alltoall && is_in_place {
        let saved = Slice::scratch(given.bytes.clone());
        list.set_scratch_bytes(saved.length());
        let from = Slice::output(given.bytes);
        is_saved = After::Steps {
            lane: local,
            count: list.add(local, Action::Copy { from, to: saved.clone() }, After::Start),
        };
        given = saved;
    }
    if gives {
        let to_root = call.collective == Collective::Gather;
        let readers = others(call, rank).filter(|other| !to_root || *other == call.root);
        let lane = publishes(&mut list, GIVEN, readers);
        list.add(lane, Action::Publish(given), is_saved);
    }
    if takes {
        let is_from_root = call.collective == Collective::Scatter;
        for writer in others(call, rank).filter(|other| !is_from_root || *other == call.root) {
            // Where in what the writer shows.
            let at = match call.collective {
                Collective::Scatter | Collective::Alltoall => block(call, rank).start,
                _ => 0,
            };
            let to = if is_from_root { own.clone() } else { block(call, writer) };
            let lane = fetches(&mut list, GIVEN, writer);
            list.add(lane, Action::Fetch { at, to: Slice::output(to) }, is_saved);
        }
    }
    if !is_in_place {
        let (from, to) = match call.collective {
            Collective::Scatter => (block(call, rank), own),
            Collective::Alltoall => (block(call, rank), block(call, rank)),
            _ => (own, block(call, rank)),
        };
        let is_here = match call.collective {
            Collective::Scatter | Collective::Gather => is_root,
            _ => true,
        };
        if is_here {
            list.add(local, Action::Copy { from: Slice::input(from), to: Slice::output(to) }, After::Start);
        }
    }
    Box::new(list)
}

#[cfg(test)]
mod tests;
