//! Slurm's `topology.conf`: one switch per line, keys in any case, `#` comments, `\` at the end of a line that goes on.
//!
//! ```text
//!   SwitchName=s0 Nodes=dev[0-5]
//!   SwitchName=s1 Nodes=dev[6-11,20] LinkSpeed=10000      # Mb/s of the links from s1 down
//!   SwitchName=s2 Switches=s[0-1]
//! ```
//!
//! Slurm reads LinkSpeed and ignores it. A switch may here have nodes and switches at once. The lines of the block plugin
//! are read too: `BlockName=b0 Nodes=dev[0-5]`, and `BlockSizes`, which says nothing of links.

use std::fmt::Write;

use super::draft::Draft;
use super::slurm::{BlockEntry, Located, SwitchEntry};
use super::{Link, Reading, Topology, TopologyError, Written, hostlist};
use crate::units::Rate;

const BITS_PER_MEGABIT: u64 = 1_000_000;

/// Reads the text of a `topology.conf`. `file` is the name that problems show.
pub(super) fn read(text: &str, file: &str, reading: Reading) -> Result<Topology, TopologyError> {
    let mut draft = Draft::new(file);
    let (mut switches, mut blocks) = (Vec::new(), Vec::new());
    let mut is_empty = true;
    for (line, entry) in lines(text) {
        is_empty = false;
        match read_line(line, &entry) {
            Ok(ConfLine::Switch(entry)) => switches.push(entry),
            Ok(ConfLine::Block(entry)) => blocks.push(entry),
            Ok(ConfLine::BlockSizes) => {}
            Err(problem) => draft.mistake(line, problem),
        }
    }
    match (switches.is_empty(), blocks.first()) {
        (_, None) => draft.add_switch_entries(&switches),
        (true, Some(_)) => draft.add_block_entries(&blocks),
        (false, Some(block)) => {
            draft.mistake(block.line, "expected lines with SwitchName or lines with BlockName, found both");
        }
    }
    if is_empty {
        draft.mistake(0, "expected at least one line such as SwitchName=s0 Nodes=dev[0-5], found none");
    }
    draft.finish(reading)
}

/// The lines with something in them, comments removed, with their numbers; a line that ends in `\`
/// goes on in the next.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("").trim_end();
        let (first, mut entry) = begun.take().unwrap_or((index + 1, String::new()));
        // The space that a line begins with may be all that parts two words, but not within a list.
        let content = if entry.ends_with(',') { content.trim_start() } else { content };
        match content.strip_suffix('\\') {
            Some(part) => {
                entry.push_str(part);
                begun = Some((first, entry));
            }
            None => {
                entry.push_str(content);
                lines.push((first, entry));
            }
        }
    }
    lines.extend(begun);
    lines.retain(|(_, entry)| !entry.trim().is_empty());
    lines
}

enum ConfLine {
    Switch(SwitchEntry),
    Block(BlockEntry),
    BlockSizes,
}

