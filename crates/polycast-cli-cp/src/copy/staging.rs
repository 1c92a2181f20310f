//! The staging folder, beside the files' place, into which files are written as they come. An
//! interrupted run leaves it for the next one.
//!
//! ```text
//!   DEST/.polycast-cp-4f1d…/   manifest   journal, sums: blocks that are whole   tree/…: the files   node-…: who writes here
//! ```

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use polycast_copy::{Kind, Manifest, Moment, Part, Stream};
use rustix::fs::{FlockOperation, OFlags, Timespec, Timestamps, UTIME_OMIT, flock, futimens};
use rustix::io::Errno;

use super::backing::Backing;
use super::in_common::{Mark, Owner};
use super::journal::{Journal, Noted};

/// The modes that are taken over: the owner may be another one, so not the bits that lend its rights.
const MODES: u32 = 0o777;

/// The folder in which the kernel shows the files that this process has open.
const OPEN: &str = "/proc/self/fd/";

/// The destination of the files, and how they are put there.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The folder that the files go to.
    pub folder: PathBuf,
    /// The name that the only file gets there; `None` for the names that the files have.
    pub name: Option<OsString>,
    pub force: bool,
    pub preserve: bool,
}

impl Destination {
    /// A destination as cp understands DEST: into a folder that is there, else to that name.
    pub fn new(path: OsString, into_folder: bool, force: bool, preserve: bool) -> io::Result<Destination> {
        let ends_with_slash = path.as_bytes().last() == Some(&b'/');
        let path = PathBuf::from(path);
        if into_folder || ends_with_slash {
            fs::create_dir(&path).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists if path.is_dir() => Ok(()),
                _ => Err(error),
            })?;
        }
        if path.is_dir() {
            return Ok(Destination { folder: path, name: None, force, preserve });
        }
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder.to_owned(),
            None => PathBuf::from("/"),
        };
        if !folder.is_dir() {
            return Err(io::Error::new(
                ErrorKind::NotFound,
                format!("there is no folder {}", folder.display()),
            ));
        }
        Ok(Destination { folder, name: path.file_name().map(ToOwned::to_owned), force, preserve })
    }
}

/// The result of opening a staging folder.
pub enum Opened {
    Own(Staging),
    /// The folder is in common with the node of this number, which writes here.
    InCommon(u32),
}

/// A staging folder, to be left at the end.
struct Staged {
    folder: PathBuf,
    /// The open folder as in [`Staging`], without its lock.
    inside: File,
    mark: Mark,
}

impl Staged {
    /// Takes the mark away, and the folder, if nothing else is in it.
    fn leave(&self) {
        let inside = PathBuf::from(format!("{OPEN}{}", self.inside.as_raw_fd()));
        let _ = fs::remove_file(self.mark.file(&inside));
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The staging folder of this process, which [`leave`] leaves.
static STAGED: OnceLock<Staged> = OnceLock::new();

/// Sets the folder that [`leave`] leaves.
pub fn leave_at_the_end(staging: &Staging) -> io::Result<()> {
    let _ = STAGED.set(staging.staged()?);
    Ok(())
}

/// Takes away what shows others that this process writes in its folder, and the folder, if nothing else is in it.
pub fn leave() {
    if let Some(staged) = STAGED.get() {
        staged.leave();
    }
}

/// The folder beside.
pub struct Staging {
    /// The path of the staging folder; only the folder itself is removed by this path.
    pub folder: PathBuf,
    /// The staging folder by what is open, whatever the path leads to: whoever owns the destination
    /// could rename the folder and put a link to elsewhere in its place.
    inside: PathBuf,
    mark: Mark,
    /// The lock on the folder, held while this process lives.
    _lock: File,
}

impl Staging {
    /// Opens the staging folder of this manifest and destination; new, or as an earlier run left
    /// it.
    pub fn open(destination: &Destination, manifest: &str, mark: &Mark) -> io::Result<Opened> {
        let mut name = destination.name.clone().unwrap_or_default().into_vec();
        name.extend(manifest.bytes());
        // 64 bits keep copies of one user apart; the name of a file may be as long as names can be.
        let short = &blake3::hash(&name).to_hex()[..16];
        let folder = destination.folder.join(format!(".polycast-cp-{short}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(at(&destination.folder, error));
            }
            _ => {}
        }
        // Somebody else's folder of this name would let them change what is in it.
        let lock = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32)
            .open(&folder)
            .map_err(|error| at(&folder, error))?;
        let owner = std::os::unix::fs::MetadataExt::uid(&lock.metadata()?);
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(io::Error::other(format!("{} belongs to somebody else", folder.display())));
        }
        let inside = PathBuf::from(format!("{OPEN}{}", lock.as_raw_fd()));
        // Before the lock, which some file systems have for one node only.
        if let Owner::Other(node) = mark.put(&inside).map_err(|error| at(&folder, error))? {
            return Ok(Opened::InCommon(node));
        }
        let locked = is_alone(flock(&lock, FlockOperation::NonBlockingLockExclusive), &folder);
        if let Err(error) = locked {
            let _ = fs::remove_file(mark.file(&inside));
            return Err(error);
        }
        let staging = Staging { folder, inside, mark: mark.clone(), _lock: lock };
        staging.remove_those(|name| mark.is_left(name));
        Ok(Opened::Own(staging))
    }

