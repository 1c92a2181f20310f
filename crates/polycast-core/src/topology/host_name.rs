//! Names of hosts as they are compared wherever one is looked up: DNS and Slurm tell no capitals from small letters, and one
//! source writes `n1` where another writes `n1.cluster.org`.

use core::net::IpAddr;
use std::collections::HashMap;

/// The name without its domain. An address has no domain, whatever its dots.
pub fn without_domain(name: &str) -> &str {
    let is_address = name.parse::<IpAddr>().is_ok();
    name.split('.').next().filter(|short| !is_address && !short.is_empty()).unwrap_or(name)
}

/// True if two full names are the same but for capitals.
pub fn is_same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Hosts by their names. A name that is written the same is found first, then one with other
/// capitals, then one with another domain or none.
#[derive(Default)]
pub(super) struct ByName {
    exact: HashMap<String, usize>,
    lower: HashMap<String, usize>,
    short: HashMap<String, usize>,
}

impl ByName {
    pub(super) fn add(&mut self, name: &str, index: usize) {
        self.exact.insert(name.to_owned(), index);
        let lower = name.to_ascii_lowercase();
        self.short.entry(without_domain(&lower).to_owned()).or_insert(index);
        self.lower.entry(lower).or_insert(index);
    }

    pub(super) fn get(&self, name: &str) -> Option<usize> {
        let lower = || name.to_ascii_lowercase();
        let found = self.exact.get(name).or_else(|| self.lower.get(&lower()));
        found.or_else(|| self.short.get(without_domain(&lower()))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_domain() {
        for (name, short) in [
            ("n1.cluster.org", "n1"),
            ("n1", "n1"),
            ("10.0.0.2", "10.0.0.2"),
            ("10.cluster.org", "10"),
            ("fe80::1", "fe80::1"),
            (".org", ".org"),
            ("", ""),
        ] {
            assert_eq!(without_domain(name), short);
        }
    }

    #[test]
    fn what_is_written_just_so_goes_first() {
        let mut hosts = ByName::default();
        for (index, name) in ["n1.a.org", "N1", "n2", "10.0.0.1"].into_iter().enumerate() {
            hosts.add(name, index);
        }
        for (name, index) in [
            ("N1", Some(1)),
            ("n1", Some(1)),
            ("N1.A.ORG", Some(0)),
            ("n1.b.org", Some(0)),
            ("N2.a.org", Some(2)),
            ("10.0.0.2", None),
            ("10", None),
            ("n3", None),
        ] {
            assert_eq!(hosts.get(name), index, "{name}");
        }
    }
}
