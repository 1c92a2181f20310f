//! The collectives beside `MPI_Bcast` behind polycast keep MPI's promises: each program of `tests/mpi` runs on the bare library, which
//! shows that the program is right, and behind polycast with every algorithm, which must have served it.

use std::time::Duration;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::Collective;
use polycast_core::variables::FORCED;

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::under_each_mpi;

mod nodes;

under_each_mpi!(
    collective_values,
    collective_errors,
    collective_alone,
    collective_empty,
    collective_windows,
    collective_going,
    collective_waiting,
    collective_early,
    collective_records,
    collective_limited,
    collective_refused,
    collective_memory,
    collective_lengths,
    collective_mpifh,
    collective_usempi,
    collective_f08,
    collective_mpi4py,
    collective_growth,
    a_table_turns_them_on,
    without_a_word_first_calls_are_the_mpis,
);

/// Each but the broadcast.
fn collectives() -> impl Iterator<Item = (Collective, &'static str)> {
    Collective::ALL.into_iter().zip(FORCED).skip(1)
}

/// What each collective but the broadcast is served by, and the variables that say so.
type Settings = Vec<(Collective, &'static str, String)>;

/// Every algorithm of every collective: in the set of settings at a place each collective has another one.
fn sets() -> Vec<Settings> {
    sets_of(|collective| {
        let anywhere = Registry::BUILT_IN.samples(collective).into_iter();
        anywhere.chain(Registry::BUILT_IN.samples_on_one_node(collective)).collect()
    })
}

/// The same of these algorithms.
fn sets_of(algorithms: impl Fn(Collective) -> Vec<Algorithm>) -> Vec<Settings> {
    let of = |collective| -> Vec<String> { algorithms(collective).iter().map(ToString::to_string).collect() };
    let count = collectives().map(|(collective, _)| of(collective).len()).max().unwrap();
    let set = |place: usize| {
        let setting = |(collective, variable)| {
            let all = of(collective);
            (collective, variable, all[place % all.len()].clone())
        };
        collectives().map(setting).collect()
    };
    (0..count).map(set).collect()
}

fn expect_served(output: &Output, collective: Collective, algorithm: &str) {
    let line = format!("polycast: report: {collective} {algorithm} calls=");
    if !output.stderr.contains(&line) {
        output.fail(&format!("{algorithm} served no {collective}"));
    }
}

/// All settings of a set, by the environment.
fn set(job: Job, settings: &Settings) -> Job {
    settings.iter().fold(job.polycast(), |job, (_, variable, value)| job.variable(variable, value))
}

/// On the bare library, and behind polycast with the first algorithm of each collective.
fn conforms(program: &str, job: impl Fn() -> Job, called: &[Collective]) {
    job().run().expect_ok(program);
    job().unwatched().run().expect_ok(program);
    let settings = &sets()[0];
    let output = set(job(), settings).run().expect_ok(program);
    for (collective, _, algorithm) in settings.iter().filter(|(of, ..)| called.contains(of)) {
        expect_served(&output, *collective, algorithm);
    }
}

/// For programs that make the same calls with each set of settings.
fn check_settings(sets: &[Settings]) -> String {
    let written = |set: &Settings| {
        set.iter().map(|(_, variable, value)| format!("{variable}={value}")).collect::<Vec<_>>().join(" ")
    };
    sets.iter().map(written).collect::<Vec<_>>().join(";")
}

fn collective_values(mpi: Mpi) {
    let sets = sets();
    let all = check_settings(&sets);
    for (ranks, seed) in [(5, "1"), (4, "2"), (2, "3")] {
        let job = || Job::stock(mpi, ranks, "collective_values").arguments(&[seed]);
        job().run().expect_ok("collective_values");
        let output = job().polycast().variable("CHECK_SETTINGS", &all).run().expect_ok("collective_values");
        for (collective, _, algorithm) in sets.iter().flatten() {
            expect_served(&output, *collective, algorithm);
        }
    }
}

/// A caller sees the same error classes, and its handler is called as often.
fn collective_errors(mpi: Mpi) {
    let job = || Job::stock(mpi, 3, "collective_errors");
    let stock = job().run().expect_ok("collective_errors");
    let output = set(job(), &sets()[0]).run().expect_ok("collective_errors");
    assert_eq!(output.lines_of("ERR"), stock.lines_of("ERR"), "{}", mpi.name());
    expect_served(&output, Collective::Allreduce, &sets()[0][6].2);
}

/// What one rank alone is refused counts on no rank, neither on communicators of whose calls all are left so far. Without a report: with one each call is
/// looked at.
fn collective_alone(mpi: Mpi) {
    let table = tempfile::NamedTempFile::new().unwrap();
    let rule = |of: &str, choice: &str| {
        format!("[[rule]]\ncollective = '{of}'\nearlier_calls = '100..'\nuse = '{choice}'\n")
    };
    let rules = rule("bcast", "chain") + &rule("allreduce", "recursive-doubling");
    std::fs::write(table.path(), format!("version = 1\n{rules}")).unwrap();
    for (ranks, report) in [(2, "off"), (3, "off"), (2, "on")] {
        let job = Job::stock(mpi, ranks, "collective_alone");
        let job = job.unwatched().variable("POLYCAST_REPORT", report);
        let job = job.variable("POLYCAST_TABLE", table.path().to_str().unwrap());
        job.run().expect_ok("collective_alone");
    }
}

fn as_users_have_it(mpi: Mpi, program: &str) {
    for ranks in [2, 3] {
        let job = Job::stock(mpi, ranks, program);
        job.unwatched().run().expect_ok(program);
    }
}

fn collective_empty(mpi: Mpi) {
    as_users_have_it(mpi, "collective_empty");
}

fn collective_windows(mpi: Mpi) {
    as_users_have_it(mpi, "collective_windows");
}

fn collective_going(mpi: Mpi) {
    as_users_have_it(mpi, "collective_going");
    let job = Job::stock(mpi, 3, "collective_going").arguments(&["pmpi"]);
    job.unwatched().run().expect_ok("collective_going");
}

fn collective_waiting(mpi: Mpi) {
    as_users_have_it(mpi, "collective_waiting");
}

/// Long calls go on where ranks may not read each other's memory any more, and who is refused says so.
fn collective_refused(mpi: Mpi) {
    let mut job = Job::stock(mpi, 3, "collective_refused").polycast();
    // The first two: the MPI itself must do without.
    for (name, value) in [
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
        ("UCX_TLS", "posix,sysv,self,tcp"),
        ("POLYCAST_TRIALS", "off"),
        ("POLYCAST_BCAST", "two-level"),
        ("POLYCAST_ALLGATHER", "direct"),
        ("POLYCAST_ALLREDUCE", "direct"),
    ] {
        job = job.variable(name, value);
    }
    let output = job.run().expect_ok("collective_refused");
    expect_served(&output, Collective::Allgather, "direct");
    expect_served(&output, Collective::Allreduce, "direct");
    if !output.stderr.contains("now refuses it") {
        output.fail("expected that somebody was refused");
    }
}

fn collective_early(mpi: Mpi) {
    // MPICH's own reduction has all ranks wait for all above 2 KiB.
    let bytes: &[&str] =
        if mpi == Mpi::OpenMpi { &["8", "1000", "2048", "3000"] } else { &["8", "1000", "2048"] };
    let job = Job::stock(mpi, 4, "collective_early").arguments(bytes);
    // Where calls take long, as on a busy machine, trials add up times every 64 calls, for which all ranks wait for all.
    let job = job.polycast().variable("POLYCAST_TRIALS", "off");
    job.run().expect_ok("collective_early");
}

fn collective_records(mpi: Mpi) {
    as_users_have_it(mpi, "collective_records");
}

fn collective_limited(mpi: Mpi) {
    as_users_have_it(mpi, "collective_limited");
}

/// On two ranks, of which more is served than of others.
fn collective_memory(mpi: Mpi) {
    let job = Job::stock(mpi, 2, "collective_memory").polycast();
    let output = job.run().expect_ok("collective_memory");
    assert!(
        output.stderr.contains("the memory of a rank is limited"),
        "expected long calls to be left for it, found\n{}",
        output.stderr
    );
}

/// Also where what is handed in has no bytes at all.
fn collective_lengths(mpi: Mpi) {
    let job = Job::stock(mpi, 3, "collective_lengths").polycast().variable("POLYCAST_ALLGATHER", "ring");
    // Open MPI compares the two sizes of a rank's all-to-all itself, before its component is asked.
    let is_asked = mpi.component().is_none();
    let job = if is_asked { job } else { job.arguments(&["allgather"]) };
    let output = job.variable("POLYCAST_ALLTOALL", "pairwise").run().expect_ok("collective_lengths");
    expect_served(&output, Collective::Allgather, "ring");
    if is_asked {
        expect_served(&output, Collective::Alltoall, "pairwise");
    }
}

fn collective_mpifh(mpi: Mpi) {
    conforms("collective_mpifh", || Job::stock(mpi, 4, "collective_mpifh"), &Collective::ALL);
}

fn collective_usempi(mpi: Mpi) {
    all_eight(mpi, "collective_usempi");
}

fn collective_f08(mpi: Mpi) {
    all_eight(mpi, "collective_f08");
}

/// For programs that call all of them, the broadcast too.
fn all_eight(mpi: Mpi, program: &str) {
    let job = || Job::stock(mpi, 4, program);
    conforms(program, || job().variable("POLYCAST_BCAST", "chain"), &Collective::ALL);
    let output = job().polycast().variable("POLYCAST_BCAST", "chain").run().expect_ok(program);
    expect_served(&output, Collective::Broadcast, "chain");
}

fn collective_mpi4py(mpi: Mpi) {
    let python = match mpi.python_with_mpi4py() {
        Ok(python) => python,
        Err(reason) => return cannot_run(&reason),
    };
    let script = checkout().join("tests/mpi/collective_mpi4py.py");
    let job = || Job::of(mpi, 3, vec![python.clone().into(), script.clone().into()]);
    conforms("collective_mpi4py", job, &[Collective::Allreduce, Collective::Alltoall, Collective::Gather]);
}

/// Communicators that come and go leave nothing behind: served by cells, whose segments are pooled, and left to the MPI.
fn collective_growth(mpi: Mpi) {
    communicators(mpi, 3_000);
}

mod ten_thousand_communicators {
    use super::{Mpi, communicators};

    #[test]
    #[ignore = "make test-all: a minute; 3,000 of them have run"]
    fn openmpi() {
        communicators(Mpi::OpenMpi, 10_000);
    }

    #[test]
    #[ignore = "make test-all: a minute; 3,000 of them have run"]
    fn mpich() {
        communicators(Mpi::Mpich, 10_000);
    }
}

/// So many, one after the other: the program holds what it has after half of them against the end, whatever their number.
fn communicators(mpi: Mpi, count: usize) {
    // MPICH's ranks do not sleep: more of them than processors take turns.
    let ranks = if mpi == Mpi::Mpich { 2 } else { 4 };
    let job = || Job::stock(mpi, ranks, "collective_growth").arguments(&[&count.to_string()]);
    job().unwatched().run().expect_ok("collective_growth");
    let cells = FORCED.iter().zip(Collective::ALL);
    let cells = cells.filter(|(_, of)| {
        Registry::BUILT_IN.samples_on_one_node(*of).iter().any(|a| a.to_string() == "cells")
    });
    let output = cells.fold(job().polycast(), |job, (name, _)| job.variable(name, "cells"));
    let output = output.run().expect_ok("collective_growth");
    for of in [Collective::Broadcast, Collective::Allgather, Collective::Allreduce, Collective::Barrier] {
        expect_served(&output, of, "cells");
    }
}

fn a_table_turns_them_on(mpi: Mpi) {
    let table = tempfile::NamedTempFile::new().unwrap();
    let rule = "[[rule]]\ncollective = 'allreduce'\nbytes = '1000..4000'\nuse = 'recursive-doubling'\n";
    std::fs::write(table.path(), format!("version = 1\n{rule}")).unwrap();
    let job = Job::stock(mpi, 4, "collective_values").polycast();
    let output = job.variable("POLYCAST_TABLE", table.path().to_str().unwrap()).run();
    let output = output.expect_ok("collective_values");
    expect_served(&output, Collective::Allreduce, "recursive-doubling");
    expect_served(&output, Collective::Allreduce, "stock");
    expect_served(&output, Collective::Gather, "stock");
}

fn without_a_word_first_calls_are_the_mpis(mpi: Mpi) {
    Job::stock(mpi, 4, "collective_values").unwatched().run().expect_ok("collective_values");
    let output = Job::stock(mpi, 4, "collective_values").polycast().run().expect_ok("collective_values");
    for (collective, _) in collectives() {
        expect_served(&output, collective, "stock");
    }
    // The built-in table has long ones served from the 33rd on, and trials begin with what it says.
    expect_served(&output, Collective::Allgather, "direct");
    expect_served(&output, Collective::Allreduce, "direct");
    assert!(!output.stderr.contains("no rule of"), "{}", output.stderr);
}

mod collective_large {
    use super::*;

    /// Open MPI's and MPICH's own are no part of it: some of them count bytes by an int.
    fn large(mpi: Mpi) {
        let sets = [
            [
                ("scatter", "flat"),
                ("gather", "flat"),
                ("allgather", "ring"),
                ("alltoall", "pairwise"),
                ("reduce", "chain:segment=1MiB"),
                ("allreduce", "ring"),
            ],
            [
                ("scatter", "contention-free-chain:segment=1MiB"),
                ("gather", "contention-free-chain:segment=1MiB"),
                ("allgather", "bruck"),
                ("alltoall", "linear"),
                ("reduce", "contention-free-chain"),
                ("allreduce", "halving-doubling"),
            ],
        ];
        for set in sets {
            let job = Job::stock(mpi, 2, "collective_large").limit(Duration::from_secs(1800)).polycast();
            let variable = |of: &str| format!("POLYCAST_{}", of.to_uppercase());
            let job = set.iter().fold(job, |job, (of, algorithm)| job.variable(&variable(of), algorithm));
            let output = job.run().expect_ok("collective_large");
            for (of, algorithm) in set {
                expect_served(&output, Collective::named(of).unwrap(), algorithm);
            }
        }
    }

    #[test]
    #[ignore = "make test-all: minutes, and 10 GB of memory"]
    fn openmpi() {
        large(Mpi::OpenMpi);
    }

    #[test]
    #[ignore = "make test-all: minutes, and 10 GB of memory"]
    fn mpich() {
        large(Mpi::Mpich);
    }
}
