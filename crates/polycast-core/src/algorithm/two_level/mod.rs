//! Collectives on two levels: one rank stands for its node between nodes, and the ranks of a node share memory (Wu 2005, §3.4; what is not
//! written there, reductions and unequal nodes, is the same idea).
//!
//! ```text
//!   others of the node  ── publish ──▶  who stands for it  ◀── any algorithm for as many ranks as there are nodes ──▶  other nodes
//!                       ◀─ publish ───
//! ```
//!
//! Nothing is said twice: what goes on between nodes is an [`Entry`] that exists, with nodes in place of ranks (`inner`). What it needs of the node
//! is brought in the order in which it is needed, and what it brings is published in the order in which it comes, so that both go on beside it. The root
//! stands for its node, and the first rank on it for every other one. Broadcasts down a tree of nodes, and by
//! multicast, have lanes of their own, [`super::broadcast::TwoLevel`].

mod alltoall;
mod barrier;
mod blocks;
pub(super) mod broadcast;
mod inner;
mod members;
mod reductions;
#[cfg(test)]
mod tests;
pub(super) mod within;

use super::build::Build;
use super::parameter::{Domain, NONE, Need, Parameter};
use super::{Algorithm, Entry, OnNodes, Raced, Registry};
use crate::collective::{Collective, CombinationOrder};
use crate::schedule::{Channel, Nodes};
use within::Within;

/// The channel from the others of a node to the rank that stands for it.
const UP: Channel = 0;
/// The channel from that rank to the others of the node.
const DOWN: Channel = 1;

const BUFFER: Parameter = Parameter {
    name: "buffer",
    about: "how much goes on a node at a time",
    domain: Domain::Size,
    need: Need::Optional,
    default: "as much as goes in a message",
    typical: 4 << 10,
};

const fn between(words: &'static [&'static str]) -> Parameter {
    Parameter {
        name: "between",
        about: "the algorithm between nodes",
        domain: Domain::Word(words),
        need: Need::Optional,
        default: words[0],
        typical: 1,
    }
}

/// The bytes of each part between nodes that are shared on the node beside the next part; see
/// [`members::overlapped`].
const OVERLAP: Parameter = Parameter {
    name: OVERLAPPED,
    about: "how much of each message between nodes goes on a node beside the others; the rest before them all, or after",
    domain: Domain::SizeOrNone,
    default: "all of it",
    typical: NONE,
    ..BUFFER
};
const OVERLAPPED: &str = "overlap";
const WITHIN: Parameter = Within::PARAMETER;

const ALLREDUCE: [Parameter; 4] = [
    between(&["ring", "recursive-doubling", "halving-doubling", "chain", "binary", "binomial", "pairwise"]),
    BUFFER,
    OVERLAP,
    WITHIN,
];
const REDUCE: [Parameter; 4] =
    [between(&["chain", "binary", "binomial", "flat", "pairwise"]), BUFFER, OVERLAP, WITHIN];
const ALLGATHER: [Parameter; 4] =
    [between(&["ring", "recursive-doubling", "bruck"]), BUFFER, OVERLAP, WITHIN];
const TREES: Parameter = between(&["binomial", "chain", "binary", "flat"]);
const SCATTER: [Parameter; 4] = [TREES, BUFFER, OVERLAP, WITHIN];
const GATHER: [Parameter; 3] = [TREES, BUFFER, WITHIN];
const ALLTOALL: [Parameter; 3] = [between(&["linear", "pairwise", "bruck"]), BUFFER, WITHIN];
const BARRIER: [Parameter; 1] = [WITHIN];

/// Ways that a race begins with: the trees that carry most between nodes, and messages alone.
pub(super) const CHAIN: Raced = Raced::between_nodes("between=chain");
pub(super) const BINARY: Raced = Raced::between_nodes("between=binary");
pub(super) const BINOMIAL: Raced = Raced::between_nodes("between=binomial");
pub(super) const FLAT: Raced = Raced::between_nodes("between=flat");
/// Long sums, whose order neither chains nor rings keep.
const PAIRWISE: Raced = Raced::between_nodes("between=pairwise");
const RECURSIVE_DOUBLING: Raced = Raced::between_nodes("between=recursive-doubling");
pub(super) const BY_MESSAGES: Raced = Raced::between_nodes("within=messages");

const fn entry(collectives: &'static [Collective], about: &'static str, schedule: OnNodes) -> Entry {
    Entry::on_nodes(collectives, "two-level", about, "Wu 2005, §2.4 and §3.4", schedule)
}

