//! Sums of the same numbers, again and again: all ranks have the same bits, in each call those of the first; and where all sums are served, those of the tree
//! of as many ranks, whatever these run on.

use std::collections::BTreeMap;

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab, under_each_mpi};

use super::{CELLS, Case, DIRECT, MESSAGES, NAMES, Way, check_settings, expect_some_served};
use polycast_core::collective::Collective::{Allreduce, Broadcast, Reduce};
use polycast_core::collective::CombinationTree;
use polycast_core::variables::SUMS;

const SAME_BITS: Case = Case {
    program: "same_bits",
    calls: 300,
    forced_calls: 40,
    called: &[Broadcast, Reduce, Allreduce],
    ..NAMES
};

/// Doubles that the program adds up at a time.
const COUNTS: [usize; 8] = [1, 3, 64, 511, 512, 1024, 8192, 65536];

/// Up to so many doubles, both MPIs combine an allreduce of any number of ranks by recursive doubling.
const SHORT: usize = 3;

under_each_mpi!(
    what_is_forced_keeps_its_bits,
    two_ranks_have_the_same_bits,
    a_job_keeps_its_bits,
    where_all_sums_are_served_they_have_one_order,
    the_mpi_is_left_alone,
    short_sums_have_the_bits_of_the_mpi,
);

fn as_a_user_has_it(mpi: Mpi, ranks: usize) -> Output {
    let output = SAME_BITS.job(mpi, ranks, SAME_BITS.calls).polycast().run().expect_ok("same_bits");
    expect_some_served(&output);
    output
}

fn expect_no_change(output: &Output) {
    if !output.lines_of("CHANGED").is_empty() {
        output.fail("expected each call to have the bits of the first");
    }
}

/// One way serves all calls of a size, and adds in one order.
fn what_is_forced_keeps_its_bits(mpi: Mpi) {
    let ways: [Way; 3] = [CELLS, DIRECT, MESSAGES];
    expect_no_change(&bare(mpi, 4).run().expect_ok("same_bits"));
    let output = bare(mpi, 4).polycast().variable("CHECK_SETTINGS", &check_settings(&ways)).run();
    let output = output.expect_ok("same_bits");
    expect_no_change(&output);
    SAME_BITS.expect_served(&output, &ways);
}

fn bare(mpi: Mpi, ranks: usize) -> Job {
    SAME_BITS.job(mpi, ranks, SAME_BITS.forced_calls)
}

/// There is one order of two numbers.
fn two_ranks_have_the_same_bits(mpi: Mpi) {
    expect_no_change(&as_a_user_has_it(mpi, 2));
}

/// On both sides of the 257th call, with which the built-in table has other calls served.
fn a_job_keeps_its_bits(mpi: Mpi) {
    for ranks in [3, 7] {
        expect_no_change(&as_a_user_has_it(mpi, ranks));
    }
}

/// What a rank contributes at a place, as the program has it.
fn contribution(rank: u32, at: usize) -> f64 {
    let number = (u64::from(rank) * 7919 + at as u64 * 104_729) % 1_000_003;
    let size = 1.0 / 3.0 + number as f64 / 7.0;
    if rank.is_multiple_of(3) { -size } else { size }
}

/// FNV-1a over the sums that the tree of so many ranks has, one combination after the other.
fn digest(ranks: u32, count: usize) -> String {
    let tree = CombinationTree::new(ranks);
    let sums =
        (0..count).map(|at| tree.evaluate(|rank| contribution(rank.0, at), |left, right| left + right));
    let mix = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    let digest = sums.flat_map(f64::to_le_bytes).fold(14_695_981_039_346_656_037, mix);
    format!("{digest:016x}")
}

/// The digests that the program has printed, by kind and number of doubles.
fn digests(output: &Output) -> BTreeMap<(String, usize), String> {
    let read = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next()?.to_owned();
        let count = words.next()?.strip_prefix("doubles=")?.parse().ok()?;
        Some(((kind, count), words.next()?.to_owned()))
    };
    let found: BTreeMap<_, _> = output.lines_of("BITS").iter().filter_map(read).collect();
    if found.len() != 2 * COUNTS.len() {
        output.fail(&format!("expected digests of {} kinds of sums, found {found:?}", 2 * COUNTS.len()));
    }
    found
}

/// Reductions to any root and to all have the bits of the tree of so many ranks, in all calls.
fn expect_the_tree(output: &Output, ranks: usize) {
    expect_no_change(output);
    for ((kind, count), found) in digests(output) {
        let expected = digest(ranks as u32, count);
        if found != expected {
            output.fail(&format!("{kind} of {count} doubles: expected the bits {expected}, found {found}"));
        }
    }
}

fn canonical(mpi: Mpi, ranks: usize, calls: usize) -> Job {
    SAME_BITS.job(mpi, ranks, calls).polycast().variable(SUMS, "canonical").variable("CHECK_ROOTS", "1")
}

fn where_all_sums_are_served_they_have_one_order(mpi: Mpi) {
    for ranks in [3, 6] {
        let output = canonical(mpi, ranks, SAME_BITS.forced_calls).run().expect_ok("same_bits");
        expect_the_tree(&output, ranks);
        if !output.stderr.contains("polycast: report: choices sums=canonical") {
            output.fail("expected the report to say that all sums are served");
        }
    }
    // Without memory that ranks share, by messages; a way that is forced does not change the order.
    let by_messages = canonical(mpi, 5, 20).variable("POLYCAST_SHARED_MEMORY", "off");
    expect_the_tree(&by_messages.run().expect_ok("same_bits"), 5);
    let forced =
        canonical(mpi, 5, 20).variable("POLYCAST_ALLREDUCE", "ring").variable("POLYCAST_REDUCE", "stock");
    expect_the_tree(&forced.run().expect_ok("same_bits"), 5);
}

