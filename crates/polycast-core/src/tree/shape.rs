use std::num::NonZeroU32;

use super::{PlannedTree, Site, Splits, block_binomial, contention_free, link_aware, split_tree};
use crate::units::{Nanos, Rank};

/// The kind of [`PlannedTree`] to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlannedShape {
    /// Each rank forwards to the next around the network (Patarasuk et al. 2008, §4.1.1, Algorithm 1).
    ContentionFreeChain,
    /// A tree with at most `k` children, no two messages over one edge, of little height (Patarasuk
    /// et al. 2008, §4.1.2: Algorithm 2 for `k` = 2, and its extension).
    ContentionFreeKAry(NonZeroU32),
    /// The fastest of several contention-free trees for links of different rates and latencies; beyond the papers.
    LinkAware {
        /// Bytes of a segment.
        segment_bytes: u64,
        /// The number of segments.
        segments: u64,
    },
    /// OPT-tree (Nupairoj 1998, ch. 4) along the depth-first order, which keeps messages in flight together off each other's edges.
    Optimal(SendTimes),
    /// OPT-tree for senders with several ports (Nupairoj 1998, §4.5). Sends over different ports begin `hold / ports` apart.
    OptimalWithPorts {
        /// The times of a send over one port.
        times: SendTimes,
        /// `t_int`: the time between the beginnings of sends over different ports.
        interval: Nanos,
        /// The number of ports of a sender.
        ports: NonZeroU32,
    },
    /// A tree that is binomial over blocks of neighbours, flat within them (Nupairoj 1998, §3.4.1).
    BlockBinomial {
        /// Ranks in a block; `None` makes a block of the most ranks that are on one host.
        block: Option<NonZeroU32>,
    },
}

/// The times that messages of one size keep their sender and take in all (Nupairoj 1998, ch. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SendTimes {
    /// `t_hold`: from the beginning of a send until the sender can begin the next.
    pub hold: Nanos,
    /// `t_end`: from the beginning of a send until the receiver has the message and can send.
    pub end: Nanos,
}

impl Default for SendTimes {
    /// The times assumed where nothing was measured: the example of Nupairoj 1998, §4.3. Only their
    /// ratio counts for the form of a tree.
    fn default() -> SendTimes {
        SendTimes { hold: Nanos::from_micros(20), end: Nanos::from_micros(55) }
    }
}

impl PlannedShape {
    /// The tree of this shape for the ranks of a site, from `root`. Takes milliseconds for 10,000
    /// ranks.
    pub fn plan(self, site: &Site, root: Rank) -> PlannedTree {
        let order = || site.from_root(root);
        let ranks = site.ranks();
        match self {
            PlannedShape::ContentionFreeChain => contention_free::chain(site, root),
            PlannedShape::ContentionFreeKAry(k) => contention_free::k_ary(site, root, k.get()),
            PlannedShape::LinkAware { segment_bytes, segments } => {
                link_aware::plan(site, root, segment_bytes, segments)
            }
            PlannedShape::Optimal(times) => split_tree(order().ranks(), root, &Splits::optimal(times, ranks)),
            PlannedShape::OptimalWithPorts { times, interval, ports } => {
                let splits = Splits::optimal_with_ports(times, interval, ports, ranks);
                split_tree(order().ranks(), root, &splits)
            }
            PlannedShape::BlockBinomial { block } => {
                let on_a_host = NonZeroU32::new(site.most_ranks_on_a_host()).unwrap_or(NonZeroU32::MIN);
                block_binomial::plan(order().ranks(), block.unwrap_or(on_a_host))
            }
        }
    }
}
