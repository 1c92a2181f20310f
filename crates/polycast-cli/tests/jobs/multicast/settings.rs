//! Where multicast cannot be used, or is not wanted, trees serve; it is said once and takes no time that counts.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::cluster::{Labs, TOOL};
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LAB, LabJob, expect_multicast, expect_trees, expect_warning, lab, warnings};

/// A first broadcast that finds that multicast does not work gives up within a second or two; on a busy machine it is far from
/// this, too, and what waits for ever is not.
const MAX_SET_UP_SECONDS: f64 = 30.0;

fn job(labs: &Labs) -> LabJob<'_> {
    LabJob::stock(labs, Mpi::OpenMpi, 4, "bcast_late").arguments(&["0", "3000"]).forced(FORMS[0])
}

#[test]
fn a_blocked_host_means_trees() {
    let Some(labs) = lab(4, &["--block-multicast", "h2"]) else { return };
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let output =
            LabJob::stock(&labs, mpi, 4, "bcast_stress").arguments(&["1"]).forced(FORMS[0]).expect_ok();
        expect_trees(&output);
        expect_warning(&output, &["no multicast", "do not arrive", "polycast doctor"]);
        let seconds = output.number("FIRST", "seconds");
        if seconds > MAX_SET_UP_SECONDS {
            output.fail(&format!(
                "the first broadcast took {seconds} s, expected {MAX_SET_UP_SECONDS} s at most"
            ));
        }
        // Other communicators over the same nodes do not try again.
        let output =
            LabJob::stock(&labs, mpi, 4, "bcast_many").arguments(&["20"]).forced(FORMS[0]).expect_ok();
        assert_eq!(output.report().multicast("fallbacks"), 20, "{}", output.stderr);
        expect_warning(&output, &["do not arrive"]);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn settings_that_leave_no_multicast() {
    let Some(labs) = lab(4, &[]) else { return };
    let output = job(&labs).variable("POLYCAST_MULTICAST", "off").expect_ok();
    expect_trees(&output);
    assert!(warnings(&output).is_empty(), "it is what the user asked for: {}", output.stderr);

    for (name, value, words) in [
        ("POLYCAST_NET", "^e0", &["no multicast", "interface", "POLYCAST_NET"][..]),
        ("POLYCAST_NET", "=", &["POLYCAST_NET==", "expected", "trees serve"]),
        (
            "POLYCAST_MULTICAST",
            "sometimes",
            &[
                "POLYCAST_MULTICAST=sometimes: expected on, off, verbs, ipv4, ipv4-global or ipv6",
                "trees serve",
            ],
        ),
    ] {
        let output = job(&labs).variable(name, value).expect_ok();
        expect_trees(&output);
        expect_warning(&output, words);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn settings_that_choose_how() {
    let Some(labs) = lab(4, &[]) else { return };
    for (name, value) in
        [("POLYCAST_MULTICAST", "ipv6"), ("POLYCAST_NET", "=e0"), ("POLYCAST_NET", "^docker,lo")]
    {
        let output = job(&labs).variable(name, value).expect_ok();
        expect_multicast(&output, FORMS[0]);
        assert!(warnings(&output).is_empty(), "{name}={value}: {}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

/// Which way serves a call changes from call to call; the data is right all the same, on all ranks.
#[test]
fn jobs_compare_ways() {
    let Some(labs) = lab(4, &[]) else { return };
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = LabJob::stock(&labs, mpi, 4, "bcast_stress").arguments(&["1500"]).polycast();
        let output = job.expect_ok();
        let report = output.report();
        assert!(report.served() > 0 && report.stock() > 0, "{}", output.stderr);
        // When a trial ends is for the network's times to say.
        assert!(output.stderr.contains("to compare polycast with it"), "{}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

/// What one rank does not want is not done by any.
#[test]
fn one_rank_without_multicast() {
    let Some(labs) = lab(4, &[]) else { return };
    let program = Mpi::OpenMpi.built("bcast_late");
    let script = "[ $OMPI_COMM_WORLD_RANK = 2 ] && export POLYCAST_MULTICAST=off; exec \"$0\" 0 3000";
    let job = LabJob::of(&labs, Mpi::OpenMpi, 4, &["sh", "-c", script, &program.to_string_lossy()]);
    expect_trees(&job.forced(FORMS[0]).expect_ok());
    labs.succeeds(&["down", "--all"]);
}

/// A group from a server, given back at the end; without a server a random one.
#[test]
fn a_madcap_server_gives_the_group() {
    let Some(labs) = lab(4, &[]) else { return };
    let server = "10.77.0.1";
    let output = job(&labs).variable("POLYCAST_MADCAP", server).expect_ok();
    expect_multicast(&output, FORMS[0]);
    expect_warning(&output, &["POLYCAST_MADCAP=10.77.0.1", "a random group is used"]);

    let madcap = [TOOL, "madcap", "--listen", server, "--pool", "239.192.8.0/30"];
    let mut command = labs.command(&[&["exec", LAB, "h0", "--"], &madcap[..]].concat());
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("listening on"));
    let output = job(&labs).variable("POLYCAST_MADCAP", server).expect_ok();
    expect_multicast(&output, FORMS[0]);
    assert!(warnings(&output).is_empty(), "{}", output.stderr);
    let said = [lines.next().unwrap(), lines.next().unwrap()];
    assert!(said[0].contains("239.192.8.0 given") && said[1].contains("released; 0 in use"), "{said:?}");
    process.kill().unwrap();
    process.wait().unwrap();
    labs.succeeds(&["down", "--all"]);
}
