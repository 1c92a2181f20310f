//! Hosts as they are written wherever a verb takes them: `n[0-7,9]:2,login`, or a file as for mpiexec.
//!
//! ```text
//! --hosts TEXT ──parse──▶ [Listed] ──place──▶ a host and its number of ranks, in rank order ──of_ranks──▶ a name per rank
//! --hostfile F ──read_file──▶                      └─ require_known: has each an address?
//! ```

mod file;
mod names;

pub use file::read_file;
pub use names::{UnknownHosts, require_known};

use std::path::Path;

use polycast_core::topology::{MAX_HOSTS, expand_hostlist};

/// The most ranks that hosts may be asked to take. It bounds what `n[0-65535]:65536` can ask for.
pub const MAX_RANKS: usize = 1 << 20;

/// The most ranks of one host.
const MAX_RANKS_OF_HOST: usize = 65_536;

/// A host as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The host's name or address.
    pub name: String,
    /// The ranks that it takes, if that was said.
    pub ranks: Option<usize>,
}

/// Hosts that cannot be understood or cannot take the ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A list that is none.
    #[error("hosts: {0}")]
    List(String),
    /// A host without a name, with a name that ssh would not take for one, or with a number of ranks that is none.
    #[error(
        "hosts: expected names such as a, n[0-7] or a:2 with a number of ranks from 1 to {MAX_RANKS_OF_HOST}, found \
         {found:?}"
    )]
    Unreadable {
        /// The entry.
        found: String,
    },
    /// A file that cannot be read.
    #[error("cannot read hosts from {file}: {problem}")]
    UnreadableFile {
        /// The file.
        file: String,
        /// The system's reason.
        problem: String,
    },
    /// A line of a file.
    #[error("{file}:{line}: expected `host`, `host:2` or `host slots=2`, found {found:?}")]
    Line {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The line.
        found: String,
    },
    /// A file without a host.
    #[error("{file}: expected a host in each line, found none")]
    EmptyFile {
        /// The file.
        file: String,
    },
    /// Every host says how many ranks it takes, and that is not enough.
    #[error("hosts: {ranks} ranks are to run, but the hosts take {places}; raise or leave out their numbers")]
    TooFewPlaces {
        /// Ranks to run.
        ranks: usize,
        /// Ranks that fit.
        places: usize,
    },
    /// More than any job has.
    #[error("hosts: {ranks} ranks are too many: expected at most {MAX_RANKS}")]
    TooManyRanks {
        /// Ranks to run.
        ranks: usize,
    },
}

/// Reads `n[0-7,9]:2,login`: Slurm's hostlists, each with an optional number of ranks for every host that it stands for.
pub fn parse(text: &str) -> Result<Vec<Listed>, HostsError> {
    let words = expand_hostlist(text, MAX_HOSTS).map_err(HostsError::List)?;
    words.iter().map(|word| one(word).ok_or_else(|| HostsError::Unreadable { found: word.clone() })).collect()
}

/// The hosts that a list or a file says, whichever is given.
pub fn given(list: Option<&str>, file: Option<&Path>) -> Result<Option<Vec<Listed>>, HostsError> {
    match (list, file) {
        (Some(list), _) => parse(list).map(Some),
        (None, Some(file)) => read_file(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads `a` or `a:2`.
fn one(word: &str) -> Option<Listed> {
    let (name, ranks) = match word.trim().split_once(':') {
        None => (word.trim(), None),
        Some((name, ranks)) => (name, Some(number_of_ranks(ranks)?)),
    };
    // ssh would take a name with a dash for an option.
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains(char::is_whitespace);
    is_name.then(|| Listed { name: name.to_owned(), ranks })
}

fn number_of_ranks(text: &str) -> Option<usize> {
    text.parse().ok().filter(|ranks| (1..=MAX_RANKS_OF_HOST).contains(ranks))
}

/// Gives every host its number of ranks. Hosts that do not say how many they take share evenly, in their order, what the
/// others leave of `ranks`; without `ranks` they take one each.
pub fn place(hosts: &[Listed], ranks: Option<usize>) -> Result<Vec<(String, usize)>, HostsError> {
    let places: usize = hosts.iter().filter_map(|host| host.ranks).sum();
    let mut sharing = hosts.iter().filter(|host| host.ranks.is_none()).count();
    let mut left = ranks.map_or(sharing, |ranks| ranks.saturating_sub(places));
    if sharing == 0 && left > 0 {
        return Err(HostsError::TooFewPlaces { ranks: places + left, places });
    }
    if places + left > MAX_RANKS {
        return Err(HostsError::TooManyRanks { ranks: places + left });
    }
    let mut placed = Vec::new();
    for host in hosts {
        let here = host.ranks.unwrap_or_else(|| {
            let share = left.div_ceil(sharing);
            left -= share;
            sharing -= 1;
            share
        });
        if here > 0 {
            placed.push((host.name.clone(), here));
        }
    }
    Ok(placed)
}

/// The host of each rank.
pub fn of_ranks(placed: Vec<(String, usize)>) -> Vec<String> {
    placed.into_iter().flat_map(|(host, ranks)| std::iter::repeat_n(host, ranks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, ranks: Option<usize>) -> Result<String, HostsError> {
        let hosts = place(&parse(text)?, ranks)?;
        let hosts: Vec<String> = hosts.into_iter().map(|(host, places)| format!("{host}:{places}")).collect();
        Ok(hosts.join(","))
    }

    #[test]
    fn what_is_not_said_is_shared_evenly() {
        for (text, ranks, expected) in [
            ("a", None, "a:1"),
            ("a,b:2", None, "a:1,b:2"),
            ("a,b", Some(8), "a:4,b:4"),
            ("a, b,c", Some(8), "a:3,b:3,c:2"),
            ("a,b:2,c", Some(8), "a:3,b:2,c:3"),
            ("a:4,b:4", Some(6), "a:4,b:4"),
            ("a,b,c", Some(2), "a:1,b:1"),
            ("a:2,b", Some(2), "a:2"),
        ] {
            assert_eq!(hosts(text, ranks).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn hostlists_stand_for_all_their_hosts() {
        for (text, ranks, expected) in [
            ("n[0-2,9]", None, "n0:1,n1:1,n2:1,n9:1"),
            ("n[0-1]:3,x", None, "n0:3,n1:3,x:1"),
            ("rack[0-1]n[07-08]", Some(8), "rack0n07:2,rack0n08:2,rack1n07:2,rack1n08:2"),
        ] {
            assert_eq!(hosts(text, ranks).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_or_read_is_refused() {
        for text in ["a:", "a:0", "a:x", ":2", "a:-1", "a,-oProxyCommand=x", "a b", "a, ", "a:65537"] {
            assert!(matches!(hosts(text, None), Err(HostsError::Unreadable { .. })), "{text}");
        }
        for text in ["", "a,,b", "n[0-7", "n[7-0]", "n[0-99999999]"] {
            assert!(matches!(hosts(text, None), Err(HostsError::List(_))), "{text}");
        }
        assert_eq!(hosts("a:2,b:2", Some(5)), Err(HostsError::TooFewPlaces { ranks: 5, places: 4 }));
        assert_eq!(hosts("n[0-16]:65536", None), Err(HostsError::TooManyRanks { ranks: 17 * 65_536 }));
    }

    #[test]
    fn ranks_follow_their_hosts() {
        assert_eq!(of_ranks(place(&parse("b,a:2").unwrap(), None).unwrap()), ["b", "a", "a"]);
    }
}
