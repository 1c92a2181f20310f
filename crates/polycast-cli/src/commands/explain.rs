//! `polycast explain`.

use std::process::ExitCode;

use super::Outcome;

/// Arguments of `polycast explain`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> Outcome {
    Ok(ExitCode::SUCCESS)
}
