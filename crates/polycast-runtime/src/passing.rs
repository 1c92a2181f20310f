//! The calls that pass on whatever communicator of this job they are, while it is not attached: a door makes nothing for a communicator that has
//! no others.

use std::sync::atomic::{AtomicU32, Ordering};

use polycast_core::collective::Collective;
use polycast_core::policy::{self, CommunicatorShape, Prediction, Ranks};

use crate::abi::Passing;
use crate::of_process::of_process;
use crate::settings::Settings;

const COLLECTIVES: usize = Collective::ALL.len();

/// Kinds of communicators: those of two ranks, for which more is served on a node, larger ones, and
/// those of all ranks of the job, whose sums are served from the first one on or never.
const KINDS: usize = 3;
const LARGER: usize = 1;
const OF_ALL: usize = 2;

fn kind_of(ranks: u32) -> usize {
    match ALL_RANKS.with(|all| all.load(Ordering::Relaxed)) == ranks {
        true => OF_ALL,
        false => usize::from(ranks > 2),
    }
}

of_process! {
    /// Ranks of the job; 0 until ranks have told each other where they are.
    static ALL_RANKS: AtomicU32 = AtomicU32::new(0);
}

/// A [`Passing`] that doors read while it may change, as they read a [`Passing`].
#[repr(C)]
struct Shared {
    below: AtomicU32,
    above: AtomicU32,
    first: AtomicU32,
    last: AtomicU32,
    until: AtomicU32,
}

const _: () = assert!(size_of::<Shared>() == size_of::<Passing>());

impl Shared {
    const fn nothing() -> Shared {
        let Passing { below, above, first, last, until } = Passing::NOTHING;
        Shared {
            below: AtomicU32::new(below),
            above: AtomicU32::new(above),
            first: AtomicU32::new(first),
            last: AtomicU32::new(last),
            until: AtomicU32::new(until),
        }
    }

    fn set(&self, passing: Passing) {
        let Passing { below, above, first, last, until } = passing;
        self.below.store(below, Ordering::Relaxed);
        self.above.store(above, Ordering::Relaxed);
        self.first.store(first, Ordering::Relaxed);
        self.last.store(last, Ordering::Relaxed);
        self.until.store(until, Ordering::Relaxed);
    }
}

of_process! {
    /// What passes on communicators of each kind, by collective. It is nothing until ranks have told
    /// each other where they are.
    static AT_FIRST: [[Shared; COLLECTIVES]; KINDS] =
        [const { [const { Shared::nothing() }; COLLECTIVES] }; KINDS];
}

/// Learns which calls the MPI serves in this job, from the settings and the shape of all its ranks.
/// Learns nothing where some rank tells of its calls, or ways are measured for each call. All ranks
/// come to the same: they do not count the calls that they leave here, or count them alike, and
/// rules may ask how many there were before.
pub fn learn(settings: &Settings, most: CommunicatorShape, are_told: bool) {
    if !are_told && settings.tune.is_none() {
        ALL_RANKS.with(|all| all.store(most.ranks, Ordering::Relaxed));
        for kind in 0..KINDS {
            let ranks = match kind {
                OF_ALL => Ranks { least: most.ranks, most: most.ranks },
                LARGER => Ranks { least: 3, most: most.ranks },
                _ => Ranks { least: 2, most: 2 },
            };
            let mut passing = policy::passing_at_first(settings.rules(None), (ranks, most));
            // What is predicted for a communicator is known when it is attached.
            if settings.parameters.is_some() {
                passing[Prediction::COLLECTIVE as usize] = policy::Passing::NOTHING;
            }
            set(kind, passing.map(Passing::from));
        }
    }
}

/// Forgets all, since the program changes settings.
pub fn forget() {
    (0..KINDS).for_each(|kind| set(kind, [Passing::NOTHING; COLLECTIVES]));
}

fn set(kind: usize, passing: [Passing; COLLECTIVES]) {
    AT_FIRST.with(|all| all[kind].iter().zip(passing).for_each(|(shared, passing)| shared.set(passing)));
}

/// The table for communicators of `ranks` ranks, by collective; stays as long as the process.
#[inline]
pub fn at_first(ranks: u32) -> *const Passing {
    AT_FIRST.with(|all| all[kind_of(ranks)].as_ptr().cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Loaded;

    const PARAMETERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/params/lab-20mbit.json");

    /// Whether short broadcasts and allreduces are left on communicators of three ranks.
    fn are_left(settings: &Settings) -> [bool; 2] {
        let most = CommunicatorShape { nodes: 8, ranks_per_node: 1, ..CommunicatorShape::on_one_node(8) };
        learn(settings, most, false);
        // SAFETY: there is one for each collective, and this thread is not at an end.
        let of = |collective| unsafe { *at_first(3).add(collective as usize) };
        [Collective::Broadcast, Collective::Allreduce].map(|collective| of(collective).passes(8, &mut 0))
    }

    #[test]
    fn what_may_be_predicted_is_left_on_no_communicator() {
        let mut settings = Settings::default();
        assert_eq!(are_left(&settings), [true, true]);
        settings.parameters = Some(Loaded::read(PARAMETERS.to_owned()).unwrap());
        assert_eq!(are_left(&settings), [false, true]);
    }
}
