//! The opening of a communicator whose ranks are all on one host: rank 0 says what the others need to know, and they go on from there. Nobody is
//! asked, and nobody waits but for that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polycast_core::policy::chooser::{Answer, Opened, Opening};
use polycast_core::policy::trials::TOLD;
use polycast_core::units::Rank;
use polycast_shm::NOTES;

use super::Communicator;
use super::open::patiently;
use super::process::Process;
use super::serving::Serving;
use crate::attach::{Layout, World};
use crate::call::Failure;
use crate::fault::{self, Point};
use crate::node_memory::Offered;
use crate::trials;

/// The first word: a slot, in which all is that they need; or why there is none.
const NO_SLOT: u64 = 0;
const IS_NOT_ABLE: u64 = 1;

const _: () = assert!(TOLD <= NOTES, "what rank 0 knows of trials finds room in a slot");

impl Communicator {
    /// Opens the communicator by a slot of the host's arena; `None`, on all ranks, if there is none.
    ///
    /// # Errors
    /// Something else than what rank 0 knows of has failed: as where a rank fails while it chooses.
    pub(super) fn open_on_node(
        &mut self,
        opening: &Opening,
        world: &World,
    ) -> Result<Option<Answer>, Failure> {
        let (process, door, rank) = (Process::here(), self.door, self.rank);
        let layout = catch_unwind(AssertUnwindSafe(|| {
            fault::point(Point::Open);
            self.layout_on_node(world)
        }));
        let layout = layout.ok().flatten();
        let join = |offered: Offered| {
            let layout = layout.as_ref()?;
            offered.join(&world.arenas, rank, &layout.nodes, &layout.world_ranks)
        };
        let (mut words, mut memory) = ([IS_NOT_ABLE, 0], None);
        if let Some(layout) = layout.as_ref().filter(|_| rank == Rank(0)) {
            let offer = || {
                let offered = Offered::new(&world.arenas, self.ranks, world.tags.slot_numbers());
                let memory = join(offered);
                if let Some(memory) = memory.as_ref().filter(|_| opening.hears) {
                    memory.leave_notes(&trials::told(&process.ledgers, layout.shape, &layout.policy));
                }
                (offered, memory)
            };
            let (offered, joined) = catch_unwind(AssertUnwindSafe(offer)).unwrap_or_default();
            (words, memory) = ([offered.slot, offered.last_operation], joined);
        }
        let mut bytes = words.map(u64::to_le_bytes);
        patiently(opening, rank, || door.broadcast(bytes.as_flattened_mut(), 0))?;
        let offered = match bytes.map(u64::from_le_bytes) {
            [NO_SLOT, _] => return Ok(None),
            [IS_NOT_ABLE, _] => return Ok(Some(Answer::Opened(Opened::Refused))),
            [slot, last_operation] => Offered { slot, last_operation },
        };
        let memory = memory.or_else(|| join(offered)).ok_or(Failure::Internal)?;
        let (Some(layout), Some(view)) = (layout, &self.view) else { return Err(Failure::Internal) };
        let number = world.tags.agreed_numbers() as u32 + memory.number();
        let told = opening.hears.then(|| memory.notes());
        let mut made = Serving::new(process, door, rank, &layout, &view.settings, (number, world.tags));
        made.has_number_of_slot = true;
        made.take_memory(memory);
        Ok(Some(self.opened(made, &layout, told.as_ref().and_then(|told| told.first_chunk()), false)))
    }

    fn layout_on_node(&self, world: &World) -> Option<Arc<Layout>> {
        let world_ranks = self.door.world_ranks(self.ranks as usize).ok()?;
        Some(self.view.as_ref()?.layout(world, self.rank, &world_ranks, self.network))
    }
}
