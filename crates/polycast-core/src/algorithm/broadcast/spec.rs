//! How an algorithm is written: `chain:segment=8KiB`, `k-nomial:k=4`, `scatter-ring`.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use super::{
    Call, alpha_port, block_binomial, contention_free_binary, contention_free_k_ary, link_aware, opt_tree,
};
use crate::tree::{PlannedShape, SendTimes, Tree};
use crate::units::Bytes;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The form of the way that the data takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The root sends to everybody itself.
    Flat,
    /// Each rank forwards to the next one.
    Chain,
    /// Two children per rank, in breadth-first order.
    Binary,
    /// `k` children per rank, in breadth-first order.
    KAry(NonZeroU32),
    /// The number of informed ranks grows by the factor `k` (at least 2) per round; `k` = 2 is the binomial tree.
    KNomial(NonZeroU32),
    /// Each half of the data runs down one half of a binary tree; pairs of ranks then exchange halves.
    SplitBinary,
    /// The root scatters blocks down a binomial tree, then the blocks go around a ring.
    ScatterRing,
    /// The root scatters blocks down a binomial tree, then ranks exchange what they have with doubling distance.
    ScatterDoubling,
    /// Each rank forwards to the next one around the network.
    ContentionFreeChain,
    /// Up to two children per rank, no two messages on one edge.
    ContentionFreeBinary,
    /// Up to `k` children per rank, no two messages on one edge.
    ContentionFreeKAry(NonZeroU32),
    /// No two messages on one edge, children as the rates of links allow.
    LinkAware,
    /// The fastest tree for these times of a message; `None` takes [`SendTimes::default`].
    OptTree(Option<SendTimes>),
    /// The fastest tree for senders with several ports.
    AlphaPort {
        /// How many ports.
        ports: NonZeroU32,
        /// Times of a message over one port; `None` takes [`SendTimes::default`].
        times: Option<SendTimes>,
    },
    /// Binomial over blocks of this many ranks; `None` makes blocks as large as the fullest host.
    BlockBinomial(Option<NonZeroU32>),
}

/// A broadcast algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    /// The way of the data.
    pub shape: Shape,
    /// The largest message; `None` sends everything whole.
    pub segment: Option<NonZeroU64>,
    /// Children tell their parents that they have arrived, before any data is sent. Bounds the memory that early
    /// data takes at a late rank, and costs nothing when the root is the last to arrive.
    pub ready: bool,
}

impl Algorithm {
    /// The tree that goes by positions, if the data runs down one.
    pub(super) fn tree(&self) -> Option<Tree> {
        match self.shape {
            Shape::Flat => Some(Tree::Flat),
            Shape::Chain => Some(Tree::Chain),
            Shape::Binary => Some(Tree::KAry(TWO)),
            Shape::KAry(k) => Some(Tree::KAry(k)),
            Shape::KNomial(k) => Some(Tree::KNomial(k)),
            _ => None,
        }
    }

    /// The tree that is planned for the site, if the data of `call` runs down one.
    pub fn planned_shape(&self, call: Call) -> Option<PlannedShape> {
        match self.shape {
            Shape::ContentionFreeChain => Some(PlannedShape::ContentionFreeChain),
            Shape::ContentionFreeBinary => Some(contention_free_binary::shape()),
            Shape::ContentionFreeKAry(k) => Some(contention_free_k_ary::shape(k)),
            Shape::LinkAware => Some(link_aware::shape(self, call)),
            Shape::OptTree(times) => Some(opt_tree::shape(times)),
            Shape::AlphaPort { ports, times } => Some(alpha_port::shape(ports, times)),
            Shape::BlockBinomial(block) => Some(block_binomial::shape(block)),
            Shape::Flat
            | Shape::Chain
            | Shape::Binary
            | Shape::KAry(_)
            | Shape::KNomial(_)
            | Shape::SplitBinary
            | Shape::ScatterRing
            | Shape::ScatterDoubling => None,
        }
    }
}

impl Shape {
    /// Its name, and its parameters as they are written.
    fn written(self) -> (&'static str, Vec<String>) {
        let number = |name: &str, value: NonZeroU32| format!("{name}={value}");
        let times = |times: Option<SendTimes>| {
            times.into_iter().flat_map(|t| [format!("hold={}", t.hold), format!("end={}", t.end)])
        };
        match self {
            Shape::Flat => ("flat", vec![]),
            Shape::Chain => ("chain", vec![]),
            Shape::Binary => ("binary", vec![]),
            Shape::KAry(k) => ("k-ary", vec![number("k", k)]),
            Shape::KNomial(TWO) => ("binomial", vec![]),
            Shape::KNomial(k) => ("k-nomial", vec![number("k", k)]),
            Shape::SplitBinary => ("split-binary", vec![]),
            Shape::ScatterRing => ("scatter-ring", vec![]),
            Shape::ScatterDoubling => ("scatter-doubling", vec![]),
            Shape::ContentionFreeChain => ("contention-free-chain", vec![]),
            Shape::ContentionFreeBinary => ("contention-free-binary", vec![]),
            Shape::ContentionFreeKAry(k) => ("contention-free-k-ary", vec![number("k", k)]),
            Shape::LinkAware => ("link-aware", vec![]),
            Shape::OptTree(t) => ("opt-tree", times(t).collect()),
            Shape::AlphaPort { ports, times: t } => {
                ("alpha-port", [number("ports", ports)].into_iter().chain(times(t)).collect())
            }
            Shape::BlockBinomial(block) => {
                ("block-binomial", block.into_iter().map(|block| number("block", block)).collect())
            }
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, mut parameters) = self.shape.written();
        parameters.extend(self.segment.map(|segment| format!("segment={}", Bytes(segment.get()))));
        parameters.extend(self.ready.then(|| "ready".to_owned()));
        let separator = if parameters.is_empty() { "" } else { ":" };
        f.pad(&format!("{name}{separator}{}", parameters.join(",")))
    }
}
