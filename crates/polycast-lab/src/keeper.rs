//! The process that keeps a lab alive.
//!
//! ```text
//!  Lab::up ──Order──▶ keeper, first stage        outside: unshare, fork, exit
//!     ▲                  └─▶ keeper              pid 1 of the lab's PID namespace
//!     └─────Reply────────────┘  builds, writes the state file, then waits
//! ```
//!
//! Invariants
//! 1. The state file is there before the first namespace that outlives a failure of the caller, and names this process.
//! 2. Whoever kills the keeper removes the lab: it is pid 1 of all processes in it, and no namespace of it is reachable
//!    from outside except through them.
//! 3. The keeper holds nothing of its caller: no terminal, no file descriptor but the one it watches.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork, pause, setsid};
use polycast_core::topology::Format;
use serde::{Deserialize, Serialize};

use crate::error::{at, kernel};
use crate::namespace::{
    bind, enable_ipv6, isolate, join_network, make_mounts_private, mount_virtual, new_network, open,
    pass_by_ip_filters,
};
use crate::state::{Lifetime, Summary, forget, start_ticks};
use crate::tools::Tools;
use crate::{LabError, Plan, batch, offload, rules};

/// The order to the keeper for a lab: one line of JSON on its standard input.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub name: String,
    pub plan: Plan,
    pub lifetime: Lifetime,
    /// Directory of state files.
    pub base: PathBuf,
    /// The program that the launch agent executes.
    pub tool: PathBuf,
}

/// The keeper's answer: one line of JSON on its standard output.
pub(crate) type Reply = Result<Summary, String>;

/// The hosts file, the topology, the launch agent and the network namespaces in a lab's directory.
pub(crate) const HOSTS_FILE: &str = "hosts";
pub(crate) const TOPOLOGY_FILE: &str = "topology.conf";
pub(crate) const AGENT: &str = "agent";
const NETWORKS: &str = "net";

/// The folder for what programs leave for each other under the names of hosts, users and processes, such as the sessions of
/// Open MPI: hosts of two labs have the same names, and every user is root in a lab of their own.
pub(crate) fn temporary_directory(directory: &Path) -> PathBuf {
    directory.join("tmp")
}

/// The file that stands for the network namespace of a host; named by the host's index, since a
/// name need not be a file name.
pub(crate) fn network_file(directory: &Path, host: usize) -> PathBuf {
    directory.join(NETWORKS).join(host.to_string())
}

/// The keeper's whole life. The calling process must have one thread.
pub(crate) fn run() -> ExitCode {
    let mut line = String::new();
    let order = io::stdin().lock().read_line(&mut line).map_err(at("read", "the order for a lab"));
    let order = order.and_then(|_| {
        serde_json::from_str::<Order>(&line).map_err(|e| at("understand", "the order for a lab")(e.into()))
    });
    let outcome = order.and_then(|order| {
        // Ctrl-C in the caller's terminal is not meant for the lab.
        setsid().map_err(kernel("start a session"))?;
        isolate()?;
        Ok(order)
    });
    match outcome {
        Ok(order) => become_first_process(&order),
        Err(error) => reply(&Err(error.to_string())),
    }
}

/// Forks; the child is the first in the new PID namespace.
fn become_first_process(order: &Order) -> ExitCode {
    // SAFETY: this process has one thread, so no lock can be held by another one at the time of the fork.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { .. }) => ExitCode::SUCCESS,
        Ok(ForkResult::Child) => keep(order),
        Err(error) => reply(&Err(kernel("fork")(error).to_string())),
    }
}

fn keep(order: &Order) -> ExitCode {
    let summary = match claim_and_build(order) {
        Ok(summary) => summary,
        Err(error) => return reply(&Err(error.to_string())),
    };
    reply(&Ok(summary));
    if release_caller(order.lifetime).is_ok() {
        wait_for_the_end(order.lifetime);
    }
    leave_nothing(order);
    ExitCode::SUCCESS
}

/// Removes the traces of a lab that is about to end, or could not be made. Its directory cannot go while it is mounted.
fn leave_nothing(order: &Order) {
    let _ = umount2(&order.base.join(&order.name), MntFlags::MNT_DETACH);
    let _ = forget(&order.base, &order.name);
}

