//! Which part of a repetition is measured: the call that its time runs from, and the return that ends it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The call that times run from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeFrom {
    /// The first call of any rank.
    #[default]
    #[serde(rename = "first call")]
    FirstCall,
    /// The root's call, for which the others wait: used where ranks share cores, and call at other
    /// times than they should.
    #[serde(rename = "root's call")]
    RootCall,
    /// No single call: the time is the mean of many calls in a row.
    #[serde(rename = "calls in a row")]
    CallsInARow,
    /// The root's call; the time ends with a receiver's answer, and the answer's way is subtracted.
    #[serde(rename = "root's call, by answers")]
    RootCallByAnswers,
}

impl fmt::Display for TimeFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TimeFrom::FirstCall => "first call",
            TimeFrom::RootCall => "root's call",
            TimeFrom::CallsInARow => "calls in a row",
            TimeFrom::RootCallByAnswers => "root's call, by answers",
        })
    }
}

/// The return that ends a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeTo {
    /// The last return of any rank.
    #[default]
    #[serde(rename = "last return")]
    LastReturn,
    /// The root's return, where only the root ends with data.
    #[serde(rename = "root's return")]
    RootReturn,
}

impl fmt::Display for TimeTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TimeTo::LastReturn => "last return",
            TimeTo::RootReturn => "root's return",
        })
    }
}

/// The span that is measured of a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The beginning of the span.
    pub from: TimeFrom,
    /// The end of the span.
    pub to: TimeTo,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            TimeFrom::FirstCall | TimeFrom::RootCall => {
                write!(f, "from the {} to the {}", self.from, self.to)
            }
            TimeFrom::CallsInARow => f.write_str(
                "as a mean of calls in a row, which overlap: no call takes that long, and chains look best",
            ),
            TimeFrom::RootCallByAnswers => {
                f.write_str("from the root's call to the last one's answer, less the answer's way")
            }
        }
    }
}
