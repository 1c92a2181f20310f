//! The move of the files from the staging folder into their place, by renaming.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use polycast_copy::{Entry, Kind};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, fchmod, futimens, openat, renameat, renameat_with,
    statat, utimensat,
};
use rustix::io::Errno;

use super::backing::Backing;
use super::staging::{Destination, Staging, at, folder_mode, times};

/// A copy that is whole, and what of it does not go into its place.
pub struct Commit<'a> {
    backing: &'a Backing,
    destination: &'a Destination,
    children: Vec<Vec<u32>>,
    left_out: HashSet<u32>,
    umask: u32,
}

impl<'a> Commit<'a> {
    pub fn new(backing: &'a Backing, destination: &'a Destination, spoiled: &[u32]) -> Commit<'a> {
        let entries = backing.manifest.entries();
        let mut children = vec![Vec::new(); entries.len()];
        let mut left_out: HashSet<u32> = spoiled.iter().copied().collect();
        for (number, entry) in entries.iter().enumerate() {
            if let Some(parent) = entry.parent {
                children[parent as usize].push(number as u32);
            }
            if matches!(entry.kind, Kind::HardLink(first) if left_out.contains(&first)) {
                left_out.insert(number as u32);
            }
        }
        Commit { backing, destination, children, left_out, umask: umask() }
    }

    fn entry(&self, number: u32) -> &'a Entry {
        &self.backing.manifest.entries()[number as usize]
    }

    fn target(&self, top: u32) -> PathBuf {
        let own = || OsStr::from_bytes(self.entry(top).name.as_bytes());
        self.destination.folder.join(self.destination.name.as_deref().unwrap_or_else(own))
    }

    /// Checks that what is in the files' place lets them be put there.
    pub fn check(&self) -> io::Result<()> {
        self.backing.tops().try_for_each(|top| self.check_entry(top, &self.target(top)))
    }

    fn check_entry(&self, number: u32, target: &Path) -> io::Result<()> {
        let there = match fs::symlink_metadata(target) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(at(target, error)),
        };
        if self.may_merge(number, target, FileType::from_raw_mode(there.mode()))? {
            for child in &self.children[number as usize] {
                let name = OsStr::from_bytes(self.entry(*child).name.as_bytes());
                self.check_entry(*child, &target.join(name))?;
            }
        }
        Ok(())
    }

    /// True: a folder into a folder; false: a file in the place of a file.
    fn may_merge(&self, number: u32, target: &Path, there: FileType) -> io::Result<bool> {
        let is_folder = self.entry(number).kind == Kind::Folder;
        let refuse = |reason: &str| Err(io::Error::other(format!("{}: {reason}", target.display())));
        match (is_folder, there.is_dir()) {
            (true, true) => Ok(true),
            (true, false) if there.is_symlink() => refuse("is a link; a folder is not copied through one"),
            (true, false) => refuse("is a file, and a folder is to be there"),
            (false, true) => refuse("is a folder, and a file is to be there"),
            (false, false) if !self.destination.force => refuse("exists; -f replaces it"),
            (false, false) => Ok(false),
        }
    }

    /// Puts everything into its place.
    pub fn run(self, staging: &Staging) -> io::Result<()> {
        let mut left_out: Vec<u32> = self.left_out.iter().copied().collect();
        left_out.sort_unstable();
        for number in left_out {
            let path = self.backing.path(number);
            fs::remove_file(&path).map_err(|error| at(&path, error))?;
            // Those that are behind may still ask for it; if it was zero it is.
            self.backing.blank(number, 0);
        }
        let place = &self.destination.folder;
        // The only folder that may be reached through a link: the user has named it.
        let folder = openat(CWD, place, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| at(place, error.into()))?;
        let tops: Vec<u32> = self.backing.tops().collect();
        for top in tops {
            let target = self.target(top);
            self.put(top, &self.backing.path(top), folder.as_fd(), &target)?;
            self.backing.moved(top, target);
        }
        staging.remove();
        Ok(())
    }

    /// Puts an entry into an open folder. Only its name is looked up, never the path to it: whoever owns a folder
    /// that is merged into can put a link into its place at any moment, and the path would lead out of the destination.
    fn put(&self, number: u32, from: &Path, folder: BorrowedFd<'_>, target: &Path) -> io::Result<()> {
        if self.left_out.contains(&number) {
            return Ok(());
        }
        let fails = |error: Errno| at(target, error.into());
        let entry = self.entry(number);
        let name = target.file_name().unwrap_or_default();
        let preserve = self.destination.preserve;
        if preserve && matches!(entry.kind, Kind::Link(_)) {
            set_link_times(entry, CWD, from.as_os_str()).map_err(|error| at(from, error.into()))?;
        }
        // Opened while nobody else gets at it.
        let is_folder = entry.kind == Kind::Folder;
        let new = if is_folder { Some(open_folder(CWD, from, OFlags::RDONLY).map_err(fails)?) } else { None };
        match rename_new(from, folder, name) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(fails(error)),
            Ok(()) => return new.map_or(Ok(()), |new| self.set_modes(number, &new)).map_err(fails),
        }
        let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(fails)?;
        if !self.may_merge(number, target, FileType::from_raw_mode(there.st_mode))? {
            return renameat(CWD, from, folder, name).map_err(fails);
        }
        // One that nobody may list can be written into; but only what is open for reading can be changed itself.
        let access = if preserve { OFlags::RDONLY } else { OFlags::PATH };
        let merged = open_folder(folder, Path::new(name), access).map_err(fails)?;
        for child in &self.children[number as usize] {
            let name = OsStr::from_bytes(self.entry(*child).name.as_bytes());
            self.put(*child, &from.join(name), merged.as_fd(), &target.join(name))?;
        }
        // One that was there before keeps its mode otherwise.
        if preserve { self.set_mode(entry, &merged).map_err(fails) } else { Ok(()) }
    }

    /// The modes and times of a new folder and of what is in it: it comes last, since what is done in it changes its
    /// time, its mode may forbid it, and until then nobody else gets in.
    fn set_modes(&self, number: u32, folder: &OwnedFd) -> Result<(), Errno> {
        for child in &self.children[number as usize] {
            let entry = self.entry(*child);
            let name = OsStr::from_bytes(entry.name.as_bytes());
            match &entry.kind {
                Kind::Folder => {
                    let inner = open_folder(folder.as_fd(), Path::new(name), OFlags::RDONLY)?;
                    self.set_modes(*child, &inner)?;
                }
                Kind::Link(_) if self.destination.preserve && !self.left_out.contains(child) => {
                    set_link_times(entry, folder.as_fd(), name)?;
                }
                _ => {}
            }
        }
        self.set_mode(self.entry(number), folder)
    }

    fn set_mode(&self, entry: &Entry, folder: &OwnedFd) -> Result<(), Errno> {
        let preserve = self.destination.preserve;
        fchmod(folder, folder_mode(entry.mode, preserve, self.umask).into())?;
        if preserve { futimens(folder, &times(entry.modified)) } else { Ok(()) }
    }
}

