//! One run of mpi4py's tests.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use polycast_core::collective::Collective;
use polycast_core::variables::FORCED;

use crate::cluster::{Labs, TOOL};
use crate::common::ending;
use crate::common::job::timeout;
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::mpi::{Mpi4py, tests};

/// The lab's name, and its hosts.
pub const LAB: &str = "box";
pub const HOSTS: usize = 3;

/// The modules with blocking and nonblocking collectives on any data, and with what makes communicators.
const MODULES: [&str; 2] = ["test_cco_(nb_)?(buf|obj|vec)", "test_comm"];

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// What lies between the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    Node,
    /// A rank on each host.
    Lab,
    /// Two on each.
    LabOfPairs,
    LossyLab,
}

impl Network {
    pub fn ranks_per_host(self) -> usize {
        if self == Network::LabOfPairs { 2 } else { 1 }
    }

    /// On one node as many as in most labs.
    fn ranks(self) -> usize {
        HOSTS * self.ranks_per_host()
    }
}

/// The algorithm for each collective.
pub type Forced = Vec<(Collective, String)>;

/// What is run, and where.
#[derive(Clone, Debug)]
pub struct Row {
    pub mpi: Mpi4py,
    pub network: Network,
    /// `None` is the bare library.
    pub forced: Option<Forced>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tests that a rank ran, all ranks together.
    pub tests: u64,
    /// Calls by the forced algorithms.
    pub served: u64,
    /// What served nothing, of what was forced.
    idle: Vec<String>,
    pub seconds: f64,
    failures: BTreeSet<String>,
    /// Its tests did, whatever they found.
    pub ended: bool,
    said: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = match self.network {
            Network::Node => "node",
            Network::Lab => "lab",
            Network::LabOfPairs => "lab-pairs",
            Network::LossyLab => "lab-loss-5%",
        };
        let broadcast = self.forced.as_ref().map_or("stock", |forced| &forced[0].1);
        write!(f, "{} {network} {broadcast}", self.mpi.name)
    }
}

impl Row {
    fn command(&self, labs: &Labs) -> Command {
        let mut command = timeout(LIMIT);
        command.arg(TOOL);
        match self.network {
            Network::Node => command.arg("run"),
            _ => command.args(["lab", "run", "--lab", LAB]),
        };
        command.arg("--mpi").arg(self.mpi.launcher()).args(["-n", &self.network.ranks().to_string()]);
        if self.network != Network::Node {
            command.args(["--ranks-per-host", &self.network.ranks_per_host().to_string()]);
        }
        if (self.network, &self.forced) == (Network::Node, &None) {
            command.arg("--off");
        }
        for (name, value) in self.variables() {
            match self.network {
                Network::Node => command.env(name, value),
                _ => command.args(["--env", &format!("{name}={value}")]),
            };
        }
        for name in ["OMPI", "PRTE"] {
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT"), "1");
            command.env(format!("{name}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
        }
        command.env("POLYCAST_LIBDIR", library_directory());
        command.env("POLYCAST_LAB_DIRECTORY", labs.directory());
        command.arg("--").arg(self.mpi.python()).arg(tests()).args(["-q", "--no-threads"]);
        for module in MODULES {
            command.args(["-i", module]);
        }
        let excluded = self.mpi.fails_across_hosts_in().filter(|_| self.network != Network::Node);
        command.args(excluded.into_iter().flat_map(|module| ["-e", module]));
        command
    }

    /// What the ranks get. `polycast run` preloads by itself, in a lab it is said.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = self.mpi.variables();
        let mut preload: Vec<PathBuf> = Vec::new();
        if let Some(forced) = &self.forced {
            let all = FORCED.into_iter().zip(forced);
            variables.extend(all.map(|(variable, (_, algorithm))| (variable, algorithm.clone())));
            for (name, value) in
                [("POLYCAST_REPORT", "1"), ("POLYCAST_TRIALS", "off"), ("POLYCAST_CACHE", "off")]
            {
                variables.push((name, value.to_owned()));
            }
            if self.network != Network::Node {
                preload.push(library_directory().join("libpolycast-mpi.so"));
            }
        }
        // Waiting ranks of Debian's MPICH spin.
        if self.mpi.spins() {
            preload.push(Mpi::Mpich.built("yields.so"));
        }
        if !preload.is_empty() {
            let paths: Vec<_> = preload.iter().map(|path| path.to_string_lossy()).collect();
            variables.push(("LD_PRELOAD", paths.join(":")));
        }
        variables
    }

    /// Runs it to whatever end.
    pub fn run(&self, labs: &Labs) -> Outcome {
        let has_report = self.forced.is_some();
        let has_said_all = |_: &str, stderr: &str| {
            let ends = stderr.lines().filter(|line| line.starts_with("OK") || line.starts_with("FAILED ("));
            ends.count() >= self.network.ranks()
                && (!has_report || stderr.contains("polycast: report: attached"))
        };
        let began = Instant::now();
        let done = ending::finish(&mut self.command(labs), has_said_all)
            .unwrap_or_else(|error| panic!("cannot start {self}: {error}"));
        let said = done.stdout + &done.stderr;
        let calls: Vec<(String, u64)> = self.forced.iter().flatten().map(|of| served_by(&said, of)).collect();
        // Ranks write at the same time: what is counted may stand anywhere in a line.
        let counts =
            said.split("Ran ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let failure = |line: &str| {
            let test = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
            Some(test.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        };
        Outcome {
            tests: counts.sum(),
            served: calls.iter().map(|(_, calls)| calls).sum(),
            idle: calls.into_iter().filter(|(_, calls)| *calls == 0).map(|(name, _)| name).collect(),
            seconds: began.elapsed().as_secs_f64(),
            failures: said.lines().filter_map(failure).collect(),
            // Tests that fail are counted apart; a job of which tests failed ends badly, too.
            ended: done.status.is_none_or(|status| status.success() || said.contains("FAILED (")),
            said,
        }
    }
}

/// An algorithm, and how many calls the report says that it served.
fn served_by(said: &str, (collective, algorithm): &(Collective, String)) -> (String, u64) {
    let name = format!("{collective} {algorithm}");
    let counted = said.lines().filter_map(|line| {
        let rest = line.split_once("polycast: report: ")?.1.strip_prefix(&name)?;
        rest.strip_prefix(" calls=")?.split(' ').next()?.parse::<u64>().ok()
    });
    let calls = counted.sum();
    (name, calls)
}

impl Outcome {
    /// What speaks against polycast, beside the bare library.
    pub fn problem(&self, stock: &Outcome) -> Option<String> {
        let new: Vec<&String> = self.failures.difference(&stock.failures).collect();
        if !self.ended && stock.ended {
            return Some(format!("FAILED: did not end well within {LIMIT:?}"));
        }
        if !new.is_empty() {
            return Some(format!("FAILED: {new:?}"));
        }
        if self.ended && stock.ended && self.tests < stock.tests {
            return Some(format!("FAILED: {} tests, {} without polycast", self.tests, stock.tests));
        }
        (!self.idle.is_empty()).then(|| format!("FAILED: no calls were served by {}", self.idle.join(", ")))
    }

    /// The end of what was said.
    pub fn tail(&self) -> String {
        let lines: Vec<&str> = self.said.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}
