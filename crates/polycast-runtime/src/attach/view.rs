//! The settings in force, and the network as they show it. Made once, and shared by communicators.

use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use polycast_core::network::Network;
use polycast_core::policy::{Collective, CommunicatorShape, Policy, Prediction, ServedSums};
use polycast_core::schedule::are_parts_of_the_tree;
use polycast_core::units::Rank;
use polycast_core::{model, policy, topology};

use super::layout::Layout;
use super::network::{self, Known, Told};
use super::world::World;
use crate::abi::MpiError;
use crate::door::Door;
use crate::fault::{self, Point};
use crate::report;
use crate::say::warn_once;
use crate::settings::{self, Current, ServiceRules, Settings};

/// Most bytes of settings that are accepted from rank 0: three files, in JSON with their quotes
/// escaped, and their names.
const MAX_SETTINGS_BYTES: u64 =
    (2 * (policy::MAX_TEXT_BYTES + topology::MAX_TEXT_BYTES + model::MAX_TEXT_BYTES) + (64 << 10)) as u64;

/// Most shapes whose policies are kept: programs split the same ranks again and again.
const MAX_SHAPES: usize = 64;
/// Most layouts that are kept for the next communicator over the same ranks.
const MAX_LAYOUTS: usize = 8;

/// The settings in force, and the network as they show it.
pub struct View {
    pub settings: Arc<Settings>,
    pub(super) known: Option<Known>,
    policies: Mutex<HashMap<CommunicatorShape, Arc<Policy>>>,
    /// Kept layouts, the one that was used last at the end.
    layouts: Mutex<Vec<Arc<Layout>>>,
}

impl View {
    /// The view of all ranks of MPI_COMM_WORLD, which have told where they are.
    pub fn new(settings: Arc<Settings>, told: &Told) -> View {
        let known = told.find_out(&settings);
        View { settings, known, policies: Mutex::default(), layouts: Mutex::default() }
    }

    /// The view for a communicator that was just met. Collective only where the program has changed
    /// settings, which it does on all ranks. `None`: all ranks leave the communicator to the stock
    /// MPI.
    pub fn of(world: &World, door: &Door, rank: usize, size: usize) -> Result<Option<Arc<View>>, MpiError> {
        if settings::changes() == world.changes {
            return Ok(Some(world.view.clone()));
        }
        let mine = Settings::current();
        let all = door.allgather(&mine.digest.to_le_bytes(), size)?;
        let differ = all.iter().any(|other| *other != all[0]);
        let settings = agree_on_settings(door, rank, size, mine, differ)?;
        Ok(settings.map(|settings| Arc::new(View::new(settings, &world.told))))
    }

    /// Tells of a communicator of these ranks of MPI_COMM_WORLD that was just met: to the report,
    /// and, on its rank 0, to the user.
    pub fn tell(&self, rank: Rank, ranks: &[u32]) {
        let known = self.known.as_ref();
        if let Some(warning) = known.and_then(|known| known.warning.as_ref()).filter(|_| rank == Rank(0)) {
            warn_once(warning);
        }
        if settings::is_report_wanted() {
            self.report_choices(ranks);
        }
    }

    /// Tells the report by what choices are made, unless it is what every job does without being
    /// told anything.
    fn report_choices(&self, ranks: &[u32]) {
        let Settings { rules, parameters, .. } = &*self.settings;
        let sums = self.settings.rules(None).sums();
        if sums != ServedSums::Auto {
            report::choices(format!("sums={sums}"));
        }
        if self.known.is_none() && parameters.is_none() {
            return;
        }
        let mut said = match (rules, parameters) {
            (ServiceRules { forced, .. }, _) if forced.iter().any(|(of, _)| *of == Collective::Broadcast) => {
                "by=forced".to_owned()
            }
            (ServiceRules { table: Some(table), .. }, _) => format!("by=table table={}", table.file),
            (_, Some(parameters)) => format!("by=prediction params={}", parameters.file),
            (_, None) => "by=table".to_owned(),
        };
        if let Some(known) = &self.known {
            said.push_str(&format!(" topology={} switches={}", known.origin, known.switches(ranks)));
        }
        report::choices(said);
    }

