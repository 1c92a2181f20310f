//! Barrier: everybody tells the rank that stands for the node, these tell each other, and tell the others.
//!
//! In the memory of a node a byte is published to say so. Messages without data would do, but each is an envelope that the MPI below has to match, and on a
//! node with more ranks than processors its receiver has to be woken for it.

use super::inner::{Inner, Places};
use super::members::Members;
use super::within::{ToAll, Within, lane_from, lane_up};
use crate::algorithm::Algorithm;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Kind, Listed, Nodes, Posting, Schedule, Slice};
use crate::units::Rank;

/// The name of the only algorithm between nodes.
pub(super) const BETWEEN: &str = "dissemination";

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let members = Members::new(call, nodes, algorithm.within());
    let mut list = Listed::default();
    let length = if members.within == Within::Shared { 1 } else { 0 };
    // Its own, then one for each that comes.
    let word = |at: u64| Slice::scratch(at..at + length);
    let others = members.others();
    let is_stand_in = rank == members.my_stand_in();
    if !is_stand_in {
        list.set_scratch_bytes(2);
        let up = lane_up(&mut list, &members, Posting::AtOnce);
        list.add(up, members.within.show(word(0)), After::Start);
        ToAll::new(&mut list, &members, rank, Posting::AtOnce).add(&mut list, &word(1), After::Start);
        return Box::new(list);
    }
    for (other, at) in others.iter().zip(1..) {
        let arrived = lane_from(&mut list, &members, *other, Posting::AtOnce);
        list.add(arrived, members.within.take(0, word(at)), After::Start);
    }
    list.set_scratch_bytes(1 + others.len() as u64);
    let up = list.single(Kind::Local, Action::nothing(), After::LanesBelow(others.len()));
    let inner = Inner::new(algorithm.between(), algorithm, &members.between(0), nodes.mine());
    let places = Places { input: (Buffer::Input, 0), output: (Buffer::Output, 0), scratch: 0 };
    inner.put_into(&mut list, &places, &members, up, &|_| 1);
    let below = After::LanesBelow(list.lanes().len());
    ToAll::new(&mut list, &members, rank, Posting::AtOnce).add(&mut list, &word(0), below);
    Box::new(list)
}
