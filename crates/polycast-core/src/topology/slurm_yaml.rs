//! Slurm's `topology.yaml`, which came with Slurm 25.05.
//!
//! ```text
//! - topology: main                         - topology: racks
//!   cluster_default: true                    block:
//!   tree:                                      block_sizes: [4, 16]
//!     switches:                                blocks:
//!       - switch: core                           - block: b0
//!         children: leaf[0-1]                      nodes: dev[0-3]
//!       - switch: leaf0
//!         nodes: dev[0-5]
//! ```
//!
//! It has no rates. Of several topologies the first with `cluster_default: true` is taken, else the first.

use super::draft::Draft;
use super::node::{self, Node, NodeContent};
use super::slurm::{BlockEntry, Located, SwitchEntry};
use super::{ProblemKind, Reading, Topology, TopologyError, Written, hostlist};

const SUPPORTED: &str = "polycast knows tree and block";

/// A topology of the file, as far as it was read: a file may have several.
struct Candidate {
    name: String,
    is_default: bool,
    /// The switches and hosts of the topology, and the mistakes in its description.
    draft: Draft,
    /// The line and the reason if the topology cannot be used although nothing is wrong with its
    /// description.
    unfit: Option<(usize, String)>,
}

/// Reads the text of a `topology.yaml`. `file` is the name that problems show.
pub(super) fn read(text: &str, file: &str, reading: Reading) -> Result<Topology, TopologyError> {
    let root = node::read(text).map_err(|(line, problem)| TopologyError::mistake(file, line, problem))?;
    let mut outside = Draft::new(file);
    let items = root.items(&mut outside, "topologies, each with - topology: NAME");
    let candidates: Vec<Candidate> = items.iter().map(|item| candidate(item, file)).collect();
    let chosen = candidates.iter().position(|candidate| candidate.is_default).unwrap_or(0);
    let others: Vec<&str> = candidates
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != chosen)
        .map(|(_, c)| c.name.as_str())
        .collect();
    let others = others.join(", ");
    let mut problems = outside.into_problems();
    let mut taken = None;
    for (index, mut candidate) in candidates.into_iter().enumerate() {
        if let Some((line, text)) = candidate.unfit.filter(|_| index == chosen) {
            candidate.draft.mistake(line, text);
        }
        if index != chosen {
            // Whether it is a tree does not matter; what is written wrongly does.
            problems.extend(candidate.draft.into_problems());
            continue;
        }
        if !others.is_empty() {
            let note = format!("of the topologies of the file, {} is taken, not {others}", candidate.name);
            candidate.draft.notes.push(note);
        }
        match candidate.draft.finish(reading) {
            Ok(topology) => taken = Some(topology),
            Err(error) => problems.extend(error.problems),
        }
    }
    problems.retain(|problem| problem.kind == ProblemKind::Mistake || taken.is_none());
    match taken {
        Some(topology) if problems.is_empty() => Ok(topology),
        None if problems.is_empty() => {
            Err(TopologyError::mistake(file, root.line, "expected at least one - topology: NAME"))
        }
        _ => Err(TopologyError::new(problems)),
    }
}

fn candidate(item: &Node, file: &str) -> Candidate {
    let mut draft = Draft::new(file);
    let mut candidate = (String::new(), false, None);
    let known = ["topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"];
    if let Some([name, default, tree, block, flat, ring, torus]) =
        item.fields(&mut draft, "a topology", known)
    {
        match name {
            Some(name) => candidate.0 = name.text(&mut draft, "a name").unwrap_or_default().to_owned(),
            None => draft.mistake(item.line, "expected topology: NAME"),
        }
        candidate.1 = default.and_then(|node| node.text(&mut draft, "true or false")) == Some("true");
        let name = &candidate.0;
        match [tree, block, flat, ring, torus] {
            [Some(tree), None, None, None, None] => add_tree(&mut draft, tree),
            [None, Some(block), None, None, None] => add_blocks(&mut draft, block),
            [None, None, Some(flat), None, None] => {
                let text = format!(
                    "topology {name} is flat, so there is nothing to read from it: where no topology is given, \
                     polycast takes all hosts to be on one switch"
                );
                candidate.2 = Some((flat.line, text));
            }
            [None, None, None, Some(ring), None] => {
                candidate.2 = Some((ring.line, format!("topology {name} is a ring: {SUPPORTED}")));
            }
            [None, None, None, None, Some(torus)] => {
                candidate.2 = Some((torus.line, format!("topology {name} is a torus: {SUPPORTED}")));
            }
            _ => draft.mistake(item.line, "expected one of tree, block and flat"),
        }
    }
    Candidate { name: candidate.0, is_default: candidate.1, draft, unfit: candidate.2 }
}

