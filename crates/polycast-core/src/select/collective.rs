use std::fmt;
use std::str::FromStr;

/// A collective operation that tables can have rules for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// `MPI_Bcast`, written `bcast`.
    Broadcast,
}

/// A collective without rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown collective {found:?}, expected {}", names())]
pub struct ParseCollectiveError {
    found: String,
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 1] = [Collective::Broadcast];

    /// The name, as in the MPI function's.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Broadcast => "bcast",
        }
    }
}

fn names() -> String {
    Collective::ALL.map(Collective::name).join(", ")
}

impl FromStr for Collective {
    type Err = ParseCollectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Collective::ALL.into_iter().find(|collective| collective.name() == text);
        known.ok_or_else(|| ParseCollectiveError { found: text.to_owned() })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
