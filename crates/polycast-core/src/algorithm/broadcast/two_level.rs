//! Broadcast on two levels: between nodes by multicast or messages, on each node through shared memory, which goes on while further
//! data comes in (Wu 2005, §3.4).
//!
//! ```text
//!   root's node     root ── publish ──▶ the others, its leader among them          multicast: the leader passes it on
//!                                                                                  tree: the root stands for its node
//!   other nodes     leader ◀─ segment 0 ─┤ segment 1 ─┤ segment 2 ─┤
//!                        └─ publish ─────▶ pieces of 0 ▶ pieces of 1 ▶ pieces of 2, then the rest of all segments
//! ```
//!
//! With one node it is the broadcast through shared memory alone; with one rank per node, that between nodes alone.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use super::{Algorithm, Call, DOWN};
use crate::algorithm::parameter::{NONE, Parameter};
use crate::algorithm::two_level::{self, within::Within};
use crate::algorithm::{Domain, Entry, Need, Raced};
use crate::collective::Collective;
use crate::schedule::{
    Action, After, Fabric, Kind, Lane, LaneIndex, Nodes, Posting, Schedule, Slice, Step, Stream,
};
use crate::tree::Tree;
use crate::units::Rank;

pub(crate) const TREES: [(&str, Tree); 4] = [
    ("binomial", Tree::KNomial(NonZeroU32::new(2).unwrap())),
    ("binary", Tree::KAry(NonZeroU32::new(2).unwrap())),
    ("chain", Tree::Chain),
    ("flat", Tree::Flat),
];

/// The broadcast that may go on between nodes in place of a tree.
pub(crate) const SCATTER_RING: &str = "scatter-ring";

/// The ways between nodes that carry most, which are compared where the caller names none.
pub(crate) const CARRYING_MOST: [&str; 4] = [TREES[2].0, TREES[1].0, TREES[0].0, SCATTER_RING];

const BETWEEN: Parameter = Parameter {
    name: "between",
    about: "the tree of nodes; or they scatter the message and hand its parts around a ring",
    domain: Domain::Word(&[TREES[0].0, TREES[1].0, TREES[2].0, TREES[3].0, SCATTER_RING]),
    need: Need::Optional,
    default: TREES[0].0,
    typical: 2,
};
const BUFFER: Parameter = Parameter {
    name: "buffer",
    about: "how much goes on a node at a time",
    domain: Domain::Size,
    default: "the segment",
    typical: 4 << 10,
    ..BETWEEN
};
const OVERLAP: Parameter = Parameter {
    name: "overlap",
    about: "how much of each segment goes on a node as soon as it has come; the rest does when all has",
    domain: Domain::SizeOrNone,
    default: "all of it",
    typical: NONE,
    ..BETWEEN
};

pub(super) static ENTRIES: [Entry; 1] = [Entry::on_nodes(
    &[Collective::Broadcast],
    "two-level",
    "down a tree of nodes or around their ring, and on each node through shared memory, which goes on while further segments come",
    "Wu 2005, §3.4",
    |algorithm, call, nodes, rank| TwoLevel::of(algorithm).schedule(*call, nodes, rank),
)
.with(&[BETWEEN, BUFFER, OVERLAP, Within::PARAMETER])
.in_segments()
.raced(&[
    Raced::PLAIN,
    two_level::CHAIN,
    two_level::BINARY,
    two_level::FLAT,
    Raced::between_nodes("between=scatter-ring"),
    two_level::BY_MESSAGES,
])];

/// The algorithm for callers that choose its parameters themselves: through shared memory.
pub const ON_NODE: Algorithm = Algorithm::plain(&ENTRIES[0]);

/// The way in which the data gets from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// A single multicast message; the leaders of the other nodes take its segments as its prefix
    /// arrives.
    Multicast,
    /// Messages down a tree of nodes.
    Tree(Tree),
    /// Messages that bring each node a block of the message down a binomial tree, and then all
    /// blocks around the ring of nodes (Wu 2005, §2.7.4).
    ScatterRing,
}

/// A two-level broadcast: Wu 2005, §3.4.1, with multicast as one more way between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoLevel {
    /// The way from node to node.
    pub between: Between,
    /// Bytes that a node waits for at a time; rounded down to whole buffers, but at least one.
    pub segment: NonZeroU64,
    /// Bytes that are published on a node at a time.
    pub buffer: NonZeroU64,
    /// The bytes of each segment that are published as soon as they have come, while the rest is
    /// published when all has: nothing at once with 0, all with `u64::MAX`. Rounded up to whole
    /// buffers.
    pub overlap: u64,
    /// The way of data on a node: shared memory or messages.
    pub within: Within,
}

