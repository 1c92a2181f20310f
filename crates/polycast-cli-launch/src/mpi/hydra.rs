//! The command lines of Hydra, the launcher of MPICH and Intel MPI.

use std::process::Command;

use super::launch::{Launch, Load, option};
use super::{Part, Version};

/// The first MPICH that can be told to sleep when it makes no progress.
const FIRST_WITH_PROGRESS_THROTTLE: Version = Version::new(4, 1, 0);

/// Options of mpiexec of MPICH.
pub(super) fn mpich(command: &mut Command, launch: &Launch, load: Load, version: Version) {
    hosts(command, launch);
    if let Some(interface) = &launch.interface {
        // MPICH is built over UCX or over libfabric; each ignores the other's variables.
        genv(command, "UCX_TLS", "tcp,self");
        genv(command, "UCX_NET_DEVICES", interface);
        libfabric_over_tcp(command, interface);
    }
    if load.outnumber_cores && version >= FIRST_WITH_PROGRESS_THROTTLE {
        genv(command, "MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1");
        genv(command, "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "16");
    }
    ranks(command, launch);
}

/// Options of mpiexec of Intel MPI.
pub(super) fn intel(command: &mut Command, launch: &Launch) {
    hosts(command, launch);
    if let Some(interface) = &launch.interface {
        genv(command, "I_MPI_FABRICS", "ofi");
        libfabric_over_tcp(command, interface);
    }
    ranks(command, launch);
}

fn hosts(command: &mut Command, launch: &Launch) {
    if let Some(agent) = &launch.agent {
        option(command, ["-launcher", "ssh", "-launcher-exec"]);
        command.arg(agent);
    }
    if launch.hosts.is_empty() {
        return;
    }
    match launch.uniform_ranks_per_host() {
        Some(ranks) => {
            let names: Vec<&str> = launch.hosts.iter().map(|(host, _)| host.as_str()).collect();
            option(command, ["-hosts", &names.join(","), "-ppn", &ranks.to_string()]);
        }
        None => option(command, ["-hosts", &launch.host_list()]),
    }
}

fn libfabric_over_tcp(command: &mut Command, interface: &str) {
    genv(command, "FI_PROVIDER", "tcp");
    genv(command, "FI_TCP_IFACE", interface);
}

fn ranks(command: &mut Command, launch: &Launch) {
    if let Some(ranks) = launch.ranks {
        option(command, ["-n", &ranks.to_string()]);
    }
    for (name, value) in &launch.env {
        genv(command, name, value);
    }
}

/// Options before a program behind the first: what `-genv` and `-hosts` said before holds for it, too.
pub(super) fn part(command: &mut Command, part: &Part) {
    option(command, ["-n", &part.ranks.to_string()]);
}

fn genv(command: &mut Command, name: &str, value: &str) {
    option(command, ["-genv", name, value]);
}
