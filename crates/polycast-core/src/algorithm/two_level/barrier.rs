//! Barrier: everybody tells the rank that stands for the node, these tell each other, and tell the others.
//!
//! On a node go messages without data: MPI's own way through shared memory is as short as any.

use super::inner::{Inner, Places};
use super::members::Members;
use crate::algorithm::Algorithm;
use crate::collective::Call;
use crate::schedule::{Action, After, Buffer, Channel, Kind, Listed, Nodes, Schedule, Slice, Stream};
use crate::units::Rank;

/// The only way between nodes.
pub(super) const BETWEEN: &str = "dissemination";

const ARRIVED: Channel = 1;
const GO_ON: Channel = 2;

pub(super) fn schedule(algorithm: &Algorithm, call: &Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
    let members = Members::new(call, nodes);
    let (stand_in, mut list) = (members.my_stand_in(), Listed::default());
    let signal = || Slice::output(0..0);
    if rank != stand_in {
        let arrived = Kind::Messages(Stream::send(stand_in, ARRIVED));
        list.single(arrived, Action::Send(signal()), After::Start);
        let go_on = Kind::Messages(Stream::receive(stand_in, GO_ON));
        list.single(go_on, Action::Receive(signal()), After::Start);
        return Box::new(list);
    }
    let others = members.others();
    for other in &others {
        let arrived = Kind::Messages(Stream::receive(*other, ARRIVED));
        list.single(arrived, Action::Receive(signal()), After::Start);
    }
    let up = list.single(Kind::Local, Action::nothing(), After::LanesBelow(others.len()));
    let inner = Inner::new(algorithm.between(), algorithm, &members.between(0), nodes.mine());
    let places = Places { input: (Buffer::Input, 0), output: (Buffer::Output, 0), scratch: 0 };
    inner.put_into(&mut list, &places, |node| members.stands_for(node.0), up, |_| 1);
    let below = After::LanesBelow(list.lanes().len());
    for other in &others {
        list.single(Kind::Messages(Stream::send(*other, GO_ON)), Action::Send(signal()), below);
    }
    Box::new(list)
}
