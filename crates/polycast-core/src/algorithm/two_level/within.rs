//! How data goes between the ranks of a node: through memory that they share, or by messages of the MPI (Wu 2005, §2.4.1, where the third way
//! is the network: algorithms that know of no nodes).
//!
//! ```text
//!                        shared memory                         messages
//!   up                   each publishes, one fetches           each sends to one
//!   down, all of it      one publishes, each fetches           down a binomial tree of the node's ranks
//!   down, each its own   one publishes, each fetches its own   one sends to each
//! ```

use std::num::NonZeroU32;
use std::ops::Range;

use super::members::{Members, after};
use super::{DOWN, UP};
use crate::algorithm::parameter::{Domain, Need, Parameter};
use crate::schedule::{
    Action, After, Channel, Direction, Fabric, Kind, LaneIndex, Listed, Posting, Slice, Stream,
};
use crate::tree::Tree;
use crate::units::Rank;

const TREE: Tree = Tree::KNomial(NonZeroU32::new(2).unwrap());

/// The way of data on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Memory that the ranks of a node share.
    Shared,
    /// Messages of the MPI, which has its own way within a node: where no memory is to be had.
    Messages,
}

impl Within {
    pub(in crate::algorithm) const PARAMETER: Parameter = Parameter {
        name: "within",
        about: "how data goes on a node: through memory that its ranks share, or by messages of the MPI",
        domain: Domain::Word(&["shared", "messages"]),
        need: Need::Optional,
        default: "shared",
        typical: 1,
    };

    /// Returns the lane that brings a rank what `top` of its node has for all of it, and the lanes
    /// on which the rank shows that to others.
    pub(in crate::algorithm) fn to_all(
        self,
        on_node: &[Rank],
        top: Rank,
        rank: Rank,
        (channel, posting): (Channel, Posting),
    ) -> (Option<Kind>, Vec<Kind>) {
        let fabric = Fabric::Shared;
        match self {
            Within::Shared if rank != top => (Some(Kind::Fetch { fabric, channel, writer: top }), Vec::new()),
            Within::Shared => {
                let readers: Vec<Rank> = on_node.iter().copied().filter(|other| *other != rank).collect();
                let readers = Some(readers).filter(|readers| !readers.is_empty());
                let publish =
                    readers.map(|readers| Kind::Publish { fabric, channel, readers: readers.into() });
                (None, publish.into_iter().collect())
            }
            Within::Messages => {
                let (parent, children) = neighbours(on_node, top, rank);
                let send = |child| messages(child, Direction::Send, channel, posting);
                let receive = |parent| messages(parent, Direction::Receive, channel, posting);
                (parent.map(receive), children.into_iter().map(send).collect())
            }
        }
    }

    /// The action that shows some bytes to others of the node.
    pub(super) fn show(self, from: Slice) -> Action {
        match self {
            Within::Shared => Action::Publish(from),
            Within::Messages => Action::Send(from),
        }
    }

    /// The action that takes bytes that were shown, which begin at `at` of all that was.
    pub(super) fn take(self, at: u64, to: Slice) -> Action {
        match self {
            Within::Shared => Action::Fetch { at, to },
            Within::Messages => Action::Receive(to),
        }
    }
}

/// Returns the rank from which `rank` gets by messages what `top` has, and the ranks of the node to
/// which it hands that on.
fn neighbours(on_node: &[Rank], top: Rank, rank: Rank) -> (Option<Rank>, Vec<Rank>) {
    let place = |of: Rank| Rank(on_node.iter().position(|other| *other == of).unwrap_or(0) as u32);
    let local = TREE.local(on_node.len() as u32, place(top), place(rank));
    let at = |place: Rank| on_node[place.index()];
    (local.parent.map(at), local.children.into_iter().map(at).collect())
}

fn messages(peer: Rank, direction: Direction, channel: u8, posting: Posting) -> Kind {
    Kind::Messages(Stream { peer, direction, channel, posting })
}

