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

use super::parameter::{Domain, Need, Parameter};
use super::{Algorithm, Entry, OnNodes};
use crate::collective::Collective;
use crate::schedule::Channel;

/// From the others of a node to the rank that stands for it.
const UP: Channel = 0;
/// And back.
const DOWN: Channel = 1;

const BUFFER: Parameter = Parameter {
    name: "buffer",
    about: "how much is published on a node at a time",
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

const ALLREDUCE: [Parameter; 2] =
    [between(&["ring", "recursive-doubling", "halving-doubling", "chain", "binary", "binomial"]), BUFFER];
const REDUCE: [Parameter; 2] = [between(&["chain", "binary", "binomial", "flat"]), BUFFER];
const ALLGATHER: [Parameter; 2] = [between(&["ring", "recursive-doubling", "bruck"]), BUFFER];
const GATHER: [Parameter; 2] = [between(&["binomial", "chain", "binary", "flat"]), BUFFER];
const ALLTOALL: [Parameter; 2] = [between(&["linear", "pairwise", "bruck"]), BUFFER];

const fn entry(collectives: &'static [Collective], about: &'static str, schedule: OnNodes) -> Entry {
    Entry::on_nodes(collectives, "two-level", about, "Wu 2005, §2.4 and §3.4", schedule)
}

pub(super) static ENTRIES: [Entry; 7] = [
    entry(
        &[Collective::Scatter],
        "one rank gets all blocks of its node, and hands them out through shared memory",
        blocks::scatter,
    )
    .with(&GATHER)
    .in_segments()
    .padded(),
    entry(
        &[Collective::Gather],
        "one rank collects the blocks of its node through shared memory, and hands them on",
        blocks::gather,
    )
    .with(&GATHER)
    .in_segments()
    .padded(),
    entry(
        &[Collective::Allgather],
        "one rank collects the blocks of its node through shared memory, exchanges them with other nodes, and publishes what comes",
        blocks::allgather,
    )
    .with(&ALLGATHER)
    .in_segments()
    .padded(),
    entry(
        &[Collective::Alltoall],
        "one rank exchanges with other nodes what all of its node have for them",
        alltoall::schedule,
    )
    .with(&ALLTOALL)
    .in_segments()
    .padded(),
    entry(&[Collective::Barrier], "one rank of each node waits for the others of it, then for other nodes", barrier::schedule),
    entry(
        &[Collective::Reduce],
        "one rank combines what those of its node contribute, and the results of nodes are combined; of operations that commute",
        reductions::schedule,
    )
    .with(&REDUCE)
    .in_segments()
    .only_commuting(),
    entry(
        &[Collective::Allreduce],
        "one rank combines what those of its node contribute, and publishes on it what nodes combine; of operations that commute",
        reductions::schedule,
    )
    .with(&ALLREDUCE)
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

impl Algorithm {
    /// The name of the algorithm between nodes.
    pub(crate) fn between(&self) -> &'static str {
        match self.entry.between_nodes() {
            [] => barrier::BETWEEN,
            words => words[self.given("between").unwrap_or(0) as usize],
        }
    }

    /// The most that is published at a time.
    fn buffer_bytes(&self) -> u64 {
        self.given(BUFFER.name).unwrap_or(u64::MAX)
    }
}
