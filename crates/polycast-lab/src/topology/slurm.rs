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
use crate::quantity::Rate;

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