fn read_line(line: usize, entry: &str) -> Result<ConfLine, String> {
    let (mut name, mut block, mut nodes, mut switches, mut speed, mut sizes) =
        (None, None, None, None, None, None);
    for word in entry.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("expected KEY=VALUE without spaces, found {word:?}"))?;
        let slot = match key.to_ascii_lowercase().as_str() {
            "switchname" => &mut name,
            "blockname" => &mut block,
            "nodes" => &mut nodes,
            "switches" => &mut switches,
            "linkspeed" => &mut speed,
            "blocksizes" => &mut sizes,
            "level" => {
                return Err("expected a topology.conf, found what `scontrol show topology` prints".to_owned());
            }
            _ => {
                return Err(format!(
                    "expected SwitchName, Nodes, Switches, LinkSpeed or BlockName, found the key {key:?}"
                ));
            }
        };
        if value.is_empty() || slot.replace(value).is_some() {
            return Err(format!("expected {key} once, with a value"));
        }
    }
    let located = |text: Option<&str>| text.map(|text| Located { line, text: text.to_owned() });
    match (name, block, sizes) {
        (Some(name), None, None) => {
            let link_speed = speed.map(link_speed).transpose()?;
            let (nodes, switches) = (located(nodes), located(switches));
            Ok(ConfLine::Switch(SwitchEntry { line, name: name.to_owned(), nodes, switches, link_speed }))
        }
        (None, Some(block), None) if switches.is_none() && speed.is_none() => {
            Ok(ConfLine::Block(BlockEntry { line, name: block.to_owned(), nodes: located(nodes) }))
        }
        (None, None, Some(_)) if nodes.is_none() && switches.is_none() && speed.is_none() => {
            Ok(ConfLine::BlockSizes)
        }
        (None, None, None) => Err("expected SwitchName=… in every line".to_owned()),
        _ => {
            Err("expected a line such as SwitchName=s0 Nodes=dev[0-5] or BlockName=b0 Nodes=dev[0-5]"
                .to_owned())
        }
    }
}

fn link_speed(value: &str) -> Result<Rate, String> {
    let bits = value.parse::<u64>().ok().and_then(|megabits| megabits.checked_mul(BITS_PER_MEGABIT));
    bits.and_then(Rate::from_bits_per_second).ok_or_else(|| {
        format!("expected LinkSpeed in Mb/s, a whole number from 1 to 1000000, found {value:?}")
    })
}

/// Writes a `topology.conf` that reads back as the same tree, as far as the format can say it.
pub(super) fn write(topology: &Topology) -> Written {
    let mut written = Written::default();
    let below = topology.below();
    for (switch, below) in topology.switches.iter().zip(&below) {
        if below.hosts.is_empty() && below.switches.is_empty() {
            written
                .lost
                .push(format!("switch {} has nothing below it, which Slurm does not allow", switch.name));
            continue;
        }
        let mut line = format!("SwitchName={}", switch.name);
        let hosts: Vec<&str> = below.hosts.iter().map(|&host| topology.hosts[host].name.as_str()).collect();
        let switches: Vec<&str> =
            below.switches.iter().map(|&switch| topology.switches[switch].name.as_str()).collect();
        for (key, names) in [("Nodes", hosts), ("Switches", switches)] {
            if !names.is_empty() {
                // Writing into a string does not fail.
                let _ = write!(line, " {key}={}", hostlist::compress(&names));
            }
        }
        let host_links = below.hosts.iter().map(|&host| topology.hosts[host].link);
        let links: Vec<Link> =
            host_links.chain(below.switches.iter().map(|&switch| topology.switches[switch].uplink)).collect();
        match common_megabits(&links) {
            Ok(Some(megabits)) => {
                let _ = write!(line, " LinkSpeed={megabits}");
            }
            Ok(None) => {}
            Err(why) => written.lost.push(format!("no LinkSpeed for switch {}: {why}", switch.name)),
        }
        written.text.push_str(&line);
        written.text.push('\n');
    }
    if topology.links().any(|link| link.latency.is_some()) {
        written.lost.push("the format has no latencies".to_owned());
    }
    written
}

/// The rate of links in Mb/s; `None` if it is not known, an error if the links differ or the rate is
/// no whole number.
fn common_megabits(links: &[Link]) -> Result<Option<u64>, &'static str> {
    let Some(first) = links.first() else { return Ok(None) };
    if links.iter().any(|link| link.rate != first.rate) {
        return Err("the links below it differ");
    }
    let bits = first.rate.map(Rate::bits_per_second);
    match bits {
        Some(bits) if !bits.is_multiple_of(BITS_PER_MEGABIT) => Err("its rate is not a whole number of Mb/s"),
        bits => Ok(bits.map(|bits| bits / BITS_PER_MEGABIT)),
    }
}

#[cfg(test)]
mod tests;
