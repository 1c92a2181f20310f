//! What Slurm's `topology.conf` and `topology.yaml` have in common: switches and blocks with hostlists.

use super::draft::Draft;
use super::hostlist::expand;
use super::{Link, MAX_HOSTS, MAX_LINKS, hostlist};
use crate::units::Rate;

/// A text with the line it stands in.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A switch with hostlists of what is below it.
#[derive(Clone, Debug)]
pub(super) struct SwitchEntry {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) nodes: Option<Located>,
    pub(super) switches: Option<Located>,
    /// The rate of the links from this switch down to its nodes and switches.
    pub(super) link_speed: Option<Rate>,
}

/// A block of nodes that are near to each other.
#[derive(Clone, Debug)]
pub(super) struct BlockEntry {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) nodes: Option<Located>,
}

/// The number of names that the hostlists of a file may still stand for: a short line can ask for
/// terabytes of names.
struct Budget {
    hosts: usize,
    links: usize,
}

fn not_described(above: &str, unknown: &[&str]) -> String {
    let names = hostlist(unknown);
    match unknown.len() {
        1 => format!("switch {above} has the switch {names} below it, but no entry describes {names}"),
        _ => format!("switch {above} has the switches {names} below it, but no entry describes them"),
    }
}

impl Draft {
    /// Adds switches, given in any order, with their hosts and links.
    pub(super) fn add_switch_entries(&mut self, entries: &[SwitchEntry]) {
        let mut budget = Budget { hosts: MAX_HOSTS, links: MAX_LINKS };
        // All names first: a switch may be described after the one above it.
        let indices: Vec<_> = entries.iter().map(|entry| self.add_switch(entry.line, &entry.name)).collect();
        // A switch that seems to be missing may be in a line that could not be read.
        let is_complete = !self.is_mistaken();
        for (entry, switch) in entries.iter().zip(indices) {
            if entry.nodes.is_none() && entry.switches.is_none() {
                self.mistake(
                    entry.line,
                    format!("switch {} has neither nodes nor switches below it", entry.name),
                );
            }
            // The lists of a switch whose name is wrong are looked at too, for the mistakes in them.
            let link = Link { rate: entry.link_speed, latency: None };
            for name in self.names(entry.nodes.as_ref(), &mut budget.hosts) {
                if let (Some(switch), Some(nodes)) = (switch, &entry.nodes) {
                    self.add_host(nodes.line, &name, switch, link);
                }
            }
            let below = self.names(entry.switches.as_ref(), &mut budget.links);
            if let (Some(switch), Some(switches)) = (switch, &entry.switches) {
                let unknown = self.add_children(switches.line, switch, &below, link);
                if is_complete && !unknown.is_empty() {
                    self.mistake(switches.line, not_described(&entry.name, &unknown));
                }
            }
        }
    }

    /// Adds links from a switch to its children; returns the names of children that no entry
    /// describes.
    fn add_children<'a>(
        &mut self,
        line: usize,
        switch: usize,
        children: &'a [String],
        link: Link,
    ) -> Vec<&'a str> {
        let mut unknown = Vec::new();
        for name in children {
            match self.switch(name) {
                Some(child) => self.add_link(line, switch, child, link),
                None => unknown.push(name.as_str()),
            }
        }
        unknown
    }

    /// Adds blocks as leaf switches with their hosts; they are joined below one switch in the end.
    pub(super) fn add_block_entries(&mut self, entries: &[BlockEntry]) {
        let mut budget = Budget { hosts: MAX_HOSTS, links: MAX_LINKS };
        for entry in entries {
            let switch = self.add_switch(entry.line, &entry.name);
            if entry.nodes.is_none() {
                self.mistake(entry.line, format!("block {} has no nodes", entry.name));
            }
            for name in self.names(entry.nodes.as_ref(), &mut budget.hosts) {
                if let (Some(switch), Some(nodes)) = (switch, &entry.nodes) {
                    self.add_host(nodes.line, &name, switch, Link::default());
                }
            }
        }
        self.is_open_above = true;
        self.notes.push("blocks of nodes are taken as leaf switches".to_owned());
    }

    fn names(&mut self, list: Option<&Located>, budget: &mut usize) -> Vec<String> {
        let Some(Located { line, text }) = list else { return Vec::new() };
        match expand(text, *budget) {
            Ok(names) => {
                *budget -= names.len();
                names
            }
            Err(text) => {
                self.mistake(*line, text);
                Vec::new()
            }
        }
    }
}
