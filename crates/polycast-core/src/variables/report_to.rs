use super::{is_off, is_on};

/// The destination of a job's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportTo {
    /// No report is made.
    Nowhere,
    /// Lines for people, on rank 0's standard error.
    StandardError,
    /// JSON, into a file of this name on rank 0's host.
    File(String),
}

impl ReportTo {
    /// Reads `on` or `off` with their synonyms, or the name of a file, which has a `/` or a `.`, so
    /// that a word that is misspelt makes no file. Empty text is `off`. `None` for anything else.
    pub fn parse(value: &str) -> Option<ReportTo> {
        match value {
            "" => Some(ReportTo::Nowhere),
            value if is_off(value) => Some(ReportTo::Nowhere),
            value if is_on(value) => Some(ReportTo::StandardError),
            file if file.contains(['/', '.']) => Some(ReportTo::File(file.to_owned())),
            _ => None,
        }
    }
}
