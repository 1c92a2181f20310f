use std::error::Error;
use std::fmt;

/// Something that is wrong with a description of a topology, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// Whether it can be read all the same.
    pub kind: ProblemKind,
    /// What was expected and what was found.
    pub text: String,
}

/// Whether a problem stops a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It must be mended.
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

/// All problems of a description; at least one, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The problems.
    pub problems: Vec<Problem>,
}

impl TopologyError {
    /// Whether the description can be read with [`super::Reading::spanning_tree`].
    pub fn is_irregular_only(&self) -> bool {
        self.problems.iter().all(|problem| problem.kind == ProblemKind::Irregular)
    }

    pub(super) fn new(mut problems: Vec<Problem>) -> TopologyError {
        problems.sort_by_key(|problem| problem.line);
        TopologyError { problems }
    }

    pub(super) fn mistake(file: &str, line: usize, text: impl Into<String>) -> TopologyError {
        let problem = Problem { file: file.to_owned(), line, kind: ProblemKind::Mistake, text: text.into() };
        TopologyError { problems: vec![problem] }
    }
}

impl fmt::Display for TopologyError {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl Error for TopologyError {}
