//! One file per verb: its arguments and what it does with them.

pub mod bench;
pub mod cp;
pub mod doctor;
pub mod explain;
pub mod generate;
pub mod info;
pub mod job_args;
pub mod lab;
pub mod madcap;
pub mod man_pages;
pub mod measure;
mod one_launch;
pub mod predict;
pub mod report;
pub mod run;
pub mod simulate;
pub mod table;
pub mod topology;
pub mod tree;
pub mod tune;

use std::error::Error;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

/// What a verb ends with. An error is printed after `polycast: ` and ends the process with status 1.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Who read standard output has seen enough, as `head` has after ten lines.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
struct ReaderGone;

/// Writes all of `text` to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // What has no line end would wait for the end of the process, where nobody hears of an error.
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(error.kind(), ReaderGone),
        _ => error,
    })
}

/// Whether a verb ended because nobody reads what it says, which is no failure. Other pipes that break are.
pub fn has_lost_reader(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<ReaderGone>())
}

/// Writes a file that the user named: all of it, or what was there stays.
pub fn write_file(file: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    let text = text.as_ref();
    let written = match new_beside(file) {
        Some((place, new, mut open)) => {
            let whole = open.write_all(text).and_then(|()| open.sync_all());
            // In place what cannot be replaced, as a file that is mounted.
            let put = whole.and_then(|()| fs::rename(&new, &place).or_else(|_| fs::write(&place, text)));
            let _ = fs::remove_file(&new);
            put
        }
        None => fs::write(file, text),
    };
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The place of a file behind links, and a new one that may be renamed to it; `None` for what only writing in place leaves what it is, or
/// refuses: a device or pipe, another user's file, one that may not be written or has several names, a link to nothing, a folder that takes
/// no file.
fn new_beside(file: &Path) -> Option<(PathBuf, PathBuf, File)> {
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
    let new = place.with_file_name(format!(".polycast-{}.new", std::process::id()));
    let open = File::create_new(&new).ok()?;
    let is_alike = |old: Metadata| {
        let is_owned = |own: Metadata| (own.uid(), own.gid()) == (old.uid(), old.gid());
        open.metadata().is_ok_and(is_owned) && open.set_permissions(old.permissions()).is_ok()
    };
    if !old.is_none_or(is_alike) {
        let _ = fs::remove_file(&new);
        return None;
    }
    Some((place, new, open))
}

/// The file that the user named for what else goes to standard output, which `-` stands for, too.
pub fn file_of(output: &Option<PathBuf>) -> Option<&Path> {
    output.as_deref().filter(|file| *file != Path::new("-"))
}

/// Fails before anything is measured where the file that is to have it could not be written.
pub fn require_folder(output: &Option<PathBuf>) -> Result<(), String> {
    let Some(file) = file_of(output) else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.is_dir(), file.is_dir()) {
        (false, _) => {
            Err(format!("cannot write {}: there is no folder {}", file.display(), folder.display()))
        }
        (true, true) => Err(format!("cannot write {}: expected a file, found a folder", file.display())),
        (true, false) => Ok(()),
    }
}

/// Writes what the user asked for there.
pub fn write_output(output: &Option<PathBuf>, text: &str) -> Result<(), Box<dyn Error>> {
    match file_of(output) {
        Some(file) => Ok(write_file(file, text)?),
        None => Ok(print(text)?),
    }
}

/// The file next to one that the user named, with an ending more.
pub fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(ending);
    name.into()
}

/// A flag that says whether the user has had enough: SIGINT or SIGTERM came.
pub fn interruption() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Writes one JSON document to standard output, as every `--json` without a file does: indented, so that people can
/// read it too. Results that come one after another are lines of their own instead.
pub fn print_json(document: &impl Serialize) -> io::Result<()> {
    print(&(serde_json::to_string_pretty(document)? + "\n"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

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
}