    /// The policy of a communicator of these ranks of MPI_COMM_WORLD, of which this process's is
    /// the one at `rank`. `network`: the network between them, if somebody has measured it.
    pub fn policy(&self, world: &World, rank: Rank, ranks: &[u32], network: Option<Network>) -> Arc<Policy> {
        match self.settings.parameters {
            None => self.policy_of_shape(CommunicatorShape { network, ..self.shape(world, ranks) }),
            // Predictions are made for places, not for a shape.
            Some(_) => self.layout(world, rank, ranks, network).policy.clone(),
        }
    }

    pub(super) fn policy_of_shape(&self, shape: CommunicatorShape) -> Arc<Policy> {
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        if policies.len() >= MAX_SHAPES && !policies.contains_key(&shape) {
            policies.clear();
        }
        let new = || Arc::new(Policy::new(self.settings.rules(None), shape));
        policies.entry(shape).or_insert_with(new).clone()
    }

    /// The policy of these ranks: predictions are made for their places, and for `hosts` where no
    /// network is known.
    pub(super) fn policy_of_layout(
        &self,
        shape: CommunicatorShape,
        ranks: &[u32],
        hosts: &[u64],
    ) -> Arc<Policy> {
        let Some(parameters) = &self.settings.parameters else { return self.policy_of_shape(shape) };
        let placed = self.known.as_ref().map(|known| known.placed.only(ranks));
        let placed = placed.unwrap_or_else(|| network::flat(hosts));
        let prediction = Prediction::new(&placed, &parameters.content);
        Arc::new(Policy::new(self.settings.rules(Some(&prediction)), shape))
    }

    /// The layout of these ranks of MPI_COMM_WORLD, of which this process's is the one at `rank`.
    pub fn layout(&self, world: &World, rank: Rank, ranks: &[u32], network: Option<Network>) -> Arc<Layout> {
        let lock = || self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        let take = |layouts: &mut Vec<Arc<Layout>>| {
            let is_near = |known: &Arc<Layout>| known.rank == rank && *known.world_ranks == *ranks;
            let is_it = |known: &Arc<Layout>| known.shape.network == network && is_near(known);
            let known = layouts.iter().position(is_it).map(|index| layouts.remove(index));
            known.ok_or_else(|| layouts.iter().find(|known| is_near(known)).cloned())
        };
        let known = take(&mut lock());
        // Not under the lock: a network may be large.
        let layout = known.unwrap_or_else(|near| {
            Arc::new(match near {
                Some(near) => near.on_network(self, network),
                None => Layout::new(self, world, rank, ranks, network),
            })
        });
        let mut layouts = lock();
        if layouts.len() >= MAX_LAYOUTS {
            layouts.remove(0);
        }
        layouts.push(layout.clone());
        layout
    }

    pub fn shape(&self, world: &World, ranks: &[u32]) -> CommunicatorShape {
        let mut hosts: Vec<u64> = ranks.iter().map(|rank| world.hosts[*rank as usize]).collect();
        let are_parts = are_parts_of_the_tree(&hosts);
        hosts.sort_unstable();
        let on_each = || hosts.chunk_by(|one, other| one == other).map(|same| same.len() as u32);
        CommunicatorShape {
            ranks: ranks.len() as u32,
            nodes: on_each().count() as u32,
            ranks_per_node: on_each().max().unwrap_or(1),
            ranks_per_processor: ranks
                .iter()
                .map(|rank| world.ranks_per_processor[*rank as usize])
                .max()
                .unwrap_or(1),
            switches: self.known.as_ref().map_or(1, |known| known.switches(ranks)),
            are_parts,
            is_of_all: ranks.len() == world.hosts.len(),
            network: None,
        }
    }
}

/// Agrees on settings: `mine`, or rank 0's where they differ; `None`, on all ranks, if some rank
/// does not understand them.
pub fn agree_on_settings(
    door: &Door,
    rank: usize,
    size: usize,
    mine: Current,
    differ: bool,
) -> Result<Option<Arc<Settings>>, MpiError> {
    if let Some(problem) = mine.problem.filter(|_| rank == 0) {
        warn_once(&problem);
    }
    Ok(match differ {
        true => take_from_rank_0(door, rank, size, &mine.settings)?.map(Arc::new),
        false => Some(mine.settings),
    })
}

