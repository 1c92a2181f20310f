//! The MPIs that mpi4py is tested on.

use std::path::PathBuf;
use std::process::Command;

use crate::common::checkout;

/// mpi4py beside an MPI.
#[derive(Clone, Copy, Debug)]
pub struct Mpi4py {
    pub name: &'static str,
    /// Below build/venv-mpi4py.
    environment: &'static str,
    /// On PATH, or in the environment's `bin`.
    launcher: Launcher,
    /// What tells mpi4py which library to open; paths are below build/venv-mpi4py.
    variables: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug)]
enum Launcher {
    OfSystem(&'static str),
    OfEnvironment,
}

impl Mpi4py {
    /// Those of Debian, and those of PyPI.
    pub const ALL: [Mpi4py; 5] = [
        Mpi4py {
            name: "openmpi-debian",
            environment: "openmpi",
            launcher: Launcher::OfSystem("mpiexec.openmpi"),
            variables: &[],
        },
        Mpi4py {
            name: "mpich-debian",
            environment: "openmpi",
            launcher: Launcher::OfSystem("mpiexec.mpich"),
            variables: &[("MPI4PY_MPIABI", "mpich"), ("LD_LIBRARY_PATH", "mpich-debian")],
        },
        Mpi4py {
            name: "openmpi-5",
            environment: "openmpi5",
            launcher: Launcher::OfEnvironment,
            variables: &[],
        },
        Mpi4py {
            name: "mpich-5",
            environment: "mpich",
            launcher: Launcher::OfEnvironment,
            // Without them waiting ranks spin, and two cores have more ranks than that.
            variables: &[
                ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"),
                ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "16"),
            ],
        },
        Mpi4py {
            name: "intel",
            environment: "intel",
            launcher: Launcher::OfEnvironment,
            variables: &[
                ("LD_LIBRARY_PATH", "intel/lib"),
                ("FI_PROVIDER", "tcp"),
                // Waiting ranks give way.
                ("I_MPI_THREAD_YIELD", "2"),
            ],
        },
    ];

    pub fn python(&self) -> PathBuf {
        self.folder().join("bin/python")
    }

    pub fn launcher(&self) -> PathBuf {
        match self.launcher {
            Launcher::OfSystem(name) => name.into(),
            Launcher::OfEnvironment => self.folder().join("bin/mpiexec"),
        }
    }

    /// Whether its waiting ranks take all of a core, and no variable changes that.
    pub fn spins(&self) -> bool {
        self.name == "mpich-debian"
    }

    /// The module in which it fails by itself across hosts: MPICH 4.0.2 crashes in MPI_Comm_split_type on an intercommunicator, in that of
    /// topologies MPICH 5.0.2 waits for ever.
    pub fn fails_across_hosts_in(&self) -> Option<&'static str> {
        match self.name {
            "mpich-debian" => Some("test_comm_inter"),
            "mpich-5" => Some("test_comm_topo"),
            _ => None,
        }
    }

    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let of = |&(name, value): &(&'static str, &str)| match name {
            "LD_LIBRARY_PATH" => (name, environments().join(value).to_string_lossy().into_owned()),
            _ => (name, value.to_owned()),
        };
        self.variables.iter().map(of).collect()
    }

    fn folder(&self) -> PathBuf {
        environments().join(self.environment)
    }
}

fn environments() -> PathBuf {
    checkout().join("build/venv-mpi4py")
}

/// The program that runs mpi4py's tests.
pub fn tests() -> PathBuf {
    environments().join("tests/main.py")
}

/// Fetches what is not there.
///
/// # Errors
/// Why it cannot be had: it comes from the network.
pub fn prepare() -> Result<(), String> {
    let script = checkout().join("tests/mpi/prepare-mpi4py.sh");
    let prepared = Command::new(script).arg("all").output().expect("the script is in the checkout");
    let said = String::from_utf8_lossy(&prepared.stderr);
    if prepared.status.success() { Ok(()) } else { Err(format!("tests/mpi/prepare-mpi4py.sh all:\n{said}")) }
}
