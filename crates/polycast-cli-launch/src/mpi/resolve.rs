//! Finding an mpiexec and asking it what it is.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::version::recognise;
use super::{Abi, Family, Mpi};

/// The reasons why there is no MPI to start programs with.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No launcher of this family on PATH.
    #[error(
        "no mpiexec of {family} on PATH; install it (Debian: apt-get install {}) or give --mpi the path of an mpiexec",
        .family.debian_packages()
    )]
    NoneOfFamily {
        /// The family looked for.
        family: Family,
    },
    /// No launcher at all on PATH.
    #[error(
        "no mpiexec on PATH; install an MPI (Debian: apt-get install {}, or {}) or give --mpi the path of an mpiexec",
        Family::OpenMpi.debian_packages(),
        Family::Mpich.debian_packages()
    )]
    NoneAtAll,
    /// The named launcher is not there.
    #[error("--mpi {found}: expected openmpi, mpich or the path of an mpiexec, found no such program")]
    NotFound {
        /// The name or path that was asked for.
        found: String,
    },
    /// The launcher starts programs of another MPI; each rank would be alone in a world of one.
    #[error(
        "the program is linked with {} ({}), which {title} cannot start together; use --mpi {} or leave --mpi out",
        .linked.name(),
        .linked.sonames().join(" or "),
        .linked.name()
    )]
    OtherFamily {
        /// The MPI that the program is linked with.
        linked: Abi,
        /// The launcher that was asked for.
        title: String,
    },
    /// The launcher could not be started.
    #[error("{}: could not be started to ask for its version: {source}", .path.display())]
    NotStarted {
        /// The launcher.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The launcher is of an unknown kind.
    #[error(
        "{}: expected the mpiexec of Open MPI, MPICH or Intel MPI, but its --version says {said:?}",
        .path.display()
    )]
    Unknown {
        /// The launcher.
        path: PathBuf,
        /// The first line of its answer.
        said: String,
    },
}

impl Mpi {
    /// The MPI that a user names: `openmpi`, `mpich`, or an mpiexec by path or by name on PATH.
    pub fn resolve(name: &str) -> Result<Mpi, ResolveError> {
        match name {
            "openmpi" => Self::of_family(Family::OpenMpi),
            "mpich" => Self::of_family(Family::Mpich),
            _ => {
                let path = find_on_path(OsStr::new(name))
                    .ok_or_else(|| ResolveError::NotFound { found: name.to_owned() })?;
                Self::ask(path)
            }
        }
    }

    /// The MPI for the programs of a job, of which these show what they are linked with: as for the first of them.
    pub fn for_programs(asked: Option<&str>, linked: &[Option<Abi>]) -> Result<Mpi, ResolveError> {
        let mpi = Self::for_program(asked, linked.iter().flatten().next().copied())?;
        linked.iter().flatten().try_for_each(|linked| mpi.require_kinship(*linked))?;
        Ok(mpi)
    }

    /// The MPI for a program: the one that the user `asked` for, else that which the program is `linked` with, else
    /// the first mpiexec on PATH.
    pub fn for_program(asked: Option<&str>, linked: Option<Abi>) -> Result<Mpi, ResolveError> {
        let needed = linked.and_then(|abi| Some((abi, abi.family()?)));
        let mpi = match (asked, needed) {
            (Some(name), _) => Self::resolve(name)?,
            (None, Some((_, family))) => Self::of_family(family)?,
            // MPICH was the first to have libraries for it.
            (None, None) if linked == Some(Abi::Standard) => {
                Self::of_family(Family::Mpich).or_else(|_| Self::default_on_path())?
            }
            (None, None) => Self::default_on_path()?,
        };
        linked.map_or(Ok(()), |linked| mpi.require_kinship(linked))?;
        Ok(mpi)
    }

    fn require_kinship(&self, linked: Abi) -> Result<(), ResolveError> {
        match linked.family() {
            Some(family) if family != self.family() => {
                Err(ResolveError::OtherFamily { linked, title: self.title() })
            }
            _ => Ok(()),
        }
    }

    /// The first mpiexec of `family` on PATH: the plain `mpiexec` if it is one, else the name that Debian gives
    /// when several MPIs are installed.
    pub fn of_family(family: Family) -> Result<Mpi, ResolveError> {
        Self::installed()
            .into_iter()
            .filter_map(Result::ok)
            .find(|mpi| mpi.family() == family)
            .ok_or(ResolveError::NoneOfFamily { family })
    }

    /// The MPI of the first launcher on PATH, for programs that do not show which MPI they need.
    pub fn default_on_path() -> Result<Mpi, ResolveError> {
        Self::ask(candidates().into_iter().next().ok_or(ResolveError::NoneAtAll)?)
    }

    /// Every launcher on PATH, each once, in the order in which a family is searched.
    pub fn installed() -> Vec<Result<Mpi, ResolveError>> {
        candidates().into_iter().map(Self::ask).collect()
    }

    fn ask(path: PathBuf) -> Result<Mpi, ResolveError> {
        let output = match Command::new(&path).arg("--version").stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(source) => return Err(ResolveError::NotStarted { path, source }),
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match recognise(&said) {
            Some((launcher, version)) => Ok(Mpi { path, launcher, version }),
            None => {
                let first_line = said.lines().next().unwrap_or_default().chars().take(80).collect();
                Err(ResolveError::Unknown { path, said: first_line })
            }
        }
    }
}

/// Launchers under the names that MPIs and Debian give them; two names of one file count once.
fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut targets = Vec::new();
    for name in ["mpiexec", "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra", "mpirun"] {
        let Some(path) = find_on_path(OsStr::new(name)) else { continue };
        let target = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !targets.contains(&target) {
            targets.push(target);
            found.push(path);
        }
    }
    found
}

/// The executable that a shell would start for `name`: the file itself if the name has a slash, else the first on
/// PATH.
pub fn find_on_path(name: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 || name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_remedy() {
        let error = Mpi::resolve("/nowhere/mpiexec").unwrap_err().to_string();
        assert!(
            error.contains("/nowhere/mpiexec") && error.contains("openmpi, mpich or the path"),
            "{error}"
        );
        let error = ResolveError::NoneOfFamily { family: Family::Mpich }.to_string();
        assert!(error.contains("apt-get install mpich libmpich-dev"), "{error}");
    }

    #[test]
    fn a_program_that_is_no_mpiexec_is_refused() {
        let error = Mpi::resolve("/bin/echo").unwrap_err();
        assert!(matches!(error, ResolveError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("expected the mpiexec of"), "{error}");
    }

    #[test]
    fn a_directory_or_plain_file_is_no_program() {
        assert_eq!(find_on_path(OsStr::new("/tmp")), None);
        assert_eq!(find_on_path(OsStr::new("/etc/passwd")), None);
        assert!(find_on_path(OsStr::new("sh")).is_some());
    }
}