/// Takes the settings of rank 0; `None`, on all ranks, if some rank does not understand them.
fn take_from_rank_0(
    door: &Door,
    rank: usize,
    size: usize,
    mine: &Settings,
) -> Result<Option<Settings>, MpiError> {
    let mut bytes = mine.to_bytes();
    let mut length = (bytes.len() as u64).to_le_bytes();
    door.broadcast(&mut length, 0)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_SETTINGS_BYTES {
        return Ok(Some(Settings::default()));
    }
    if rank != 0 {
        bytes = vec![0; length as usize];
    }
    door.broadcast(&mut bytes, 0)?;
    let understood = catch_unwind(|| {
        fault::point(Point::Settings);
        Settings::from_bytes(&bytes)
    });
    let settings = understood.ok().flatten();
    let all = door.allgather(&[u8::from(settings.is_some())], size)?;
    Ok(settings.filter(|_| all.iter().all(|is_understood| *is_understood == [1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::TagSpace;

    #[test]
    fn the_shape_counts_hosts_and_their_fullest() {
        let told = Told::default();
        let view = Arc::new(View::new(Arc::default(), &told));
        let tags = TagSpace::new(31).expect("enough");
        let hosts: Arc<[u64]> = [1, 7, 8, 7, 9, 7].into();
        let world = World {
            kernels: hosts.to_vec(),
            kernel_starts: vec![1, 1, 1, 1, 2, 1],
            ranks_per_processor: vec![9, 3, 1, 3, 1, 3],
            room: None,
            processes: hosts.clone(),
            hosts,
            told,
            tags,
            has_threads: false,
            view: view.clone(),
            changes: 0,
            arenas: crate::node_memory::Arenas::default(),
        };
        assert_eq!(world.on_one_kernel(&[5, 4, 3, 2]), [2, 3], "hosts 7 and 8, each once");
        assert_eq!(world.on_one_kernel(&[4, 5, 1]), [0; 0]);
        let shape = view.shape(&world, &[1, 2, 3, 4, 5]);
        assert_eq!((shape.ranks, shape.nodes, shape.ranks_per_node, shape.ranks_per_processor), (5, 3, 3, 3));
        let [one, other] = [[5, 2], [3, 2]].map(|ranks| view.policy(&world, Rank(0), &ranks, None));
        assert!(Arc::ptr_eq(&one, &other), "one policy for each shape");
        let [one, other] = [[5, 2], [5, 2]].map(|ranks| view.layout(&world, Rank(1), &ranks, None));
        assert!(Arc::ptr_eq(&one, &other), "one layout for the same ranks");
        let [all, turned] = [[0, 1, 2, 3, 4, 5], [1, 0, 2, 3, 4, 5]];
        let [all, turned] = [all, turned].map(|ranks| view.layout(&world, Rank(1), &ranks, None));
        assert!(Arc::ptr_eq(&all.hosts, &world.hosts) && Arc::ptr_eq(&all.processes, &world.processes));
        assert_eq!(*turned.hosts, [7, 1, 8, 7, 9, 7]);
        let asked = Some(Network { latency: Some(polycast_core::units::Nanos(9)), ..Network::default() });
        let other = view.layout(&world, Rank(1), &[5, 2], asked);
        assert_eq!((one.shape.network, other.shape.network), (None, asked));
        assert!(Arc::ptr_eq(&one.site, &other.site), "what is known of the network moves nobody");
        assert_eq!((one.nodes.count(), one.nodes.my_leader()), (2, Rank(1)));
        let near = (one.neighbours.on_this_kernel, one.neighbours.on_this_host);
        assert_eq!(near, (1, 1), "rank 2 of the world has its processors alone");
        let other = view.layout(&world, Rank(0), &[5, 2], None).neighbours;
        assert_eq!((other.on_this_kernel, other.on_this_host), (3, 1), "a small communicator on a full node");
    }
}
