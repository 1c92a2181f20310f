//! Calls in which something is wrong to one rank alone, and calls of different sizes: no rank leaves a served call alone, and none waits for ever.

use std::fs;

use polycast_core::collective::Collective;

use crate::common::job::{Job, OUT_OF_TIME, Output, end, place, wait_for};
use crate::common::mpi::Mpi;
use crate::job::{CELLS, MESSAGES, by, under_each_mpi};

under_each_mpi!(
    each_argument_is_wrong_on_each_rank,
    contributions_are_made_in_ones_own_way,
    one_buffer_ends_as_without_polycast,
    who_has_room_for_what_comes_goes_on,
    sizes_that_do_not_fit_are_named,
    who_waits_for_another_size_names_call_and_size,
    short_sizes_are_one_to_trials,
);

/// By cells, by each other's memory, by messages.
const WAYS: [[&str; 8]; 3] =
    [CELLS, ["chain", "direct", "direct", "direct", "direct", "dissemination", "direct", "direct"], MESSAGES];

/// Served by what the table says, without trials, which may find that the MPI is faster.
fn by_table(job: Job) -> Job {
    job.polycast().variable("POLYCAST_TRIALS", "off")
}

fn expect_served(output: &Output, collective: Collective, algorithm: &str) {
    if !output.stderr.contains(&format!("polycast: report: {collective} {algorithm} calls=")) {
        output.fail(&format!("{algorithm} served no {collective}"));
    }
}

/// Open MPI itself looks at arguments before its component is asked, and its rank is gone then.
fn each_argument_is_wrong_on_each_rank(mpi: Mpi) {
    let job = |before: &str| Job::stock(mpi, 3, "collective_wrong").arguments(&[before]);
    if mpi.component().is_some() {
        return;
    }
    for way in &WAYS {
        for before in ["0", "2"] {
            let output = by(job(before), way).run().expect_ok("collective_wrong");
            for collective in Collective::ALL.into_iter().filter(|of| *of != Collective::Barrier) {
                expect_served(&output, collective, way[collective as usize]);
            }
        }
    }
    for before in ["256", "300"] {
        let output = by_table(job(before)).run().expect_ok("collective_wrong");
        expect_served(&output, Collective::Allgather, "cells");
    }
}

fn contributions_are_made_in_ones_own_way(mpi: Mpi) {
    let job = |how| Job::stock(mpi, 3, "collective_contributions").arguments(&[how]);
    for how in ["empty", "once"] {
        job(how).run().expect_ok("collective_contributions");
        let output = by_table(job(how)).run().expect_ok("collective_contributions");
        expect_served(&output, Collective::Allgather, "cells");
        by(job(how), &WAYS[0]).run().expect_ok("collective_contributions");
        job(how).unwatched().run().expect_ok("collective_contributions");
    }
    for how in ["alias", "null"] {
        let (status, output) = by(job(how), &WAYS[0]).finish();
        let is_tolerated = mpi != Mpi::Mpich && how == "null";
        if status.success() != is_tolerated || status.code() == Some(OUT_OF_TIME) {
            output.fail(&format!("{how} ends with {status}"));
        }
        // The MPI's own words, if Open MPI's daemon does not lose them on their way.
        let said = output.stderr.clone() + &output.stdout;
        if !is_tolerated && !said.contains("MPI_Reduce") && !said.contains("show_help.c") {
            output.fail(&format!("{how}: MPI_Reduce is not named"));
        }
    }
    if mpi == Mpi::OpenMpi {
        let tolerant = || job("alias").variable("OMPI_MCA_mpi_param_check", "0");
        tolerant().run().expect_ok("collective_contributions");
        let output = by_table(tolerant()).run().expect_ok("collective_contributions");
        expect_served(&output, Collective::Reduce, "cells");
        // As in place: Open MPI's own result is something else.
        assert_eq!(output.lines_of("LAST"), [format!("LAST {}", 599 + 600 + 601)]);
    }
}

fn sorted(output: &Output) -> Vec<&str> {
    let mut lines = output.lines_of("RANK");
    lines.sort_unstable();
    lines
}

fn one_buffer_ends_as_without_polycast(mpi: Mpi) {
    if mpi.component().is_some() {
        return;
    }
    let mut cases = vec![("r", Collective::Reduce)];
    // The others wait for a rank that MPICH has refused, and of Open MPI the results are defined.
    if mpi == Mpi::OpenMpi {
        cases.extend([("g", Collective::Gather), ("l", Collective::Allgather)]);
    }
    for (name, collective) in cases {
        let job = |calls| Job::stock(mpi, 2, "collective_same_buffer").arguments(&[name, "10", calls]);
        let stock = job("400").run().expect_ok("collective_same_buffer");
        for way in &WAYS {
            let output = by(job("400"), way).run().expect_ok("collective_same_buffer");
            assert_eq!(sorted(&output), sorted(&stock), "{name} by {way:?}");
            expect_served(&output, collective, way[collective as usize]);
        }
        let output = by_table(job("400")).run().expect_ok("collective_same_buffer");
        assert_eq!(sorted(&output), sorted(&stock), "{name}");
        expect_served(&output, collective, "cells");
    }
}

