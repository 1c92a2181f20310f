//! Broadcast whose message is scattered to the ranks that stand for nodes, which bring it together again around a ring.
//!
//! ```text
//!   stands for a node    lane 0  the scatter     s0   s1                      nobody is sent what it has, so each node's link
//!                        lane 1  the ring             r0   r1   r2            brings the message once
//!                        last    publish             s0   s1   r0   r1   r2   and with `overlap` the rest of all, when all has come
//!   others of the node   lane 0  fetch                   s0   s1   r0   r1   r2
//! ```

use std::num::NonZeroU64;

use super::inner::{Inner, Places};
use super::members::{Members, after, overlapped, parts};
use super::within::ToAll;
use crate::algorithm::Algorithm;
use crate::algorithm::broadcast::{ON_NODE, SCATTER_RING, TwoLevel};
use crate::collective::Call;
use crate::schedule::{After, Buffer, Listed, Nodes, Posting, Slice};
use crate::units::Rank;

pub(in crate::algorithm) fn schedule(way: &TwoLevel, call: &Call, nodes: &Nodes, rank: Rank) -> Listed {
    let mut list = Listed::default();
    if call.bytes.0 == 0 {
        return list;
    }
    let members = Members::new(call, nodes, way.within);
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
    let shared = overlapped(come, way.shared_at_once(), After::LanesBelow(end));
    let shared = shared.into_iter().flat_map(|(bytes, when)| {
        parts(bytes, way.buffer.get(), 1).map(move |part| (Slice::output(part), when))
    });
    let is_stand_in = rank == members.my_stand_in();
    if is_stand_in {
        let places = Places { input: (Buffer::Input, 0), output: (Buffer::Output, 0), scratch: 0 };
        inner.put_into(&mut list, &places, &members, 0, &|_| 0);
    }
    let mut to_all = ToAll::new(&mut list, &members, rank, Posting::AtOnce);
    for (part, when) in shared {
        to_all.add(&mut list, &part, if is_stand_in { when } else { After::Start });
    }
    list
}