impl TwoLevel {
    /// The broadcast that an algorithm of the name `two-level` stands for.
    pub fn of(algorithm: &Algorithm) -> TwoLevel {
        let given = |parameter: &Parameter| algorithm.given(parameter.name);
        let segment = algorithm.segment.unwrap_or(NonZeroU64::MAX);
        TwoLevel {
            between: TREES
                .get(given(&BETWEEN).unwrap_or(0) as usize)
                .map_or(Between::ScatterRing, |(_, tree)| Between::Tree(*tree)),
            segment,
            buffer: given(&BUFFER).and_then(NonZeroU64::new).unwrap_or(segment),
            overlap: algorithm.overlap_bytes(),
            within: algorithm.within(),
        }
    }

    /// Bytes of a segment, in whole buffers.
    pub fn cut_segment(&self) -> u64 {
        let Cut { piece, per_segment, .. } = self.cut(0, self.overlap);
        piece * per_segment
    }

    /// The bytes of a segment that are published as soon as they have come, in whole buffers.
    pub fn shared_at_once(&self) -> u64 {
        let Cut { piece, early, .. } = self.cut(0, self.overlap);
        piece * early
    }

    /// Returns the schedule of `rank` in `call`; `nodes` are as that rank sees them. It costs no
    /// memory per segment but where blocks are scattered.
    pub fn schedule(&self, call: Call, nodes: &Nodes, rank: Rank) -> Box<dyn Schedule> {
        match self.between {
            Between::ScatterRing if nodes.count() > 1 => {
                Box::new(two_level::broadcast::schedule(self, &call, nodes, rank))
            }
            _ => Box::new(self.plan(call, nodes, rank)),
        }
    }

    /// The lanes where they go down a tree of nodes, by multicast, or nowhere.
    fn plan(&self, call: Call, nodes: &Nodes, rank: Rank) -> LanesPlan {
        let Call { root, bytes, .. } = call;
        let is_on_root_node = nodes.mine() == nodes.of(root);
        let leader = nodes.leaders()[nodes.of(root) as usize];
        // Who has the data of the root's node for the others.
        let (from_node, overlap) = match self.between {
            // The leader passes the data on in its order.
            Between::Multicast if is_on_root_node && leader != root => (leader, u64::MAX),
            Between::Multicast => (leader, self.overlap),
            Between::Tree(_) | Between::ScatterRing => (root, self.overlap),
        };
        let mut plan = LanesPlan { cut: self.cut(bytes.0, overlap), lanes: Vec::new(), units: Vec::new() };
        if bytes.0 == 0 {
            return plan;
        }
        let publisher = if is_on_root_node { root } else { nodes.my_leader() };
        let (brings, shows) =
            self.within.to_all(nodes.local().in_order(), publisher, rank, (DOWN, Posting::AtOnce));
        brings.into_iter().for_each(|kind| plan.lane(kind, Unit::Piece));
        let represents = if is_on_root_node { from_node } else { publisher };
        if rank == represents && nodes.count() > 1 {
            self.between_nodes(&mut plan, call, nodes, from_node);
        }
        for kind in shows {
            plan.lane(kind, Unit::Piece);
            // Other nodes wait for what goes between nodes.
            plan.lanes.iter_mut().last().into_iter().for_each(|lane| lane.phase = 1);
        }
        plan
    }

    /// The lanes of the rank that stands for its node.
    fn between_nodes(&self, plan: &mut LanesPlan, call: Call, nodes: &Nodes, from_node: Rank) {
        let root_node = nodes.of(call.root);
        let stands_for =
            |node: u32| if node == root_node { from_node } else { nodes.leaders()[node as usize] };
        let (fabric, channel) = (Fabric::Multicast, DOWN);
        match self.between {
            Between::Multicast if nodes.mine() == root_node => {
                let mut readers: Vec<Rank> =
                    (0..nodes.count()).filter(|node| *node != root_node).map(stands_for).collect();
                readers.sort_unstable();
                plan.lane(Kind::Publish { fabric, channel, readers: readers.into() }, Unit::Segment);
            }
            Between::Multicast => {
                plan.lane(Kind::Fetch { fabric, channel, writer: from_node }, Unit::Segment)
            }
            Between::Tree(tree) => {
                let local = tree.local(nodes.count(), Rank(root_node), Rank(nodes.mine()));
                let at = |node: Rank| stands_for(node.0);
                let received = local.parent.map(|parent| Stream::receive(at(parent), channel));
                let sent = local.children.into_iter().map(|child| Stream::send(at(child), channel));
                let streams = received.into_iter().chain(sent);
                streams.for_each(|stream| plan.lane(Kind::Messages(stream), Unit::Segment));
            }
            // Those are not made here.
            Between::ScatterRing => {}
        }
    }

