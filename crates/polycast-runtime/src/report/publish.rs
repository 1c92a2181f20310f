use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use polycast_core::variables::ReportTo;
use rustix::fs::{Access, OFlags};

use super::record::Record;
use super::summary::Summary;
use super::witness::{END, Witness};
use crate::{machine, say, settings};

/// Name of the report's file beside the traces of the ranks.
const BESIDE_TRACES: &str = "report.json";

/// The file beside the traces of the ranks, if there are any.
fn beside_traces() -> Option<PathBuf> {
    Some(Path::new(&settings::expand(&settings::trace_folder()?)).join(BESIDE_TRACES))
}

impl Record {
    /// Starts a witness, which knows from the beginning on where reports go.
    pub fn have_witness(&mut self) {
        let asked = match settings::report_to() {
            ReportTo::Nowhere => None,
            ReportTo::StandardError => Some(None),
            ReportTo::File(name) => Some(Some(PathBuf::from(settings::expand(&name)))),
        };
        let places: Vec<Option<PathBuf>> = asked.into_iter().chain(beside_traces().map(Some)).collect();
        self.witness = Witness::start(&places, machine::now());
        self.tell_witness();
    }

    /// Leaves the witness what is to be told after a call, if it is time.
    #[inline]
    pub fn renew_witness(&mut self, now: Instant) {
        if self.witness.as_mut().is_some_and(|witness| witness.is_due(now)) {
            self.tell_witness();
        }
    }

    /// Leaves the witness what is to be told, if there is one.
    #[cold]
    pub fn tell_witness(&mut self) {
        let Some(mut witness) = self.witness.take() else { return };
        let began = machine::now();
        let summary = Summary::alone(self, END);
        let as_text = settings::report_to() == ReportTo::StandardError;
        let heading = "polycast: report: rank 0 ended without MPI_Finalize";
        let text =
            as_text.then(|| format!("{heading} ({END}); its own numbers until then:\n{}", summary.text()));
        let files = witness.documents() - usize::from(as_text);
        let file = if files > 0 { summary.json() } else { String::new() };
        let texts: Vec<String> = text.into_iter().chain(vec![file; files]).collect();
        witness.renew(&texts, began, machine::now);
        self.witness = Some(witness);
    }
}

impl Summary {
    /// Writes the report to where it was asked for. To be called on rank 0.
    pub fn publish(&self) {
        if let Some(file) = beside_traces()
            && let Err(error) = write(&file.to_string_lossy(), &self.json())
        {
            say::text(&format!("polycast: warning: report {}: {error}\n", file.display()));
        }
        match settings::report_to() {
            ReportTo::Nowhere => {}
            ReportTo::StandardError => say::text(&self.text()),
            ReportTo::File(name) => {
                let file = settings::expand(&name);
                if let Err(error) = write(&file, &self.json()) {
                    let sentence = self.sentence();
                    say::text(&format!("polycast: warning: report {file}: {error}; {sentence}\n"));
                }
            }
        }
    }
}

/// Warns when MPI begins if the report could not be written when MPI ends. To be called on rank 0.
pub fn warn_of_place() {
    if let ReportTo::File(name) = settings::report_to() {
        let file = settings::expand(&name);
        if let Err(error) = can_be_written(Path::new(&file)) {
            say::text(&format!("polycast: warning: report {file}: {error}; it will be a sentence here\n"));
        }
    }
}

fn can_be_written(file: &Path) -> io::Result<()> {
    if file.exists() {
        return Ok(rustix::fs::access(file, Access::WRITE_OK)?);
    }
    settings::can_be_written_in(
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )
}

/// Writes a file whole: of jobs that write the same one, the file of one is there in the end.
fn write(file: &str, text: &str) -> io::Result<()> {
    let path = Path::new(file);
    let is_plain = path.symlink_metadata().map_or(true, |known| known.is_file());
    if is_plain && polycast_system::replace(path, 0o666, text.as_bytes()).is_ok() {
        return Ok(());
    }
    write_to(path, text)
}

/// Writes to a path. A pipe that nobody reads is an error and no reason to wait.
fn write_to(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        assert!(write(&at("none/report.json"), "x").is_err());
        assert!(write("/dev/full", "x").is_err());
        write(&at("report.json"), "a longer text").unwrap();
        write(&at("report.json"), "x").unwrap();
        assert_eq!(std::fs::read_to_string(at("report.json")).unwrap(), "x");
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["report.json"], "nothing is left beside it");
    }

    #[test]
    fn what_could_not_be_written_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let known = |name: &str| can_be_written(&folder.path().join(name)).map_err(|error| error.kind());
        assert_eq!(known("report.json"), Ok(()));
        assert_eq!(known("none/report.json"), Err(io::ErrorKind::NotFound));
        assert!(can_be_written(Path::new("report.json")).is_ok() && !Path::new("report.json").exists());
    }
}