fn set_link_times(entry: &Entry, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    utimensat(folder, name, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW)
}

/// Opens a folder, never through a link.
fn open_folder(folder: BorrowedFd<'_>, name: &Path, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Renames to a name that nothing has.
fn rename_new(from: &Path, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match renameat_with(CWD, from, folder, name, RenameFlags::NOREPLACE) {
        // A file system that does not know it.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(_) => renameat(CWD, from, folder, name),
        },
        done => done,
    }
}

/// The process's umask; there is no way to only read it that is not /proc's.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let words = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    words.and_then(|words| u32::from_str_radix(words.trim(), 8).ok()).unwrap_or(0o022)
}

/// Checks that the file system has room for so many bytes more.
pub fn check_room(folder: &Path, bytes: u64) -> io::Result<()> {
    let Ok(space) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let is_root = nix::unistd::geteuid().is_root();
    let free = if is_root { space.f_bfree } else { space.f_bavail } * space.f_frsize;
    if free >= bytes {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::StorageFull,
        format!("{}: {bytes} bytes are to come, and {free} are free", folder.display()),
    ))
}

/// Bytes that files there take already, as the file system counts them.
pub fn taken(path: &Path) -> u64 {
    let Ok(there) = fs::symlink_metadata(path) else { return 0 };
    if !there.is_dir() {
        return there.blocks() * 512;
    }
    let listed = fs::read_dir(path).into_iter().flatten().flatten();
    listed.map(|entry| taken(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::os::unix::fs::symlink;

    use polycast_copy::{Manifest, Moment, Name};

    use super::*;

    /// `sub` with `file` in it, and where it comes from.
    fn copy_of(source: &Path) -> Backing {
        let mut manifest = Manifest::default();
        let mut add = |name: &str, parent: Option<u32>, kind: Kind| {
            let name = Name::new(name.as_bytes()).unwrap();
            manifest.add(Entry { parent, name, mode: 0o755, modified: Moment::default(), kind }).unwrap()
        };
        let sub = add("sub", None, Kind::Folder);
        add("file", Some(sub), Kind::File { bytes: 0, extents: Vec::new() });
        fs::create_dir(source.join("sub")).unwrap();
        fs::write(source.join("sub/file"), "").unwrap();
        Backing::new(manifest, Vec::new(), HashMap::from([(sub, source.join("sub"))]))
    }

    #[test]
    fn what_is_put_goes_into_the_folder_that_was_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        for name in ["from", "to", "elsewhere"] {
            fs::create_dir(inside(name)).unwrap();
        }
        let backing = copy_of(&inside("from"));
        let destination = Destination::new(inside("to").into(), true, false, false).unwrap();
        fs::create_dir(inside("to/sub")).unwrap();
        let commit = Commit::new(&backing, &destination, &[]);
        let sub = open_folder(CWD, &inside("to/sub"), OFlags::PATH).unwrap();
        // Its owner puts a link in its place.
        fs::rename(inside("to/sub"), inside("to/away")).unwrap();
        symlink(inside("elsewhere"), inside("to/sub")).unwrap();
        commit.put(1, &inside("from/sub/file"), sub.as_fd(), &inside("to/sub/file")).unwrap();
        assert!(inside("to/away/file").exists());
        assert!(!inside("elsewhere/file").exists());
        // And is not followed from above.
        let above = open_folder(CWD, &inside("to"), OFlags::PATH).unwrap();
        let refused = commit.put(0, &inside("from/sub"), above.as_fd(), &inside("to/sub")).unwrap_err();
        assert!(refused.to_string().contains("a folder is not copied through one"), "{refused}");
    }

    #[test]
    fn folders_get_their_modes_when_all_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("from")).unwrap();
        let backing = copy_of(&folder.path().join("from"));
        let destination = Destination::new(folder.path().join("to").into(), true, false, true).unwrap();
        let staging = super::super::staging::open(&destination);
        Commit::new(&backing, &destination, &[]).run(&staging).unwrap();
        let there = fs::metadata(folder.path().join("to/sub")).unwrap();
        assert_eq!((there.mode() & 0o7777, there.mtime()), (0o755, 0));
        // Of the staging folder its mark is left.
        assert_eq!(fs::read_dir(folder.path().join("to")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(&staging.folder).unwrap().count(), 1);
    }
}