const MISMATCHES: [(&str, Collective); 5] = [
    ("gather", Collective::Gather),
    ("allgather", Collective::Allgather),
    ("to-all", Collective::Alltoall),
    ("scatter", Collective::Scatter),
    ("bcast", Collective::Broadcast),
];

/// A little more room, another number of segments, of one rank alone.
const ROOMS: [&[&str]; 4] = [&["1", "2"], &["1000", "3000"], &["300", "301", "2"], &["5000", "9000", "1"]];

fn who_has_room_for_what_comes_goes_on(mpi: Mpi) {
    for (name, collective) in MISMATCHES {
        let is_of_each_rank = matches!(collective, Collective::Allgather | Collective::Alltoall);
        if mpi.component().is_some() && collective == Collective::Alltoall {
            // Open MPI compares a rank's two sizes itself, before its component is asked.
            continue;
        }
        for rooms in if is_of_each_rank { &ROOMS[..1] } else { &ROOMS } {
            let rooms = match (collective, *rooms) {
                (Collective::Gather, [sent, room, _]) => vec![*sent, *room, "0"],
                (_, rooms) => rooms.to_vec(),
            };
            let job = || Job::stock(mpi, 4, "collective_mismatch").arguments(&[&[name], &rooms[..]].concat());
            let is_short = rooms[0].len() < 4;
            for way in WAYS.iter().filter(|way| is_short || way[0] != "cells") {
                let output = by(job(), way).run().expect_ok("collective_mismatch");
                expect_served(&output, collective, way[collective as usize]);
            }
        }
        // What MPICH itself does with the first calls is right for some of them only.
        if mpi == Mpi::OpenMpi && !is_of_each_rank {
            let output = by_table(Job::stock(mpi, 3, "collective_mismatch").arguments(&[name]));
            expect_served(&output.run().expect_ok("collective_mismatch"), collective, "cells");
        }
    }
}

fn sizes_that_do_not_fit_are_named(mpi: Mpi) {
    for (name, collective) in MISMATCHES {
        if matches!(collective, Collective::Allgather | Collective::Alltoall) {
            continue;
        }
        for way in &WAYS[1..] {
            let job = Job::stock(mpi, 3, "collective_mismatch").arguments(&[name, "2", "1"]);
            let (status, output) = by(job, way).finish();
            let function = collective.function();
            for word in [function.as_str(), "blocks of 8 bytes", "blocks of 4 bytes", "POLYCAST=off"] {
                if status.success() || status.code() == Some(OUT_OF_TIME) || !output.stderr.contains(word) {
                    output.fail(&format!("{name}: expected {word}, and an error; {status}"));
                }
            }
        }
    }
}

/// Of 400 and 800 bytes only the longer are served from the fifth call on. Who waits for that says so, in the first call that is served, in which ranks
/// agree on a number before it.
fn who_waits_for_another_size_names_call_and_size(mpi: Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let (table, said) = (folder.path().join("table.toml"), folder.path().join("said"));
    let rule = "[[rule]]\ncollective = \"gather\"\nearlier_calls = \"4..\"\n";
    let rules = format!("version = 1\n{rule}bytes = \"500..\"\nuse = \"binomial\"\n{rule}use = \"stock\"\n");
    fs::write(&table, rules).unwrap();
    let script = "exec \"$0\" gather 100 200 2>> \"$1\"";
    let program = mpi.built("collective_mismatch").into();
    let command = vec!["sh".into(), "-c".into(), script.into(), program, said.clone().into()];
    let job = Job::of(mpi, 3, command).polycast().variable("POLYCAST_TEST_PATIENCE", "1");
    let job = job.variable("POLYCAST_TABLE", table.to_str().unwrap()).variable("POLYCAST_TRIALS", "off");
    let _place = place();
    let mut job = job.start();
    let words =
        ["MPI_Gather: rank 0", "blocks of 800 bytes", "has waited for other ranks for 1 s", "POLYCAST=off"];
    let read = || fs::read_to_string(&said).unwrap_or_default();
    let is_seen =
        wait_for(&mut job, || read().lines().any(|line| words.iter().all(|words| line.contains(words))));
    if is_seen {
        end(&mut job);
    }
    assert!(is_seen, "expected {words:?}: {}", read());
}

/// Ranks that call with 4 and with 8 bytes judge the same trials before the same calls, in a job that finds something and in those that know it.
/// MPICH itself refuses such broadcasts.
fn short_sizes_are_one_to_trials(mpi: Mpi) {
    if mpi != Mpi::OpenMpi {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let job = Job::stock(mpi, 3, "collective_mismatch").arguments(&["bcast"]).polycast();
        job.variable("POLYCAST_CACHE", cache.path().to_str().unwrap()).run().expect_ok("collective_mismatch");
    }
}
