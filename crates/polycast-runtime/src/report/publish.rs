use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use polycast_core::variables::ReportTo;
use rustix::fs::OFlags;

use super::summary::Summary;
use crate::{say, settings};

/// Beside the traces of the ranks.
const BESIDE_TRACES: &str = "report.json";

impl Summary {
    /// Says it where it was asked for. To be called on rank 0.
    pub fn publish(&self) {
        if let Some(folder) = settings::trace_folder() {
            let file = Path::new(&settings::expand(&folder)).join(BESIDE_TRACES);
            if let Err(error) = write(&file.to_string_lossy(), &self.json()) {
                say::text(&format!("polycast: warning: report {}: {error}\n", file.display()));
            }
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

/// A pipe that nobody reads is an error and no reason to wait.
fn write(file: &str, text: &str) -> io::Result<()> {
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
    }
}
