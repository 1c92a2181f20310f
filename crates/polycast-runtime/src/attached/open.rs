//! The opening of a communicator: its ranks agree on a number, and the part that serves is made.

use std::panic::{AssertUnwindSafe, catch_unwind};

use polycast_core::policy::trials::TOLD;
use polycast_core::policy::{self, Capabilities, Choice, CommunicatorShape, Epoch, Policy};
use polycast_core::units::Rank;

use super::{Attached, State};
use crate::abi::MpiError;
use crate::asked::{self, COMPARED_WORDS};
use crate::attach::{Agreed, Agreement, Layout, World, agree_on_number};
use crate::communicator::Communicator;
use crate::fault::{self, Point};
use crate::machine;
use crate::mismatch;
use crate::multicast::Reuse;
use crate::trials;

/// A call that may be served if there is a number.
#[derive(Clone, Copy)]
pub(super) struct For {
    pub call: policy::Call,
    pub epoch: Epoch,
    /// True if ways to serve the call are to be measured.
    pub tunes: bool,
    /// True if the way may change from one call to the next, and no rule forces it.
    pub is_comparable: bool,
}

impl For {
    fn choice(&self, policy: &Policy) -> Choice {
        policy.choose(&self.call, Capabilities::ALL, self.epoch).choice
    }

    fn wants_number(&self, policy: &Policy) -> bool {
        self.tunes || self.choice(policy) != Choice::Stock
    }
}

impl Attached {
    /// Makes the part that serves, or settles that the MPI does. Collective, mostly in one
    /// exchange. The ranks compare what they know of the network, if that decides `for_call`; they
    /// agree on a number; and rank 0 hands out what it knows of trials, if ways are to be compared
    /// for the call.
    pub(super) fn open(&mut self, is_by_multicast: bool, for_call: Option<For>) -> Result<(), MpiError> {
        let (Some(world), Some(view)) = (World::get()?, self.view.clone()) else { return Ok(()) };
        let (door, rank, ranks) = (self.door, self.rank, self.ranks as usize);
        let (asks, network) = (self.policy.asks(), self.network);
        let is_compared = for_call.is_some_and(|call| call.is_comparable);
        let are_told = is_compared && view.settings.trials && view.settings.tune.is_none();
        let found = catch_unwind(AssertUnwindSafe(|| {
            fault::point(Point::Open);
            let world_ranks = door.world_ranks(ranks).ok()?;
            let layout = view.layout(&world, rank, &world_ranks, network);
            let known = if asks { asked::known(&layout) } else { network };
            let policy = view.policy(&world, rank, &world_ranks, known);
            // Where ranks find different things here, because they know different things, no group is taken.
            let is_by_multicast =
                for_call.map_or(is_by_multicast, |call| call.choice(&policy).is_by_multicast());
            let Layout { nodes, hosts, processes, .. } = &*layout;
            let reuse = match is_by_multicast && nodes.count() > 1 {
                true => Reuse::of(rank, nodes, hosts, processes),
                false => Reuse::NOTHING,
            };
            let mut beside = Vec::new();
            if asks {
                beside.extend(asked::compared(known));
            }
            if are_told {
                let shape = CommunicatorShape { network: known, ..layout.shape };
                beside.extend(if rank == Rank(0) { trials::told(shape, &policy) } else { [u64::MAX; TOLD] });
            }
            Some((layout, reuse, beside))
        }));
        let (found, mut beside) = match found.ok().flatten() {
            Some((layout, reuse, beside)) => (Some((layout, reuse)), beside),
            None => (None, vec![0; if asks { COMPARED_WORDS } else { 0 } + if are_told { TOLD } else { 0 }]),
        };
        let more = found.as_ref().map_or([0; 2], |(_, reuse)| reuse.words());
        let mut common = None;
        let late = for_call.filter(|of| self.counts.earlier_calls(of.call.collective) > 1).map(|of| of.call);
        let wants = |beside: &[u64]| {
            common = beside.first_chunk().filter(|_| asks).and_then(asked::in_common);
            let (Some((layout, _)), Some(_)) = (&found, common) else { return true };
            self.network = common;
            self.policy = view.policy(&world, rank, &layout.world_ranks, common);
            for_call.is_none_or(|call| call.wants_number(&self.policy))
        };
        let agree = || agree_on_number(&world, &door, rank, found.is_some(), more, &mut beside, wants);
        let agreed = match late {
            // Calls before were left to the MPI, and ranks that give another size may leave this one, too.
            Some(call) => {
                let patience = machine::patience();
                let speak = || mismatch::say_waiting(&call, rank, None, patience.as_secs());
                machine::watched(patience, speak, agree)?
            }
            None => agree()?,
        };
        let (Agreed { number, more }, (mut layout, reuse)) = match (agreed, found) {
            (Agreement::Number(agreed), Some(found)) => (agreed, found),
            (Agreement::NotWanted, _) => return Ok(()),
            _ => {
                self.state = State::Refused;
                return Ok(());
            }
        };
        let mut is_clean = true;
        if asks && common.is_none() {
            let found = asked::find_out(&door, &world, &layout, number)?;
            (is_clean, common) = (found.is_clean, Some(found.network));
            beside.clear();
        }
        if asks {
            layout = view.layout(&world, rank, &layout.world_ranks, common);
        }
        self.policy = layout.policy.clone();
        let (log, counts) = (std::mem::take(&mut self.log), std::mem::take(&mut self.counts));
        let numbered = (number, world.tags);
        let mut made = Communicator::new(door, rank, &layout, &view.settings, numbered, counts, log);
        made.is_spoiled = !is_clean;
        if let Some(told) = beside.last_chunk().filter(|_| are_told) {
            made.comparison.begin_told(&layout.policy, told);
        }
        if let Some(driver) = reuse.take(more, &layout.nodes) {
            made.begin_multicast(driver);
        }
        self.state = State::Served(Box::new(made));
        Ok(())
    }
}
