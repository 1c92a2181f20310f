//! `SLURM_TOPOLOGY_ADDR`, which Slurm sets for every rank of a job: the names of the switches above its host, from the top
//! down, and the host's own, joined by dots: `s3.s0.dev0`, with blocks `block1.dev0`, without topology `dev0`.
//!
//! A level on which a host has no switch leaves its name empty (`s3..dev0`), and one on which it has several is a hostlist
//! (`s3.s[0-1].dev0`), of which the first is taken.

use std::collections::{BTreeSet, HashSet};

use super::draft::Draft;
use super::host_name::{is_same_name, without_domain};
use super::hostlist::expand;
use super::{Link, MAX_NAME, Reading, Topology, TopologyError};

/// The most switches on one level above a host.
const MAX_SIDE_BY_SIDE: usize = 1_024;

/// The address of a host in the network, as Slurm tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// The line to name in problems; 0 where there are no lines.
    pub line: usize,
    /// The host, as it calls itself.
    pub host: &'a str,
    /// The value of `SLURM_TOPOLOGY_ADDR` there.
    pub address: &'a str,
}

impl Topology {
    /// Puts together what the hosts of a job are told of their places; several ranks may tell of one host. `source` is the
    /// name that problems show. Hosts whose address names no switch are left out with a note.
    ///
    /// # Errors
    /// No address that names a switch; names that are none; addresses that contradict each other, unless `reading` takes a spanning tree of them.
    pub fn from_addresses(
        addresses: &[Address<'_>],
        source: &str,
        reading: Reading,
    ) -> Result<Topology, TopologyError> {
        let mut draft = Draft::new(source);
        draft.is_open_above = true;
        let mut joined: HashSet<(usize, usize)> = HashSet::new();
        let mut placed: BTreeSet<(&str, usize)> = BTreeSet::new();
        let mut without_switch: Vec<&Address<'_>> = Vec::new();
        for entry in addresses {
            let Some(path) = switches(&mut draft, entry) else { continue };
            let Some(&leaf) = path.last() else {
                without_switch.push(entry);
                continue;
            };
            for pair in path.windows(2) {
                if joined.insert((pair[0], pair[1])) {
                    draft.add_link(entry.line, pair[0], pair[1], Link::default());
                }
            }
            if placed.insert((entry.host, leaf)) {
                draft.add_host(entry.line, entry.host, leaf, Link::default());
            }
        }
        place_the_rest(&mut draft, &without_switch);
        draft.finish(reading)
    }
}

/// The switches above a host, from the top down; `None` if the address could not be read.
fn switches(draft: &mut Draft, entry: &Address<'_>) -> Option<Vec<usize>> {
    let levels = levels(entry);
    let mut path = Vec::new();
    for level in levels.split('.').filter(|level| !level.is_empty()) {
        let names = match expand(level, MAX_SIDE_BY_SIDE) {
            Ok(names) => names,
            Err(problem) => {
                draft.mistake(entry.line, problem);
                return None;
            }
        };
        let first = names.first()?;
        if names.len() > 1 {
            let note = format!("of the switches {level}, which stand side by side, {first} is taken");
            if !draft.notes.contains(&note) {
                draft.notes.push(note);
            }
        }
        let switch = draft.switch(first).or_else(|| draft.add_switch(entry.line, first))?;
        path.push(switch);
    }
    Some(path)
}

/// The address without the host at its end, whose name may have dots itself, or be another than the host's own.
fn levels<'a>(entry: &Address<'a>) -> &'a str {
    let Address { host, address, .. } = entry;
    if is_same_name(address, host) {
        return "";
    }
    let before = |name: &str| {
        let (rest, end) = address.split_at_checked(address.len().checked_sub(name.len())?)?;
        rest.strip_suffix('.').filter(|_| is_same_name(end, name))
    };
    before(host)
        .or_else(|| before(without_domain(host)))
        .or_else(|| Some(address.rsplit_once('.')?.0))
        .unwrap_or("")
}

