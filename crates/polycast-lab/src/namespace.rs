//! The system calls on namespaces. Everything here changes the calling process, which must have one thread.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use crate::LabError;
use crate::error::{at, kernel};

/// Moves this process into new mount, network and IPC namespaces, and its children into a new PID namespace;
/// in a new user namespace where its rights do not suffice.
pub(crate) fn isolate() -> Result<(), LabError> {
    let flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    match unshare(flags) {
        Ok(()) => return Ok(()),
        // Root in a container may lack the right as well: then it is tried like anybody.
        Err(Errno::EPERM) => {}
        Err(source) => {
            return Err(LabError::Kernel { action: "make namespaces".into(), source, hint: hint(source) });
        }
    }
    let (uid, gid) = (geteuid(), getegid());
    unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(|source| LabError::Kernel {
        action: "make a user namespace".into(),
        source,
        hint: hint(source),
    })?;
    for (file, text) in [
        // Without this the kernel refuses the group map of an unprivileged process.
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
    ] {
        fs::write(file, text).map_err(at("write", file))?;
    }
    Ok(())
}

fn hint(error: Errno) -> &'static str {
    match error {
        Errno::EPERM | Errno::EACCES => {
            "; unprivileged user namespaces are off: run as root, or let an administrator set \
             `sysctl kernel.unprivileged_userns_clone=1` (Debian), `kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu); \
             in a container, start it with --privileged"
        }
        Errno::ENOSPC => {
            "; the limit of namespaces is reached or 0: remove labs with `polycast lab down --all`, or let an administrator \
             raise `sysctl user.max_user_namespaces` and `user.max_net_namespaces`"
        }
        Errno::EINVAL => {
            "; the kernel lacks namespaces: it needs CONFIG_NET_NS, CONFIG_PID_NS, CONFIG_UTS_NS, CONFIG_IPC_NS and CONFIG_USER_NS"
        }
        _ => "",
    }
}

/// Keeps mounts of this process to itself.
pub(crate) fn make_mounts_private() -> Result<(), LabError> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(kernel("make mounts private"))
}

/// Mounts a fresh file system of a kind that has no device.
pub(crate) fn mount_virtual(kind: &str, on: &Path) -> Result<(), LabError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some(kind), on, Some(kind), flags, None::<&str>)
        .map_err(kernel(format!("mount {kind} on {}", on.display())))
}

/// Lets `target` show `source`.
pub(crate) fn bind(source: &Path, target: &Path) -> Result<(), LabError> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(kernel(format!(
        "bind {} to {}",
        source.display(),
        target.display()
    )))
}

/// Makes a network namespace, keeps it alive under `file`, and leaves this process in it.
pub(crate) fn new_network(file: &Path) -> Result<(), LabError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|source| LabError::Kernel {
        action: "make a network namespace".into(),
        source,
        hint: hint(source),
    })?;
    fs::write(file, "").map_err(at("create", file))?;
    bind(Path::new("/proc/self/ns/net"), file)
}

/// Turns IPv6 on for the interfaces that this process's network namespace will get, and returns
/// true if it is on then. A namespace may begin without IPv6 where the machine is set up so.
pub(crate) fn enable_ipv6() -> bool {
    let disable = |interfaces: &str| format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6");
    for interfaces in ["all", "default"] {
        // What cannot be written is seen below.
        let _ = fs::write(disable(interfaces), "0");
    }
    fs::read_to_string(disable("default")).is_ok_and(|value| value.trim() == "0")
}

/// Spares the bridges of this process's network namespace the way of each frame through the IP filters, which is on where
/// `br_netfilter` is loaded. There are none in a switch.
pub(crate) fn pass_by_ip_filters() {
    for tables in ["iptables", "ip6tables", "arptables"] {
        // Absent where the module is: then there is nothing to spare.
        let _ = fs::write(format!("/proc/sys/net/bridge/bridge-nf-call-{tables}"), "0");
    }
}

/// A namespace that can be joined.
pub(crate) fn open(file: &Path) -> Result<OwnedFd, LabError> {
    fs::File::open(file).map(OwnedFd::from).map_err(at("open", file))
}

/// Joins a network namespace.
pub(crate) fn join_network(namespace: &OwnedFd) -> Result<(), LabError> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(kernel("join a network namespace"))
}

/// Joins the namespaces of a process: user first, because it gives the right to join the others; children of the
/// caller are then in the PID namespace.
pub(crate) fn join_process(pid: i32) -> Result<(), LabError> {
    let file = |kind: &str| Path::new("/proc").join(pid.to_string()).join("ns").join(kind);
    let same_user = fs::read_link(file("user")).ok() == fs::read_link("/proc/self/ns/user").ok();
    let kinds = [
        ("user", CloneFlags::CLONE_NEWUSER),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("net", CloneFlags::CLONE_NEWNET),
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ];
    let mut joins = Vec::new();
    for (kind, flag) in kinds.into_iter().filter(|(kind, _)| !(same_user && *kind == "user")) {
        // All are opened before the first is joined: /proc is another one afterwards.
        joins.push((open(&file(kind))?, flag, kind));
    }
    for (namespace, flag, kind) in joins {
        setns(&namespace, flag).map_err(kernel(format!("join the {kind} namespace of the lab")))?;
    }
    Ok(())
}