fn the_mpi_is_left_alone(mpi: Mpi) {
    let calls = 20;
    let stock = digests(&SAME_BITS.job(mpi, 2, calls).run().expect_ok("same_bits"));
    let job =
        SAME_BITS.job(mpi, 2, calls).polycast().variable(SUMS, "mpi").variable("POLYCAST_ALLREDUCE", "cells");
    let output = job.run().expect_ok("same_bits");
    assert_eq!(digests(&output), stock);
    for collective in ["reduce", "allreduce"] {
        if output.stderr.contains(&format!("polycast: report: {collective} cells")) {
            output.fail("expected no sum to be served");
        }
    }
}

/// The bare library's, whose algorithm for them is that of the tree.
fn short_sums_have_the_bits_of_the_mpi(mpi: Mpi) {
    for ranks in [3, 4, 7] {
        let output = SAME_BITS.job(mpi, ranks, 2).run().expect_ok("same_bits");
        for ((kind, count), found) in digests(&output) {
            if kind == "allreduce" && count <= SHORT && found != digest(ranks as u32, count) {
                output.fail(&format!(
                    "{count} doubles of {ranks} ranks: expected the bits of the tree, found {found}"
                ));
            }
        }
    }
}

/// A program that stops after some calls, and one that goes on, end with the same bits.
#[test]
fn a_job_that_stops_has_the_bits_of_one_that_goes_on() {
    let digests_after = |calls: usize| {
        let output = SAME_BITS.job(Mpi::OpenMpi, 3, calls).polycast().run().expect_ok("same_bits");
        expect_no_change(&output);
        digests(&output)
    };
    let all = digests_after(SAME_BITS.calls);
    for calls in [31, 33, 255, 257] {
        assert_eq!(digests_after(calls), all, "after {calls} calls");
    }
}

/// Whatever is measured, and however little memory there is.
#[test]
fn circumstances_change_no_bits() {
    let job = || SAME_BITS.job(Mpi::Mpich, 3, 60).polycast();
    for job in [
        job().variable("POLYCAST_TRIALS", "off"),
        job().variable("POLYCAST_TUNE", "2s"),
        job().variable("POLYCAST_SHARED_MEMORY", "off"),
    ] {
        expect_no_change(&job.run().expect_ok("same_bits"));
    }
    let limited = canonical(Mpi::Mpich, 3, 20).variable("POLYCAST_TUNE", "2s");
    expect_the_tree(&limited.run().expect_ok("same_bits"), 3);
}

/// Ranks of each host one after the other, by turns, and unlike many.
#[test]
fn sums_have_one_order_on_any_hosts() {
    let Some(labs) = lab(3, &[]) else { return };
    let canonical = |mpi: Mpi, ranks: usize| {
        let job = LabJob::stock(&labs, mpi, ranks, "cases/same_bits").arguments(&["5"]).polycast();
        job.variable(SUMS, "canonical").variable("CHECK_ROOTS", "1")
    };
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        expect_the_tree(&canonical(mpi, 6).ranks_per_host(2).run().expect_ok("same_bits"), 6);
        // The last host has one.
        expect_the_tree(&canonical(mpi, 7).ranks_per_host(3).run().expect_ok("same_bits"), 7);
    }
    let by_turns = canonical(Mpi::OpenMpi, 8).ranks_per_host(3).launched_with("--map-by node");
    expect_the_tree(&by_turns.run().expect_ok("same_bits"), 8);
    labs.succeeds(&["down", "--all"]);
}

mod matrix {
    use super::*;

    fn with_more_ranks(mpi: Mpi) {
        for ranks in (2..=9).chain([16, 17]) {
            let calls = if ranks < 10 { SAME_BITS.calls } else { SAME_BITS.forced_calls };
            expect_no_change(&SAME_BITS.job(mpi, ranks, calls).polycast().run().expect_ok("same_bits"));
            expect_the_tree(&canonical(mpi, ranks, 30).run().expect_ok("same_bits"), ranks);
        }
    }

    fn between_hosts(mpi: Mpi) {
        for (hosts, ranks_per_host) in [(4, 2), (4, 4), (7, 1), (5, 3)] {
            let Some(labs) = lab(hosts, &[]) else { return };
            let ranks = hosts * ranks_per_host;
            let job = |ranks: usize, calls: &str| {
                let job = LabJob::stock(&labs, mpi, ranks, "cases/same_bits").ranks_per_host(ranks_per_host);
                job.arguments(&[calls]).polycast()
            };
            expect_no_change(&job(ranks, "40").run().expect_ok("same_bits"));
            for ranks in [ranks, ranks - 1] {
                let canonical = job(ranks, "5").variable(SUMS, "canonical").variable("CHECK_ROOTS", "1");
                expect_the_tree(&canonical.run().expect_ok("same_bits"), ranks);
            }
            labs.succeeds(&["down", "--all"]);
        }
    }

    macro_rules! under {
        ($($name:ident $mpi:ident),*) => {
            $(mod $name {
                use super::*;

                #[test]
                #[ignore = "make test-all: minutes; three and seven ranks have run it"]
                fn ranks() {
                    with_more_ranks(Mpi::$mpi);
                }

                #[test]
                #[ignore = "make test-all: labs"]
                fn hosts() {
                    between_hosts(Mpi::$mpi);
                }
            })*
        };
    }

    under!(openmpi OpenMpi, mpich Mpich, component OpenMpiComponent);
}
