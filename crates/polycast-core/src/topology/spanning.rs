//! From switches and links to a tree.
//!
//! ```text
//!     spine0   spine1            spine0           Breadth first from the root with most links. The links that the walk
//!      │  ╲   ╱  │                │   ╲           does not take are left out, and then the switches that lead to no
//!      │    ╳    │        ─▶      │     ╲         host: spine1. Every host stays as near to the root as it was.
//!      │  ╱   ╲  │                │       ╲
//!     leaf0    leaf1             leaf0    leaf1
//! ```

use std::collections::VecDeque;

use super::draft::{Draft, in_line};
use super::{Link, Switch, Topology};

/// The reasons why the description is not a tree with every link pointing down, each with its line.
pub(super) fn irregularities(draft: &Draft) -> Vec<(usize, String)> {
    let name = |switch: usize| &draft.switches[switch].name;
    let mut found = Vec::new();
    let mut first_link_up = vec![None; draft.switches.len()];
    let mut has_two_above = vec![false; draft.switches.len()];
    for link in &draft.links {
        let Some((above, line)) = first_link_up[link.lower] else {
            first_link_up[link.lower] = Some((link.upper, link.line));
            continue;
        };
        has_two_above[link.lower] = true;
        let text = format!(
            "switch {} is below {} already{}: in a tree, a switch has one above it",
            name(link.lower),
            name(above),
            in_line(line)
        );
        found.push((link.line, text));
    }
    let components = components(draft);
    for component in &components {
        if component.iter().all(|&switch| first_link_up[switch].is_some() && !has_two_above[switch]) {
            let first = component[0];
            let text = format!("switch {} is part of a cycle or hangs below one", name(first));
            found.push((draft.switches[first].line, text));
        }
    }
    if !draft.is_open_above {
        let roots = roots(draft, &components);
        for &other in &roots[1..] {
            let (one, line, other) = (name(roots[0]), draft.switches[other].line, name(other));
            let text = format!(
                "nothing joins {other} with {one}: give a switch that has {one} and {other} below it"
            );
            found.push((line, text));
        }
    }
    found
}

/// The tree; links and switches that are left out are named in its notes. Switches without hosts are left out only where
/// the description `is_irregular`: elsewhere they are its author's wish.
pub(super) fn tree(draft: Draft, is_irregular: bool) -> Topology {
    let mut parents = vec![None; draft.switches.len()];
    let mut uplinks = vec![Link::default(); draft.switches.len()];
    let components = components(&draft);
    let mut roots = roots(&draft, &components);
    let is_taken = walk(&draft, &roots, &mut parents, &mut uplinks);
    let is_kept = match is_irregular {
        true => lead_to_hosts(&draft, &parents),
        false => vec![true; draft.switches.len()],
    };
    roots.retain(|&root| is_kept[root]);

    let notes = left_out(&draft, &is_taken, &is_kept);
    let switches = draft.switches.into_iter().zip(parents.into_iter().zip(uplinks));
    let switches = switches.map(|(switch, (parent, uplink))| Switch { name: switch.name, parent, uplink });
    let mut topology = Topology { switches: switches.collect(), hosts: draft.hosts, notes: draft.notes };
    topology.notes.extend(notes);
    if roots.len() > 1 {
        topology.join_below_top(&roots);
    }
    topology.retain_switches(&is_kept);
    topology
}

/// The groups of switches that links join, each in breadth-first order from its first switch in the
/// file.
fn components(draft: &Draft) -> Vec<Vec<usize>> {
    let neighbours = neighbours(draft);
    let mut is_seen = vec![false; draft.switches.len()];
    let mut components = Vec::new();
    for first in 0..draft.switches.len() {
        if is_seen[first] {
            continue;
        }
        is_seen[first] = true;
        let mut component = vec![first];
        let mut next = 0;
        while next < component.len() {
            for &link in &neighbours[component[next]] {
                let other = other_end(draft, link, component[next]);
                if !is_seen[other] {
                    is_seen[other] = true;
                    component.push(other);
                }
            }
            next += 1;
        }
        components.push(component);
    }
    components
}

/// The links of each switch, up and down.
fn neighbours(draft: &Draft) -> Vec<Vec<usize>> {
    let mut links = vec![Vec::new(); draft.switches.len()];
    for (index, link) in draft.links.iter().enumerate() {
        links[link.upper].push(index);
        links[link.lower].push(index);
    }
    links
}

fn other_end(draft: &Draft, link: usize, one_end: usize) -> usize {
    let link = &draft.links[link];
    if link.upper == one_end { link.lower } else { link.upper }
}