/// Adds a lane on which one of the others hands up what the rank that stands for the node takes.
pub(super) fn lane_up(list: &mut Listed, members: &Members, posting: Posting) -> LaneIndex {
    let stand_in = members.my_stand_in();
    list.lane(match members.within {
        Within::Shared => {
            Kind::Publish { fabric: Fabric::Shared, channel: UP, readers: vec![stand_in].into() }
        }
        Within::Messages => messages(stand_in, Direction::Send, UP, posting),
    })
}

/// Adds a lane on which the rank that stands for the node takes what `other` hands up: the other
/// end of [`lane_up`].
pub(super) fn lane_from(list: &mut Listed, members: &Members, other: Rank, posting: Posting) -> LaneIndex {
    list.lane(match members.within {
        Within::Shared => Kind::Fetch { fabric: Fabric::Shared, channel: UP, writer: other },
        Within::Messages => messages(other, Direction::Receive, UP, posting),
    })
}

/// Lanes on which what the rank that stands for the node has comes to all others of it, part by part.
pub(super) struct ToAll {
    within: Within,
    brings: Option<LaneIndex>,
    shows: Vec<LaneIndex>,
    at: u64,
}

impl ToAll {
    pub fn new(list: &mut Listed, members: &Members, rank: Rank, posting: Posting) -> ToAll {
        let within = members.within;
        let (brings, shows) = within.to_all(members.mine(), members.my_stand_in(), rank, (DOWN, posting));
        let brings = brings.map(|kind| list.lane(kind));
        let shows: Vec<LaneIndex> = shows.into_iter().map(|kind| list.lane(kind)).collect();
        // Other nodes wait for what goes between nodes.
        shows.iter().for_each(|lane| list.lane_mut(*lane).phase = 1);
        ToAll { within, brings, shows, at: 0 }
    }

    /// Adds the next part, which is at the same place everywhere; `when` it is there or, elsewhere
    /// than at the rank that stands for the node, may be taken.
    pub fn add(&mut self, list: &mut Listed, part: &Slice, when: After) {
        let mut when = when;
        if let Some(lane) = self.brings {
            let count = list.add(lane, self.within.take(self.at, part.clone()), when);
            when = after(lane, count);
            self.at += part.length();
        }
        for lane in &self.shows {
            list.add(*lane, self.within.show(part.clone()), when);
        }
    }
}

/// Lanes on which the rank that stands for the node shows to each of the others what is for it.
pub(super) struct ToEach {
    within: Within,
    /// The lanes, each with its reader if that is one by messages; in shared memory all read a
    /// single lane.
    shows: Vec<(Option<Rank>, LaneIndex)>,
}

impl ToEach {
    pub fn new(list: &mut Listed, members: &Members, posting: Posting) -> ToEach {
        let (within, others) = (members.within, members.others());
        let shows = match within {
            Within::Shared if others.is_empty() => Vec::new(),
            Within::Shared => {
                let readers = others.into();
                vec![(None, list.lane(Kind::Publish { fabric: Fabric::Shared, channel: DOWN, readers }))]
            }
            Within::Messages => {
                let mut lane = |other| list.lane(messages(other, Direction::Send, DOWN, posting));
                others.into_iter().map(|other| (Some(other), lane(other))).collect()
            }
        };
        ToEach { within, shows }
    }

    /// Adds the next part, of which each takes what `taken` says of it, in one piece or several.
    pub fn add(&self, list: &mut Listed, part: &Slice, when: After, taken: impl Fn(Rank) -> Vec<Range<u64>>) {
        for (reader, lane) in &self.shows {
            match reader {
                None => drop(list.add(*lane, self.within.show(part.clone()), when)),
                Some(reader) => taken(*reader).into_iter().for_each(|bytes| {
                    list.add(*lane, self.within.show(Slice { buffer: part.buffer, bytes }), when);
                }),
            }
        }
    }
}

/// Adds the lane at the other end of [`ToEach`]: what the rank that stands for the node has for
/// this one comes on it.
pub(super) fn lane_down(list: &mut Listed, members: &Members, posting: Posting) -> LaneIndex {
    let stand_in = members.my_stand_in();
    list.lane(match members.within {
        Within::Shared => Kind::Fetch { fabric: Fabric::Shared, channel: DOWN, writer: stand_in },
        Within::Messages => messages(stand_in, Direction::Receive, DOWN, posting),
    })
}
