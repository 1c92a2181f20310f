//! What is wrong with the words that the tool was called with, where clap could not know it.

use std::error::Error;
use std::fmt::Display;

/// An option or argument that has another value than was expected: status 2, as clap's own errors have.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(String);

/// Makes the error of a verb that was asked for something impossible.
pub fn wrong(problem: impl Display) -> Box<dyn Error> {
    Box::new(WrongUsage(problem.to_string()))
}
