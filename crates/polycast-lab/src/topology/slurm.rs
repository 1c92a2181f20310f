//! Slurm's `topology.conf`: one switch per line, keys in any case, `#` comments.
//!
//! ```text
//!   SwitchName=s0 Nodes=dev[0-5]
//!   SwitchName=s1 Nodes=dev[6-11,20] LinkSpeed=10000      # Mb/s of the links from s1 to its nodes
//!   SwitchName=s2 Switches=s[0-1]
//! ```
//!
//! Slurm reads LinkSpeed and ignores it. A switch may here have nodes and switches at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::hostlist::expand;
use super::{MAX_NAME, MAX_NODES, Topology, TopologyNode, TopologySwitch};
use polycast_core::units::Rate;

/// What is wrong, with the line it stands in.
type Located<T> = Result<T, (usize, String)>;

/// A line, its lists expanded.
struct SwitchLine {
    line: usize,
    name: String,
    nodes: Vec<String>,
    switches: Vec<String>,
    link_speed: Option<Rate>,
}

pub(super) fn parse(text: &str) -> Located<Topology> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or("").trim();
        if !entry.is_empty() {
            lines.push(read_line(index + 1, entry).map_err(|problem| (index + 1, problem))?);
        }
    }
    if lines.is_empty() {
        return Err((
            0,
            "expected at least one line such as SwitchName=s0 Nodes=dev[0-5], found none".into(),
        ));
    }
    let parents = parents(&lines)?;
    check_is_one_tree(&lines, &parents)?;
    let nodes = nodes(&lines)?;
    let switches = lines.into_iter().zip(parents).map(|(line, parent)| TopologySwitch {
        name: line.name,
        parent,
        link_speed: line.link_speed,
    });
    Ok(Topology { switches: switches.collect(), nodes })
}

fn read_line(line: usize, entry: &str) -> Result<SwitchLine, String> {
    let (mut name, mut nodes, mut switches, mut speed) = (None, None, None, None);
    for word in entry.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("expected KEY=VALUE without spaces, found {word:?}"))?;
        let slot = match key.to_ascii_lowercase().as_str() {
            "switchname" => &mut name,
            "nodes" => &mut nodes,
            "switches" => &mut switches,
            "linkspeed" => &mut speed,
            "blockname" | "blocksizes" => {
                return Err("blocks are not a tree of switches; write them as leaf switches".into());
            }
            _ => {
                return Err(format!(
                    "expected SwitchName, Nodes, Switches or LinkSpeed, found the key {key:?}"
                ));
            }
        };
        if value.is_empty() || slot.replace(value).is_some() {
            return Err(format!("expected {key} once, with a value"));
        }
    }
    let name = name.ok_or("expected SwitchName=… in every line")?;
    check_name(name)?;
    if nodes.is_none() && switches.is_none() {
        return Err(format!("switch {name} needs Nodes=… or Switches=…"));
    }
    let list = |text: Option<&str>| text.map_or(Ok(Vec::new()), names);
    let (nodes, switches) = (list(nodes)?, list(switches)?);
    Ok(SwitchLine {
        line,
        name: name.into(),
        nodes,
        switches,
        link_speed: speed.map(link_speed).transpose()?,
    })
}

fn names(list: &str) -> Result<Vec<String>, String> {
    let names = expand(list, MAX_NODES)?;
    names.iter().try_for_each(|name| check_name(name)).map(|()| names)
}

/// Names end up in hosts files and on command lines.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(plain)
    {
        return Ok(());
    }
    Err(format!("expected a name of at most {MAX_NAME} letters, digits, - _ and ., found {name:?}"))
}

fn link_speed(value: &str) -> Result<Rate, String> {
    let rate =
        value.parse::<u64>().ok().and_then(|n| n.checked_mul(1_000_000)).and_then(Rate::from_bits_per_second);
    rate.ok_or_else(|| {
        format!("expected LinkSpeed in Mb/s, a whole number from 1 to 1000000, found {value:?}")
    })
}

/// The switch above each switch.
fn parents(lines: &[SwitchLine]) -> Located<Vec<Option<usize>>> {
    let mut index_of = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(first) = index_of.insert(line.name.as_str(), index) {
            let first = lines[first].line;
            return Err((line.line, format!("switch {} is described already in line {first}", line.name)));
        }
    }
    let mut parents = vec![None; lines.len()];
    for (index, line) in lines.iter().enumerate() {
        for name in &line.switches {
            let child = *index_of.get(name.as_str()).ok_or_else(|| {
                (
                    line.line,
                    format!(
                        "switch {} has the switch {name} below it, but no line describes {name}",
                        line.name
                    ),
                )
            })?;
            if let Some(other) = parents[child].replace(index) {
                let other: &SwitchLine = &lines[other];
                let problem = format!(
                    "switch {name} is below {} already, in line {}: a switch has one parent",
                    other.name, other.line
                );
                return Err((line.line, problem));
            }
        }
    }
    Ok(parents)
}