pub(super) static ENTRIES: [Entry; 7] = [
    entry(
        &[Collective::Scatter],
        "one rank gets all blocks of its node, and hands them out through shared memory",
        blocks::scatter,
    )
    .with(&SCATTER)
    .raced(&[Raced::PLAIN, CHAIN, BINARY, FLAT, BY_MESSAGES])
    .in_segments()
    .padded(),
    entry(
        &[Collective::Gather],
        "one rank collects the blocks of its node through shared memory, and hands them on",
        blocks::gather,
    )
    .with(&GATHER)
    .raced(&[Raced::PLAIN, CHAIN, BINARY, FLAT, BY_MESSAGES])
    .in_segments()
    .padded(),
    entry(
        &[Collective::Allgather],
        "one rank collects the blocks of its node through shared memory, exchanges them with other nodes, and publishes what comes",
        blocks::allgather,
    )
    .with(&ALLGATHER)
    .raced(&[Raced::PLAIN, RECURSIVE_DOUBLING, BY_MESSAGES])
    .in_segments()
    .padded(),
    entry(
        &[Collective::Alltoall],
        "one rank exchanges with other nodes what all of its node have for them",
        alltoall::schedule,
    )
    .with(&ALLTOALL)
    .raced(&[Raced::PLAIN, BY_MESSAGES])
    .in_segments()
    .padded(),
    entry(&[Collective::Barrier], "one rank of each node waits for the others of it, then for other nodes", barrier::schedule)
        .with(&BARRIER)
    .raced(&[Raced::PLAIN, BY_MESSAGES]),
    entry(
        &[Collective::Reduce],
        "one rank combines what those of its node contribute, and the results of nodes are combined; in order only where nodes are parts of the tree",
        reductions::schedule,
    )
    .with(&REDUCE)
    .raced(&[Raced::PLAIN, BINARY, BINOMIAL, FLAT, PAIRWISE, BY_MESSAGES])
    .in_segments()
    .only_commuting(),
    entry(
        &[Collective::Allreduce],
        "one rank combines what those of its node contribute, and publishes on it what nodes combine; in order only where nodes are parts of the tree",
        reductions::schedule,
    )
    .with(&ALLREDUCE)
    .raced(&[Raced::PLAIN, CHAIN, BINARY, BINOMIAL, RECURSIVE_DOUBLING, PAIRWISE, BY_MESSAGES])
    .in_segments()
    .only_commuting(),
];

impl Entry {
    /// The names of the algorithms that there may be between nodes, where one may be named.
    pub(crate) fn between_nodes(&self) -> &'static [&'static str] {
        let parameter = self.parameters.iter().find(|parameter| parameter.name == "between");
        match parameter.map(|parameter| parameter.domain) {
            Some(Domain::Word(words)) => words,
            _ => &[],
        }
    }
}

impl Registry {
    /// The algorithm for a collective on two levels, if there is one.
    pub fn two_level(self, collective: Collective) -> Option<Algorithm> {
        self.of(collective).find(|entry| entry.is_on_two_levels()).map(Entry::typical)
    }

    /// A collective on two levels by messages alone, with each algorithm that there may be between nodes: what nobody needs to have measured
    /// shared memory for.
    pub fn on_levels_by_messages(self, collective: Collective) -> Vec<Algorithm> {
        let two_level = self.two_level(collective);
        let by_messages = two_level.and_then(|all| all.with_value(WITHIN.name, WITHIN.typical));
        let Some(algorithm) = by_messages else { return Vec::new() };
        match algorithm.entry.between_nodes() {
            [] => vec![algorithm],
            words => {
                (0..words.len() as u64).filter_map(|word| algorithm.with_value("between", word)).collect()
            }
        }
    }
}

impl Algorithm {
    /// The name of the algorithm between nodes.
    pub fn between(&self) -> &'static str {
        match self.entry.between_nodes() {
            [] => barrier::BETWEEN,
            words => words[self.given("between").unwrap_or(0) as usize],
        }
    }

    /// The order that the algorithm keeps on these nodes.
    pub fn keeps_on(&self, nodes: &Nodes) -> CombinationOrder {
        self.keeps_in(nodes.count(), nodes.are_parts_of_the_tree())
    }

    /// The order that the algorithm keeps on so many nodes. On two levels that of sums, where each
    /// node has a part of the [tree](crate::collective::CombinationTree), these parts are combined as
    /// by the tree of as many ranks (`are_parts`), and so does the algorithm between nodes.
    pub fn keeps_in(&self, nodes: u32, are_parts: bool) -> CombinationOrder {
        let collective = self.entry.collectives[0];
        let is_on_levels = matches!(self.entry.build, Build::OnNodes(_)) && collective.combines();
        if !is_on_levels || !are_parts {
            return self.entry.keeps;
        }
        let between = Registry::BUILT_IN.find(collective, self.between());
        if nodes == 1 || between.is_some_and(|entry| entry.keeps == CombinationOrder::Tree) {
            CombinationOrder::Tree
        } else {
            self.entry.keeps
        }
    }

    /// Returns the algorithm with the one of this name between nodes; `None` if it cannot have it.
    pub fn with_between(self, name: &str) -> Option<Algorithm> {
        let word = self.entry.between_nodes().iter().position(|word| *word == name)?;
        self.with_value("between", word as u64)
    }

    /// Returns the algorithm with nothing shared on a node beside further parts; `None` if it knows no
    /// overlap.
    pub fn without_overlap(self) -> Option<Algorithm> {
        self.with_value(OVERLAPPED, NONE)
    }

    /// The way of data on a node: shared memory or messages.
    pub(super) fn within(&self) -> Within {
        if self.given(WITHIN.name).is_some() { Within::Messages } else { Within::Shared }
    }

    /// The bytes of each part between nodes that are shared on a node beside the others; `u64::MAX`
    /// for all.
    pub(crate) fn overlap_bytes(&self) -> u64 {
        match self.given(OVERLAPPED) {
            None => u64::MAX,
            Some(NONE) => 0,
            Some(bytes) => bytes,
        }
    }

    /// Whether ranks of a node use memory that they share.
    pub fn shares_memory(&self) -> bool {
        self.entry.shares_memory() && self.within() == Within::Shared
    }

    /// The most that goes on a node at a time.
    fn buffer_bytes(&self) -> u64 {
        self.given(BUFFER.name).unwrap_or(u64::MAX)
    }
}
