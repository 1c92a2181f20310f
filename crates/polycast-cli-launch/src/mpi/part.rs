//! Jobs of several programs (MPMD), written as launchers have them: `-n 1 ./a : -n 3 ./b input`.

use std::ffi::OsString;

use super::{Abi, ProgramError, abi_of};
use crate::hosts::MAX_RANKS;

/// The word between two programs on the command line.
const COLON: &str = ":";

/// A program of a job of several, with its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of its ranks, at least 1.
    pub ranks: usize,
    /// The program's name and arguments.
    pub words: Vec<OsString>,
}

/// The mistakes in the words of a job of several programs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// Behind a colon, or before it, nothing is to be started.
    #[error("expected a program before and behind each \":\", as in -n 1 ./a : -n 3 ./b")]
    NoProgram,
    /// A program without a number of ranks: the number cannot be guessed.
    #[error(
        "several programs (behind \":\") need a number of ranks each, -n N right behind the colon and before any other word: \
         polycast run -n 1 ./a : -n 3 ./b; found {found:?}"
    )]
    NoRanks {
        /// The words that stand in the place of a number of ranks.
        found: String,
    },
}

/// The first program's words, and the programs behind it. Those have nothing but `-n N` before their names.
pub fn parts(words: &[OsString]) -> Result<(Vec<OsString>, Vec<Part>), PartError> {
    let mut all = words.split(|word| word == COLON);
    let first = all.next().unwrap_or_default();
    if first.is_empty() {
        return Err(PartError::NoProgram);
    }
    Ok((first.to_vec(), all.map(part).collect::<Result<_, _>>()?))
}

fn part(words: &[OsString]) -> Result<Part, PartError> {
    let text = |at: usize| words.get(at).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (option, value) = (text(0), text(1));
    let (number, mut rest) = match (option.as_str(), option.split_once('=')) {
        ("", _) => return Err(PartError::NoProgram),
        ("-n" | "-np" | "--np" | "--ranks", _) => (value, words.get(2..).unwrap_or_default()),
        (_, Some(("-n" | "-np" | "--np" | "--ranks", number))) => (number.to_owned(), &words[1..]),
        _ => return Err(PartError::NoRanks { found: option }),
    };
    let ranks = number.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
    let ranks = ranks.ok_or_else(|| PartError::NoRanks { found: format!("{option} {number}") })?;
    if rest.first().is_some_and(|word| word == "--") {
        rest = &rest[1..];
    }
    match rest {
        [] => Err(PartError::NoProgram),
        _ => Ok(Part { ranks, words: rest.to_vec() }),
    }
}

/// The MPI that each of these programs is linked with, as far as it shows it; `may_be_elsewhere`: it may be only on the hosts where it runs.
pub fn abis_of<'a>(
    programs: impl IntoIterator<Item = &'a OsString>,
    may_be_elsewhere: bool,
) -> Result<Vec<Option<Abi>>, ProgramError> {
    let linked = programs.into_iter().map(|program| match abi_of(program) {
        Err(ProgramError::NotFound { .. }) if may_be_elsewhere => Ok(None),
        linked => linked,
    });
    linked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<String, PartError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let (first, further) = parts(&words)?;
        let told = further.iter().map(|part| format!(" | {} {:?}", part.ranks, part.words));
        Ok(format!("{first:?}{}", told.collect::<String>()))
    }

    #[test]
    fn programs_are_told_apart_by_colons() {
        assert_eq!(parsed("./a -n 5").as_deref(), Ok(r#"["./a", "-n", "5"]"#));
        for line in ["./a 0 : -n 3 ./b 1", "./a 0 : -np=3 ./b 1", "./a 0 : --ranks 3 -- ./b 1"] {
            assert_eq!(parsed(line).as_deref(), Ok(r#"["./a", "0"] | 3 ["./b", "1"]"#), "{line}");
        }
        assert_eq!(parsed("a : -n 1 b : -n 2 c").as_deref(), Ok(r#"["a"] | 1 ["b"] | 2 ["c"]"#));
    }

    #[test]
    fn what_is_missing_is_said() {
        for line in [": -n 1 b", "a :", "a : -n 2", "a : : -n 1 b", ""] {
            assert_eq!(parsed(line), Err(PartError::NoProgram), "{line}");
        }
        for line in ["a : b", "a : -x A=1 b", "a : -n x b", "a : -n 0 b", "a : -n"] {
            assert!(matches!(parsed(line), Err(PartError::NoRanks { .. })), "{line}");
        }
    }
}