fn reply(reply: &Reply) -> ExitCode {
    let mut text = serde_json::to_string(reply).unwrap_or_default();
    text.push('\n');
    // If the caller is gone there is nobody to tell; the end of its pipe ends us.
    let _ = io::stdout().write_all(text.as_bytes());
    if reply.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes the name, then makes everything; gives the name back if that fails.
fn claim_and_build(order: &Order) -> Result<Summary, LabError> {
    let directory = order.base.join(&order.name);
    // /proc is still the caller's, so this is the pid by which it knows us.
    let own = fs::read_link("/proc/self").map_err(at("read", "/proc/self"))?;
    let keeper_pid = own.to_string_lossy().parse().unwrap_or(0);
    let keeper_start_ticks = start_ticks(keeper_pid).unwrap_or(0);
    let mut summary = Summary {
        name: order.name.clone(),
        keeper_pid,
        keeper_start_ticks,
        ready: false,
        lifetime: order.lifetime,
        directory: directory.clone(),
        plan: order.plan.clone(),
    };
    summary.create(&order.base)?;
    let built = build(order, &directory).and_then(|()| {
        summary.ready = true;
        summary.replace(&order.base)
    });
    match built {
        Ok(()) => Ok(summary),
        Err(error) => {
            leave_nothing(order);
            Err(error)
        }
    }
}

fn build(order: &Order, directory: &Path) -> Result<(), LabError> {
    let plan = &order.plan;
    let tools = Tools::find(rules::are_needed(plan))?;
    make_mounts_private()?;
    fs::create_dir_all(directory).map_err(at("create", directory))?;
    mount_virtual("tmpfs", directory)?;
    mount_virtual("proc", Path::new("/proc"))?;
    // Shared memory has names like those of temporary files. Without the folder there is none to share.
    let _ = mount_virtual("tmpfs", Path::new("/dev/shm"));
    write_files(order, directory)?;

    let fabric = open(Path::new("/proc/self/ns/net"))?;
    for host in 0..plan.hosts.len() {
        new_network(&network_file(directory, host))?;
        enable_ipv6();
    }
    join_network(&fabric)?;
    let has_ipv6 = enable_ipv6();
    pass_by_ip_filters();
    tools.ip.run(&batch::fabric_links(plan, has_ipv6, |host| network_file(directory, host)))?;
    tools.tc.run(&batch::fabric_rates(plan))?;
    tools.apply(rules::of_fabric(plan))?;
    if plan.loss_per_million > 0 {
        (0..plan.hosts.len()).for_each(|host| offload::send_single_packets(&batch::port_of(host)));
    }
    for host in 0..plan.hosts.len() {
        join_network(&open(&network_file(directory, host))?)?;
        tools.ip.run(&batch::host_links(plan, host, has_ipv6))?;
        tools.tc.run(&batch::host_rates(plan, host))?;
        if plan.loss_per_million > 0 {
            offload::join_packets_on_arrival(batch::HOST_INTERFACE);
        }
    }
    join_network(&fabric)
}

fn write_files(order: &Order, directory: &Path) -> Result<(), LabError> {
    use std::os::unix::fs::PermissionsExt;
    let hosts = directory.join(HOSTS_FILE);
    fs::write(&hosts, batch::hosts_file(&order.plan)).map_err(at("write", &hosts))?;
    let topology = directory.join(TOPOLOGY_FILE);
    fs::write(&topology, order.plan.topology().write(Format::SlurmConf).text)
        .map_err(at("write", &topology))?;
    let agent = directory.join(AGENT);
    fs::write(&agent, batch::agent_script(&order.tool, directory)).map_err(at("write", &agent))?;
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).map_err(at("make executable", &agent))?;
    let temporary = temporary_directory(directory);
    fs::create_dir(&temporary).map_err(at("create", &temporary))?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).map_err(at("open", &temporary))?;
    let networks = directory.join(NETWORKS);
    fs::create_dir(&networks).map_err(at("create", &networks))
}

/// Lets go of the caller's terminal and files; only a lab that must not outlive it keeps the pipe from it.
fn release_caller(lifetime: Lifetime) -> Result<(), LabError> {
    let null =
        fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(at("open", "/dev/null"))?;
    dup2_stdout(null.as_fd()).and_then(|()| dup2_stderr(null.as_fd())).map_err(kernel("close output"))?;
    if lifetime == Lifetime::UntilDown {
        dup2_stdin(null.as_fd()).map_err(kernel("close input"))?;
    }
    std::env::set_current_dir("/").map_err(at("go to", "/"))
}

fn wait_for_the_end(lifetime: Lifetime) {
    // SAFETY: no handler is installed. Orphans of the lab become our children; ignored, the kernel buries them.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    match lifetime {
        // The caller never writes again: this returns when its end of the pipe is closed.
        Lifetime::Caller => drop(io::stdin().lock().read_to_end(&mut Vec::new())),
        Lifetime::UntilDown => loop {
            pause();
        },
    }
}

/// The bind that shows the lab's hosts file to programs.
pub(crate) fn show_hosts_file(directory: &Path) -> Result<(), LabError> {
    bind(&directory.join(HOSTS_FILE), Path::new("/etc/hosts"))
}
