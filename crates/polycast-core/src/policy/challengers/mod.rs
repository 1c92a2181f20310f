//! Challengers: ways that are compared with the MPI below where no rule speaks, so that a cluster
//! that nobody has measured is measured by its jobs.
//!
//! ```text
//!  registry ─▶ all that are correct here ─▶ predicted by rate, latency, shape ─▶ the fastest of each kind ─▶ three at most ─▶ trials
//!              capabilities, room            work × costs                        within what is not known
//! ```
//! A prediction only has to say what is worth a few calls: the job's own calls decide, within a
//! bound of what these may cost ([`trials`](super::trials)).

use super::trials::MAX_ARMS;
use super::tune::candidates;
use super::{Capabilities, Choice, Collective, CommunicatorShape};
use crate::algorithm::{Algorithm, CallWork, Spread};
use crate::units::Nanos;

/// The most challengers of a call: the MPI is among the ways, too.
const MOST: usize = MAX_ARMS - 1;
/// The factor of the fastest way's predicted time up to which a way may be a challenger.
/// So far off were predictions of work by rate and latency alone in simulated networks.
const UNCERTAIN: f64 = 3.0;
/// The most bytes for which a rank may need memory beside the program's.
const MOST_ROOM_BYTES: f64 = (64 << 20) as f64;
/// The most messages in a row, and the most ranks, for what sends to each: each needs room in the
/// MPI.
const MOST_MESSAGES: f64 = 1024.0;

/// Sizes of calls that have challengers from a call on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChallengedSizes {
    /// The fewest bytes.
    pub first_bytes: u64,
    /// The calls of the collective on a communicator that come before.
    pub first_call: u64,
}

/// The sizes, rising. What is set up for a comparison takes as long as some calls, more short ones
/// than long ones; who makes fewer loses nothing.
pub const CHALLENGED: [ChallengedSizes; 2] = [
    ChallengedSizes { first_bytes: 0, first_call: 256 },
    ChallengedSizes { first_bytes: 8 << 10, first_call: 32 },
];

/// A way that is compared with the MPI, and how long it is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Challenger {
    /// The way.
    pub choice: Choice,
    /// The predicted time of a call; half or twice of it is as likely.
    pub predicted: Nanos,
}

/// Times by which work is valued, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// The time of a message of one byte to another node.
    pub latency: f64,
    /// The time of a byte on a link.
    pub byte: f64,
    /// The time of a byte by multicast, with what the program and the kernel do for it.
    pub multicast_byte: f64,
    /// The time that a message in a row of several takes its sender.
    pub message: f64,
    /// The time of a hand-over on a node.
    pub line: f64,
    /// The time of a byte that is copied on a node.
    pub copied: f64,
}

/// Times of a network that was not measured: 1 Gb/s, 30 µs.
const ASSUMED_LATENCY_NS: f64 = 30_000.0;
const ASSUMED_BYTE_NS: f64 = 8.0;
/// Costs of a message at its sender, of a hand-over on a node, and of a byte there where all copy.
const MESSAGE_NS: f64 = 2_000.0;
const LINE_NS: f64 = 500.0;
const COPIED_NS: f64 = 0.2;
/// Cost of a byte at a receiver of datagrams, in the program and in the kernel.
const DATAGRAM_BYTE_NS: f64 = 0.7;
/// Time until a rank runs again that has given its processor to another.
const SWITCH_NS: f64 = 4_000.0;

impl Costs {
    /// The costs that are assumed on communicators of a shape, by what the job has found of their
    /// network.
    pub fn of(shape: CommunicatorShape) -> Costs {
        let network = shape.network.unwrap_or_default();
        let byte = network.rate.map_or(ASSUMED_BYTE_NS, |rate| rate.ns_per_byte());
        let of_multicast = network.multicast_rate.map_or(byte, |rate| rate.ns_per_byte().max(byte));
        let turns = f64::from(shape.ranks_per_processor - 1);
        Costs {
            latency: network.latency.map_or(ASSUMED_LATENCY_NS, |latency| latency.0 as f64),
            byte,
            multicast_byte: of_multicast.max(DATAGRAM_BYTE_NS),
            message: MESSAGE_NS,
            line: LINE_NS + turns * SWITCH_NS,
            copied: COPIED_NS * f64::from(shape.ranks_per_processor),
        }
    }

    /// The time of a call by an algorithm, in nanoseconds; `None` where its work is not known.
    pub fn call_ns(
        &self,
        algorithm: &Algorithm,
        collective: Collective,
        shape: CommunicatorShape,
        bytes: u64,
    ) -> Option<f64> {
        algorithm.work(collective, spread(shape), bytes).map(|work| self.ns(&work))
    }

    fn ns(&self, work: &CallWork) -> f64 {
        work.rounds * self.latency
            + work.messages * self.message
            + work.link_bytes * self.byte
            + work.multicast_bytes * self.multicast_byte
            + work.node_rounds * self.line
            + work.node_bytes * self.copied
    }
}

/// Whether calls on communicators of this shape have challengers at all: two ranks on two nodes
/// have nothing to do but to send a message.
pub(super) fn are_challenged(ranks: u32, nodes: u32) -> bool {
    ranks > 2 || (ranks == 2 && nodes == 1)
}

/// The challengers of calls of so many bytes on communicators of a shape that have the capabilities
/// `there`, the one that is predicted to be fastest first.
pub fn challengers(
    collective: Collective,
    shape: CommunicatorShape,
    bytes: u64,
    there: Capabilities,
) -> Vec<Challenger> {
    if !are_challenged(shape.ranks, shape.nodes) {
        return Vec::new();
    }
    let costs = Costs::of(shape);
    let predicted = |choice: Choice| {
        let Choice::Algorithm(algorithm) = choice else { return None };
        let work = algorithm.work(collective, spread(shape), bytes)?;
        let is_small = work.room_bytes <= MOST_ROOM_BYTES && work.rounds + work.messages <= MOST_MESSAGES;
        is_small.then(|| Challenger { choice, predicted: Nanos(costs.ns(&work) as u64 + 1) })
    };
    let mut all: Vec<Challenger> =
        candidates(collective, shape, bytes, there).into_iter().filter_map(predicted).collect();
    all.sort_by_key(|one| one.predicted);
    let limit = all.first().map_or(0.0, |best| best.predicted.0 as f64 * UNCERTAIN);
    let mut found: Vec<Challenger> = Vec::new();
    for one in all {
        let is_new = found.iter().all(|other| !are_kin(one.choice, other.choice));
        if is_new && found.len() < MOST && one.predicted.0 as f64 <= limit {
            found.push(one);
        }
    }
    found
}

fn spread(CommunicatorShape { ranks, nodes, ranks_per_node, .. }: CommunicatorShape) -> Spread {
    Spread { ranks, nodes, on_node: ranks_per_node }
}

/// Whether two ways are of one kind: the one that is predicted to be faster stands for both.
fn are_kin(one: Choice, other: Choice) -> bool {
    match (one, other) {
        (Choice::Algorithm(one), Choice::Algorithm(other)) => one.is_kin(&other),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
