//! The figures of Nupairoj 1998, ch. 5 and 6: which experiments each is made of.

use super::{
    Background, Costs, Effort, Experiment, MulticastTree, NodeSettings, Receives, Switching, Topology,
    Traffic,
};

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The figure's number, such as `6.7`.
    pub number: &'static str,
    /// The figure's title.
    pub title: &'static str,
    /// The networks: a curve each.
    pub networks: &'static [Topology],
    /// The costs of the nodes' messages.
    pub costs: Costs,
    /// The trees: a curve each.
    pub trees: &'static [MulticastTree],
    /// Nodes of a group, unless they are the axis.
    pub group_nodes: u32,
    /// The length of a multicast, unless lengths are the axis.
    pub bytes: u64,
    /// The quantity along x.
    pub axis: Along,
    /// The quantity along y.
    pub quantity: Quantity,
    /// See [`Background::hot_spot`].
    pub hot_spot: f64,
    /// See [`Traffic::interval`].
    pub interval: Option<u64>,
    /// See [`Traffic::local`].
    pub local: Option<f64>,
    /// See [`Traffic::groups`].
    pub groups: u32,
}

/// The quantity that varies along x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Along {
    /// The size of the multicast; no background.
    Bytes(&'static [u64]),
    /// The size of the group; no background.
    Nodes(&'static [u32]),
    /// The background traffic that is offered, in parts of what all channels into nodes can carry; drawn over what is accepted.
    Load(&'static [f64]),
}

/// The quantity along y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The latency of a multicast.
    Latency,
    /// See [`super::Measured::contention_rate`].
    ContentionRate,
    /// See [`super::Measured::root_queue`].
    RootQueue,
    /// `t_hold` and `t_end` of background messages.
    HoldAndEnd,
}

/// A point of a figure that is to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// The place along x; for loads the load that is offered.
    pub x: f64,
    /// The experiment.
    pub experiment: Experiment,
}

const MESH: &[Topology] = &[Topology::Mesh { width: 16, height: 16 }];
const MIN_128: &[Topology] = &[Topology::Multistage { stages: 7 }];
const MIN: &[Topology] = &[Topology::Multistage { stages: 8 }];
const BOTH: &[Topology] = &[MESH[0], MIN_128[0]];

use MulticastTree::{Binomial, Dynamic, OptTree, Optimal, Sequential, Unicast};
const CHAPTER_5: &[MulticastTree] = &[Unicast, OptTree, Optimal];
const DETAIL: &[MulticastTree] = &[Unicast, Optimal, Dynamic];

const BYTES: &[u64] = &[1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10];
const NODES: &[u32] = &[16, 32, 64, 96, 128];
const MESH_LOADS: &[f64] = &[0.005, 0.02, 0.04, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12];
const MIN_LOADS: &[f64] = &[0.005, 0.03, 0.06, 0.09, 0.12, 0.14, 0.15, 0.16];
const FAST_LOADS: &[f64] = &[0.0025, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08];

const CH_5: Figure = Figure {
    number: "5",
    title: "",
    networks: MESH,
    costs: Costs::CHAPTER_5,
    trees: CHAPTER_5,
    group_nodes: 128,
    bytes: 4 << 10,
    axis: Along::Bytes(BYTES),
    quantity: Quantity::Latency,
    hot_spot: 0.0,
    interval: None,
    local: None,
    groups: 1,
};

const ON_MESH: Figure = Figure {
    costs: Costs::BASELINE,
    trees: DETAIL,
    group_nodes: 64,
    bytes: 1 << 10,
    axis: Along::Load(MESH_LOADS),
    ..CH_5
};

const ON_MIN: Figure = Figure { networks: MIN, axis: Along::Load(MIN_LOADS), ..ON_MESH };

