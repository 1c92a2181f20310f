//! Broadcast whose message is scattered to the ranks that stand for nodes, which bring it together again around a ring.
//!
//! ```text
//!   stands for a node    lane 0  the scatter     s0   s1                      nobody is sent what it has, so each node's link
//!                        lane 1  the ring             r0   r1   r2            brings the message once
//!                        last    publish             s0   s1   r0   r1   r2   and with `overlap` the rest of all, when all has come
//!   others of the node   lane 0  fetch                   s0   s1   r0   r1   r2
//! ```

use std::num::NonZeroU64;
use std::ops::Range;

use super::inner::{Inner, Places};
use super::members::{Members, after, fetches_down, parts, publishes_down};
use crate::algorithm::Algorithm;
use crate::algorithm::broadcast::{ON_NODE, SCATTER_RING, TwoLevel};
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Listed, Nodes, Slice};
use crate::units::Rank;

pub(in crate::algorithm) fn schedule(way: &TwoLevel, call: &Call, nodes: &Nodes, rank: Rank) -> Listed {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return list;
    }
    let members = Members::new(call, nodes);
    let (stand_in, others) = (members.my_stand_in(), members.others());
    let algorithm = Algorithm { segment: NonZeroU64::new(way.cut_segment()), ..ON_NODE };
    let inner = Inner::new(SCATTER_RING, &algorithm, &members.between(call.bytes.0), nodes.mine());
    // What is scattered comes before what goes around.
    let mut brought = inner.brings(Buffer::Output);
    brought.sort_by_key(|brought| brought.lane);
    let end = brought.last().map_or(0, |last| last.lane + 1);
    let mut come: Vec<_> = brought.into_iter().map(|of| (of.bytes, after(of.lane, of.count))).collect();
    if come.is_empty() {
        come.push((0..call.bytes.0, After::Start));
    }
    let split = |bytes: &Range<u64>| bytes.start.saturating_add(way.shared_at_once()).min(bytes.end);
    let early = come.iter().map(|(bytes, when)| (bytes.start..split(bytes), *when));
    let late = come.iter().map(|(bytes, _)| (split(bytes)..bytes.end, After::LanesBelow(end)));
    let shared = early.chain(late).flat_map(|(bytes, when)| {
        parts(bytes, way.buffer.get(), 1).map(move |part| (Slice::output(part), when))
    });
    if rank != stand_in {
        let (down, mut at) = (fetches_down(&mut list, stand_in), 0);
        for (to, _) in shared {
            let length = to.length();
            list.add(down, Action::Fetch { at, to }, After::Start);
            at += length;
        }
        return list;
    }
    let places = Places { input: (Buffer::Input, 0), output: (Buffer::Output, 0), scratch: 0 };
    inner.put_into(&mut list, &places, &members, 0, &|_| 0);
    if !others.is_empty() {
        let down = publishes_down(&mut list, &others);
        // Other nodes wait for the ring.
        list.lane_mut(down).phase = 1;
        for (from, when) in shared {
            list.add(down, Action::Publish(from), when);
        }
    }
    list
}
