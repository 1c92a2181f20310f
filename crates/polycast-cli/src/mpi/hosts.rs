//! Hosts as they are written on command lines: `a,b:2`.

/// Hosts that cannot take the ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A host without a name, or with a number of ranks that is none.
    #[error("hosts: expected names such as a,b or a:2,b:4 with a number of ranks above 0, found {found:?}")]
    Unreadable {
        /// The entry.
        found: String,
    },
    /// Every host says how many ranks it takes, and that is not enough.
    #[error("hosts: {ranks} ranks are to run, but the hosts take {places}; raise or leave out their numbers")]
    TooFewPlaces {
        /// Ranks to run.
        ranks: usize,
        /// Ranks that fit.
        places: usize,
    },
}

/// Reads `a,b:2` and gives every host its number of ranks. Hosts that do not say how many they take share evenly, in
/// their order, what the others leave of `ranks`; without `ranks` they take one each.
pub fn parse_hosts(text: &str, ranks: Option<usize>) -> Result<Vec<(String, usize)>, HostsError> {
    let hosts: Vec<(&str, Option<usize>)> = text.split(',').map(parse_host).collect::<Result<_, _>>()?;
    let places: usize = hosts.iter().filter_map(|(_, places)| *places).sum();
    let mut sharing = hosts.iter().filter(|(_, places)| places.is_none()).count();
    let mut left = ranks.map_or(sharing, |ranks| ranks.saturating_sub(places));
    if sharing == 0 && left > 0 {
        return Err(HostsError::TooFewPlaces { ranks: places + left, places });
    }
    let mut placed = Vec::new();
    for (host, places) in hosts {
        let places = places.unwrap_or_else(|| {
            let share = left.div_ceil(sharing);
            left -= share;
            sharing -= 1;
            share
        });
        if places > 0 {
            placed.push((host.to_owned(), places));
        }
    }
    Ok(placed)
}

fn parse_host(text: &str) -> Result<(&str, Option<usize>), HostsError> {
    let unreadable = || HostsError::Unreadable { found: text.to_owned() };
    let (host, places) = match text.trim().split_once(':') {
        None => (text.trim(), None),
        Some((host, places)) => {
            (host, Some(places.parse().ok().filter(|places| *places > 0).ok_or_else(unreadable)?))
        }
    };
    if host.is_empty() { Err(unreadable()) } else { Ok((host, places)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, ranks: Option<usize>) -> Result<String, HostsError> {
        let hosts = parse_hosts(text, ranks)?;
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
    fn what_does_not_fit_or_read_is_refused() {
        for text in ["", "a,,b", "a:", "a:0", "a:x", ":2", "a:-1"] {
            assert!(matches!(hosts(text, None), Err(HostsError::Unreadable { .. })), "{text}");
        }
        assert_eq!(hosts("a:2,b:2", Some(5)), Err(HostsError::TooFewPlaces { ranks: 5, places: 4 }));
    }
}
