use std::io;
use std::path::PathBuf;

use polycast_core::topology::TopologyError;
use polycast_core::units::ParseRateError;

/// The errors of labs. Every message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A value on a command line or in a lab specification.
    #[error("{key}: expected {expected}, found {found:?}")]
    Value {
        /// The option or key.
        key: &'static str,
        /// The values that would have been right.
        expected: String,
        /// The value that was given.
        found: String,
    },
    /// The rate of the links.
    #[error("rate: {0}")]
    Rate(#[from] ParseRateError),
    /// A topology file.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A program that labs are made with is not there.
    #[error("{tool} was not found in PATH nor in /usr/sbin, /sbin; install it: apt-get install {package}")]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// `ip`, `tc` or `nft` refused something.
    #[error("{tool} failed at `{command}`: {message}{hint}")]
    ToolFailed {
        /// The program.
        tool: &'static str,
        /// The line of its batch.
        command: String,
        /// The tool's message.
        message: String,
        /// The remedy, if it is known; begins with a separator.
        hint: String,
    },
    /// The kernel refused a namespace or a mount.
    #[error("cannot {action}: {source}{hint}")]
    Kernel {
        /// The attempt, as the message words it after "cannot".
        action: String,
        /// The kernel's answer.
        source: nix::Error,
        /// The remedy, if it is known; begins with a separator.
        hint: &'static str,
    },
    /// Another lab has this name.
    #[error(
        "a lab named {name:?} exists already; remove it with `polycast lab down {name}` or choose another name"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No lab has this name.
    #[error("there is no lab named {name:?}; {known}")]
    UnknownLab {
        /// The name that was asked for.
        name: String,
        /// The labs that exist, as a clause.
        known: String,
    },
    /// The lab has no such host.
    #[error("lab {lab} has no host {host:?}; its hosts are {known}")]
    UnknownHost {
        /// The lab.
        lab: String,
        /// The host that was asked for.
        host: String,
        /// The hosts there are, shortened.
        known: String,
    },
    /// The keeper could not make the lab; it says why.
    #[error("{0}")]
    Keeper(String),
    /// A probe of the calibration failed.
    #[error("calibration: {0}")]
    Probe(String),
    /// A file or process.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The attempt.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl LabError {
    /// True if the words that the user gave were wrong; otherwise something failed.
    pub fn is_usage(&self) -> bool {
        use LabError::{Rate, UnknownHost, UnknownLab, Value};
        matches!(self, Value { .. } | Rate(_) | UnknownLab { .. } | UnknownHost { .. })
    }
}

/// Names the file in an I/O error.
pub(crate) fn at<'a>(
    action: &'static str,
    path: impl Into<PathBuf> + 'a,
) -> impl FnOnce(io::Error) -> LabError + 'a {
    move |source| LabError::Io { action, path: path.into(), source }
}

/// Names the attempt in an answer of the kernel.
pub(crate) fn kernel(action: impl Into<String>) -> impl FnOnce(nix::Error) -> LabError {
    let action = action.into();
    move |source| LabError::Kernel { action, source, hint: "" }
}