    /// The folder as it is to be left when this process ends.
    fn staged(&self) -> io::Result<Staged> {
        let inside = File::open(&self.inside).map_err(|error| at(&self.folder, error))?;
        Ok(Staged { folder: self.folder.clone(), inside, mark: self.mark.clone() })
    }

    pub fn tree(&self) -> PathBuf {
        self.inside.join("tree")
    }

    /// The manifest and what is noted of the blocks that an earlier run has left.
    pub fn left(&self, stream: &Stream) -> Option<(Vec<u8>, Noted)> {
        let manifest = fs::read(self.inside.join("manifest")).ok()?;
        let noted = Journal::read(&self.inside, stream)?;
        (manifest.len() as u64 == stream.manifest_bytes).then_some((manifest, noted))
    }

    /// Removes everything but its mark, which [`Staged`] takes away.
    pub fn remove(&self) {
        let mark = self.mark.file(Path::new(""));
        self.remove_those(|name| Path::new(name) != mark);
    }

    fn remove_those(&self, is_one: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.inside).into_iter().flatten().flatten() {
            if !is_one(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }

    /// The files of a manifest where they are while they come.
    pub fn backing(&self, manifest: Manifest, bytes: Vec<u8>) -> io::Result<Backing> {
        fs::write(self.inside.join("manifest"), &bytes).map_err(|error| at(&self.folder, error))?;
        match DirBuilder::new().mode(0o700).create(self.tree()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(at(&self.folder, error)),
            _ => {}
        }
        let tree = self.tree();
        let tops = manifest.entries().iter().enumerate().filter(|(_, entry)| entry.parent.is_none());
        let places: HashMap<u32, PathBuf> = tops
            .map(|(number, entry)| (number as u32, tree.join(OsStr::from_bytes(entry.name.as_bytes()))))
            .collect();
        Ok(Backing::new(manifest, bytes, places))
    }
}

/// Checks that nobody else has locked a folder, as far as its file system can tell.
fn is_alone(locked: Result<(), Errno>, folder: &Path) -> io::Result<()> {
    match locked {
        Err(Errno::WOULDBLOCK) => Err(io::Error::other(format!(
            "the same files are being copied already: {} is in use",
            folder.display()
        ))),
        // A file system without locks.
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(()),
        Err(error) => Err(at(folder, error.into())),
    }
}

/// An error with what it is about.
pub fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", named(path).display()))
}

/// The path with its real folder in place of an open folder under [`OPEN`].
fn named(path: &Path) -> PathBuf {
    let of_open = path.strip_prefix(OPEN).ok().and_then(|rest| {
        let mut parts = rest.components();
        let folder = fs::read_link(Path::new(OPEN).join(parts.next()?)).ok()?;
        Some(folder.join(parts.as_path()))
    });
    of_open.unwrap_or_else(|| path.to_owned())
}

/// Writes blocks in their order.
pub struct Writer<'a> {
    backing: &'a Backing,
    stream: Stream,
    journal: Journal,
    preserve: bool,
    /// The next entry that is to be made.
    next: u32,
    file: Option<(u32, File, PathBuf)>,
}