/// Every switch has at most one parent by now; what is left to go wrong are cycles and several roots.
fn check_is_one_tree(lines: &[SwitchLine], parents: &[Option<usize>]) -> Located<()> {
    let mut first_root: Option<usize> = None;
    for (index, line) in lines.iter().enumerate() {
        let mut root = index;
        for _ in 0..lines.len() {
            root = parents[root].unwrap_or(root);
        }
        if parents[root].is_some() {
            return Err((line.line, format!("switch {} is part of a cycle or hangs below one", line.name)));
        }
        match first_root {
            None => first_root = Some(root),
            Some(first) if first != root => {
                let (one, other) = (&lines[first].name, &lines[root].name);
                let problem = format!(
                    "nothing joins {other} with {one}: add a line SwitchName=top Switches={one},{other}"
                );
                return Err((lines[root].line, problem));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn nodes(lines: &[SwitchLine]) -> Located<Vec<TopologyNode>> {
    let mut line_of = HashMap::new();
    let mut nodes = Vec::new();
    for (switch, line) in lines.iter().enumerate() {
        for name in &line.nodes {
            match line_of.entry(name.as_str()) {
                Entry::Occupied(first) => {
                    return Err((
                        line.line,
                        format!("node {name} is on a switch already, in line {}", first.get()),
                    ));
                }
                Entry::Vacant(free) => free.insert(line.line),
            };
            nodes.push(TopologyNode { name: name.clone(), switch });
        }
    }
    match nodes.len() {
        0 => Err((0, "expected at least one node".into())),
        n if n > MAX_NODES => Err((0, format!("expected at most {MAX_NODES} nodes, found {n}"))),
        _ => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(text: &str) -> (usize, String) {
        parse(text).unwrap_err()
    }

    #[test]
    fn the_example_of_the_slurm_manual() {
        let text = "# fat tree\nSwitchName=s0 Nodes=dev[0-5]\n\nswitchname=s1 NODES=dev[6-8,20] linkspeed=10000 # fast\n\
                    SwitchName=s2 Switches=s[0-1]\n";
        let topology = parse(text).unwrap();
        let parents: Vec<_> = topology.switches.iter().map(|switch| switch.parent).collect();
        assert_eq!(parents, [Some(2), Some(2), None]);
        assert_eq!(topology.nodes.len(), 10);
        assert_eq!((topology.nodes[9].name.as_str(), topology.nodes[9].switch), ("dev20", 1));
        assert_eq!(topology.switches[1].link_speed.unwrap().to_string(), "10gbit");
        assert_eq!(topology.switches[0].link_speed, None);
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        for (text, line, words) in [
            ("", 0, "at least one line"),
            ("# nothing\n", 0, "at least one line"),
            ("Nodes=a", 1, "SwitchName"),
            ("SwitchName=s", 1, "needs Nodes"),
            ("SwitchName=s Nodes=", 1, "with a value"),
            ("SwitchName=s Nodes=a Nodes=b", 1, "once"),
            ("SwitchName=s Nodes=a\nSwitchName=t Color=red", 2, "\"Color\""),
            ("SwitchName=s Nodes = a", 1, "without spaces"),
            ("SwitchName=s Nodes=a LinkSpeed=fast", 1, "Mb/s"),
            ("SwitchName=s Nodes=a LinkSpeed=0", 1, "Mb/s"),
            ("SwitchName=s[0-1] Nodes=a", 1, "letters"),
            ("SwitchName=s Nodes=a/b", 1, "letters"),
            ("SwitchName=s Nodes=a[0-", 1, "brackets"),
            ("SwitchName=s Nodes=a[0-99999999]", 1, "more names"),
            ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", 2, "already in line 1"),
            ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b,a Switches=s", 2, "already, in line 1"),
            ("SwitchName=s Switches=t", 1, "no line describes t"),
            ("SwitchName=s Nodes=a\nSwitchName=t Switches=s\nSwitchName=u Switches=s,t", 3, "one parent"),
            ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b", 2, "nothing joins t with s"),
            ("SwitchName=s Nodes=a Switches=s", 1, "cycle"),
            ("SwitchName=r Nodes=b\nSwitchName=s Nodes=a Switches=t\nSwitchName=t Switches=s", 2, "cycle"),
            ("BlockName=b Nodes=a", 1, "blocks"),
        ] {
            let (found_line, found) = problem(text);
            assert!(found_line == line && found.contains(words), "{text:?}: {found_line}: {found}");
        }
    }

    #[test]
    fn names_have_a_limit() {
        let (longest, longer) = ("n".repeat(MAX_NAME), "n".repeat(MAX_NAME + 1));
        assert!(parse(&format!("SwitchName={longest} Nodes=x")).is_ok());
        assert!(parse(&format!("SwitchName={longer} Nodes=x")).is_err());
        assert!(parse(&format!("SwitchName=x Nodes={longer}")).is_err());
    }

    /// Any tree: each switch but the first hangs below an earlier one, each has some nodes.
    fn any_topology() -> impl Strategy<Value = Topology> {
        let switch = (any::<prop::sample::Index>(), prop::option::of(1..100_000u64), 1..4usize);
        prop::collection::vec(switch, 1..12).prop_map(|wishes| {
            let mut topology = Topology { switches: Vec::new(), nodes: Vec::new() };
            for (index, (parent, speed, nodes)) in wishes.into_iter().enumerate() {
                topology.switches.push(TopologySwitch {
                    name: format!("s{index}"),
                    parent: (index > 0).then(|| parent.index(index)),
                    link_speed: speed.and_then(|mbit| Rate::from_bits_per_second(mbit * 1_000_000)),
                });
                let names = (0..nodes).map(|node| format!("n{index}-{node}"));
                topology.nodes.extend(names.map(|name| TopologyNode { name, switch: index }));
            }
            topology
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(topology in any_topology()) {
            prop_assert_eq!(parse(&topology.to_string()), Ok(topology));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(SwitchName=|Nodes=|Switches=|LinkSpeed=|[a-c\\[\\]0-3,# \n-]){0,40}") {
            let _ = parse(&text);
        }
    }
}
