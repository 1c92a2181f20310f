//! The hidden verbs of the tool. All of these change the process that calls them, which must have
//! one thread.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::{Lab, LabError, enter, keeper, probe};

/// `lab keeper`: keeps a lab alive. Order and answer go through standard input and output.
pub fn keeper() -> ExitCode {
    keeper::run()
}

/// `lab exec NAME HOST -- program…`: runs a program on a host; the result is its exit status. If it is an mpiexec, what it says of the
/// emulation is left out.
pub fn exec(lab: &str, host: &str, program: &[OsString], is_launcher: bool) -> Result<ExitCode, LabError> {
    enter::run_on(Lab::open(lab)?.summary(), host, program, is_launcher)
}

/// `lab agent DIRECTORY [ssh options] HOST command…`: in place of ssh. Returns only if it fails, with ssh's status 255.
pub fn agent(directory: &Path, arguments: &[OsString]) -> ExitCode {
    match enter::agent(directory, arguments) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("polycast: {error}");
            ExitCode::from(255)
        }
    }
}

/// `lab probe TASK`: one end of a measurement of [`crate::Calibration`], on the host where it is started.
pub fn probe(task: &str) -> ExitCode {
    let outcome = serde_json::from_str(task).map_err(std::io::Error::from).and_then(|task| probe::run(&task));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::FAILURE
        }
    }
}
