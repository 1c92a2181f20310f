//! The tree of an algorithm, as a job would make it.

use polycast_core::algorithm::broadcast::BINOMIAL;
use polycast_core::algorithm::{Algorithm, Entry, MadeFor, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::tree::{PlannedTree, Site};
use polycast_core::units::Bytes;

use super::Scene;
use crate::times::{self, Times};

/// A job's knowledge of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Knowledge of which ranks share a host.
    Hosts,
    /// The switches too.
    Topology,
}

/// Children or ports of a rank where they can be chosen: one more than a binary tree has.
const RADIX: u64 = 3;

/// The trees that are compared: those that do not know the switches, as other libraries make them,
/// then those that do, and the binomial one once more, which is good on one switch.
pub fn compared() -> Vec<(Algorithm, Knowledge)> {
    let is_tree = |entry: &&Entry| entry.is_one_tree() && entry.same_as.is_none();
    let mut trees: Vec<&Entry> = Registry::BUILT_IN.of(Collective::Broadcast).filter(is_tree).collect();
    trees.sort_by_key(|entry| entry.made_for);
    let planned = trees.partition_point(|entry| entry.made_for == MadeFor::Positions);
    let of = |entry: &&'static Entry| {
        let tree = entry.typical();
        entry.radix().and_then(|radix| tree.with_value(radix.name, RADIX)).unwrap_or(tree)
    };
    let by_position = trees[..planned].iter().map(|entry| (of(entry), Knowledge::Hosts));
    let planned = std::iter::once(BINOMIAL).chain(trees[planned..].iter().map(of));
    by_position.chain(planned.map(|tree| (tree, Knowledge::Topology))).collect()
}

impl Knowledge {
    /// The knowledge in words, for a column of a table.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Hosts => "hosts",
            Knowledge::Topology => "switches",
        }
    }
}

/// The tree of an algorithm, and for which times of a message it is made if it is made for some.
pub fn plan(
    algorithm: &Algorithm,
    knows: Knowledge,
    scene: &Scene,
) -> Result<(PlannedTree, Option<Times>), String> {
    let site = match knows {
        Knowledge::Topology => Site::new(&scene.placed),
        Knowledge::Hosts => {
            let hosts: Vec<u64> = scene.placed.host_of.iter().map(|host| *host as u64).collect();
            Site::by_host(&hosts)
        }
    };
    let call = Call::broadcast(site.ranks(), scene.root, Bytes(scene.bytes.get()));
    let mut planner = times::planner(site, scene.parameters.as_ref());
    // As in a job, where a message that is not to be cut is not; `--segment` is for the estimated time alone.
    let segment = if planner.is_by_size(algorithm) { None } else { Some(scene.segment) };
    let algorithm = Algorithm { segment: algorithm.segment.or(segment), ..*algorithm };
    let times = planner.made_for(&algorithm, call).map(Times::from);
    let tree = planner.tree(&algorithm, call);
    tree.map(|tree| (PlannedTree::clone(&tree), times)).ok_or_else(|| {
        format!("--shape {algorithm}: expected an algorithm with one tree such as binomial; this one sends parts along several")
    })
}
