//! The programs of `tests/cases`, after what users of MPI and of preloaded libraries have reported. Each runs on the bare library, which shows that the
//! program is right, behind polycast with nothing forced, for more calls than the built-in table leaves to the MPI, and with each collective forced to cells,
//! to direct copies and to messages; and polycast must have served calls.

use polycast_core::collective::Collective::{
    self, Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter,
};
use polycast_core::variables::FORCED;

use crate::cluster::Labs;
use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab, under_each_mpi};

mod addresses;
mod apart;
mod bits;
mod preloaded;
mod processes;

/// A program with how often it is to make its calls.
struct Case {
    program: &'static str,
    /// Before the number of calls.
    arguments: &'static [&'static str],
    /// Of a job in which nothing is forced: enough that one communicator has 257 calls of a collective.
    calls: usize,
    /// With each set of forced algorithms.
    forced_calls: usize,
    /// The collectives that it calls.
    called: &'static [Collective],
}

const IN_PLACE: Case = Case {
    program: "in_place",
    arguments: &[],
    calls: 270,
    forced_calls: 30,
    called: &[Scatter, Gather, Allgather, Alltoall, Reduce, Allreduce],
};
const VALUES: Case = Case {
    program: "values",
    arguments: &[],
    calls: 20,
    forced_calls: 4,
    // Its reductions to a root are of pairs, which are the MPI's.
    called: &[Broadcast, Allreduce],
};
const INTERLEAVED: Case = Case {
    program: "interleaved",
    arguments: &[],
    calls: 270,
    forced_calls: 20,
    called: &[Broadcast, Scatter, Gather, Allgather, Alltoall],
};
const ALARM: Case = Case {
    program: "signals",
    arguments: &["alarm"],
    calls: 270,
    forced_calls: 60,
    called: &[Broadcast, Allreduce],
};
const PROFILER: Case = Case { arguments: &["prof"], ..ALARM };
const GUARDS: Case = Case {
    program: "guards",
    arguments: &[],
    calls: 12,
    forced_calls: 2,
    called: &[Broadcast, Scatter, Gather, Allgather, Alltoall, Reduce, Allreduce],
};
const NAMES: Case =
    Case { program: "names", arguments: &[], calls: 270, forced_calls: 60, called: &[Broadcast, Allreduce] };
const SIZES: Case = Case { program: "sizes", forced_calls: 50, ..NAMES };

/// What collectives are served by. Not every way has all of them.
type Way = &'static [(Collective, &'static str)];

const CELLS: Way = &[
    (Broadcast, "cells"),
    (Scatter, "cells"),
    (Gather, "cells"),
    (Allgather, "cells"),
    (Alltoall, "cells"),
    (Barrier, "cells"),
    (Reduce, "cells"),
    (Allreduce, "cells"),
];
const DIRECT: Way = &[
    (Scatter, "direct"),
    (Gather, "direct"),
    (Allgather, "direct"),
    (Alltoall, "direct"),
    (Reduce, "direct"),
    (Allreduce, "direct"),
];
const MESSAGES: Way = &[
    (Broadcast, "chain:segment=1KiB"),
    (Scatter, "binomial"),
    (Gather, "binomial"),
    (Allgather, "ring"),
    (Alltoall, "pairwise"),
    (Barrier, "dissemination"),
    (Reduce, "chain"),
    (Allreduce, "recursive-doubling"),
];
const MULTICAST: Way = &[(Broadcast, "multicast-pull")];

/// The ways of one node.
const NODE: [Way; 3] = [CELLS, DIRECT, MESSAGES];
/// Those between hosts.
const HOSTS: [Way; 2] = [MESSAGES, MULTICAST];

under_each_mpi!(in_place, values, interleaved, alarms, guards, names);

fn in_place(mpi: Mpi) {
    IN_PLACE.conforms(mpi, 3);
}

fn values(mpi: Mpi) {
    VALUES.conforms(mpi, 3);
}

fn interleaved(mpi: Mpi) {
    INTERLEAVED.conforms(mpi, 3);
}

fn alarms(mpi: Mpi) {
    ALARM.conforms(mpi, 3);
}

fn guards(mpi: Mpi) {
    GUARDS.conforms(mpi, 3);
}

fn names(mpi: Mpi) {
    NAMES.conforms(mpi, 3);
}

/// What `CHECK_SETTINGS` is to be for a program that makes its calls in each of these ways.
fn check_settings(ways: &[Way]) -> String {
    let written = |way: &Way| {
        let settings = way.iter().map(|(collective, algorithm)| {
            let place = Collective::ALL.iter().position(|one| one == collective).unwrap();
            format!("{}={algorithm}", FORCED[place])
        });
        settings.collect::<Vec<_>>().join(" ")
    };
    ways.iter().map(written).collect::<Vec<_>>().join(";")
}

/// Calls that polycast served, by whatever.
fn served(output: &Output) -> u64 {
    let of_line = |line: &str| -> Option<u64> {
        let mut words = line.strip_prefix("polycast: report: ")?.split_whitespace();
        Collective::named(words.next()?)?;
        if words.next()? == "stock" {
            return None;
        }
        words.find_map(|word| word.strip_prefix("calls=")?.parse().ok())
    };
    output.stderr.lines().filter_map(of_line).sum()
}

