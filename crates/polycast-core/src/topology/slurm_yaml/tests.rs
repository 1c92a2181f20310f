use proptest::prelude::*;

use super::super::testing::{any_topology, as_slurm_can_say};
use super::super::{Link, MAX_HOSTS};
use super::*;

const TWO: &str = "\
---
# of the manual
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: core
        children: leaf[0-1]
      - switch: leaf0
        nodes: dev[0-5]
      - switch: leaf1
        nodes: [\"dev[6-8]\", login]
- topology: racks
  cluster_default: false
  block:
    block_sizes: [4, 8]
    blocks:
      - block: b0
        nodes: dev[0-3]
      - block: b1
        nodes: dev[4-7]
- topology: all
  flat: true
";

fn parse(text: &str) -> Result<Topology, TopologyError> {
    Topology::parse(text, "t", Reading::default())
}

#[test]
fn the_default_topology_is_taken() {
    let topology = parse(TWO).unwrap();
    let parents: Vec<_> = topology.switches.iter().map(|switch| switch.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0)]);
    assert_eq!(topology.hosts.len(), 10);
    assert_eq!((topology.hosts[9].name.as_str(), topology.hosts[9].switch), ("login", 2));
    assert_eq!(topology.notes, ["of the topologies of the file, main is taken, not racks, all"]);

    let without_default = TWO.replace("cluster_default: true", "cluster_default: false");
    assert_eq!(parse(&without_default).unwrap().hosts.len(), 10, "the first, then");
}

#[test]
fn blocks_are_leaf_switches_below_one() {
    let text = TWO.replace("default: true", "default: no").replace("default: false", "default: true");
    let topology = parse(&text).unwrap();
    let names: Vec<_> =
        topology.switches.iter().map(|switch| (switch.name.as_str(), switch.parent)).collect();
    assert_eq!(names, [("b0", Some(2)), ("b1", Some(2)), ("top", None)]);
    assert_eq!(topology.hosts[4].switch, 1);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (text, line, words) in [
        ("[]", 1, "at least one"),
        ("a: b", 1, "a list of topologies"),
        ("- topology: x\n  flat: true", 2, "is flat"),
        ("- topology: x\n  ring: {rings: []}", 2, "is a ring: polycast knows tree and block"),
        ("- topology: x\n  torus3d: {}", 2, "is a torus: polycast knows tree and block"),
        ("- topology: x\n  dragonfly: {}", 2, "\"dragonfly\""),
        ("- topology: x", 1, "expected one of"),
        ("- topology: x\n  flat: true\n  tree: {}", 1, "expected one of"),
        ("- tree:\n    switches:\n      - switch: s\n        nodes: a", 1, "topology: NAME"),
        ("- topology: x\n  tree:\n    switches:\n      - nodes: a", 4, "switch: NAME"),
        ("- topology: x\n  tree:\n    switches:\n      - switch: s", 4, "neither nodes"),
        ("- topology: x\n  tree:\n    switches:\n      - switch: s\n        node: a", 5, "\"node\""),
        ("- topology: x\n  tree:\n    switches:\n      - switch: s\n        nodes: a[1", 5, "brackets"),
        (
            "- topology: x\n  tree:\n    switches:\n      - switch: s\n        nodes: a\n        children: t",
            6,
            "describes t",
        ),
        ("- topology: x\n  block:\n    blocks:\n      - nodes: a", 4, "block: NAME"),
        ("- topology: x\n  block:\n    blocks:\n      - block: b", 4, "no nodes"),
        ("- topology: x\n  tree: [", 2, ""),
    ] {
        let problems = parse(text).unwrap_err().problems;
        assert!(problems.iter().any(|p| p.line == line && p.text.contains(words)), "{text:?}: {problems:?}");
    }
}

#[test]
fn mistakes_of_all_topologies_are_found_at_once() {
    let text = TWO.replace("dev[4-7]", "dev[4-").replace("children: leaf[0-1]", "children: leaf[0-2]");
    let lines: Vec<_> = parse(&text).unwrap_err().problems.iter().map(|problem| problem.line).collect();
    assert!(lines.contains(&8) && lines.contains(&21), "{lines:?}");
}

#[test]
fn limits() {
    let file = |nodes: &str| {
        format!("- topology: x\n  tree:\n    switches:\n      - switch: s\n        nodes: {nodes}\n")
    };
    assert_eq!(parse(&file(&format!("n[1-{MAX_HOSTS}]"))).unwrap().hosts.len(), MAX_HOSTS);
    assert!(parse(&file(&format!("n[0-{MAX_HOSTS}]"))).unwrap_err().problems[0].text.contains("more names"));
}

#[test]
fn what_the_format_cannot_say_is_told() {
    let mut topology = Topology::flat(["12".to_owned(), "no".to_owned()]);
    topology.switches[0].name = "No".to_owned();
    let written = write(&topology);
    assert_eq!(written.lost, Vec::<String>::new());
    assert!(written.text.contains("- switch: \"No\"\n        nodes: \"12,no\"\n"), "{}", written.text);
    topology.hosts[0].link = Link { rate: "1gbit".parse().ok(), latency: Some(crate::units::Nanos(1)) };
    assert_eq!(write(&topology).lost.len(), 2);
}

proptest! {
    #[test]
    fn what_is_written_reads_back(topology in any_topology().prop_map(as_slurm_can_say)) {
        let mut expected = topology.clone();
        expected.hosts.iter_mut().for_each(|host| host.link = Link::default());
        expected.switches.iter_mut().for_each(|switch| switch.uplink = Link::default());
        prop_assert_eq!(parse(&write(&topology).text), Ok(expected));
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "(- |topology: |tree:|block:|switches:|blocks:|switch: |nodes: |children: |  |\n|[a-c\\[\\]{}&*!|>'\"0-3,#:-]){0,60}",
    ) {
        let _ = parse(&text);
    }
}
