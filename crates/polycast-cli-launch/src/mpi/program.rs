//! The MPI that a program is linked with, found without running the program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use super::{Family, find_on_path};

/// The application binary interface that a program was linked for; there is one door for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// Open MPI's interface.
    OpenMpi,
    /// MPICH's interface, which Intel MPI shares.
    Mpich,
    /// The interface that the MPI 5 standard defines.
    Standard,
}

impl Abi {
    /// All interfaces.
    pub const ALL: [Abi; 3] = [Abi::OpenMpi, Abi::Mpich, Abi::Standard];

    /// The name in file names of doors.
    pub fn name(self) -> &'static str {
        match self {
            Abi::OpenMpi => "openmpi",
            Abi::Mpich => "mpich",
            Abi::Standard => "abi",
        }
    }

    /// The shared object names by which programs ask for a library of this interface.
    pub fn sonames(self) -> &'static [&'static str] {
        match self {
            Abi::OpenMpi => &["libmpi.so.40"],
            Abi::Mpich => &["libmpi.so.12", "libmpich.so.12"],
            Abi::Standard => &["libmpi_abi.so.0", "libmpi_abi.so.1"],
        }
    }

    /// A compiler wrapper that builds its door, as Debian and PyPI name them.
    pub fn example_mpicc(self) -> &'static str {
        match self {
            Abi::OpenMpi => "mpicc.openmpi",
            Abi::Mpich => "mpicc.mpich",
            Abi::Standard => "mpicc_abi",
        }
    }

    /// The family whose mpiexec such programs need; `None` if several have libraries for it.
    pub fn family(self) -> Option<Family> {
        match self {
            Abi::OpenMpi => Some(Family::OpenMpi),
            Abi::Mpich => Some(Family::Mpich),
            Abi::Standard => None,
        }
    }

    fn of_soname(soname: &str) -> Option<Abi> {
        Abi::ALL.into_iter().find(|abi| abi.sonames().contains(&soname))
    }
}

impl From<Family> for Abi {
    fn from(family: Family) -> Abi {
        match family {
            Family::OpenMpi => Abi::OpenMpi,
            Family::Mpich => Abi::Mpich,
        }
    }
}

/// A program that cannot be started, or not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No program of that name was found.
    #[error("program {} not found: {hint}", Path::new(.name).display())]
    NotFound {
        /// The name that was asked for.
        name: OsString,
        /// A sentence on what there is instead, or where to look.
        hint: String,
    },
    /// The system refused to show the program.
    #[error("program {}: {source}", Path::new(.name).display())]
    Unreadable {
        /// The name that was asked for.
        name: OsString,
        /// The system's reason.
        source: io::Error,
    },
}

/// The MPI that the program of this name is linked with, which is found as launchers find it.
pub fn abi_of(name: &OsStr) -> Result<Option<Abi>, ProgramError> {
    let unreadable = |source| ProgramError::Unreadable { name: name.to_owned(), source };
    match find_on_path(name) {
        Some(path) => path.canonicalize().and_then(|path| linked_mpi(&path)).map_err(unreadable),
        None => Err(ProgramError::NotFound { name: name.to_owned(), hint: what_is_there(name) }),
    }
}

fn what_is_there(name: &OsStr) -> String {
    let (here, shown) = (Path::new(".").join(name), Path::new(name).display());
    match here.metadata() {
        Ok(file) if file.is_dir() => format!("{shown} is a directory"),
        Ok(_) if find_on_path(here.as_os_str()).is_some() => format!("did you mean {}?", here.display()),
        Ok(_) => format!("{shown} is not executable (chmod +x)"),
        Err(_) => "neither that file nor a command of that name exists".to_owned(),
    }
}

/// The MPI that `program` is linked with, itself or through its libraries. `None` for what does not show it: scripts,
/// interpreters, static programs.
fn linked_mpi(program: &Path) -> io::Result<Option<Abi>> {
    let data = fs::read(program)?;
    let Ok(dynamic) = Dynamic::read(&data) else { return Ok(None) };
    if let Some(abi) = dynamic.needed.iter().find_map(|soname| Abi::of_soname(soname)) {
        return Ok(Some(abi));
    }
    let Some(loader) = dynamic.loader else { return Ok(None) };
    Ok(names_in_listing(&list(&loader, program)?).find_map(Abi::of_soname))
}

