//! Calls that the MPI serves on whatever communicator of this job they are: the door makes nothing for a communicator that has no others.

use std::sync::atomic::{AtomicU64, Ordering};

use polycast_core::collective::Collective;
use polycast_core::policy::{self, AtFirst, CommunicatorShape, Prediction, Ranks};

use crate::of_process::of_process;
use crate::settings::Settings;

const COLLECTIVES: usize = Collective::ALL.len();

/// Kinds of communicators: those of two ranks, for which more is served on a node, and larger ones.
const KINDS: usize = 2;
const LARGER: usize = 1;

/// Collectives in which sums are.
const SUMMED: [usize; 2] = [Collective::Reduce as usize, Collective::Allreduce as usize];

fn kind_of(ranks: u32) -> usize {
    usize::from(ranks > 2)
}

of_process! {
    /// Size in bytes below which calls are left, by collective. It is 0 until ranks have told each
    /// other where they are.
    static BELOW: [[AtomicU64; COLLECTIVES]; KINDS] =
        [const { [const { AtomicU64::new(0) }; COLLECTIVES] }; KINDS];
}

of_process! {
    /// Size in bytes below which the first calls on a communicator are left, by collective, and the
    /// number of these calls.
    static AT_FIRST: [[[AtomicU64; 2]; COLLECTIVES]; KINDS] =
        [const { [const { [const { AtomicU64::new(0) }; 2] }; COLLECTIVES] }; KINDS];
}

of_process! {
    /// Ranks of the job. Sums on communicators of all of them are served from the first one on or
    /// never, so none is left at first.
    static ALL_RANKS: AtomicU64 = AtomicU64::new(0);
}

/// Learns which calls the MPI serves in this job, from the settings and the shape of all its ranks.
/// Learns nothing where some rank tells of its calls, or ways are measured for each call. All ranks
/// come to the same: they do not count the calls that they leave here, and rules may ask how many
/// there were before.
pub fn learn(settings: &Settings, most: CommunicatorShape, are_told: bool) {
    if !are_told && settings.tune.is_none() {
        let rules = settings.rules(None);
        ALL_RANKS.with(|ranks| ranks.store(most.ranks.into(), Ordering::Relaxed));
        for kind in 0..KINDS {
            let ranks = match kind {
                LARGER => Ranks { least: 3, most: most.ranks },
                _ => Ranks { least: 2, most: 2 },
            };
            let of = (ranks, most);
            let (mut below, mut at_first) =
                (policy::to_stock_below(rules, of), policy::to_stock_at_first(rules, of));
            // What is predicted for a communicator is known when it is attached.
            if settings.parameters.is_some() {
                let predicted = Prediction::COLLECTIVE as usize;
                (below[predicted], at_first[predicted]) = (0, AtFirst::default());
            }
            set(kind, below, at_first);
        }
    }
}

/// Forgets all, since the program changes settings.
pub fn forget() {
    (0..KINDS).for_each(|kind| set(kind, [0; COLLECTIVES], [AtFirst::default(); COLLECTIVES]));
}

fn set(kind: usize, below: [u64; COLLECTIVES], at_first: [AtFirst; COLLECTIVES]) {
    BELOW
        .with(|all| all[kind].iter().zip(below).for_each(|(one, below)| one.store(below, Ordering::Relaxed)));
    AT_FIRST.with(|all| {
        for ([below, calls], of) in all[kind].iter().zip(at_first) {
            below.store(of.below, Ordering::Relaxed);
            calls.store(of.calls, Ordering::Relaxed);
        }
    });
}

/// True if such calls are left on a communicator of `ranks` ranks.
#[inline]
pub fn is_left(collective: usize, bytes: u64, ranks: u32) -> bool {
    BELOW.with(|all| {
        all[kind_of(ranks)].get(collective).is_some_and(|below| bytes < below.load(Ordering::Relaxed))
    })
}

/// True if such calls are left on a communicator that was not attached and has had `earlier_calls`
/// of them, all of which were left.
#[inline]
pub fn is_left_at_first(collective: usize, bytes: u64, ranks: u32, earlier_calls: u32) -> bool {
    if SUMMED.contains(&collective) && ALL_RANKS.with(|all| all.load(Ordering::Relaxed)) == u64::from(ranks) {
        return false;
    }
    AT_FIRST.with(|all| {
        let Some([below, calls]) = all[kind_of(ranks)].get(collective) else { return false };
        bytes < below.load(Ordering::Relaxed) && u64::from(earlier_calls) < calls.load(Ordering::Relaxed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Loaded;

    const PARAMETERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/params/lab-20mbit.json");

    /// Whether short broadcasts and allreduces are left on communicators of three ranks.
    fn are_left(settings: &Settings) -> [bool; 2] {
        let most = CommunicatorShape {
            ranks: 8,
            nodes: 8,
            ranks_per_node: 1,
            ranks_per_processor: 1,
            switches: 1,
            are_parts: true,
            is_of_all: true,
            network: None,
        };
        learn(settings, most, false);
        [Collective::Broadcast, Collective::Allreduce].map(|of| is_left(of as usize, 8, 3))
    }

    #[test]
    fn what_may_be_predicted_is_left_on_no_communicator() {
        let mut settings = Settings::default();
        assert_eq!(are_left(&settings), [true, true]);
        settings.parameters = Some(Loaded::read(PARAMETERS.to_owned()).unwrap());
        assert_eq!(are_left(&settings), [false, true]);
    }
}
