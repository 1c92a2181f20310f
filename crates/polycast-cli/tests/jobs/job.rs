//! A job across the hosts of a lab.
#![allow(dead_code, unused_macros, reason = "each test binary uses its part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use polycast_core::variables::FORCED;

use crate::cluster::{Labs, TOOL};
use crate::common::ending;
use crate::common::job::{Job, LIMIT, Output, finish, place, timeout};
use crate::common::mpi::Mpi;
use crate::common::report::Report;

/// One test per MPI library for each function, so that a failure has both names.
macro_rules! under_each_mpi {
    ($($program:ident),* $(,)?) => {
        $(mod $program {
            #[test]
            fn openmpi() {
                super::$program(crate::common::mpi::Mpi::OpenMpi);
            }
            #[test]
            fn mpich() {
                super::$program(crate::common::mpi::Mpi::Mpich);
            }
            #[test]
            #[ignore = "make test-all: preloaded it has run; the component's own way is tested by component.rs"]
            fn component() {
                super::$program(crate::common::mpi::Mpi::OpenMpiComponent);
            }
        })*
    };
}

/// For programs whose way through polycast is the same under both: `make test` runs each under one.
macro_rules! under_one_mpi {
    (@ $program:ident, $usual:ident $usual_mpi:ident, $other:ident $other_mpi:ident) => {
        mod $program {
            #[test]
            fn $usual() {
                super::$program(crate::common::mpi::Mpi::$usual_mpi);
            }
            #[test]
            #[ignore = "make test-all: the other MPI has run it"]
            fn $other() {
                super::$program(crate::common::mpi::Mpi::$other_mpi);
            }
        }
    };
    (openmpi: $($first:ident),*; mpich: $($second:ident),* $(;)?) => {
        $(under_one_mpi!(@ $first, openmpi OpenMpi, mpich Mpich);)*
        $(under_one_mpi!(@ $second, mpich Mpich, openmpi OpenMpi);)*
    };
}

#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use {under_each_mpi, under_one_mpi};

/// Cells for each collective, in the order of [`FORCED`].
pub const CELLS: [&str; 8] = ["cells"; 8];

/// An algorithm by messages for each collective, in that order.
pub const MESSAGES: [&str; 8] = [
    "chain:segment=1KiB",
    "binomial",
    "binomial",
    "ring",
    "pairwise",
    "dissemination",
    "chain",
    "recursive-doubling",
];

/// A job with polycast whose collectives are forced to these ways.
pub fn by(job: Job, way: &[&str; 8]) -> Job {
    FORCED.into_iter().zip(way).fold(job.polycast(), |job, (variable, value)| job.variable(variable, value))
}

/// The lab's name; every test has a directory of its own for them.
pub const LAB: &str = "box";

/// Both forms of the multicast protocol.
pub const FORMS: [&str; 2] = ["multicast-pull", "multicast-push"];

/// A lab of some hosts, and what else `lab up` is to be told; `None` where the kernel allows none.
pub fn lab(hosts: usize, further: &[&str]) -> Option<Labs> {
    let labs = Labs::new();
    let hosts = hosts.to_string();
    let shape = [LAB, "--hosts", &hosts, "--rate", "1gbit", "--burst", "64KiB"];
    labs.up(&[&shape, further].concat()).then_some(labs)
}

/// Group and port of the socket on a host that is bound to a multicast address, if there is one.
pub fn group_and_port(labs: &Labs, host: &str) -> Option<[String; 2]> {
    let written = labs.exec(LAB, host, "awk '$2 ~ /EF:/ {print $2; exit}' /proc/net/udp");
    let (address, port) = written.trim().split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
    // As a number of this machine, which is little-endian.
    let address: Vec<String> = number(address).to_le_bytes().iter().map(u8::to_string).collect();
    Some([address.join("."), number(port).to_string()])
}

/// A job to be run.
#[derive(Clone)]
pub struct LabJob<'a> {
    labs: &'a Labs,
    mpi: Mpi,
    ranks: usize,
    ranks_per_host: usize,
    on: Option<String>,
    launcher: String,
    program: Vec<String>,
    preload: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    limit: Duration,
}

impl<'a> LabJob<'a> {
    /// A program of `tests/mpi`, a rank per host, on the bare MPI library.
    pub fn stock(labs: &'a Labs, mpi: Mpi, ranks: usize, program: &str) -> LabJob<'a> {
        LabJob::of(labs, mpi, ranks, &[&mpi.built(program).to_string_lossy()])
    }

    /// Any command.
    pub fn of(labs: &'a Labs, mpi: Mpi, ranks: usize, program: &[&str]) -> LabJob<'a> {
        let program = program.iter().map(ToString::to_string).collect();
        let variables = match mpi {
            Mpi::OpenMpi | Mpi::OpenMpiComponent => vec![],
            // See check.c.
            Mpi::Mpich => vec![("CHECK_PAUSE_MS".to_owned(), "400".to_owned())],
        };
        let limit = LIMIT;
        let (on, launcher) = (None, String::new());
        LabJob {
            labs,
            mpi,
            ranks,
            ranks_per_host: 1,
            on,
            launcher,
            program,
            preload: vec![],
            variables,
            limit,
        }
    }

    pub fn ranks_per_host(mut self, ranks: usize) -> LabJob<'a> {
        self.ranks_per_host = ranks;
        self
    }

    /// Only on these hosts.
    pub fn on(mut self, hosts: &str) -> LabJob<'a> {
        self.on = Some(hosts.to_owned());
        self
    }

