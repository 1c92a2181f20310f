//! The MPI libraries under test, and the test programs built for each.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::{checkout, library_directory, require};

/// An MPI library with its compilers and its launcher, by Debian's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "OpenMpi is a name")]
pub enum Mpi {
    OpenMpi,
    Mpich,
    /// Open MPI, whose jobs reach polycast as a component of its own, and not by a preloaded object.
    OpenMpiComponent,
}

impl Mpi {
    /// The family's name: of the door, and behind the dot of `mpicc.openmpi`.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi | Mpi::OpenMpiComponent => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    /// With or without the component.
    pub fn is_open_mpi(self) -> bool {
        self.name() == "openmpi"
    }

    /// What a rank finds its number in.
    pub fn rank_variable(self) -> &'static str {
        if self.is_open_mpi() { "OMPI_COMM_WORLD_RANK" } else { "PMI_RANK" }
    }

    /// Adds the launcher, with what it needs to start more ranks than cores, as root, in a container.
    pub fn mpiexec(self, command: &mut Command, ranks: usize) {
        command.arg(format!("mpiexec.{}", self.name())).args(["-n", &ranks.to_string()]);
        if self.is_open_mpi() {
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.arg("--oversubscribe");
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
            command.args(["--mca", "btl_base_warn_component_unused", "0"]);
        }
    }

    /// The launcher's arguments that set a variable for the ranks and for nobody else.
    pub fn set_variable(self, name: &str, value: &str) -> Vec<String> {
        match self {
            Mpi::OpenMpi | Mpi::OpenMpiComponent => vec!["-x".into(), format!("{name}={value}")],
            Mpi::Mpich => vec!["-genv".into(), name.into(), value.into()],
        }
    }

    /// The value of `LD_PRELOAD` for a job's ranks, if it needs one: these objects, and under MPICH one that makes waiting
    /// ranks share their cores (`tests/mpi/yields.c`).
    pub fn preloaded(self, objects: &[PathBuf]) -> Option<String> {
        let mut paths: Vec<String> = objects.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        if self == Mpi::Mpich {
            paths.push(self.built("yields.so").to_string_lossy().into_owned());
        }
        (!paths.is_empty()).then(|| paths.join(":"))
    }

    /// A file of `tests/mpi`, built for this MPI: a program, or one of the shared objects.
    pub fn built(self, file: &str) -> PathBuf {
        static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
        BUILT[usize::from(self.is_open_mpi())].get_or_init(|| self.build()).join(file)
    }

    /// Makes what is older than its source, and returns the folder.
    fn build(self) -> PathBuf {
        let folder = checkout().join("build/tests").join(self.name());
        let made = Command::new("make")
            .args(["--silent", "-C"])
            .arg(checkout().join("tests/mpi"))
            .arg(format!("MPI={}", self.name()))
            .output()
            .expect("make must be installed");
        assert!(
            made.status.success(),
            "cannot build the test programs for {0}; are mpicc.{0} and mpifort.{0} installed?\n{1}",
            self.name(),
            String::from_utf8_lossy(&made.stderr)
        );
        folder
    }

    /// The Python of an environment with mpi4py as pip leaves it, which finds this MPI by itself.
    ///
    /// # Errors
    /// Why it cannot be had: it comes from the network.
    pub fn python_with_mpi4py(self) -> Result<PathBuf, String> {
        let script = checkout().join("tests/mpi/prepare-mpi4py.sh");
        let prepared = Command::new(script).output().expect("the script is in the checkout");
        if prepared.status.success() {
            Ok(checkout().join("build/venv-mpi4py").join(self.name()).join("bin/python"))
        } else {
            let reason = String::from_utf8_lossy(&prepared.stderr);
            Err(format!("tests/mpi/prepare-mpi4py.sh cannot get mpi4py:\n{reason}"))
        }
    }

    /// The variable that brings polycast into a job, and its value: the object that is preloaded is apart.
    pub fn component(self) -> Option<(&'static str, String)> {
        (self == Mpi::OpenMpiComponent).then(|| {
            let folder = library_directory().join("openmpi");
            require(&folder.join("mca_coll_polycast.so"));
            ("OMPI_MCA_mca_base_component_path", format!("SYS_DEFAULT:{}", folder.display()))
        })
    }

    /// The object that users preload. Fails when it, or this MPI's door, is not built.
    pub fn preload(self) -> PathBuf {
        let directory = library_directory();
        require(&directory.join(format!("doors/polycast-door-{}.so", self.name())));
        directory.join("libpolycast-mpi.so")
    }
}
