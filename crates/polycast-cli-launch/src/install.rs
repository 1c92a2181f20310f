//! Where the parts of an installation are.
//!
//! ```text
//! PREFIX/bin/polycast                 the tool
//! PREFIX/lib/polycast/                the library directory
//!     libpolycast-mpi.so              what programs preload, whichever MPI they use
//!     libpolycast.so                  the library
//!     doors/polycast-door-ABI.so      one for each MPI that programs may use
//! ```

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use polycast_core::variables::LIBRARY_DIRECTORY;
use polycast_lab::own_program;

use crate::mpi::Abi;
use crate::network::{self, Variables};

/// The object that programs preload.
const PRELOAD: &str = "libpolycast-mpi.so";

/// The loader's variable that has programs preload an object.
pub const LD_PRELOAD: &str = "LD_PRELOAD";

/// An installation that was found.
#[derive(Clone, Debug)]
pub struct Installation {
    library_directory: PathBuf,
}

/// An error that keeps a part of the installation from being used.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The library is in none of the places.
    #[error(
        "no {PRELOAD} in {}; build it with `make build`, or set {LIBRARY_DIRECTORY} to the directory that \
         holds it",
        .places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
    )]
    MissingLibrary {
        /// The directories looked at.
        places: Vec<PathBuf>,
    },
    /// The library has no door for this MPI.
    #[error(
        "no door for programs linked with {}: expected {}; build it with the mpicc of that MPI, for example: \
         make doors MPICC={}",
        .abi.sonames().join(" or "),
        .expected.display(),
        .abi.example_mpicc()
    )]
    MissingDoor {
        /// The binary interface of the MPI that programs are linked with.
        abi: Abi,
        /// The path at which the door was expected.
        expected: PathBuf,
    },
    /// The loader would take the path of the library for several.
    #[error(
        "{}: the loader splits LD_PRELOAD at white space and colons, so programs would run without polycast; install it \
         in a directory without them (make install PREFIX=…)",
        .preload.display()
    )]
    SplitByLoader {
        /// The path of the object that programs would preload.
        preload: PathBuf,
    },
    /// The path of the library is no text.
    #[error("{}: expected a path in UTF-8", .preload.display())]
    NotUtf8 {
        /// The path of the object that programs would preload.
        preload: PathBuf,
    },
    /// The path of the tool itself is unknown.
    #[error("cannot find out where this program is: {0}")]
    UnknownPlace(#[from] io::Error),
}

impl Installation {
    /// The installation that this program belongs to, or that the environment names.
    pub fn find() -> Result<Installation, InstallError> {
        let named = env::var_os(LIBRARY_DIRECTORY).filter(|value| !value.is_empty());
        Self::find_in(places(named, &own_program()?.canonicalize()?))
    }

    fn find_in(places: Vec<PathBuf>) -> Result<Installation, InstallError> {
        let found = places.iter().find(|place| place.join(PRELOAD).is_file());
        match found.map(|place| place.canonicalize()).transpose()? {
            Some(library_directory) => Ok(Installation { library_directory }),
            None => Err(InstallError::MissingLibrary { places }),
        }
    }

    /// The directory that holds the library, its doors and its measuring programs.
    pub fn library_directory(&self) -> &Path {
        &self.library_directory
    }

    /// The object that programs preload.
    pub fn preload(&self) -> PathBuf {
        self.library_directory.join(PRELOAD)
    }

    /// Returns the path of the preloaded object as a value of LD_PRELOAD, in which nothing can be
    /// escaped: a path with a colon or a space is an error.
    fn preload_value(&self) -> Result<String, InstallError> {
        let preload = self.preload();
        match preload.to_str() {
            None => Err(InstallError::NotUtf8 { preload }),
            Some(text) if text.contains(|c: char| c == ':' || c.is_whitespace()) => {
                Err(InstallError::SplitByLoader { preload })
            }
            Some(text) => Ok(text.to_owned()),
        }
    }

    /// Has ranks with these variables preload polycast's object, behind the objects that they
    /// preload already: a profiler that comes first sees the program's calls, not ours.
    pub fn preload_in(&self, variables: &mut Variables) -> Result<(), InstallError> {
        let others = variables.iter().rfind(|(name, _)| name == LD_PRELOAD);
        let all = preload_after(others.map_or("", |(_, objects)| objects), &self.preload_value()?);
        network::set(variables, vec![(LD_PRELOAD.to_owned(), all)]);
        Ok(())
    }

    /// Returns the path of the door for programs of this binary interface, if it was built.
    pub fn door(&self, abi: Abi) -> Option<PathBuf> {
        Some(self.door_path(abi)).filter(|door| door.is_file())
    }

