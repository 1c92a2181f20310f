//! The same values where ranks are on several hosts: what crosses from node to node has gaps, is in place, and is combined in order.

use std::time::Duration;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::Collective;

use super::{Settings, check_settings, expect_served, sets_of};
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab};

const HOSTS: usize = 3;
const PROGRAM: &str = "collective_values";

/// Ranks, how many of them a host takes, and options of the launcher.
type Placement = (usize, usize, &'static str);

/// Ranks 0 1, 2 3, 4 5.
const EVEN: Placement = (6, 2, "");
/// 0 1, 2 3, 4.
const ONE_ALONE: Placement = (5, 2, "");
/// 0 1 2, 3 4 5, 6.
const UNEQUAL: Placement = (7, 3, "");
/// 0 3 6, 1 4, 2 5, by Open MPI.
const DEALT_OUT: Placement = (7, 3, "--map-by node");

/// Without a word, and with all that there is to say.
fn on_two_levels(collective: Collective) -> Vec<Algorithm> {
    let entry = Registry::BUILT_IN.find(collective, "two-level").expect("it serves all");
    vec![entry.typical(), entry.complete()]
}

/// The first of one level.
fn on_one_level(collective: Collective) -> Vec<Algorithm> {
    let all = Registry::BUILT_IN.samples(collective).into_iter();
    all.filter(|algorithm| !algorithm.entry.shares_memory()).take(1).collect()
}

/// A job for each placement, in each of which all sets of settings have the same calls.
fn serves(mpi: Mpi, placements: &[Placement], sets: &[Settings]) {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    for (ranks, ranks_per_host, options) in placements {
        let job =
            LabJob::stock(&labs, mpi, *ranks, PROGRAM).ranks_per_host(*ranks_per_host).launched_with(options);
        let job = job.polycast().variable("CHECK_SETTINGS", &check_settings(sets));
        let output = job.limit(Duration::from_secs(600)).run().expect_ok(PROGRAM);
        for (collective, _, algorithm) in sets.iter().flatten() {
            expect_served(&output, *collective, algorithm);
        }
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn openmpi() {
    serves(
        Mpi::OpenMpi,
        &[EVEN, ONE_ALONE],
        &[&sets_of(on_two_levels)[..1], &sets_of(on_one_level)].concat(),
    );
}

#[test]
fn mpich() {
    serves(Mpi::Mpich, &[EVEN, ONE_ALONE], &sets_of(on_two_levels));
}

/// Every algorithm that is for several nodes.
mod all {
    use super::*;

    fn all() -> Vec<Settings> {
        sets_of(|collective| Registry::BUILT_IN.samples(collective))
    }

    #[test]
    #[ignore = "make test-all: minutes; some have run"]
    fn openmpi() {
        serves(Mpi::OpenMpi, &[EVEN, UNEQUAL, DEALT_OUT], &all());
    }

    #[test]
    #[ignore = "make test-all: minutes; some have run"]
    fn component() {
        serves(Mpi::OpenMpiComponent, &[UNEQUAL], &all());
    }

    #[test]
    #[ignore = "make test-all: minutes; some have run"]
    fn mpich() {
        serves(Mpi::Mpich, &[ONE_ALONE, UNEQUAL], &all());
    }
}
