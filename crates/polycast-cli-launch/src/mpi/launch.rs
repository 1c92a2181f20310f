//! The part of a launch that all launchers share: what is to be started, and where.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;

use super::{Allocation, Part};

/// A job to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Ranks of the program, at least 1; `None`: as many as a batch job's allocation takes.
    pub ranks: Option<usize>,
    /// The programs behind it, of a job of several; then its ranks are known.
    pub further: Vec<Part>,
    /// Hosts with the ranks that each may take, in rank order. Empty: this machine, or the batch job's allocation.
    pub hosts: Vec<(String, usize)>,
    /// A program that stands in for ssh. It reaches hosts that are emulated on this machine, so all ranks share its
    /// cores.
    pub agent: Option<PathBuf>,
    /// The network interface of every host that traffic between hosts has to take, over TCP and no other network.
    pub interface: Option<String>,
    /// Variables for the ranks; the launcher itself does not get them.
    pub env: Vec<(String, String)>,
    /// Further options for mpiexec. They come last, so they win where a launcher lets the last one win.
    pub extra: Vec<String>,
}

/// The surroundings that a launch depends on, beside its description.
pub(super) struct Surroundings {
    /// Cores that a job on this machine may use.
    pub cores: usize,
    /// Whether the effective user is root.
    pub is_root: bool,
    /// The batch system's allocation, which decides where ranks go.
    pub allocation: Option<Allocation>,
}

impl Surroundings {
    pub fn of_this_process() -> Self {
        Surroundings {
            cores: available_parallelism().map_or(1, NonZeroUsize::get),
            is_root: rustix::process::geteuid().is_root(),
            allocation: Allocation::of_this_process(),
        }
    }
}

/// Variables and options by which users put something else in the place of ssh: it may know hosts that nobody else knows.
const OWN_AGENTS: [&str; 6] = [
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "HYDRA_LAUNCHER",
    "HYDRA_LAUNCHER_EXEC",
    "HYDRA_BOOTSTRAP_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
];
const OWN_AGENT_OPTIONS: [&str; 5] = ["plm_rsh_agent", "plm_ssh_agent", "-launcher", "-bootstrap", "-rmk"];

impl Launch {
    /// True if the user has put something else in the place of ssh.
    pub fn has_own_agent(&self) -> bool {
        let names_option = |word: &String| OWN_AGENT_OPTIONS.iter().any(|option| word.contains(option));
        OWN_AGENTS.iter().any(|name| std::env::var_os(name).is_some()) || self.extra.iter().any(names_option)
    }

    /// Ranks in all, if that is known.
    fn all_ranks(&self) -> Option<usize> {
        Some(self.ranks? + self.further.iter().map(|part| part.ranks).sum::<usize>())
    }

    /// The load of the machines, as the launcher is to be told of it.
    pub(super) fn load(&self, surroundings: &Surroundings) -> Load {
        let outnumber_cores = self.is_oversubscribed(surroundings);
        let has_slots = !self.hosts.is_empty() || surroundings.allocation.is_some();
        Load { outnumber_cores, outnumber_slots: outnumber_cores || !has_slots }
    }

    /// Whether ranks outnumber cores, so that a rank which spins while it waits takes the core from one that works.
    /// Hosts other than this machine are taken to be like it; an allocation is the batch system's affair.
    fn is_oversubscribed(&self, surroundings: &Surroundings) -> bool {
        let largest_host = self.hosts.iter().map(|(_, ranks)| *ranks).max();
        let ranks_on_one_machine = match largest_host {
            _ if self.agent.is_some() => self.all_ranks().unwrap_or(0),
            Some(ranks) => self.all_ranks().map_or(ranks, |all| ranks.min(all)),
            None if surroundings.allocation.is_some() => return false,
            None => self.all_ranks().unwrap_or(0),
        };
        ranks_on_one_machine > surroundings.cores
    }

    /// The number of ranks that every host takes, if it is the same for all.
    pub(super) fn uniform_ranks_per_host(&self) -> Option<usize> {
        let first = self.hosts.first()?.1;
        self.hosts.iter().all(|(_, ranks)| *ranks == first).then_some(first)
    }

    /// `h0:1,h1:2`, as every launcher reads it.
    pub(super) fn host_list(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
        hosts.join(",")
    }
}

/// The load of the machines: whether ranks outnumber cores, or slots.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Ranks that wait must let others have the core.
    pub outnumber_cores: bool,
    /// Ranks may be more than the slots that the launcher counts. Where nobody says how many there are, it counts cores,
    /// hardware threads left out: a number of ranks that the user asked for must not be refused for that.
    pub outnumber_slots: bool,
}

/// Appends the words of one option.
pub(super) fn option<const N: usize>(command: &mut Command, words: [&str; N]) {
    command.args(words);
}
