//! Barrier: everybody tells the rank that stands for the node, these tell each other, and tell the others.
//!
//! On a node a byte is published to say so. Messages without data would do, but each is an envelope that the MPI below has to match, and on a
//! node with more ranks than processors its receiver has to be woken for it.

use super::inner::{Inner, Places};
use super::members::{Members, fetches_down, fetches_up, publishes_down, publishes_up};
use crate::algorithm::Algorithm;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Kind, Listed, Nodes, Schedule, Slice};
use crate::units::Rank;

/// The only way between nodes.
pub(super) const BETWEEN: &str = "dissemination";

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let members = Members::new(call, nodes);
    let (stand_in, mut list) = (members.my_stand_in(), Listed::default());
    // Its own, then one for each that comes.
    let word = |at: u64| Slice::scratch(at..at + 1);
    if rank != stand_in {
        list.set_scratch_bytes(2);
        let up = publishes_up(&mut list, stand_in);
        list.add(up, Action::Publish(word(0)), After::Start);
        let down = fetches_down(&mut list, stand_in);
        list.add(down, Action::Fetch { at: 0, to: word(1) }, After::Start);
        return Box::new(list);
    }
    let others = members.others();
    for (other, at) in others.iter().zip(1..) {
        let arrived = fetches_up(&mut list, *other);
        list.add(arrived, Action::Fetch { at: 0, to: word(at) }, After::Start);
    }
    list.set_scratch_bytes(1 + others.len() as u64);
    let up = list.single(Kind::Local, Action::nothing(), After::LanesBelow(others.len()));
    let inner = Inner::new(algorithm.between(), algorithm, &members.between(0), nodes.mine());
    let places = Places { input: (Buffer::Input, 0), output: (Buffer::Output, 0), scratch: 0 };
    inner.put_into(&mut list, &places, &members, up, &|_| 1);
    if !others.is_empty() {
        let below = After::LanesBelow(list.lanes().len());
        let down = publishes_down(&mut list, &others);
        list.add(down, Action::Publish(word(0)), below);
    }
    Box::new(list)
}