impl<'a> Writer<'a> {
    /// A writer that goes on behind so many blocks.
    pub fn new(
        staging: &Staging,
        backing: &'a Backing,
        (stream, blocks): (Stream, u64),
        preserve: bool,
    ) -> io::Result<Writer<'a>> {
        let journal =
            Journal::open(&staging.inside, stream, blocks).map_err(|error| at(&staging.folder, error))?;
        Ok(Writer { backing, stream, journal, preserve, next: 0, file: None })
    }

    /// Writes the next block.
    pub fn write(&mut self, block: u64, whole: &[u8]) -> io::Result<()> {
        let mut bytes = whole;
        for part in self.backing.layout.parts(self.stream.range(block)) {
            let (these, behind) = bytes.split_at(part.bytes() as usize);
            bytes = behind;
            if let Part::File { entry, at: offset, .. } = part {
                self.make_up_to(entry)?;
                if let Some((_, file, path)) = &self.file {
                    file.write_all_at(these, offset).map_err(|error| at(path, error))?;
                }
            }
        }
        self.journal.wrote(whole)
    }

    /// All blocks are written.
    pub fn finish(&mut self) -> io::Result<()> {
        let entries = self.backing.manifest.entries().len() as u32;
        if entries > 0 {
            self.make_up_to(entries - 1)?;
        }
        self.close()?;
        self.journal.save()
    }

    /// Makes entries, this one the last; if it is a file it is open then.
    fn make_up_to(&mut self, entry: u32) -> io::Result<()> {
        while self.next <= entry {
            self.close()?;
            let path = self.backing.path(self.next);
            self.make(self.next, &path).map_err(|error| at(&path, error))?;
            self.next += 1;
        }
        Ok(())
    }

    fn make(&mut self, number: u32, path: &Path) -> io::Result<()> {
        let entry = &self.backing.manifest.entries()[number as usize];
        // An earlier run may have made it.
        let unless_there = |made: io::Result<()>| match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        match &entry.kind {
            // Its own mode comes when all is in it.
            Kind::Folder => unless_there(DirBuilder::new().mode(0o700).create(path)),
            Kind::Link(target) => unless_there(symlink(OsStr::from_bytes(target), path)),
            Kind::HardLink(first) => unless_there(fs::hard_link(self.backing.path(*first), path)),
            Kind::File { bytes, extents } => {
                let mode = entry.mode & MODES;
                let open = || {
                    let mut options = OpenOptions::new();
                    let flags = OFlags::NOFOLLOW.bits() as i32;
                    options.write(true).create(true).truncate(false).mode(mode).custom_flags(flags).open(path)
                };
                let file = open().or_else(|error| match error.kind() {
                    ErrorKind::PermissionDenied => {
                        let had = fs::symlink_metadata(path)?.permissions();
                        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                        // What is open stays so.
                        let file = open();
                        fs::set_permissions(path, had)?;
                        file
                    }
                    _ => Err(error),
                })?;
                if extents.last().is_none_or(|last| last.at + last.bytes < *bytes) || extents.len() > 1 {
                    file.set_len(*bytes)?;
                }
                self.file = Some((number, file, path.to_owned()));
                Ok(())
            }
        }
    }

    fn close(&mut self) -> io::Result<()> {
        let Some((number, file, path)) = self.file.take() else { return Ok(()) };
        if self.preserve {
            let entry = &self.backing.manifest.entries()[number as usize];
            rustix::fs::fchmod(&file, (entry.mode & MODES).into())
                .map_err(|error| at(&path, error.into()))?;
            futimens(&file, &times(entry.modified)).map_err(|error| at(&path, error.into()))?;
        }
        Ok(())
    }
}

/// A time of last modification as the kernel takes it; the time of access is left as it is.
pub fn times(modified: Moment) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() },
    }
}

/// Modes of folders are set as those of files are.
pub fn folder_mode(mode: u32, preserve: bool, umask: u32) -> u32 {
    if preserve { mode & MODES } else { mode & MODES & !umask }
}

/// Opens a staging folder for node 1 of some copy.
#[cfg(test)]
pub fn open(destination: &Destination) -> Staging {
    let mark = Mark::new(&polycast_copy::Key::from_bytes([1; polycast_copy::KEY_BYTES]), 1);
    match Staging::open(destination, "a manifest", &mark).unwrap() {
        Opened::Own(staging) => staging,
        Opened::InCommon(node) => panic!("node {node} writes there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_no_other_copy() {
        let said = |errno| is_alone(Err(errno), Path::new("/to")).map_err(|error| error.to_string());
        assert_eq!(said(Errno::NOLCK), Ok(()));
        assert!(said(Errno::WOULDBLOCK).unwrap_err().ends_with("copied already: /to is in use"));
        assert!(said(Errno::IO).unwrap_err().starts_with("/to: Input/output error"));
    }

    #[test]
    fn who_swaps_the_folder_for_a_link_gets_nothing_written_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::create_dir(inside("elsewhere")).unwrap();
        fs::write(inside("elsewhere/kept"), "").unwrap();
        let destination = Destination::new(inside("to").into(), true, false, false).unwrap();
        let staging = open(&destination);
        fs::rename(&staging.folder, inside("to/away")).unwrap();
        symlink(inside("elsewhere"), &staging.folder).unwrap();
        let stream = Stream { bytes: 0, manifest_bytes: 0, block_bytes: 4_096 };
        Journal::open(&staging.inside, stream, 0).unwrap().save().unwrap();
        staging.backing(Manifest::default(), Vec::new()).unwrap();
        assert!(inside("to/away/tree").exists());
        assert_eq!(named(&staging.tree()), fs::canonicalize(inside("to/away/tree")).unwrap());
        let staged = staging.staged().unwrap();
        staging.remove();
        assert_eq!(fs::read_dir(inside("to/away")).unwrap().count(), 1, "its mark");
        staged.leave();
        assert_eq!(fs::read_dir(inside("to/away")).unwrap().count(), 0);
        let left: Vec<_> = fs::read_dir(inside("elsewhere")).unwrap().flatten().collect();
        assert_eq!(left.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["kept"]);
    }
}