/// Whether a program asks for no loader, which therefore preloads nothing into it. What is no program of this machine's kind does not count.
pub fn is_static(name: &OsStr) -> bool {
    let data = find_on_path(name).and_then(|path| fs::read(path).ok()).unwrap_or_default();
    Dynamic::read(&data).is_ok_and(|dynamic| dynamic.loader.is_none())
}

/// The entries of an ELF file for the dynamic loader.
#[derive(Default)]
struct Dynamic {
    /// The loader that the program asks for.
    loader: Option<PathBuf>,
    /// The libraries that the program asks for itself.
    needed: Vec<String>,
}

impl Dynamic {
    fn read(data: &[u8]) -> object::read::Result<Dynamic> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut dynamic = Dynamic::default();
        for segment in header.program_headers(endian, data)? {
            if segment.p_type(endian) == PT_INTERP {
                let path = segment.data(endian, data).unwrap_or_default();
                let path = String::from_utf8_lossy(path).trim_end_matches('\0').to_owned();
                dynamic.loader = Some(path.into());
            }
        }
        let sections = header.sections(endian, data)?;
        if let Some((entries, strings)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, strings)?;
            for entry in entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED)) {
                let soname = entry.string(endian, strings)?;
                dynamic.needed.push(String::from_utf8_lossy(soname).into_owned());
            }
        }
        Ok(dynamic)
    }
}

/// Lists the libraries that the loader would map for `program`. Only the loader itself knows: the
/// search goes through run paths, `LD_LIBRARY_PATH` and its cache. It lists them without running
/// any code of the program or its libraries.
fn list(loader: &Path, program: &Path) -> io::Result<String> {
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    Ok(String::from_utf8_lossy(&command.output()?.stdout).into_owned())
}

/// The file of the MPI that the loader would map for a program with these variables.
pub fn mapped_mpi(program: &Path, variables: &[(String, String)]) -> io::Result<Option<PathBuf>> {
    let data = fs::read(program)?;
    let Some(loader) = Dynamic::read(&data).ok().and_then(|dynamic| dynamic.loader) else { return Ok(None) };
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).envs(variables.iter().cloned());
    let listing = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let mut of_mpi =
        listing.lines().filter(|line| names_in_listing(line).any(|name| Abi::of_soname(name).is_some()));
    Ok(of_mpi.find_map(|line| Some(line.split_once("=> ")?.1.split_whitespace().next()?.into())))
}

/// The first words of lines such as `libmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f…)`.
fn names_in_listing(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abis_are_known_by_their_sonames() {
        assert_eq!(Abi::of_soname("libmpi.so.40"), Some(Abi::OpenMpi));
        assert_eq!(Abi::of_soname("libmpich.so.12"), Some(Abi::Mpich));
        assert_eq!(Abi::of_soname("libmpi_abi.so.1"), Some(Abi::Standard));
        assert_eq!(Abi::of_soname("libmpi.so.1"), None);
    }

    #[test]
    fn the_listing_of_the_loader_is_understood() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibmpi.so.40 => /lib/libmpi.so.40 (0x00007f)\n";
        assert_eq!(names_in_listing(listing).find_map(Abi::of_soname), Some(Abi::OpenMpi));
    }

    #[test]
    fn a_dynamic_program_names_its_loader_and_libraries() {
        let this = std::env::current_exe().unwrap();
        let dynamic = Dynamic::read(&fs::read(&this).unwrap()).unwrap();
        assert!(dynamic.loader.unwrap().is_absolute());
        assert!(dynamic.needed.iter().any(|soname| soname == "libc.so.6"), "{:?}", dynamic.needed);
        assert_eq!(linked_mpi(&this).unwrap(), None);
    }

    #[test]
    fn scripts_and_damaged_files_show_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        for content in [&b"#!/usr/bin/env python3\n"[..], b"", b"\x7fELF", &this[..1000]] {
            fs::write(&file, content).unwrap();
            assert_eq!(linked_mpi(&file).unwrap(), None);
            assert!(!is_static(file.as_os_str()));
        }
    }
}
