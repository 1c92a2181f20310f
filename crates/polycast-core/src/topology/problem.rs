use std::error::Error;
use std::fmt;

/// A problem in a description of a topology, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// The kind of problem, which says whether the description can be read all the same.
    pub kind: ProblemKind,
    /// The message: what was expected and what was found.
    pub text: String,
}

/// The kinds of problems, by whether they stop a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A mistake that must be mended.
    Mistake,
    /// The description makes sense, but is no tree; [`super::Reading::spanning_tree`] takes a tree out of it.
    Irregular,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.text),
            line => write!(f, "{}:{line}: {}", self.file, self.text),
        }
    }
}

/// The number of problems shown to a user who wanted the topology and not its problems.
const MAX_SHOWN: usize = 3;

/// All problems of a description; at least one, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The problems.
    pub problems: Vec<Problem>,
}

impl TopologyError {
    /// True if the description can be read with [`super::Reading::spanning_tree`].
    pub fn is_irregular_only(&self) -> bool {
        self.problems.iter().all(|problem| problem.kind == ProblemKind::Irregular)
    }

    pub(super) fn new(mut problems: Vec<Problem>) -> TopologyError {
        problems.sort_by_key(|problem| problem.line);
        TopologyError { problems }
    }

    /// Moves problems on lines beyond `lines`, the number of lines of the text, to the last line.
    pub(super) fn within(mut self, lines: usize) -> TopologyError {
        self.problems.iter_mut().for_each(|problem| problem.line = problem.line.min(lines));
        self
    }

    pub(super) fn mistake(file: &str, line: usize, text: impl Into<String>) -> TopologyError {
        let problem = Problem { file: file.to_owned(), line, kind: ProblemKind::Mistake, text: text.into() };
        TopologyError { problems: vec![problem] }
    }
}

impl fmt::Display for TopologyError {
    /// The first problems, one a line, and how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(MAX_SHOWN).enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{problem}")?;
        }
        let more = self.problems.len().saturating_sub(MAX_SHOWN);
        match self.problems.first() {
            Some(first) if more > 0 => {
                write!(f, "\nand {more} more: `polycast topology check {}` lists them", first.file)
            }
            _ => Ok(()),
        }
    }
}

impl Error for TopologyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_problems_the_first_are_told() {
        let problems = |number: usize| {
            let problem = |line| TopologyError::mistake("t.conf", line, "wrong").problems.remove(0);
            TopologyError::new((1..=number).map(problem).collect()).to_string()
        };
        assert_eq!(problems(3).lines().count(), 3);
        let many = problems(100);
        assert!(many.ends_with("\nand 97 more: `polycast topology check t.conf` lists them"), "{many}");
    }
}
