//! The hosts to examine.

use polycast_core::topology::is_same_name;

use super::probe::tally::MAX_SENDERS;
use crate::hosts;

/// The most hosts in an examination: as many as a worker counts senders. A part of a larger cluster
/// tells as much.
const MAX_HOSTS: usize = MAX_SENDERS as usize;

/// Reads `a,n[0-7]`: each once, in order.
pub fn parse_hosts(text: &str) -> Result<Vec<String>, String> {
    let mut hosts: Vec<String> = Vec::new();
    // The number of ranks that a host takes is of no meaning here, but the list may be that of a job.
    for host in hosts::parse(text).map_err(|error| error.to_string())? {
        if !hosts.iter().any(|known| is_same_name(known, &host.name)) {
            hosts.push(host.name);
        }
    }
    if hosts.len() > MAX_HOSTS {
        return Err(format!("expected at most {MAX_HOSTS} hosts, found {}", hosts.len()));
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_once_and_checked() {
        assert_eq!(parse_hosts("b, a,b").unwrap(), ["b", "a"]);
        assert_eq!(parse_hosts("n[0-1]:2,N1").unwrap(), ["n0", "n1"]);
        for text in ["", "a,,b", "a,-oProxyCommand=x", "a b"] {
            assert!(parse_hosts(text).is_err(), "{text:?}");
        }
        let many = |count: usize| (0..count).map(|host| format!("h{host}")).collect::<Vec<_>>().join(",");
        assert_eq!(parse_hosts(&many(MAX_HOSTS)).unwrap().len(), MAX_HOSTS);
        assert!(parse_hosts(&many(MAX_HOSTS + 1)).is_err());
    }
}
