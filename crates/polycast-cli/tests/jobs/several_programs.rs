//! Jobs of several programs (MPMD): whatever starts them, all ranks have polycast, or none.

use std::process::Command;

use crate::cluster::TOOL;
use crate::common::job::{LIMIT, Output, place, run, timeout};
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::job::{LAB, lab};

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// The tool, with what a job on this machine needs; every broadcast is by the chain.
fn tool(words: &[&str]) -> Command {
    let mut command = timeout(LIMIT);
    command.arg(TOOL).args(words).env("POLYCAST_LIBDIR", library_directory());
    command.env("POLYCAST_BCAST", "chain").env("POLYCAST_CACHE", "off");
    command
}

fn expect_served(output: &Output) {
    if output.report().served_by("chain") != 100 {
        output.fail("expected the chain to serve rank 0's 100 broadcasts");
    }
}

#[test]
fn run_gives_polycast_to_each_program() {
    for mpi in ALL {
        let program = mpi.built("collective_mpmd");
        let program = program.to_str().unwrap();
        let words = ["run", "-n", "2", "--report", "--", program, "0", ":", "-n", "2", program, "1"];
        let third = [":", "-n", "1", program, "9"];
        let _place = place();
        expect_served(&run(tool(&[&words[..], &third].concat()), LIMIT).expect_ok("collective_mpmd"));
    }
}

/// As the help has it.
#[test]
fn the_words_before_each_program_do_it_under_the_mpis_own_launcher() {
    for mpi in ALL {
        let printed = tool(&["run", "--print-env", "--report"]).output().unwrap();
        let words = String::from_utf8(printed.stdout).unwrap();
        let program = mpi.built("collective_mpmd");
        let with_words = |part: &str| {
            let words = ["env"].into_iter().chain(words.split_whitespace());
            words.map(str::to_owned).chain([program.to_str().unwrap().to_owned(), part.to_owned()])
        };
        let mut command = timeout(LIMIT);
        mpi.mpiexec(&mut command, 2);
        command.args(with_words("0")).args([":", "-n", "2"]).args(with_words("1"));
        let _place = place();
        expect_served(&run(command, LIMIT).expect_ok("collective_mpmd"));
    }
}

#[test]
fn programs_on_several_hosts_have_it_too() {
    let Some(labs) = lab(4, &[]) else { return };
    // Under MPICH 4.0 some of these jobs stand in its MPI_Finalize, over hosts, also without polycast (3 of 10).
    let program = Mpi::OpenMpi.built("collective_mpmd");
    let program = program.to_str().unwrap();
    let words = ["lab", "run", "--lab", LAB, "-n", "2", "--polycast", "--env", "POLYCAST_REPORT=1", "--"];
    let mut command = tool(&[&words[..], &[program, "0", ":", "-n", "2", program, "1"]].concat());
    let _place = place();
    command.env("POLYCAST_LAB_DIRECTORY", labs.directory());
    expect_served(&run(command, LIMIT).expect_ok("collective_mpmd"));
}
