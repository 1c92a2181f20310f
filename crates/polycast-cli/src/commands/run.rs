//! `polycast run`.

use std::process::ExitCode;

use super::Outcome;

/// Arguments of `polycast run`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> Outcome {
    Ok(ExitCode::SUCCESS)
}