    fn cut(&self, bytes: u64, overlap: u64) -> Cut {
        let piece = self.buffer.min(self.segment).get();
        let per_segment = self.segment.get() / piece;
        Cut { bytes, piece, per_segment, early: overlap.div_ceil(piece).min(per_segment) }
    }
}

/// The data in pieces of a buffer each, as many to a segment. On a node, the first `early` pieces of all segments go before the rest.
///
/// ```text
///   segments    │     0     │     1     │  2  │        per_segment 4, early 1
///   pieces      │0  1  2  3 │4  5  6  7 │8  9 │
///   on a node   0 4 8  1 2 3 5 6 7 9
/// ```
#[derive(Clone, Copy, Debug)]
struct Cut {
    bytes: u64,
    piece: u64,
    per_segment: u64,
    early: u64,
}

impl Cut {
    fn pieces(&self) -> u64 {
        self.bytes.div_ceil(self.piece)
    }

    fn segments(&self) -> u64 {
        self.pieces().div_ceil(self.per_segment)
    }

    fn bytes_of(&self, pieces: Range<u64>) -> Range<u64> {
        (pieces.start * self.piece).min(self.bytes)..pieces.end.saturating_mul(self.piece).min(self.bytes)
    }

    fn segment(&self, index: u64) -> Range<u64> {
        self.bytes_of(index * self.per_segment..(index + 1) * self.per_segment)
    }

    /// The number of pieces that go before the rest.
    fn all_early(&self) -> u64 {
        let (whole, rest) = (self.pieces() / self.per_segment, self.pieces() % self.per_segment);
        whole * self.early + rest.min(self.early)
    }

    /// Returns the piece that goes at this place on a node, and the number of segments that must
    /// have come before.
    fn on_node(&self, place: u64) -> (u64, u64) {
        match place.checked_sub(self.all_early()) {
            None => {
                let segment = place / self.early;
                (segment * self.per_segment + place % self.early, segment + 1)
            }
            Some(place) => {
                let late = self.per_segment - self.early;
                (place / late * self.per_segment + self.early + place % late, self.segments())
            }
        }
    }

    /// Returns the offset of the piece at this place in the stream of all: the last piece may be
    /// shorter.
    fn begins_at(&self, place: u64) -> u64 {
        let last = self.pieces() - 1;
        let (segment, within) = (last / self.per_segment, last % self.per_segment);
        let is_behind_last = within < self.early && place > segment * self.early + within;
        place * self.piece - if is_behind_last { self.pieces() * self.piece - self.bytes } else { 0 }
    }
}

/// The unit of data that a step carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Segment,
    Piece,
}

/// Lanes of segments and pieces. Where a rank receives, that is its first lane, and all others wait for it.
#[derive(Debug)]
struct LanesPlan {
    cut: Cut,
    lanes: Vec<Lane>,
    units: Vec<Unit>,
}

impl LanesPlan {
    fn lane(&mut self, kind: Kind, unit: Unit) {
        let steps = if unit == Unit::Segment { self.cut.segments() } else { self.cut.pieces() };
        self.lanes.push(Lane::new(kind, steps));
        self.units.push(unit);
    }

    /// The condition for a step that sends or publishes: what the first lane has brought before,
    /// `segments` segments of it unless both lanes carry pieces.
    fn after(&self, lane: LaneIndex, index: u64, segments: u64) -> After {
        match self.units[0] {
            // In the same order.
            Unit::Piece if self.units[lane] == Unit::Piece => After::Steps { lane: 0, count: index + 1 },
            Unit::Segment => After::Steps { lane: 0, count: segments },
            Unit::Piece => {
                After::Steps { lane: 0, count: (segments * self.cut.per_segment).min(self.cut.pieces()) }
            }
        }
    }
}

impl Schedule for LanesPlan {
    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        let cut = &self.cut;
        let (bytes, at, segments) = match self.units[lane] {
            Unit::Segment => (cut.segment(index), cut.segment(index).start, index + 1),
            Unit::Piece => {
                let (piece, segments) = cut.on_node(index);
                (cut.bytes_of(piece..piece + 1), cut.begins_at(index), segments)
            }
        };
        let slice = Slice::output(bytes);
        let of = &self.lanes[lane];
        let action = match of.kind {
            Kind::Fetch { .. } => Action::Fetch { at, to: slice },
            Kind::Publish { .. } => Action::Publish(slice),
            _ if of.is_receive() => Action::Receive(slice),
            _ => Action::Send(slice),
        };
        let has_source = action.source().is_some() && self.lanes[0].brings_data();
        Step { action, after: if has_source { self.after(lane, index, segments) } else { After::Start } }
    }
}

#[cfg(test)]
mod tests;
