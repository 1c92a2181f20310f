//! What serves a communicator's calls: made when the first is to be served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::policy::Collective;
use polycast_core::policy::trials::Sample;
use polycast_core::tree::DynamicTimes;
use polycast_core::units::Rank;
use polycast_shm::Processors;

use super::process::Process;
use crate::abi::{GIVES_WAY, MpiError};
use crate::attach::{Layout, World};
use crate::call::{Activity, Failure};
use crate::door::Door;
use crate::idle::Idle;
use crate::messages::{Address, Messages};
use crate::multicast::{Deaf, Driver, NodeMessages, RETRY_AFTER, Seat, Unavailable, set_up};
use crate::node_memory::{self, Found, NodeMemory};
use crate::operation::{CellCall, Operations, Shared};
use crate::reason::Reason;
use crate::say::warn_once;
use crate::settings::{self, Settings};
use crate::tags::{TagSpace, Tags};

/// What serves a communicator: its state in one process.
pub(super) struct Serving {
    pub process: Arc<Process>,
    pub door: Door,
    /// Number that marks this communicator's messages on the private communicator of all ranks.
    pub number: u32,
    /// True if the number is that of the slot that its memory is in: who gives one back gives the other.
    pub has_number_of_slot: bool,
    /// True if something went wrong with the messages. Nobody else may then have the number: some
    /// may be on their way.
    pub is_spoiled: bool,
    pub layout: Arc<Layout>,
    /// True once multicast was tried, or came with the number.
    pub has_tried_multicast: bool,
    /// The last messages between nodes, once the program has freed the communicator and as long as
    /// the neighbours have not said goodbye.
    pub leaving: Option<Box<NodeMessages>>,
    /// Time in which rank 0 may have ways measured apart from the program's calls; `None`: none are.
    pub tuning_budget: Option<Duration>,
    pub tags: Tags,
    pub shared: Shared,
    pub operations: Operations,
    /// The last call of each collective that went through cells.
    pub cell_calls: [Option<Box<CellCall>>; Collective::ALL.len()],
    pub idle: Idle,
    /// The call under way, if its time counts, and its beginning.
    pub timed: Option<(Sample, Instant)>,
    /// The call that has just ended, if its time counted, and its beginning.
    pub ended: Option<(Sample, Instant)>,
    /// The failure, if MPI or polycast failed in no operation's own message: this rank then does
    /// not know what the others do.
    pub broken: Option<Failure>,
}

impl Serving {
    /// What serves a communicator with a number on which its ranks have agreed.
    pub fn new(
        process: Arc<Process>,
        door: Door,
        rank: Rank,
        layout: &Arc<Layout>,
        settings: &Settings,
        (number, tags): (u32, TagSpace),
    ) -> Serving {
        let planner = Planner::new(layout.site.clone());
        let planner = match &settings.parameters {
            Some(parameters) => planner.measured(parameters.content.clone()),
            None => planner,
        };
        let nodes = layout.nodes.clone();
        let planner = planner.on_nodes(nodes.clone());
        let address = Address { world_ranks: layout.world_ranks.clone(), first_tag: tags.first_tag(number) };
        Serving {
            process,
            door,
            number,
            has_number_of_slot: false,
            is_spoiled: false,
            has_tried_multicast: false,
            leaving: None,
            tuning_budget: settings.tune,
            tags: tags.operations(),
            shared: Shared {
                rank,
                policy: layout.policy.clone(),
                planner,
                on_node: Planner::new(layout.node.clone()).on_nodes(Arc::new(nodes.alone(rank))),
                nodes,
                messages: Messages::new(door, address),
                memory: None,
                driver: None,
                deaf: Deaf::default(),
                by_multicast: 0,
                activity: Activity::Nothing,
                dynamic: DynamicTimes::default(),
                early: Vec::new(),
                spare: Vec::new(),
                told: None,
            },
            operations: Operations::default(),
            cell_calls: Default::default(),
            idle: Idle::new(layout.neighbours, door.capabilities() & GIVES_WAY != 0),
            layout: layout.clone(),
            timed: None,
            ended: None,
            broken: None,
        }
    }

    /// Sets up the memory that the ranks of a node share. True if each node of several ranks has
    /// some.
    pub fn try_memory(&mut self) -> Result<bool, MpiError> {
        if self.shared.memory.is_some() {
            return Ok(true);
        }
        let Some(world) = World::get()? else { return Ok(false) };
        let Layout { nodes, world_ranks, .. } = &*self.layout;
        let found = node_memory::set_up(&self.door, self.shared.rank, nodes, world_ranks, &world.arenas)?;
        let Found::Memory(memory) = found else { return Ok(false) };
        if let Some(memory) = memory {
            self.take_memory(memory);
        }
        Ok(true)
    }

    /// Takes memory into use that the ranks of this one's node have.
    pub fn take_memory(&mut self, mut memory: Box<NodeMemory>) {
        let is_crowded = self.idle.is_crowded();
        memory.cells().set_processors(if is_crowded { Processors::Shared } else { Processors::Own });
        self.shared.memory = Some(memory);
    }

    /// Gives multicast up for a while if it has died, of which all ranks have been told. True if it
    /// has. Nothing is on its way.
    pub fn leave_dead_multicast(&mut self) -> bool {
        if !self.shared.deaf.is_told {
            return false;
        }
        self.shared.deaf = Deaf::default();
        if let Some(driver) = &mut self.shared.driver {
            driver.leave();
        }
        if self.shared.rank == Rank(0) {
            warn_once(&format!(
                "multicast has died between the nodes: some node hears nothing any more; trees serve; it is tried again \
                 after {} s, before as many broadcasts have followed as came in these; `polycast doctor --watch` finds out more",
                RETRY_AFTER.as_secs()
            ));
        }
        true
    }

    /// Sets multicast up between the nodes. Whether a new try is worth its time is for each leader
    /// to say in it.
    pub fn set_multicast_up(&self) -> Result<Result<Option<Seat>, Unavailable>, MpiError> {
        let (rank, layout) = (self.shared.rank, &*self.layout);
        Ok(match layout.nodes.count() > 1 {
            true => set_up(&self.door, rank, &layout.nodes, &layout.hosts, &layout.processes)?,
            false => Err(Unavailable::nowhere()),
        })
    }

    /// Tells the user why multicast cannot be had.
    pub fn warn_of(&self, unavailable: Unavailable) {
        let is_said = unavailable.reason == Reason::Setting && settings::is_warned_of();
        if let (Rank(0), false) = (self.shared.rank, is_said) {
            let alike = || {
                let world = World::get().ok().flatten();
                world.map_or(Vec::new(), |world| {
                    let alike = world.on_one_kernel(&self.layout.world_ranks);
                    alike.into_iter().map(|rank| world.told.host_name(rank)).collect()
                })
            };
            unavailable.warning(alike).inspect(|warning| warn_once(warning));
        }
    }

    /// Takes multicast into use: the nodes are connected, and the leaders have a seat.
    pub fn begin_multicast(&mut self, seat: Option<Seat>) {
        match (&mut self.shared.driver, seat) {
            (Some(driver), Some(seat)) => driver.return_to(seat),
            (driver, seat) => {
                let leaders = self.shared.nodes.leaders();
                *driver = seat.map(|seat| Box::new(Driver::new(seat, leaders)));
            }
        }
    }
}
