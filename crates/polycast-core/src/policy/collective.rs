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

    /// The name in upper or lower case, with or without `MPI_`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("mpi_").unwrap_or(&lower);
        let known = Collective::ALL.into_iter().find(|collective| collective.name() == name);
        known.ok_or_else(|| ParseCollectiveError { found: text.to_owned() })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_them() {
        for text in ["bcast", "Bcast", "MPI_Bcast", "mpi_bcast", "MPI_BCAST"] {
            assert_eq!(text.parse(), Ok(Collective::Broadcast), "{text}");
        }
        for text in ["", "mpi_", "broadcast", "MPI_MPI_Bcast"] {
            assert!(text.parse::<Collective>().unwrap_err().to_string().contains("expected bcast"), "{text}");
        }
    }
}
