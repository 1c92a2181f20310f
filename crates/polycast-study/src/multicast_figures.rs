//! Figures of those who measured multicast broadcasts on clusters of their time: which broadcasts each is made of.
//!
//! Absolute times are those of round numbers of the order of these clusters, so only the shapes are to be compared.

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::BINOMIAL;
use polycast_core::protocol::{Form, Multicast, RootSync};

use polycast_sim::protocol::{Cluster, Completion, Failure, Scaling};

/// A curve that a figure's source tells: the way, the bytes of a message, and microseconds by number of nodes.
pub type PublishedCurve = (Way, u64, &'static [(u32, f64)]);

/// A way to broadcast that the papers measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Their multicast.
    TwoStages,
    /// The tree that it was held against.
    Tree,
}

impl Way {
    /// The algorithm that does so here.
    pub fn algorithm(self) -> Algorithm {
        match self {
            Way::TwoStages => TWO_STAGES.into(),
            Way::Tree => BINOMIAL,
        }
    }
}

/// A published figure of multicast broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// `s0.` and the number in Siebert 2006, `s3.` and that in Hoefler et al. 2007.
    pub number: &'static str,
    /// The figure's title.
    pub title: &'static str,
    /// Message sizes.
    pub bytes: &'static [u64],
    /// Numbers of nodes.
    pub nodes: &'static [u32],
    /// The quantities on the figure's axes.
    pub shows: Shows,
    /// The numbers that the paper tells of the figure: the algorithm, the size, and times in µs
    /// over what [`Shows`] names.
    pub told: &'static [PublishedCurve],
    is_infiniband: bool,
}

/// The quantity that a figure shows, and the one it is shown over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Over the number of nodes, the mean time of a receiver.
    MeanOfNodes,
    /// Over the number of nodes, the time of the last node.
    Completion,
    /// Over the number of nodes, the time of the node that is 1 after the root.
    Second,
    /// Over the number of nodes, the time of the node before the root.
    Last,
    /// Over the receivers, the time of each.
    EachNode,
}

const TO_342: &[u32] = &[2, 4, 8, 13, 20, 28, 64, 128, 256, 342];
const TO_116: &[u32] = &[2, 4, 8, 16, 20, 32, 48, 64, 96, 116];

const SIEBERT: Published = Published {
    number: "s0.18",
    title: "A broadcast to 2 to 342 nodes, mean of a receiver",
    bytes: &[256, 4 << 10, 8 << 10, 64 << 10, 1 << 20],
    nodes: TO_342,
    shows: Shows::MeanOfNodes,
    told: &[
        (Way::TwoStages, 64 << 10, &[(2, 13_400.0), (332, 13_600.0)]),
        (Way::Tree, 64 << 10, &[(2, 6_800.0), (332, 33_900.0)]),
        (Way::TwoStages, 8 << 10, &[(342, 2_100.0)]),
        (Way::Tree, 8 << 10, &[(342, 10_400.0)]),
    ],
    is_infiniband: false,
};

const HOEFLER: Published = Published {
    number: "s3.4",
    title: "A broadcast of 2 bytes to 2 to 116 nodes",
    bytes: &[2],
    nodes: TO_116,
    shows: Shows::Completion,
    told: &[],
    is_infiniband: true,
};

/// All published figures.
pub static TOLD: [Published; 6] = [
    SIEBERT,
    Published {
        number: "s0.19",
        title: "A broadcast of 64 KiB to 342 nodes, node by node",
        bytes: &[64 << 10],
        nodes: &[342],
        shows: Shows::EachNode,
        told: &[],
        ..SIEBERT
    },
    HOEFLER,
    Published {
        number: "s3.5",
        title: "A broadcast of 2 bytes to 116 nodes, node by node",
        nodes: &[116],
        shows: Shows::EachNode,
        ..HOEFLER
    },
    Published {
        number: "s3.6",
        title: "A broadcast of 2 bytes to 2 to 116 nodes, the second one",
        shows: Shows::Second,
        ..HOEFLER
    },
    Published {
        number: "s3.7",
        title: "A broadcast of 2 bytes to 2 to 116 nodes, the last one",
        shows: Shows::Last,
        ..HOEFLER
    },
];

/// The published algorithm: all fragments at once, and again from node to node.
const TWO_STAGES: Multicast = Multicast { form: Form::Push, sync: RootSync::None, parity: false };
/// The number of fragments, over all nodes, whose broadcasts take about a second to simulate.
const FRAGMENTS: u64 = 400_000;

impl Published {
    /// Runs one point with each of the two algorithms; of long messages to many nodes fewer than `broadcasts`.
    pub fn run(
        &self,
        bytes: u64,
        nodes: u32,
        broadcasts: u32,
        loss: f64,
        seed: u64,
    ) -> Result<[Completion; 2], Failure> {
        let cluster = if self.is_infiniband { Cluster::infiniband() } else { Cluster::fast_ethernet() };
        let fragments = bytes.div_ceil(cluster.payload_bytes.into()) * u64::from(nodes);
        let most = (FRAGMENTS / fragments).clamp(2, 1 << 20) as u32;
        let scaling = Scaling { bytes, loss, broadcasts: broadcasts.min(most), seed, cluster };
        Ok([scaling.multicast(TWO_STAGES, nodes)?, scaling.tree(Way::Tree.algorithm(), nodes)])
    }
}

impl Shows {
    /// The values of a point, each with its place on the x axis.
    pub fn of(self, completion: &Completion) -> Vec<(f64, f64)> {
        let each = &completion.of_nodes.each_us;
        let one = |us: f64| vec![(f64::from(completion.nodes), us)];
        match self {
            Shows::MeanOfNodes => one(each[1..].iter().sum::<f64>() / (each.len() - 1) as f64),
            Shows::Completion => one(completion.mean_us),
            Shows::Second => one(each[1]),
            Shows::Last => one(each[each.len() - 1]),
            Shows::EachNode => (1..each.len()).map(|node| (node as f64, each[node])).collect(),
        }
    }
}
