//! The command lines of Open MPI: ORTE up to 4, PRRTE from 5.

use std::process::Command;

use super::Part;
use super::launch::{Launch, Load, option};

/// Options of mpiexec of Open MPI up to 4.
pub(super) fn orte(command: &mut Command, launch: &Launch, load: Load) {
    let mca = parameter_of_all(launch);
    if let Some(agent) = &launch.agent {
        option(command, [mca, "plm_rsh_agent"]);
        command.arg(agent);
    }
    if let Some(interface) = &launch.interface {
        option(command, [mca, "oob_tcp_if_include", interface]);
    }
    transports(command, launch, load);
    if !launch.hosts.is_empty() {
        option(command, ["--host", &launch.host_list()]);
    }
    if load.outnumber_slots {
        option(command, ["--oversubscribe"]);
    }
    placement(command, launch, load);
}

/// Options of mpiexec of Open MPI from 5.
pub(super) fn prrte(command: &mut Command, launch: &Launch, load: Load) {
    if let Some(agent) = &launch.agent {
        option(command, ["--prtemca", "plm_ssh_agent"]);
        command.arg(agent);
    }
    if launch.interface.is_some() {
        // From 5 on a UCX that finds a network is chosen before the TCP that was asked for.
        option(command, [parameter_of_all(launch), "pml", "ob1"]);
    }
    transports(command, launch, load);
    if !launch.hosts.is_empty() {
        option(command, ["--host", &launch.host_list()]);
    }
    // Of several programs each would have so many.
    let by = match launch.uniform_ranks_per_host().filter(|_| launch.further.is_empty()) {
        Some(ranks) => format!("ppr:{ranks}:node"),
        None => "slot".to_owned(),
    };
    let modifier = if load.outnumber_slots { ":oversubscribe" } else { "" };
    option(command, ["--map-by", &format!("{by}{modifier}")]);
    placement(command, launch, load);
}

/// The option for a parameter of the launcher and of all ranks: of several programs, `--mca` is for the one that follows.
fn parameter_of_all(launch: &Launch) -> &'static str {
    if launch.further.is_empty() { "--mca" } else { "--gmca" }
}

/// Adds the options for how ranks talk, and how they wait.
fn transports(command: &mut Command, launch: &Launch, load: Load) {
    let mca = parameter_of_all(launch);
    if let Some(interface) = &launch.interface {
        option(command, [mca, "btl", "tcp,self"]);
        option(command, [mca, "btl_tcp_if_include", interface]);
    }
    // Open MPI sees this by itself only where all ranks are on one host; emulated hosts look like many.
    if load.outnumber_cores {
        option(command, [mca, "mpi_yield_when_idle", "1"]);
    }
}

/// Adds the options for binding to cores and the number of ranks, and the variables of the ranks.
fn placement(command: &mut Command, launch: &Launch, load: Load) {
    // Each emulated host takes the machine for its own and would bind its first rank to the first core.
    if launch.agent.is_some() || load.outnumber_cores {
        option(command, ["--bind-to", "none"]);
    }
    if let Some(ranks) = launch.ranks {
        option(command, ["-n", &ranks.to_string()]);
    }
    variables(command, launch);
}

/// Options before a program behind the first: `-x` and `--host` hold for one program only.
pub(super) fn part(command: &mut Command, launch: &Launch, part: &Part) {
    if !launch.hosts.is_empty() {
        option(command, ["--host", &launch.host_list()]);
    }
    option(command, ["-n", &part.ranks.to_string()]);
    variables(command, launch);
}

fn variables(command: &mut Command, launch: &Launch) {
    for (name, value) in &launch.env {
        option(command, ["-x", &format!("{name}={value}")]);
    }
}
