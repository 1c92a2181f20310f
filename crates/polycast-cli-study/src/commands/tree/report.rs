//! The report on a tree, with the same facts for people and for programs.

use std::collections::HashSet;

use polycast_core::algorithm::Algorithm;
use polycast_core::tree::contending_pairs;
use polycast_core::units::{Bytes, Rank};
use serde::Serialize;

use super::{Planned, traffic};
use crate::terminal::{count, hanging, nanoseconds, paragraph};
use crate::times::Times;

/// A tree in numbers.
#[derive(Serialize)]
pub struct Report<'a> {
    pub shape: String,
    root: u32,
    ranks: u32,
    hosts: usize,
    /// Switches with hosts of these ranks.
    switches: usize,
    pub height: u32,
    /// The height of the complete binary tree over these ranks: no binary tree is lower.
    complete_binary_height: u32,
    /// The most children of a rank.
    pub degree: u32,
    pub contending_pairs: u64,
    /// The directed edge that carries the message most often.
    pub busiest_link: Option<BusiestLink>,
    message_bytes: u64,
    segment_bytes: u64,
    /// The time until the last rank has the whole message, by the links alone, in nanoseconds.
    pub estimated_time_ns: u64,
    /// The times that the tree is planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<&'a Times>,
    /// The tree, rank by rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<Place>>,
}

#[derive(Serialize)]
pub struct BusiestLink {
    from: String,
    to: String,
    messages: u32,
}

/// A rank in a tree.
#[derive(Serialize)]
struct Place {
    host: String,
    parent: Option<u32>,
    children: Vec<u32>,
    /// Whether the message from the parent shares a link with one of another sender.
    contends: bool,
}

/// Height of the complete binary tree over this many ranks: as many levels as the number has binary digits, less one.
pub fn complete_binary_height(ranks: u32) -> u32 {
    ranks.ilog2()
}

impl<'a> Report<'a> {
    /// Counts everything.
    pub fn new(planned: &'a Planned) -> Report<'a> {
        let Planned { scene, tree, traffic, .. } = planned;
        let hosts: HashSet<usize> = scene.placed.host_of.iter().copied().collect();
        let switches: HashSet<usize> =
            hosts.iter().map(|host| scene.placed.topology.hosts[*host].switch).collect();
        let busiest_link = traffic.busiest().map(|(edge, messages)| {
            let (from, to) = traffic::ends(edge, &scene.placed);
            BusiestLink { from: from.to_owned(), to: to.to_owned(), messages }
        });
        Report {
            shape: Algorithm { segment: None, ..planned.algorithm }.to_string(),
            root: scene.root.0,
            ranks: tree.ranks(),
            hosts: hosts.len(),
            switches: switches.len(),
            height: tree.height(),
            complete_binary_height: complete_binary_height(tree.ranks()),
            degree: tree.degree(),
            contending_pairs: contending_pairs(tree, &scene.placed),
            busiest_link,
            message_bytes: scene.bytes.get(),
            segment_bytes: planned.segment().get(),
            estimated_time_ns: planned.estimated_time().0,
            times: planned.times.as_ref(),
            tree: None,
        }
    }

    /// Adds the parents and children of all ranks to the report.
    pub fn with_tree(self, planned: &Planned) -> Report<'a> {
        let placed = &planned.scene.placed;
        let place = |(rank, host): (Rank, &usize)| Place {
            host: placed.topology.hosts[*host].name.clone(),
            parent: planned.tree.parent(rank).map(|parent| parent.0),
            children: planned.tree.children(rank).iter().map(|child| child.0).collect(),
            contends: planned.is_disturbed(rank),
        };
        let tree = (0..).map(Rank).zip(&placed.host_of).map(place).collect();
        Report { tree: Some(tree), ..self }
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", paragraph(&self.heading()));
        let mut line = |name: &str, value: String| {
            text += &hanging(&format!("  {name:<17} "), "                    ", &value);
            text.push('\n');
        };
        line("height", format!("{} (complete binary tree: {})", self.height, self.complete_binary_height));
        line("most children", self.degree.to_string());
        line("contending pairs", self.contending_pairs.to_string());
        if let Some(link) = &self.busiest_link {
            line("busiest link", link.text());
        }
        line(
            "estimated time",
            format!("{} for {}", nanoseconds(self.estimated_time_ns as f64), self.sizes()),
        );
        if let Some(times) = self.times {
            line("planned for", times.to_string());
        }
        text
    }

    /// The subject of the numbers: the tree's shape, and its place.
    pub fn heading(&self) -> String {
        let (shape, place) = (&self.shape, self.place());
        format!("{shape} {place}")
    }

    /// The sizes of the message and its segments.
    pub fn sizes(&self) -> String {
        format!("{} in segments of {}", Bytes(self.message_bytes), Bytes(self.segment_bytes))
    }

    /// The place of the tree: its root, ranks, hosts and switches.
    pub fn place(&self) -> String {
        let Report { root, ranks, hosts, switches, .. } = self;
        format!(
            "from rank {root} to {} on {} and {}",
            count(*ranks, "rank", "ranks"),
            count(*hosts, "host", "hosts"),
            count(*switches, "switch", "switches")
        )
    }
}

impl BusiestLink {
    /// `s0 → s1, 8 messages`.
    pub fn text(&self) -> String {
        format!("{}, {}", self.ends(), count(self.messages, "message", "messages"))
    }

    /// `s0 → s1`.
    pub fn ends(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }

    /// The number of messages over the edge for each segment.
    pub fn messages(&self) -> u32 {
        self.messages
    }
}