fn expect_some_served(output: &Output) {
    if served(output) == 0 {
        output.fail("expected calls that polycast served");
    }
}

impl Case {
    fn expect_served(&self, output: &Output, ways: &[Way]) {
        let settings = ways.iter().copied().flatten();
        for (collective, algorithm) in settings.filter(|(of, _)| self.called.contains(of)) {
            if !output.stderr.contains(&format!("polycast: report: {collective} {algorithm} calls=")) {
                output.fail(&format!("{algorithm} served no {collective}"));
            }
        }
    }

    fn job(&self, mpi: Mpi, ranks: usize, calls: usize) -> Job {
        let job = Job::stock(mpi, ranks, &format!("cases/{}", self.program));
        job.arguments(self.arguments).arguments(&[&calls.to_string()])
    }

    /// On this machine.
    fn conforms(&self, mpi: Mpi, ranks: usize) {
        self.job(mpi, ranks, self.forced_calls).run().expect_ok(self.program);
        let output = self.job(mpi, ranks, self.calls).polycast().run().expect_ok(self.program);
        expect_some_served(&output);
        let forced = self.job(mpi, ranks, self.forced_calls).polycast();
        let output = forced.variable("CHECK_SETTINGS", &check_settings(&NODE)).run().expect_ok(self.program);
        self.expect_served(&output, &NODE);
    }

    /// As users have it: calls that are the MPI's are not looked at.
    fn ends_well_unwatched(&self, mpi: Mpi, ranks: usize) {
        self.job(mpi, ranks, self.calls).unwatched().run().expect_ok(self.program);
    }

    /// Between the hosts of a lab, where the built-in table may leave all calls of a program to the MPI.
    fn conforms_in(&self, labs: &Labs, mpi: Mpi, hosts: usize, ranks_per_host: usize) {
        let job = |calls: usize| {
            let job = LabJob::stock(labs, mpi, hosts * ranks_per_host, &format!("cases/{}", self.program));
            let job = job.ranks_per_host(ranks_per_host);
            job.arguments(self.arguments).arguments(&[&calls.to_string()])
        };
        job(self.forced_calls).run().expect_ok(self.program);
        job(self.calls).polycast().run().expect_ok(self.program);
        let forced = job(self.forced_calls).polycast().variable("CHECK_SETTINGS", &check_settings(&HOSTS));
        let output = forced.run().expect_ok(self.program);
        self.expect_served(&output, &HOSTS);
    }
}

/// More ranks, and hosts of labs.
mod matrix {
    use super::*;

    const RANKS: [usize; 4] = [2, 4, 5, 7];

    fn on_more_ranks(case: &Case, mpi: Mpi) {
        for ranks in RANKS {
            case.conforms(mpi, ranks);
            case.ends_well_unwatched(mpi, ranks);
        }
    }

    fn between_hosts(case: &Case, mpi: Mpi, further: &[&str]) {
        for (hosts, ranks_per_host) in [(3, 2), (4, 1)] {
            let Some(labs) = lab(hosts, further) else { return };
            case.conforms_in(&labs, mpi, hosts, ranks_per_host);
            labs.succeeds(&["down", "--all"]);
        }
    }

    macro_rules! of_each_case {
        ($($name:ident $case:expr, $further:expr;)*) => {
            $(mod $name {
                use super::*;

                #[test]
                #[ignore = "make test-all: minutes; three ranks have run it"]
                fn openmpi_ranks() {
                    on_more_ranks(&$case, Mpi::OpenMpi);
                }
                #[test]
                #[ignore = "make test-all: minutes; three ranks have run it"]
                fn mpich_ranks() {
                    on_more_ranks(&$case, Mpi::Mpich);
                }
                #[test]
                #[ignore = "make test-all: labs"]
                fn openmpi_hosts() {
                    between_hosts(&$case, Mpi::OpenMpi, $further);
                }
                #[test]
                #[ignore = "make test-all: labs"]
                fn mpich_hosts() {
                    between_hosts(&$case, Mpi::Mpich, $further);
                }
            })*
        };
    }

    of_each_case!(
        in_place IN_PLACE, &[];
        values VALUES, &[];
        interleaved INTERLEAVED, &[];
        alarms ALARM, &[];
        alarms_amid_loss ALARM, &["--loss", "1%"];
        profilers PROFILER, &[];
        guards GUARDS, &[];
        names NAMES, &[];
        sizes SIZES, &[];
    );
}

/// Multicast while a timer interrupts whatever waits: the one that waits most.
#[test]
fn alarms_between_hosts() {
    let Some(labs) = lab(3, &[]) else { return };
    let job = LabJob::stock(&labs, Mpi::OpenMpi, 3, "cases/signals").arguments(&["alarm", "60"]);
    let output = job.forced("multicast-pull").run().expect_ok("signals");
    ALARM.expect_served(&output, &[MULTICAST]);
    if output.stderr.contains("Interrupted system call") {
        output.fail("expected that nothing fails for a signal");
    }
    labs.succeeds(&["down", "--all"]);
}
