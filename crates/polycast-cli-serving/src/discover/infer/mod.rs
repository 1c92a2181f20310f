//! The tree of switches from measurements between hosts.
//!
//! Flows `a → c` and `b → d` at the same time disturb each other exactly if a link *separates* `{a, b}` from `{c, d}` (it is on
//! both ways, in the same direction) and carries less than both. That is the only question asked, a [`Quartet`]:
//!
//! ```text
//!     a ─┐           ┌─ c        a, b │ c, d : separated by the link in the middle
//!        s ═════════ t           a, c │ b, d : no link does that
//!     b ─┘           └─ d
//! ```
//!
//! Hosts are inserted one after the other: from switch to switch toward the place of the new one, and there it is held
//! against each host of that switch, for both may be behind a link that one host alone could not show. That is one question
//! per switch on the way and neighbour of these, and one per host of the last, at most O(hosts).
//!
//! What cannot be seen this way: links that carry two flows as well as one, links with a single host behind them (they
//! look like the host's own), and how many switches stand in a row between two places where something branches off.

mod insert;
mod tree;
mod vote;

pub use insert::infer;

use polycast_core::topology::{Host, Link, Switch, Topology};

/// Four hosts, all different: is there a link between the first two and the others?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quartet {
    /// The two hosts on one side.
    pub near: [usize; 2],
    /// The two hosts on the other side.
    pub far: [usize; 2],
}

/// The numbers of single answers that said that a link is there, and of those that said no to the
/// same questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The number of answers that said yes.
    pub yes: usize,
    /// The number of answers that said no.
    pub no: usize,
}

impl Evidence {
    /// The share of answers that said yes; 0 without any.
    pub fn confidence(&self) -> f64 {
        self.yes as f64 / (self.yes + self.no).max(1) as f64
    }
}

/// The result of the inference: the tree of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// For each switch the switch above it; the topmost switch has none.
    pub parent: Vec<Option<usize>>,
    /// For each host its switch.
    pub switch_of: Vec<usize>,
    /// For each switch, what speaks for the link above it.
    pub evidence: Vec<Evidence>,
    /// For each switch with a link above it, a quartet that this link separates.
    pub witness: Vec<Option<Quartet>>,
    /// The number of answers that were needed in all.
    pub answers: usize,
}

impl Inferred {
    /// The topology of hosts with these names and links, switches named s0, s1, … `uplinks` are those of the switches.
    pub fn topology(&self, hosts: &[(String, Link)], uplinks: &[Link]) -> Topology {
        let switch = |(index, parent): (usize, &Option<usize>)| Switch {
            name: format!("s{index}"),
            parent: *parent,
            uplink: if parent.is_some() { uplinks[index] } else { Link::default() },
        };
        let host = |((name, link), switch): (&(String, Link), &usize)| Host {
            name: name.clone(),
            switch: *switch,
            link: *link,
        };
        Topology {
            switches: self.parent.iter().enumerate().map(switch).collect(),
            hosts: hosts.iter().zip(&self.switch_of).map(host).collect(),
            notes: Vec::new(),
        }
    }
}

/// The agreement of two topologies on which hosts share a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of pairs of hosts that both topologies have.
    pub pairs: usize,
    /// The pairs of hosts that are on one switch in one topology and on two in the other.
    pub wrong: Vec<(String, String)>,
}

impl Agreement {
    /// Compares two topologies. Hosts are taken for the same by their names, whatever their
    /// capitals, with or without their domains.
    pub fn between(one: &Topology, other: &Topology) -> Agreement {
        let names: Vec<&str> = one.hosts.iter().map(|host| host.name.as_str()).collect();
        let placed = other.place(&names);
        // What the other one lacks stands behind all that it has.
        let switches = placed.host_of.iter().map(|host| other.hosts.get(*host).map(|host| host.switch));
        let common: Vec<_> =
            one.hosts.iter().zip(switches).filter_map(|(host, switch)| Some((host, switch?))).collect();
        let mut agreement = Agreement::default();
        for (index, (a, a_other)) in common.iter().enumerate() {
            for (b, b_other) in &common[index + 1..] {
                agreement.pairs += 1;
                if (a.switch == b.switch) != (a_other == b_other) {
                    agreement.wrong.push((a.name.clone(), b.name.clone()));
                }
            }
        }
        agreement
    }
}

#[cfg(test)]
mod tests;
