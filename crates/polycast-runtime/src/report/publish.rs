use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use polycast_core::variables::ReportTo;
use rustix::fs::{Access, OFlags};

use super::summary::Summary;
use crate::{say, settings};

/// Beside the traces of the ranks.
const BESIDE_TRACES: &str = "report.json";

impl Summary {
    /// Says it where it was asked for. To be called on rank 0.
    pub fn publish(&self) {
        if let Some(folder) = settings::trace_folder() {
            let file = Path::new(&expand(&folder)).join(BESIDE_TRACES);
            if let Err(error) = write(&file.to_string_lossy(), &self.json()) {
                say::text(&format!("polycast: warning: report {}: {error}\n", file.display()));
            }
        }
        match settings::report_to() {
            ReportTo::Nowhere => {}
            ReportTo::StandardError => say::text(&self.text()),
            ReportTo::File(name) => {
                let file = expand(&name);
                if let Err(error) = write(&file, &self.json()) {
                    let sentence = self.sentence();
                    say::text(&format!("polycast: warning: report {file}: {error}; {sentence}\n"));
                }
            }
        }
    }
}

/// The name of a file with `%h`, `%j` and `%p` replaced by host, job and process, and `%%` by a percent sign.
pub fn expand(name: &str) -> String {
    let mut expanded = String::new();
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        match (c, c == '%') {
            (_, true) => match rest.next() {
                Some('h') => expanded.push_str(&rustix::system::uname().nodename().to_string_lossy()),
                Some('j') => expanded.push_str(&job()),
                Some('p') => expanded.push_str(&std::process::id().to_string()),
                Some('%') => expanded.push('%'),
                other => expanded.extend(std::iter::once('%').chain(other)),
            },
            (other, false) => expanded.push(other),
        }
    }
    expanded
}

/// The number of the batch system's job.
fn job() -> String {
    let names = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];
    names.into_iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "0".to_owned())
}

/// Says when MPI begins that the report could not be written when it ends. To be called on rank 0.
pub fn warn_of_place() {
    if let ReportTo::File(name) = settings::report_to() {
        let file = expand(&name);
        if let Err(error) = can_be_written(Path::new(&file)) {
            say::text(&format!("polycast: warning: report {file}: {error}; it will be a sentence here\n"));
        }
    }
}

fn can_be_written(file: &Path) -> io::Result<()> {
    if file.exists() {
        return Ok(rustix::fs::access(file, Access::WRITE_OK)?);
    }
    can_be_written_in(file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Whether files may be made there.
pub fn can_be_written_in(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Of jobs that write the same file one is there in the end, whole.
fn write(file: &str, text: &str) -> io::Result<()> {
    let path = Path::new(file);
    let is_plain = path.symlink_metadata().map_or(true, |known| known.is_file());
    if is_plain && let Some(name) = path.file_name() {
        let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        if write_to(&beside, text).and_then(|()| std::fs::rename(&beside, path)).is_ok() {
            return Ok(());
        }
        let _ = std::fs::remove_file(&beside);
    }
    write_to(path, text)
}

/// A pipe that nobody reads is an error and no reason to wait.
fn write_to(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_tell_jobs_and_processes_apart() {
        let process = std::process::id();
        assert_eq!(expand("out/%p.json"), format!("out/{process}.json"));
        assert_eq!(expand("a%%p%x%"), "a%p%x%");
        assert!(!expand("%h").is_empty() && !expand("%j").contains('%'));
    }

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
