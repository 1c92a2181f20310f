//! A file that the user named, which is written beside its place until there is something to be seen in it: a run that fails before
//! leaves what was there.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use polycast_system::Beside;

/// The error of a standard output whose reader has seen enough, as `head` has after ten lines.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
struct ReaderGone;

/// An error of writing to standard output, whose reader may be gone; other pipes that break are failures.
pub fn of_standard_output(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(error.kind(), ReaderGone),
        _ => error,
    }
}

/// True if the error says that the reader of standard output is gone.
pub fn is_reader_gone(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<ReaderGone>())
}

/// An output that is being written; without `put` it is deleted in the end.
#[derive(Debug)]
pub struct Draft(Output);

#[derive(Debug)]
enum Output {
    /// A file beside its place, or that has got it.
    Beside(Beside),
    InPlace(File),
    /// Standard output, which needs no replacing.
    Standard(File),
}

impl Draft {
    /// Begins the file: beside its place, or in it where the file cannot be replaced.
    pub fn of(file: &Path) -> io::Result<Draft> {
        Ok(Draft(match new_beside(file) {
            Some(beside) => Output::Beside(beside),
            None => Output::InPlace(File::create(file)?),
        }))
    }

    /// Tests that the file can be begun: an existing file stays as it is, and a new one is deleted
    /// again.
    pub fn try_out(file: &Path) -> io::Result<()> {
        if new_beside(file).is_some() {
            return Ok(());
        }
        match (file.metadata(), file.symlink_metadata()) {
            (Ok(old), _) if old.is_file() => OpenOptions::new().write(true).open(file).map(drop),
            // A device or pipe may wait for a reader; a link to nothing makes what it names.
            (Ok(_), _) | (_, Ok(_)) => Ok(()),
            _ => File::create_new(file).and_then(|_| fs::remove_file(file)),
        }
    }

    /// A draft that is standard output.
    pub fn of_stdout() -> io::Result<Draft> {
        Ok(Draft(Output::Standard(io::stdout().as_fd().try_clone_to_owned()?.into())))
    }

    /// Replaces the old file by the draft. Writes from then on are seen at once.
    pub fn put(&mut self) -> io::Result<()> {
        let Output::Beside(beside) = &mut self.0 else { return Ok(()) };
        if beside.is_put() {
            return Ok(());
        }
        beside.file().sync_all()?;
        if beside.put().is_err() {
            // In place what cannot be replaced, as a file that is mounted.
            let mut file = File::create(beside.place())?;
            io::copy(&mut File::open(beside.path())?, &mut file)?;
            self.0 = Output::InPlace(file);
        }
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Output::Beside(beside) => beside.write(bytes),
            Output::InPlace(file) => file.write(bytes),
            Output::Standard(file) => file.write(bytes).map_err(of_standard_output),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Output::Beside(beside) => beside.flush(),
            Output::InPlace(file) | Output::Standard(file) => file.flush(),
        }
    }
}

/// A new file that may be put in the place of this one, behind links; `None` for what only writing in place leaves what it is, or
/// refuses: a device or pipe, another user's file, one that may not be written or has several names, a link to nothing, a folder that takes
/// no file.
fn new_beside(file: &Path) -> Option<Beside> {
    // /dev/stdout may be a plain file, to which more is written.
    if ["/dev", "/proc"].iter().any(|above| file.starts_with(above)) {
        return None;
    }
    let place = match file.symlink_metadata() {
        Ok(_) => file.canonicalize().ok()?,
        Err(_) => file.to_owned(),
    };
    let old = place.metadata().ok();
    let is_plain = |old: &Metadata| old.is_file() && old.nlink() == 1;
    if old.as_ref().is_some_and(|old| !is_plain(old) || OpenOptions::new().write(true).open(&place).is_err())
    {
        return None;
    }
    let beside = Beside::create(&place, 0o666).ok()?;
    let is_alike = |old: Metadata| {
        let is_owned = |own: Metadata| (own.uid(), own.gid()) == (old.uid(), old.gid());
        let new = beside.file();
        new.metadata().is_ok_and(is_owned) && new.set_permissions(old.permissions()).is_ok()
    };
    old.is_none_or(is_alike).then_some(beside)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::outcome::write_file;

    #[test]
    fn a_file_is_replaced_whole_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, name, dangling] =
            ["file", "link", "name", "dangling"].map(|name| folder.path().join(name));
        let read = |file: &Path| fs::read_to_string(file).unwrap();
        write_file(&file, "old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        let mut reader = File::open(&file).unwrap();
        write_file(&link, "new").unwrap();
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "old", "who reads it has one or the other");
        assert!(read(&file) == "new" && link.is_symlink());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        fs::hard_link(&file, &name).unwrap();
        write_file(&file, "both").unwrap();
        assert_eq!(read(&name), "both");
        symlink("nothing", &dangling).unwrap();
        write_file(&dangling, "made").unwrap();
        assert!(dangling.is_symlink() && read(&folder.path().join("nothing")) == "made");
        write_file(Path::new("/dev/null"), "gone").unwrap();
        assert!(write_file(folder.path(), "x").unwrap_err().starts_with("cannot write "));
        assert_eq!(folder.path().read_dir().unwrap().count(), 5, "nothing is left behind");
    }

    #[test]
    fn what_is_not_put_in_place_leaves_what_was_there_and_what_is_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        let read = |file: &Path| fs::read_to_string(file).unwrap();
        fs::write(&file, "old").unwrap();
        // Two of a folder at a time.
        let [mut first, mut second] = [&file, &other].map(|file| Draft::of(file).unwrap());
        first.write_all(b"be").unwrap();
        second.write_all(b"two").unwrap();
        assert!(read(&file) == "old" && !other.exists());
        drop(second);
        assert!(!other.exists());
        first.put().unwrap();
        assert_eq!(read(&file), "be");
        first.write_all(b"gun").unwrap();
        first.put().unwrap();
        drop(first);
        assert_eq!(read(&file), "begun");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left behind");
    }
}