    /// With these options of mpiexec.
    pub fn launched_with(mut self, options: &str) -> LabJob<'a> {
        options.clone_into(&mut self.launcher);
        self
    }

    pub fn arguments(mut self, arguments: &[&str]) -> LabJob<'a> {
        self.program.extend(arguments.iter().map(ToString::to_string));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> LabJob<'a> {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// With these objects, too.
    pub fn beside(mut self, objects: &[PathBuf]) -> LabJob<'a> {
        self.preload.extend_from_slice(objects);
        self
    }

    /// Behind polycast, which reports: it looks at each call.
    pub fn polycast(self) -> LabJob<'a> {
        self.unwatched().variable("POLYCAST_REPORT", "1")
    }

    /// Behind polycast as users have it, which leaves the calls of the MPI without a look at them.
    pub fn unwatched(mut self) -> LabJob<'a> {
        let job = match self.mpi.component() {
            Some((name, value)) => self.variable(name, &value),
            None => {
                self.preload.push(self.mpi.preload());
                self
            }
        };
        job.variable("POLYCAST_CACHE", "off")
    }

    /// Behind polycast, every broadcast by the same algorithm.
    pub fn forced(self, algorithm: &str) -> LabJob<'a> {
        self.polycast().variable("POLYCAST_BCAST", algorithm)
    }

    fn command(&self) -> Command {
        let (ranks, ranks_per_host) = (self.ranks.to_string(), self.ranks_per_host.to_string());
        let mut command = timeout(self.limit);
        command.arg(TOOL).args(["lab", "run", "--lab", LAB, "--mpi", self.mpi.name()]);
        command.args(["-n", &ranks, "--ranks-per-host", &ranks_per_host]);
        if let Some(hosts) = &self.on {
            command.args(["--on", hosts]);
        }
        if !self.launcher.is_empty() {
            command.args(["--mpiexec-args", &self.launcher]);
        }
        for (name, value) in &self.variables {
            command.args(["--env", &format!("{name}={value}")]);
        }
        if let Some(objects) = self.mpi.preloaded(&self.preload) {
            command.args(["--env", &format!("LD_PRELOAD={objects}")]);
        }
        command.env("POLYCAST_LAB_DIRECTORY", self.labs.directory()).arg("--").args(&self.program);
        command
    }

    /// Runs it. Fails, with everything it said, when it does not end well or not in time.
    pub fn run(self) -> Output {
        let _place = place();
        self.run_beside_others()
    }

    /// The same, whatever else runs.
    pub fn run_beside_others(self) -> Output {
        let (mut command, is_mpich) = (self.command(), self.mpi == Mpi::Mpich);
        let described = format!("{command:?}");
        let has_said_all = |stdout: &str, stderr: &str| {
            is_mpich && stdout.contains("OK ") && stderr.contains("polycast: report: attached")
        };
        let done = ending::finish(&mut command, has_said_all)
            .unwrap_or_else(|error| panic!("cannot start {described}: {error}"));
        let output = Output { command: described, stdout: done.stdout, stderr: done.stderr };
        match done.status {
            None => eprintln!("MPICH hung in MPI_Finalize: {}", output.command),
            Some(status) if status.success() => {}
            Some(status) => output.fail(&format!("{status}, or ended by the test after {:?}", self.limit)),
        }
        output
    }

    /// Runs it to whatever end.
    pub fn finish(self) -> (ExitStatus, Output) {
        let _place = place();
        finish(&mut self.command())
    }

    /// Runs it to whatever end: the status, unless it had said all and hung in MPICH, and what it said.
    pub fn end(self) -> (Option<ExitStatus>, String, String) {
        let is_mpich = self.mpi == Mpi::Mpich;
        let has_said_all = |stdout: &str, _: &str| is_mpich && stdout.contains("OK ");
        let done = ending::finish(&mut self.command(), has_said_all)
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.program));
        (done.status, done.stdout, done.stderr)
    }

    /// At most so long.
    pub fn limit(mut self, limit: Duration) -> LabJob<'a> {
        self.limit = limit;
        self
    }

    /// Runs it, and fails unless every rank got the right bytes.
    pub fn expect_ok(self) -> Output {
        let name = self.program_name();
        self.run().expect_ok(&name)
    }

    fn program_name(&self) -> String {
        let is_one = |word: &&String| word.contains("bcast_") || word.contains("collective_");
        let program = self.program.iter().find(is_one).expect("a test program");
        let stem = Path::new(program).file_stem().and_then(OsStr::to_str);
        stem.expect("it has a name").to_owned()
    }
}

/// Fails unless multicast carried broadcasts of this form, and brought data.
pub fn expect_multicast(output: &Output, form: &str) -> Report {
    let report = output.report();
    let has = |name: &str| report.multicast.get(name).is_some_and(|value| *value > 0);
    if report.served_by(form) == 0 || !["sent", "received", "useful"].into_iter().all(has) {
        output.fail(&format!("{form} carried nothing: {report:?}"));
    }
    report
}

/// Fails unless trees have served, because multicast was not to be had on one communicator.
pub fn expect_trees(output: &Output) -> Report {
    let report = output.report();
    let is_multicast = |name: &str| name.starts_with("multicast");
    if report.broadcasts.iter().any(|served| is_multicast(&served.algorithm)) {
        output.fail(&format!("multicast was not to be used: {report:?}"));
    }
    if report.multicast.get("fallbacks") != Some(&1) {
        output.fail(&format!("expected one fallback: {report:?}"));
    }
    report
}

/// The lines in which polycast warns.
pub fn warnings(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains("polycast: warning:")).collect()
}

/// Fails unless there is one warning, with all these words.
pub fn expect_warning(output: &Output, words: &[&str]) {
    let found = warnings(output);
    if found.len() != 1 || !words.iter().all(|word| found[0].contains(word)) {
        output.fail(&format!("expected one warning with {words:?}, found {found:?}"));
    }
}