    /// Returns the path of the door for an MPI; a missing door is an error that says how to build
    /// it.
    pub fn require_door(&self, abi: Abi) -> Result<PathBuf, InstallError> {
        self.door(abi).ok_or_else(|| InstallError::MissingDoor { abi, expected: self.door_path(abi) })
    }

    fn door_path(&self, abi: Abi) -> PathBuf {
        self.library_directory.join("doors").join(format!("polycast-door-{}.so", abi.name()))
    }
}

fn preload_after(others: &str, ours: &str) -> String {
    let others = others.split([':', ' ']).filter(|object| !object.is_empty() && *object != ours);
    others.chain([ours]).collect::<Vec<_>>().join(":")
}

/// Returns a value of LD_PRELOAD without polycast's object, wherever that is installed; `None` if
/// the object is not in it.
pub fn preload_without_ours(value: &str) -> Option<String> {
    let is_ours = |object: &&str| object.rsplit('/').next() == Some(PRELOAD);
    let objects: Vec<&str> = value.split([':', ' ']).filter(|object| !object.is_empty()).collect();
    let others: Vec<&str> = objects.iter().copied().filter(|object| !is_ours(object)).collect();
    (others.len() < objects.len()).then(|| others.join(":"))
}

/// Lists the folders to search for the installation: only the one that the user named, if any; else
/// the one beside the tool as installed, then as built.
fn places(named: Option<OsString>, tool: &Path) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.into()];
    }
    let above = |levels| tool.ancestors().nth(levels).unwrap_or(Path::new("/"));
    vec![above(2).join("lib/polycast"), above(3).join("build/lib/polycast")]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn installed_and_built_tools_find_their_library() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for (tool, library) in [
            ("usr/bin/polycast", "usr/lib/polycast"),
            ("source/target/tool/polycast", "source/build/lib/polycast"),
        ] {
            let library = root.join(library);
            fs::create_dir_all(library.join("doors")).unwrap();
            fs::write(library.join(PRELOAD), "").unwrap();
            fs::write(library.join("doors/polycast-door-mpich.so"), "").unwrap();
            let found = Installation::find_in(places(None, &root.join(tool))).unwrap();
            assert_eq!(found.library_directory(), library);
            assert!(found.door(Abi::Mpich).is_some() && found.door(Abi::OpenMpi).is_none());
            let error = found.require_door(Abi::OpenMpi).unwrap_err().to_string();
            assert!(
                error.contains("linked with libmpi.so.40")
                    && error.contains("make doors MPICC=mpicc.openmpi"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_path_that_the_loader_splits_is_refused() {
        let value = |directory: &str| Installation { library_directory: directory.into() }.preload_value();
        assert_eq!(value("/opt/polycast").unwrap(), "/opt/polycast/libpolycast-mpi.so");
        for directory in ["/opt/poly cast", "/opt/a:b", "/opt/a\tb"] {
            let error = value(directory).unwrap_err().to_string();
            assert!(error.contains(directory) && error.contains("splits LD_PRELOAD"), "{error}");
        }
    }

    #[test]
    fn a_profiler_stays_first_and_nothing_is_loaded_twice() {
        assert_eq!(preload_after("", "/p.so"), "/p.so");
        assert_eq!(preload_after("/profiler.so", "/p.so"), "/profiler.so:/p.so");
        assert_eq!(preload_after("/a.so /p.so:/b.so", "/p.so"), "/a.so:/b.so:/p.so");
        let mut variables = ["A", LD_PRELOAD].map(|name| (name.to_owned(), "/a.so".to_owned())).to_vec();
        Installation { library_directory: "/lib".into() }.preload_in(&mut variables).unwrap();
        assert_eq!(variables[1..], [(LD_PRELOAD.to_owned(), "/a.so:/lib/libpolycast-mpi.so".to_owned())]);
    }

    #[test]
    fn what_others_preload_stays_where_polycast_is_left_out() {
        for (value, others) in [
            ("", None),
            ("/a.so", None),
            ("/x/libpolycast-mpi.so", Some("")),
            ("/a.so /x/libpolycast-mpi.so:/b.so", Some("/a.so:/b.so")),
        ] {
            assert_eq!(preload_without_ours(value).as_deref(), others, "{value}");
        }
    }

    #[test]
    fn a_named_directory_is_the_only_place() {
        let error = Installation::find_in(places(Some("/nowhere".into()), Path::new("/usr/bin/polycast")));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("no libpolycast-mpi.so in /nowhere; build it"), "{error}");
    }
}
