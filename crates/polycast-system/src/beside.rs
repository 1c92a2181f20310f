//! Files that are replaced whole: whoever reads one has all of the old one or all of the new one.
//!
//! ```text
//!   create   .NAME.polycast-OWNER.new   beside the place, never over a file that is there
//!   put      renamed to NAME            over what is there
//!   put_new  linked to NAME             only if nothing is there
//!   dropped  removed
//! ```
//!
//! 1. Two writers at once, of one process or of several, have a file each; that of the last one stays.
//! 2. The permissions are those that the writer names, whatever those of the old file were.
//! 3. What is not put is removed when it is dropped. What a killed process left carries its number:
//!    see [`remove_abandoned`].
//! 4. Nothing is written to the disk at once. Who replaces what cannot be made again calls
//!    [`File::sync_all`] before [`Beside::put`]: after a crash of the machine the name would else
//!    stand for less than was written. State that such a crash makes void anyway needs none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What stands between the name of a file and the number of its owner.
const MARK: &str = ".polycast-";
const END: &str = ".new";
/// The most files that a process may be writing for one place, with those that a killed one of its
/// number left.
const MAX_OF_PROCESS: u32 = 64;

/// A file that is being written beside its place.
#[derive(Debug)]
pub struct Beside {
    file: File,
    place: PathBuf,
    /// The file's path; `None` once it has its place.
    new: Option<PathBuf>,
}

/// Replaces the file at `place`, which gets this mode, less what the process's mask takes.
pub fn replace(place: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut beside = Beside::create(place, mode)?;
    beside.write_all(bytes)?;
    beside.put()
}

impl Beside {
    /// Begins a file of this mode, less what the process's mask takes.
    pub fn create(place: &Path, mode: u32) -> io::Result<Beside> {
        Beside::create_as(place, mode, std::process::id())
    }

    /// Begins a file that is abandoned when process `owner` is gone.
    pub fn create_as(place: &Path, mode: u32, owner: u32) -> io::Result<Beside> {
        let name = place.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut tries = 0;
        loop {
            let number = if tries == 0 { String::new() } else { format!("-{tries}") };
            let new = place.with_file_name(format!(".{name}{MARK}{owner}{number}{END}"));
            match options.open(&new) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_OF_PROCESS => {
                    tries += 1
                }
                opened => return Ok(Beside { file: opened?, place: place.to_owned(), new: Some(new) }),
            }
        }
    }

    /// The file, which stays the same one when it gets its place.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path of the file: beside its place, or that.
    pub fn path(&self) -> &Path {
        self.new.as_deref().unwrap_or(&self.place)
    }

    /// True once the file has its place.
    pub fn is_put(&self) -> bool {
        self.new.is_none()
    }

    /// The place of the file.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Puts the file in its place. What is written from then on is seen at once. After an error it is
    /// where it was.
    pub fn put(&mut self) -> io::Result<()> {
        if let Some(new) = &self.new {
            fs::rename(new, &self.place)?;
            self.new = None;
        }
        Ok(())
    }

    /// Puts the file in its place if there is none; of several writers one does.
    pub fn put_new(self) -> io::Result<()> {
        fs::hard_link(self.path(), &self.place)
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            let _ = fs::remove_file(new);
        }
    }
}

/// Removes from a folder what was begun there and not put, by processes that are gone: `is_gone` tells.
pub fn remove_abandoned(folder: &Path, is_gone: impl Fn(i32) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.to_str().and_then(owner_of).is_some_and(&is_gone) {
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

/// The owner of a file by its name, if it is one that is being written.
fn owner_of(name: &str) -> Option<i32> {
    let (_, owner) = name.strip_prefix('.')?.strip_suffix(END)?.rsplit_once(MARK)?;
    owner.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_reader_has_the_old_file_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        replace(&place, 0o600, b"old").unwrap();
        let mut reader = File::open(&place).unwrap();
        replace(&place, 0o640, b"new").unwrap();
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "old");
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn writers_at_once_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        let [mut first, mut second, third] = [0; 3].map(|_| Beside::create(&place, 0o600).unwrap());
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        second.put().unwrap();
        first.put().unwrap();
        first.write_all(b", more").unwrap();
        drop((first, second, third));
        assert_eq!(fs::read_to_string(&place).unwrap(), "first, more");
        assert_eq!(names(folder.path()), ["file"]);
        std::thread::scope(|scope| {
            for writer in [b'a', b'b', b'c', b'd'] {
                let place = &place;
                scope.spawn(move || (0..20).for_each(|_| replace(place, 0o600, &[writer; 4096]).unwrap()));
            }
        });
        let text = fs::read(&place).unwrap();
        assert!(text.len() == 4096 && text.iter().all(|byte| *byte == text[0]), "of one writer");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_is_there_is_not_replaced_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        Beside::create(&place, 0o600).unwrap().put_new().unwrap();
        let taken = Beside::create(&place, 0o600).unwrap().put_new().unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_cannot_be_put_stays_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        fs::create_dir(&place).unwrap();
        let mut beside = Beside::create(&place, 0o600).unwrap();
        assert!(beside.put().is_err() && beside.path().exists());
        drop(beside);
        assert_eq!(names(folder.path()), ["file"]);
        assert!(Beside::create(Path::new("/"), 0o600).is_err());
    }

    #[test]
    fn only_what_processes_that_are_gone_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".a.polycast-7.new", ".a.polycast-7-2.new", ".a.polycast-8.new", ".profile", "a.new"] {
            fs::write(at(name), "").unwrap();
        }
        remove_abandoned(folder.path(), |owner| owner == 7).unwrap();
        assert_eq!(names(folder.path()), [".a.polycast-8.new", ".profile", "a.new"]);
    }
}
