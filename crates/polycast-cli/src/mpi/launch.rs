//! What is to be started, and where: the part of a launch that all launchers share.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;

/// A job to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Ranks in all, at least 1.
    pub ranks: usize,
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

/// What a launch depends on beside its description.
pub(super) struct Surroundings {
    /// Cores that a job on this machine may use.
    pub cores: usize,
    /// Whether the effective user is root.
    pub is_root: bool,
    /// Whether a batch system decides where ranks go.
    pub has_allocation: bool,
}

impl Surroundings {
    pub fn of_this_process() -> Self {
        let batch_systems = ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE"];
        Surroundings {
            cores: available_parallelism().map_or(1, NonZeroUsize::get),
            is_root: nix::unistd::geteuid().is_root(),
            has_allocation: batch_systems.iter().any(|name| std::env::var_os(name).is_some()),
        }
    }
}

impl Launch {
    /// Whether ranks outnumber cores, so that a rank which spins while it waits takes the core from one that works.
    /// Hosts other than this machine are taken to be like it; an allocation is the batch system's affair.
    pub(super) fn is_oversubscribed(&self, surroundings: &Surroundings) -> bool {
        let largest_host = self.hosts.iter().map(|(_, ranks)| *ranks).max();
        let ranks_on_one_machine = match largest_host {
            _ if self.agent.is_some() => self.ranks,
            Some(ranks) => ranks.min(self.ranks),
            None if surroundings.has_allocation => return false,
            None => self.ranks,
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

/// Appends the words of one option.
pub(super) fn option<const N: usize>(command: &mut Command, words: [&str; N]) {
    command.args(words);
}