fn place_the_rest(draft: &mut Draft, without_switch: &[&Address<'_>]) {
    if without_switch.is_empty() {
        return;
    }
    if !draft.switches.is_empty() {
        let names: BTreeSet<&str> = without_switch.iter().map(|entry| entry.host).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let note = format!("left out, because their addresses name no switch: {}", names.join(", "));
        return draft.notes.push(note);
    }
    draft.mistake(0, "no address names a switch: Slurm has no topology here");
}

/// The host at the end of an address, for callers who know no other name of the host; empty if
/// longer than [`MAX_NAME`].
pub fn host_of_address(address: &str) -> &str {
    let host = address.rsplit('.').next().unwrap_or(address);
    if host.len() <= MAX_NAME { host } else { "" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::any_topology;
    use super::*;

    const STRICT: Reading = Reading { spanning_tree: false };

    fn read(lines: &[(&str, &str)], reading: Reading) -> Result<Topology, TopologyError> {
        let entry = |(index, &(host, address))| Address { line: index + 1, host, address };
        let addresses: Vec<_> = lines.iter().enumerate().map(entry).collect();
        Topology::from_addresses(&addresses, "job", reading)
    }

    fn parent<'a>(topology: &'a Topology, name: &str) -> Option<&'a str> {
        let switch =
            topology.switches.iter().find(|switch| switch.name == name).expect("a switch of this name");
        switch.parent.map(|parent| topology.switches[parent].name.as_str())
    }

    #[test]
    fn the_example_of_the_slurm_manual() {
        let lines = [
            ("a", "s3.s0.a"),
            ("a", "s3.s0.a"),
            ("b.org", "s3.s1.b"),
            ("c", "s3.s1.other"),
            ("d.org", "s3..d.org"),
        ];
        let topology = read(&lines, STRICT).unwrap();
        let hosts: Vec<_> = topology.hosts.iter().map(|host| (host.name.as_str(), host.switch)).collect();
        assert_eq!(hosts, [("a", 1), ("b.org", 2), ("c", 2), ("d.org", 0)]);
        assert_eq!([parent(&topology, "s0"), parent(&topology, "s3")], [Some("s3"), None]);
    }

    #[test]
    fn blocks_are_joined() {
        let topology = read(&[("a", "block1.a"), ("b", "block2.b")], STRICT).unwrap();
        assert_eq!([parent(&topology, "block1"), parent(&topology, "top")], [Some("top"), None]);
        assert!(topology.notes[0].contains("joins block1, block2"));
    }

    #[test]
    fn hosts_without_switches_are_left_out() {
        let error = read(&[("a", "a"), ("b.org", "b.org"), ("c", "")], STRICT).unwrap_err();
        assert!(error.problems[0].text.contains("no address names a switch"), "{error}");
        let mixed = read(&[("a", "a"), ("b", "s.b"), ("c", "")], STRICT).unwrap();
        assert_eq!(mixed.hosts.len(), 1);
        assert!(mixed.notes[0].ends_with("name no switch: a, c"));
    }

    #[test]
    fn of_switches_side_by_side_the_first_is_taken() {
        let topology = read(&[("a", "s[3-4].s0.a"), ("b", "s[3-4].s1.b")], STRICT).unwrap();
        assert_eq!(parent(&topology, "s1"), Some("s3"));
        assert_eq!(topology.notes.len(), 1);
    }

    #[test]
    fn contradictions_are_found() {
        let lines = [("a", "s3.s0.a"), ("b", "s4.s0.b"), ("a", "s3.s1.a")];
        let error = read(&lines, STRICT).unwrap_err();
        let found: Vec<_> = error.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, [2, 3]);
        let topology = read(&lines, Reading { spanning_tree: true }).unwrap();
        assert_eq!(topology.hosts.len(), 2);
        assert!(topology.notes.iter().any(|note| note.contains("host a is on switch s0 already")));
    }

    #[test]
    fn mistakes_are_refused() {
        for (host, address) in [("a", "s[0.a"), ("a", "s/.a"), ("a/", "s.a/"), ("a", "s.s.a")] {
            assert!(read(&[(host, address)], STRICT).is_err(), "{address}");
        }
        assert!(read(&[], STRICT).is_err());
    }

    proptest! {
        /// What Slurm would set for a tree is that tree, as far as there are hosts.
        #[test]
        fn a_tree_is_found_again(topology in any_topology()) {
            let path = |host: &super::super::Host| {
                let mut path = vec![host.name.clone()];
                let mut above = Some(host.switch);
                while let Some(switch) = above {
                    path.insert(0, topology.switches[switch].name.clone());
                    above = topology.switches[switch].parent;
                }
                path.join(".")
            };
            let addresses: Vec<_> = topology.hosts.iter().map(|host| (host.name.as_str(), path(host))).collect();
            let lines: Vec<_> = addresses.iter().map(|(host, address)| (*host, address.as_str())).collect();
            let found = read(&lines, STRICT).unwrap();
            for switch in &found.switches {
                let original = topology.switches.iter().find(|other| other.name == switch.name).unwrap();
                let expected = original.parent.map(|parent| topology.switches[parent].name.as_str());
                prop_assert_eq!(parent(&found, &switch.name), expected);
            }
            prop_assert_eq!(found.hosts.len(), topology.hosts.len());
        }

        #[test]
        fn no_text_makes_the_reader_panic(lines in prop::collection::vec(("[ab.]{0,3}", "[ab.,\\[\\]0-2-]{0,9}"), 0..6)) {
            let lines: Vec<_> = lines.iter().map(|(host, address)| (host.as_str(), address.as_str())).collect();
            for spanning_tree in [false, true] {
                let _ = read(&lines, Reading { spanning_tree });
            }
        }
    }
}