/// All figures, in their order.
pub static FIGURES: [Figure; 28] = [
    Figure { number: "5.9", title: "32 nodes on a mesh", group_nodes: 32, ..CH_5 },
    Figure { number: "5.10", title: "128 nodes on a mesh", ..CH_5 },
    Figure { number: "5.11", title: "4 KiB on a mesh", axis: Along::Nodes(NODES), ..CH_5 },
    Figure { number: "5.12", title: "64 KiB on a mesh", axis: Along::Nodes(NODES), bytes: 64 << 10, ..CH_5 },
    Figure { number: "5.13", title: "128 nodes of a multistage network", networks: MIN_128, ..CH_5 },
    Figure {
        number: "5.14",
        title: "64 KiB on a multistage network",
        networks: MIN_128,
        axis: Along::Nodes(NODES),
        bytes: 64 << 10,
        ..CH_5
    },
    Figure {
        number: "5.15",
        title: "Contention rate of OPT-tree, 64 KiB",
        networks: BOTH,
        axis: Along::Nodes(NODES),
        bytes: 64 << 10,
        trees: &[OptTree],
        quantity: Quantity::ContentionRate,
        ..CH_5
    },
    Figure {
        number: "6.2",
        title: "t_hold and t_end on a mesh",
        trees: &[Optimal],
        quantity: Quantity::HoldAndEnd,
        ..ON_MESH
    },
    Figure {
        number: "6.3",
        title: "Binomial and sequential on a mesh",
        trees: &[Binomial, Sequential],
        ..ON_MESH
    },
    Figure {
        number: "6.5",
        title: "The root's send queue on a mesh",
        trees: &[Binomial, Sequential],
        quantity: Quantity::RootQueue,
        ..ON_MESH
    },
    Figure {
        number: "6.6",
        title: "64 nodes on a mesh",
        trees: &[Sequential, Binomial, OptTree, Unicast, Optimal, Dynamic],
        ..ON_MESH
    },
    Figure { number: "6.7", title: "64 nodes on a mesh, in detail", ..ON_MESH },
    Figure { number: "6.8", title: "32 nodes on a mesh", group_nodes: 32, ..ON_MESH },
    Figure { number: "6.9", title: "128 nodes on a mesh", group_nodes: 128, ..ON_MESH },
    Figure {
        number: "6.10",
        title: "64 nodes of a multistage network",
        trees: &[Sequential, Binomial, OptTree, Unicast, Optimal, Dynamic],
        ..ON_MIN
    },
    Figure {
        number: "6.11",
        title: "64 nodes of a multistage network, in detail",
        trees: &[Binomial, OptTree, Unicast, Optimal, Dynamic],
        ..ON_MIN
    },
    Figure { number: "6.12", title: "128 nodes of a multistage network", group_nodes: 128, ..ON_MIN },
    Figure { number: "6.13", title: "A hot spot of 1 % on a mesh", hot_spot: 0.01, ..ON_MESH },
    Figure { number: "6.14", title: "A hot spot of 2 % on a mesh", hot_spot: 0.02, ..ON_MESH },
    Figure { number: "6.15", title: "A hot spot of 1 % on a multistage network", hot_spot: 0.01, ..ON_MIN },
    Figure {
        number: "6.16",
        title: "A multicast every 100,000 units on a mesh",
        interval: Some(100_000),
        ..ON_MESH
    },
    Figure {
        number: "6.17",
        title: "A multicast every 50,000 units on a multistage network",
        interval: Some(50_000),
        ..ON_MIN
    },
    Figure { number: "6.18", title: "Local traffic on a mesh", local: Some(50_000.0), ..ON_MESH },
    Figure {
        number: "6.19",
        title: "Local traffic on a multistage network",
        local: Some(50_000.0),
        ..ON_MIN
    },
    Figure { number: "6.20", title: "Two groups on a mesh", groups: 2, ..ON_MESH },
    Figure { number: "6.21", title: "Two groups on a multistage network", groups: 2, ..ON_MIN },
    Figure {
        number: "6.22",
        title: "A faster network, on a mesh",
        costs: Costs::FAST_NETWORK,
        axis: Along::Load(FAST_LOADS),
        ..ON_MESH
    },
    Figure { number: "6.23", title: "Faster software, on a mesh", costs: Costs::FAST_SOFTWARE, ..ON_MESH },
];

impl Figure {
    /// The points of one curve.
    pub fn curve(&self, network: Topology, tree: MulticastTree, effort: Effort) -> Vec<Planned> {
        // Published with twice the placements where there is no background (§5.4).
        let placements =
            if matches!(self.axis, Along::Load(_)) { effort.placements } else { 2 * effort.placements };
        let effort = Effort { placements, ..effort };
        let point = |bytes: u64, group_nodes: u32| {
            Experiment::plain(network, self.costs, self.traffic(tree, bytes, group_nodes), effort)
        };
        match self.axis {
            Along::Bytes(sizes) => {
                let at =
                    |bytes: &u64| Planned { x: *bytes as f64, experiment: point(*bytes, self.group_nodes) };
                sizes.iter().map(at).collect()
            }
            Along::Nodes(counts) => {
                let at =
                    |nodes: &u32| Planned { x: f64::from(*nodes), experiment: point(self.bytes, *nodes) };
                counts.iter().map(at).collect()
            }
            Along::Load(loads) => {
                let plain = point(self.bytes, self.group_nodes);
                loads
                    .iter()
                    .map(|load| Planned { x: *load, experiment: plain.under(*load, self.hot_spot) })
                    .collect()
            }
        }
    }

    fn traffic(&self, tree: MulticastTree, bytes: u64, group_nodes: u32) -> Traffic {
        Traffic {
            tree,
            groups: self.groups,
            group_nodes,
            bytes,
            interval: self.interval,
            local: self.local,
            background: None,
            mean_bytes: 1 << 10,
            seed: 1,
        }
    }
}

impl Experiment {
    /// An experiment with the published nodes on a plain network: buffers of 64 KiB, flits of one
    /// byte.
    pub fn plain(topology: Topology, costs: Costs, traffic: Traffic, effort: Effort) -> Experiment {
        Experiment {
            topology,
            switching: Switching::plain(costs.network.per_byte),
            nodes: NodeSettings {
                costs,
                send_bytes: 64 << 10,
                receive_bytes: 64 << 10,
                receives: Receives::AtOnce,
            },
            traffic,
            effort,
        }
    }

    /// The experiment under a background that offers `load`, or as much of it as processors can;
    /// see [`Self::mean_compute`].
    pub fn under(&self, load: f64, hot_spot: f64) -> Experiment {
        let background = (load > 0.0)
            .then(|| Background { mean_compute: self.mean_compute(load).unwrap_or(0.0), hot_spot });
        Experiment { traffic: Traffic { background, ..self.traffic }, ..*self }
    }
}