fn add_tree(draft: &mut Draft, tree: &Node) {
    let Some([switches]) = tree.fields(draft, "a tree", ["switches"]) else { return };
    let mut entries = Vec::new();
    for node in switches.map_or(&[][..], |switches| switches.items(draft, "switches")) {
        let Some([name, children, nodes]) = node.fields(draft, "a switch", ["switch", "children", "nodes"])
        else {
            continue;
        };
        let (nodes, switches) = (names(draft, nodes), names(draft, children));
        match name {
            None => draft.mistake(node.line, "expected switch: NAME"),
            Some(name) => {
                let name = name.text(draft, "the name of a switch").unwrap_or_default().to_owned();
                entries.push(SwitchEntry { line: node.line, name, nodes, switches, link_speed: None });
            }
        }
    }
    draft.add_switch_entries(&entries);
}

fn add_blocks(draft: &mut Draft, block: &Node) {
    let Some([_sizes, blocks]) = block.fields(draft, "a block topology", ["block_sizes", "blocks"]) else {
        return;
    };
    let mut entries = Vec::new();
    for node in blocks.map_or(&[][..], |blocks| blocks.items(draft, "blocks")) {
        let Some([name, nodes]) = node.fields(draft, "a block", ["block", "nodes"]) else { continue };
        let nodes = names(draft, nodes);
        match name {
            None => draft.mistake(node.line, "expected block: NAME"),
            Some(name) => {
                let name = name.text(draft, "the name of a block").unwrap_or_default().to_owned();
                entries.push(BlockEntry { line: node.line, name, nodes });
            }
        }
    }
    draft.add_block_entries(&entries);
}

/// The names in a node, which is a hostlist or a list of hostlists; `None` without a node.
fn names(draft: &mut Draft, node: Option<&Node>) -> Option<Located> {
    let node = node?;
    let text = match &node.content {
        NodeContent::Scalar(text) => text.clone(),
        _ => {
            let items = node.items(draft, "names");
            let texts: Vec<&str> = items.iter().filter_map(|item| item.text(draft, "a name")).collect();
            texts.join(",")
        }
    };
    Some(Located { line: node.line, text })
}

/// Writes a `topology.yaml` with one topology that reads back as the same tree, as far as the format can say it.
pub(super) fn write(topology: &Topology) -> Written {
    let mut written = Written::default();
    written.text.push_str("- topology: default\n  cluster_default: true\n  tree:\n    switches:\n");
    for (switch, below) in topology.switches.iter().zip(topology.below()) {
        let hosts: Vec<&str> = below.hosts.iter().map(|&host| topology.hosts[host].name.as_str()).collect();
        let switches: Vec<&str> =
            below.switches.iter().map(|&switch| topology.switches[switch].name.as_str()).collect();
        if hosts.is_empty() && switches.is_empty() {
            written
                .lost
                .push(format!("switch {} has nothing below it, which Slurm does not allow", switch.name));
            continue;
        }
        written.text.push_str(&format!("      - switch: {}\n", scalar(&switch.name)));
        for (key, names) in [("children", switches), ("nodes", hosts)] {
            if !names.is_empty() {
                written.text.push_str(&format!("        {key}: {}\n", scalar(&hostlist::compress(&names))));
            }
        }
    }
    if topology.links().any(|link| link.rate.is_some()) {
        written.lost.push("the format has no link rates".to_owned());
    }
    if topology.links().any(|link| link.latency.is_some()) {
        written.lost.push("the format has no latencies".to_owned());
    }
    written
}

/// Writes a name as it is where YAML takes it for a text, else in quotes: `12` would be a number,
/// `no` a truth value.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "null", "y"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,[]".contains(c);
    let is_text = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_plain)
        && text != "n"
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_text { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests;
