//! The hosts of the ranks of a routine.

use crate::hosts::{Listed, of_ranks as hosts_of};

/// Ranks of a routine at the most.
const MAX_RANKS: usize = 65_536;

/// The host of each rank.
pub fn of_ranks(listed: &[Listed], ranks_per_host: usize) -> Result<Vec<String>, String> {
    let counts = listed.iter().map(|host| host.ranks.unwrap_or(ranks_per_host));
    match counts.clone().sum() {
        0 | 1 => Err("one rank has nobody to send to; name more hosts, or raise --ranks-per-host".to_owned()),
        ranks if ranks > MAX_RANKS => Err(format!(
            "{ranks} ranks are too many: a routine is for at most {MAX_RANKS}; name fewer hosts or ranks"
        )),
        _ => Ok(hosts_of(listed.iter().map(|host| host.name.clone()).zip(counts).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::parse;

    fn ranks(list: &str, per_host: usize) -> Result<String, String> {
        of_ranks(&parse(list).unwrap(), per_host).map(|hosts| hosts.join(" "))
    }

    #[test]
    fn hosts_that_do_not_say_how_many_take_the_same() {
        for (list, per_host, expected) in [
            ("b,a", 1, "b a"),
            ("n[0-1],x", 2, "n0 n0 n1 n1 x x"),
            ("n[0-1]:3,x", 1, "n0 n0 n0 n1 n1 n1 x"),
            ("a,b,a", 1, "a b a"),
        ] {
            assert_eq!(ranks(list, per_host).as_deref(), Ok(expected), "{list}");
        }
    }

    #[test]
    fn one_rank_and_too_many_are_refused() {
        for (list, words) in [("a", "--ranks-per-host"), ("n[1-20]:4000", "80000 ranks are too many")] {
            let problem = ranks(list, 1).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn the_limit_is_reached_and_not_passed() {
        let ranks = |count| {
            let host = Listed { name: "a".to_owned(), ranks: Some(count) };
            of_ranks(&[host], 1).map(|hosts| hosts.len())
        };
        assert_eq!((ranks(2), ranks(MAX_RANKS)), (Ok(2), Ok(MAX_RANKS)));
        assert!(ranks(1).is_err() && ranks(MAX_RANKS + 1).is_err());
    }
}