/// The root of each component: the switch that nothing is above and most is below, the first of
/// several; in a cycle, its first switch.
fn roots(draft: &Draft, components: &[Vec<usize>]) -> Vec<usize> {
    let mut links_down = vec![0usize; draft.switches.len()];
    let mut has_above = vec![false; draft.switches.len()];
    for link in &draft.links {
        links_down[link.upper] += 1;
        has_above[link.lower] = true;
    }
    let preference = |&switch: &usize| match has_above[switch] {
        false => (false, usize::MAX - links_down[switch], switch),
        true => (true, 0, switch),
    };
    components.iter().filter_map(|component| component.iter().copied().min_by_key(preference)).collect()
}

/// Walks breadth first from each root and fills `parents` and `uplinks`; returns for each link
/// whether it was taken.
fn walk(draft: &Draft, roots: &[usize], parents: &mut [Option<usize>], uplinks: &mut [Link]) -> Vec<bool> {
    let neighbours = neighbours(draft);
    let mut taken = vec![false; draft.links.len()];
    let mut is_reached = vec![false; draft.switches.len()];
    let mut to_visit: VecDeque<usize> = roots.iter().copied().collect();
    roots.iter().for_each(|&root| is_reached[root] = true);
    while let Some(switch) = to_visit.pop_front() {
        for &index in &neighbours[switch] {
            let other = other_end(draft, index, switch);
            if !is_reached[other] {
                is_reached[other] = true;
                taken[index] = true;
                parents[other] = Some(switch);
                uplinks[other] = draft.links[index].link;
                to_visit.push_back(other);
            }
        }
    }
    taken
}

/// For each switch, true if it has hosts below it in the tree.
fn lead_to_hosts(draft: &Draft, parents: &[Option<usize>]) -> Vec<bool> {
    let mut lead = vec![false; parents.len()];
    for host in &draft.hosts {
        let mut above = Some(host.switch);
        while let Some(switch) = above.filter(|&switch| !lead[switch]) {
            lead[switch] = true;
            above = parents[switch];
        }
    }
    lead
}

/// A note for each switch that is left out, with its links, and for each whose links upward were not all taken.
fn left_out(draft: &Draft, is_taken: &[bool], is_kept: &[bool]) -> Vec<String> {
    let name = |switch: usize| draft.switches[switch].name.as_str();
    let mut lost: Vec<Vec<String>> = vec![Vec::new(); draft.switches.len()];
    for (link, &is_taken) in draft.links.iter().zip(is_taken) {
        let line = if link.line == 0 { String::new() } else { format!(" (line {})", link.line) };
        match (is_kept[link.upper], is_kept[link.lower]) {
            (true, true) if is_taken => {}
            (true, _) => lost[link.lower].push(format!("{}{line}", name(link.upper))),
            (false, _) => lost[link.upper].push(format!("{}{line}", name(link.lower))),
        }
    }
    let mut notes = Vec::new();
    for (switch, others) in lost.iter().enumerate() {
        let (name, others) = (name(switch), others.join(", "));
        match is_kept[switch] {
            true if others.is_empty() => {}
            true => notes.push(format!(
                "a tree has one way only: left out are the links of switch {name} to {others}"
            )),
            false => notes.push(format!(
                "switch {name} leads to no host in the tree and is left out with its links to {others}"
            )),
        }
    }
    notes
}

impl Topology {
    /// Puts a switch above several topmost ones.
    fn join_below_top(&mut self, roots: &[usize]) {
        let name = self.free_name("top");
        let names: Vec<&str> = roots.iter().map(|&root| self.switches[root].name.as_str()).collect();
        let note = format!(
            "nothing is known of what joins {}: a switch {name} with links of unknown rate is assumed above them",
            names.join(", ")
        );
        self.notes.push(note);
        let top = self.switches.len();
        self.switches.push(Switch { name, parent: None, uplink: Link::default() });
        roots.iter().for_each(|&root| self.switches[root].parent = Some(top));
    }

    /// `wish`, or `wish` with a number, so that no switch has it.
    pub(super) fn free_name(&self, wish: &str) -> String {
        let is_free = |name: &String| self.switches.iter().all(|switch| switch.name != *name);
        let numbered = (0..).map(|number| format!("{wish}{number}"));
        std::iter::once(wish.to_owned())
            .chain(numbered)
            .find(is_free)
            .expect("there are more numbers than switches")
    }

    /// Removes the switches whose entry in `is_kept` is false; no switch that is kept may be below
    /// one of them.
    fn retain_switches(&mut self, is_kept: &[bool]) {
        let mut index_of = vec![0; self.switches.len()];
        let mut next = 0;
        for (index, new) in index_of.iter_mut().enumerate() {
            *new = next;
            next += usize::from(is_kept.get(index) != Some(&false));
        }
        let mut index = 0;
        self.switches.retain(|_| {
            index += 1;
            is_kept.get(index - 1) != Some(&false)
        });
        for switch in &mut self.switches {
            switch.parent = switch.parent.map(|parent| index_of[parent]);
        }
        for host in &mut self.hosts {
            host.switch = index_of[host.switch];
        }
    }
}
