//! From the staging folder into their place, by renaming.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use polycast_copy::{Entry, Kind};
use rustix::fs::{AtFlags, CWD, RenameFlags, renameat_with, utimensat};

use super::backing::Backing;
use super::staging::{Destination, Staging, at, folder_mode, times};

/// A copy that is whole, and what of it does not go into its place.
pub struct Commit<'a> {
    backing: &'a Backing,
    destination: &'a Destination,
    children: Vec<Vec<u32>>,
    left_out: HashSet<u32>,
    /// Folders that were there before keep their modes.
    merged: HashSet<u32>,
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
        Commit { backing, destination, children, left_out, merged: HashSet::new(), umask: umask() }
    }

    fn entry(&self, number: u32) -> &'a Entry {
        &self.backing.manifest.entries()[number as usize]
    }

    fn target(&self, top: u32) -> PathBuf {
        let own = || OsStr::from_bytes(self.entry(top).name.as_bytes());
        self.destination.folder.join(self.destination.name.as_deref().unwrap_or_else(own))
    }

    /// Whether what is in their place lets them.
    pub fn check(&self) -> io::Result<()> {
        self.backing.tops().try_for_each(|top| self.check_entry(top, &self.target(top)))
    }

    fn check_entry(&self, number: u32, target: &Path) -> io::Result<()> {
        let there = match fs::symlink_metadata(target) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(at(target, error)),
        };
        if self.may_merge(number, target, &there)? {
            for child in &self.children[number as usize] {
                let name = OsStr::from_bytes(self.entry(*child).name.as_bytes());
                self.check_entry(*child, &target.join(name))?;
            }
        }
        Ok(())
    }

    /// True: a folder into a folder; false: a file in the place of a file.
    fn may_merge(&self, number: u32, target: &Path, there: &Metadata) -> io::Result<bool> {
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
    pub fn run(mut self, staging: &Staging) -> io::Result<()> {
        let mut left_out: Vec<u32> = self.left_out.iter().copied().collect();
        left_out.sort_unstable();
        for number in left_out {
            let path = self.backing.path(number);
            fs::remove_file(&path).map_err(|error| at(&path, error))?;
        }
        let tops: Vec<u32> = self.backing.tops().collect();
        for top in &tops {
            let target = self.target(*top);
            self.put(*top, &self.backing.path(*top), &target)?;
            self.backing.moved(*top, target);
        }
        self.set_modes()?;
        staging.remove();
        Ok(())
    }

    fn put(&mut self, number: u32, from: &Path, target: &Path) -> io::Result<()> {
        if self.left_out.contains(&number) {
            return Ok(());
        }
        match rename_new(from, target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return done.map_err(|error| at(target, error)),
        }
        let there = fs::symlink_metadata(target).map_err(|error| at(target, error))?;
        if !self.may_merge(number, target, &there)? {
            return fs::rename(from, target).map_err(|error| at(target, error));
        }
        self.merged.insert(number);
        for child in self.children[number as usize].clone() {
            let name = OsStr::from_bytes(self.entry(child).name.as_bytes());
            self.put(child, &from.join(name), &target.join(name))?;
        }
        Ok(())
    }

    /// Folders last, the deepest first: what is put into them changes their times, and their modes may forbid it.
    fn set_modes(&self) -> io::Result<()> {
        let preserve = self.destination.preserve;
        for (number, entry) in self.backing.manifest.entries().iter().enumerate().rev() {
            let number = number as u32;
            let is_link = matches!(entry.kind, Kind::Link(_));
            let is_new_folder = entry.kind == Kind::Folder && (preserve || !self.merged.contains(&number));
            if self.left_out.contains(&number) || !(is_new_folder || (is_link && preserve)) {
                continue;
            }
            let path = self.backing.path(number);
            if is_new_folder {
                let mode = folder_mode(entry.mode, preserve, self.umask);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                    .map_err(|error| at(&path, error))?;
            }
            if preserve {
                utimensat(CWD, &path, &times(entry.modified), AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|error| at(&path, error.into()))?;
            }
        }
        Ok(())
    }
}

/// Renames to a name that nothing has.
fn rename_new(from: &Path, target: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
        // A file system that does not know it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match fs::symlink_metadata(target) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, target),
        },
        done => done.map_err(Into::into),
    }
}

/// The process's umask; there is no way to only read it that is not /proc's.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let words = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    words.and_then(|words| u32::from_str_radix(words.trim(), 8).ok()).unwrap_or(0o022)
}

/// Whether the file system has room for so many bytes more.
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
