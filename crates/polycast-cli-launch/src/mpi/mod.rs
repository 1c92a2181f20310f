//! The MPI that a launcher belongs to, and how programs are started with it.
//!
//! ```text
//! hosts, ranks, variables ──▶ Launch ──────────┐
//! ./a.out ──abi_of──────▶ Abi ──for_program──▶ Mpi ──command(launch, program)──▶ a composed mpiexec
//!                                               ▲      options: open_mpi, hydra; what both share: launch
//! "openmpi" | "mpich" | PATH ──resolve──────────┘      recognised by its --version: version
//! ```

mod allocation;
mod hydra;
mod launch;
mod open_mpi;
mod part;
mod program;
mod resolve;
mod version;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use allocation::Allocation;
pub use launch::Launch;
pub use part::{Part, abis_of, parts};
pub use program::{Abi, ProgramError, abi_of, is_static, mapped_mpi};
pub use resolve::{ResolveError, find_on_path};
pub use version::Version;

use launch::Surroundings;

/// MPI libraries that share an application binary interface, and so a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Open MPI, `libmpi.so.40`.
    OpenMpi,
    /// MPICH and what keeps its binary interface, Intel MPI among them; `libmpi.so.12`.
    Mpich,
}

impl Family {
    /// The name on command lines and in file names of doors: `openmpi`, `mpich`.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }

    /// The Debian packages that install an MPI of this family.
    pub fn debian_packages(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi-bin libopenmpi-dev",
            Family::Mpich => "mpich libmpich-dev",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The program that starts ranks; each has its own command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Launcher {
    /// ORTE, of Open MPI up to 4.
    Orte,
    /// PRRTE, of Open MPI from 5.
    Prrte,
    /// Hydra of MPICH.
    Hydra,
    /// Hydra of Intel MPI.
    IntelHydra,
}

/// An mpiexec that was found, and what it said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    path: PathBuf,
    launcher: Launcher,
    version: Version,
}

impl Mpi {
    /// The MPI whose programs this mpiexec starts.
    pub fn family(&self) -> Family {
        match self.launcher {
            Launcher::Orte | Launcher::Prrte => Family::OpenMpi,
            Launcher::Hydra | Launcher::IntelHydra => Family::Mpich,
        }
    }

    /// The version of the MPI, as its mpiexec says it.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The mpiexec.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name and version for people: `Open MPI 4.1.4`.
    pub fn title(&self) -> String {
        let name = match self.launcher {
            Launcher::Orte | Launcher::Prrte => "Open MPI",
            Launcher::Hydra => "MPICH",
            Launcher::IntelHydra => "Intel MPI",
        };
        format!("{name} {}", self.version)
    }

    /// The command that starts `program` (its name and arguments), and those behind it, as `launch` describes, from this process and machine.
    pub fn command(&self, launch: &Launch, program: &[OsString]) -> Command {
        self.command_in(&Surroundings::of_this_process(), launch, program)
    }

    fn command_in(&self, surroundings: &Surroundings, launch: &Launch, program: &[OsString]) -> Command {
        let mut command = Command::new(&self.path);
        let allotted;
        let launch = match &surroundings.allocation {
            Some(Allocation { hosts, .. }) if self.family() == Family::OpenMpi && launch.hosts.is_empty() => {
                allotted = Launch { hosts: hosts.clone(), ..launch.clone() };
                &allotted
            }
            _ => launch,
        };
        let load = launch.load(surroundings);
        match self.launcher {
            Launcher::Orte => open_mpi::orte(&mut command, launch, load),
            Launcher::Prrte => open_mpi::prrte(&mut command, launch, load),
            Launcher::Hydra => hydra::mpich(&mut command, launch, load, self.version),
            Launcher::IntelHydra => hydra::intel(&mut command, launch),
        }
        if self.family() == Family::OpenMpi && surroundings.is_root {
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(&launch.extra).args(program);
        for part in &launch.further {
            command.arg(":");
            match self.family() {
                Family::OpenMpi => open_mpi::part(&mut command, launch, part),
                Family::Mpich => hydra::part(&mut command, part),
            }
            command.args(&part.words);
        }
        command
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.title(), self.path.display())
    }
}

#[cfg(test)]
mod tests;
