use std::fmt;
use std::io;

use crate::Group;

/// The steps of opening a socket, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The group is no multicast address, or the interface has no address of its family.
    Check,
    /// socket(2).
    Create,
    /// Setting the option of this name.
    Configure(&'static str),
    /// Taking the group's address and port.
    Bind,
    /// Becoming a member of the group.
    Join,
    /// Waiting for an address to send from.
    Address,
}

/// A socket could not be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The step that failed.
    pub step: Step,
    /// The group that was asked for.
    pub group: Group,
    /// The interface that was asked for.
    pub interface: String,
    /// The kernel's error.
    pub source: io::Error,
}

impl OpenError {
    /// The group and port, or the place in the kernel's list of memberships, is taken: another group may do, trees otherwise.
    pub fn is_conflict(&self) -> bool {
        self.step == Step::Bind && self.source.kind() == io::ErrorKind::AddrInUse
    }

    fn remedy(&self) -> &'static str {
        use nix::errno::Errno;
        match (self.step, self.source.raw_os_error().map(Errno::from_raw)) {
            (Step::Check, _) => "choose another with POLYCAST_NET, or another POLYCAST_MULTICAST",
            (Step::Create, Some(Errno::EMFILE)) => "raise the limit on open files (ulimit -n)",
            (Step::Create, Some(Errno::EAFNOSUPPORT)) => "set POLYCAST_MULTICAST=ipv4 or off",
            (Step::Bind, Some(Errno::EADDRINUSE)) => {
                "another process on this host has this group and port; take another"
            }
            (Step::Join, Some(Errno::ENOBUFS)) => {
                "too many groups on this host; raise net.ipv4.igmp_max_memberships or net.core.optmem_max"
            }
            (Step::Join, Some(Errno::ENODEV)) => "the interface has gone or cannot multicast; see `ip link`",
            (Step::Address, _) => "the interface has no usable link-local address; see `ip -6 address`",
            (_, Some(Errno::EPERM | Errno::EACCES)) => {
                "a sandbox or security policy forbids it; allow it there"
            }
            _ => "`polycast doctor` checks what multicast needs",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenError { step, group, interface, source } = self;
        match step {
            Step::Check => write!(f, "{group} on {interface}")?,
            Step::Create => write!(f, "cannot make a UDP socket for {group}")?,
            Step::Configure(option) => write!(f, "cannot set {option} for {group} on {interface}")?,
            Step::Bind => write!(f, "cannot bind to {group}")?,
            Step::Join => write!(f, "cannot join {group} on {interface}")?,
            Step::Address => write!(f, "cannot send to {group} through {interface}")?,
        }
        write!(f, ": {source}; {}", self.remedy())
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
