//! The opening of a communicator: its ranks agree on a number, and the part that serves is made.

use std::panic::{AssertUnwindSafe, catch_unwind};

use polycast_core::policy::CommunicatorShape;
use polycast_core::policy::chooser::{Answer, Numbered, Opened, Opening};
use polycast_core::policy::trials::TOLD;
use polycast_core::units::Rank;

use super::Communicator;
use super::process::Process;
use super::serving::Serving;
use crate::asked::{self, COMPARED_WORDS};
use crate::attach::{Agreed, Agreement, Layout, World, agree_on_number};
use crate::call::Failure;
use crate::fault::{self, Point};
use crate::machine;
use crate::mismatch;
use crate::multicast::Reuse;
use crate::trials;

/// Carries out an exchange, and speaks of it if it takes long, where other ranks may not come.
pub(super) fn patiently<R>(opening: &Opening, rank: Rank, exchange: impl FnOnce() -> R) -> R {
    match opening.late {
        Some(call) => {
            let patience = machine::patience();
            let speak = || mismatch::say_waiting(&call, rank, None, patience.as_secs());
            machine::watched(patience, speak, exchange)
        }
        None => exchange(),
    }
}

impl Communicator {
    /// Makes what serves, or settles that the MPI does. Collective, mostly in one exchange. The ranks
    /// compare what they know of the network, if that decides; they agree on a number; and rank 0
    /// hands out what it knows of trials, if ways are to be compared for the call.
    pub(super) fn open(&mut self, opening: &Opening) -> Result<Answer, Failure> {
        let (Some(world), Some(view)) = (World::get()?, self.view.clone()) else {
            return Ok(Answer::Opened(Opened::Refused));
        };
        // Between hosts there is more to agree on.
        if self.is_in_arena
            && !opening.asks
            && let Some(answer) = self.open_on_node(opening, &world)?
        {
            return Ok(answer);
        }
        let process = Process::here();
        let (door, rank, ranks) = (self.door, self.rank, self.ranks as usize);
        let (Opening { asks, hears, .. }, network) = (*opening, self.network);
        let found = catch_unwind(AssertUnwindSafe(|| {
            fault::point(Point::Open);
            let world_ranks = door.world_ranks(ranks).ok()?;
            let layout = view.layout(&world, rank, &world_ranks, network);
            let known = if asks { process.networks.known(&layout) } else { network };
            let policy = view.policy(&world, rank, &world_ranks, known);
            // Where ranks find different things here, because they know different things, no group is taken.
            let is_by_multicast = opening.is_by_multicast(&policy);
            let Layout { nodes, hosts, processes, .. } = &*layout;
            let reuse = match is_by_multicast && nodes.count() > 1 {
                true => Reuse::of(rank, nodes, hosts, processes),
                false => Reuse::NOTHING,
            };
            let mut beside = Vec::new();
            if asks {
                beside.extend(asked::compared(known));
            }
            if hears {
                let shape = CommunicatorShape { network: known, ..layout.shape };
                beside.extend(if rank == Rank(0) {
                    trials::told(&process.ledgers, shape, &policy)
                } else {
                    [u64::MAX; TOLD]
                });
            }
            Some((layout, reuse, beside))
        }));
        let (found, mut beside) = match found.ok().flatten() {
            Some((layout, reuse, beside)) => (Some((layout, reuse)), beside),
            None => (None, vec![0; if asks { COMPARED_WORDS } else { 0 } + if hears { TOLD } else { 0 }]),
        };
        let more = found.as_ref().map_or([0; 2], |(_, reuse)| reuse.words());
        let (mut common, mut of_network) = (None, None);
        let wants = |beside: &[u64]| {
            common = beside.first_chunk().filter(|_| asks).and_then(asked::in_common);
            let (Some((layout, _)), Some(_)) = (&found, common) else { return true };
            self.network = common;
            of_network = Some(view.policy(&world, rank, &layout.world_ranks, common));
            of_network.as_ref().is_none_or(|policy| opening.wants_number(policy))
        };
        let agree = || agree_on_number(&world, &door, rank, found.is_some(), more, &mut beside, wants);
        let agreed = patiently(opening, rank, agree)?;
        let (Agreed { number, more }, (mut layout, reuse)) = match (agreed, found, of_network) {
            (Agreement::Number(agreed), Some(found), _) => (agreed, found),
            (Agreement::NotWanted, _, Some(policy)) => {
                return Ok(Answer::Opened(Opened::NotWanted { policy }));
            }
            _ => return Ok(Answer::Opened(Opened::Refused)),
        };
        let mut is_clean = true;
        if asks && common.is_none() {
            let found = asked::find_out(&process.networks, &door, &world, &layout, number)?;
            (is_clean, common) = (found.is_clean, Some(found.network));
            beside.clear();
        }
        if asks {
            layout = view.layout(&world, rank, &layout.world_ranks, common);
        }
        let mut made = Serving::new(process, door, rank, &layout, &view.settings, (number, world.tags));
        made.is_spoiled = !is_clean;
        let seat = reuse.take(more, &layout.nodes);
        let has_multicast = seat.is_some();
        if let Some(seat) = seat {
            made.has_tried_multicast = true;
            made.begin_multicast(seat);
        }
        Ok(self.opened(made, &layout, beside.last_chunk().filter(|_| hears), has_multicast))
    }

    /// Takes what serves into use. `told`: rank 0's words on trials.
    pub(super) fn opened(
        &mut self,
        made: Serving,
        layout: &Layout,
        told: Option<&[u64; TOLD]>,
        has_multicast: bool,
    ) -> Answer {
        let trials = told.map(|told| made.process.ledgers.resumed(layout.shape, &layout.policy, told));
        self.serving = Some(Box::new(made));
        Answer::Opened(Opened::Number(Numbered {
            policy: layout.policy.clone(),
            ranks: layout.shape.ranks,
            shares_nodes: (layout.nodes.count() as usize) < layout.world_ranks.len(),
            has_multicast,
            trials,
        }))
    }
}
