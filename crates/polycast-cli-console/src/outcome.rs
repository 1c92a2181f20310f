//! What a verb does with its results: standard output, files, and how the process ends.

use std::error::Error;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::draft::{Draft, is_reader_gone, of_standard_output};

/// The outcome of a verb. An error is printed after `polycast: ` and ends the process with its
/// status, which `polycast-cli` knows.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Writes all of `text` to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // What has no line end would wait for the end of the process, where nobody hears of an error.
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(of_standard_output)
}

/// True if a verb ended because nobody reads what it says, which is no failure. Other pipes that
/// break are.
pub fn has_lost_reader(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(is_reader_gone)
}

/// Writes a file that the user named: all of it, or what was there stays.
pub fn write_file(file: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    write_file_by(file, |out| out.write_all(text.as_ref()))
}

/// Writes a file piece by piece, with contents that are too long to be held in memory at once.
pub fn write_file_by(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    let written = Draft::of(file).and_then(|draft| {
        let mut out = BufWriter::new(draft);
        write(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.put()
    });
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The file that the user named for what else goes to standard output, which `-` stands for, too.
pub fn file_of(output: &Option<PathBuf>) -> Option<&Path> {
    output.as_deref().filter(|file| *file != Path::new("-"))
}

/// Fails before anything is measured where the file that is to have it could not be written.
pub fn require_writable(output: &Option<PathBuf>) -> Result<(), String> {
    let Some(file) = file_of(output) else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.is_dir(), file.is_dir()) {
        (false, _) => {
            Err(format!("cannot write {}: there is no folder {}", file.display(), folder.display()))
        }
        (true, true) => Err(format!("cannot write {}: expected a file, found a folder", file.display())),
        (true, false) => {
            Draft::try_out(file).map_err(|error| format!("cannot write {}: {error}", file.display()))
        }
    }
}

/// Writes what the user asked for there.
pub fn write_output(output: &Option<PathBuf>, text: &str) -> Result<(), Box<dyn Error>> {
    match file_of(output) {
        Some(file) => Ok(write_file(file, text)?),
        None => Ok(print(text)?),
    }
}

/// The path next to a file that the user named, with another ending behind its name.
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

/// The exit code of a status as a shell has it: 128 + signal for a program that a signal ended.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_as_a_shell_tells_it() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), ExitCode::from(7));
        assert_eq!(exit_code(ExitStatus::from_raw(9)), ExitCode::from(137));
    }
}
