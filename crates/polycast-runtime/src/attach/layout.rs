//! The ranks of one communicator: where they are, and what decides about their calls. Found without
//! a message from what the ranks of MPI_COMM_WORLD have told.

use std::sync::Arc;

use polycast_core::network::Network;
use polycast_core::policy::{CommunicatorShape, Policy};
use polycast_core::schedule::Nodes;
use polycast_core::tree::Site;
use polycast_core::units::Rank;

use super::view::View;
use super::world::World;
use crate::idle::Neighbours;
use crate::{report, settings};

/// Layout of a communicator's ranks, shared by this process's communicators over the same ranks in
/// the same order.
#[derive(Clone)]
pub struct Layout {
    pub rank: Rank,
    /// The rank of each rank in MPI_COMM_WORLD.
    pub world_ranks: Arc<[u32]>,
    /// Digest of the host, and of the process, of each rank; shared by all that have the ranks of
    /// MPI_COMM_WORLD.
    pub hosts: Arc<[u64]>,
    pub processes: Arc<[u64]>,
    pub shape: CommunicatorShape,
    pub policy: Arc<Policy>,
    pub site: Arc<Site>,
    /// The nodes, as this process's rank sees them.
    pub nodes: Arc<Nodes>,
    /// The ranks of its node alone, by their positions in [`Nodes::local`].
    pub node: Arc<Site>,
    pub neighbours: Neighbours,
}

impl Layout {
    /// The layout of these ranks of MPI_COMM_WORLD, of which this process's is the one at `rank`.
    /// `network`: knowledge of the network between them.
    pub fn new(view: &View, world: &World, rank: Rank, ranks: &[u32], network: Option<Network>) -> Layout {
        let are_all = ranks.len() == world.hosts.len() && (0..).zip(ranks).all(|(at, rank)| at == *rank);
        let of = |all: &Arc<[u64]>| match are_all {
            true => all.clone(),
            false => ranks.iter().map(|rank| all[*rank as usize]).collect(),
        };
        let hosts = of(&world.hosts);
        let near = |all: &[u64], mine: u64| all.iter().filter(|other| **other == mine).count();
        // Ranks outside of the communicator want the processors, too.
        let on_this_kernel = near(&world.kernels, world.kernels[ranks[rank.index()] as usize]);
        let on_this_host = near(&hosts, hosts[rank.index()]);
        let shape = CommunicatorShape { network, ..view.shape(world, ranks) };
        let placed = view.known.as_ref().map(|known| known.placed.only(ranks));
        let policy = view.policy_of_layout(shape, ranks, &hosts);
        let site = placed.as_ref().map_or_else(|| Site::by_host(&hosts), Site::new);
        let site = site.with_localities(world.told.localities(&view.settings, ranks));
        let nodes = Nodes::new(&hosts, site.ring(), rank);
        if site.moved() > 0 && settings::is_report_wanted() {
            report::choices(format!("order=locality moved={}", site.moved()));
        }
        Layout {
            rank,
            world_ranks: ranks.into(),
            shape,
            policy,
            node: Arc::new(site.alone(nodes.local().in_order())),
            nodes: Arc::new(nodes),
            site: Arc::new(site),
            neighbours: Neighbours { on_this_kernel, on_this_host },
            processes: of(&world.processes),
            hosts,
        }
    }

    /// The layout of the same ranks with other knowledge of the network: they are where they were.
    pub fn on_network(&self, view: &View, network: Option<Network>) -> Layout {
        let shape = CommunicatorShape { network, ..self.shape };
        let policy = view.policy_of_layout(shape, &self.world_ranks, &self.hosts);
        Layout { shape, policy, ..self.clone() }
    }
}
