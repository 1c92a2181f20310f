use super::{is_off, is_on};

/// Where the report of a job goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportTo {
    /// None is made.
    Nowhere,
    /// Lines for people, on rank 0's standard error.
    StandardError,
    /// JSON, into a file of this name on rank 0's host.
    File(String),
}

impl ReportTo {
    /// `on` and `off` with their synonyms, or the name of a file, which has a `/` or a `.`: a word that is misspelt makes no
    /// file. Nothing for anything else.
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
