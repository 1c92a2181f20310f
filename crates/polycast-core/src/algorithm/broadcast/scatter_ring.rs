//! Scatter + ring: the root scatters one block per rank, then the blocks go around a ring until everybody has all.
//!
//! Position `p` is fed by `p + 1` (the last one by the root) with what the scatter has not brought it. Going round
//! this way the blocks travel in ascending order from where a rank's own interval ends, with one wrap:
//!
//! ```text
//!     position     0          1        2         3        4          5        6         7
//!     scatter      all        1        2 3       3        4 5 6 7    5        6 7       7
//!     from p+1     –          2…7 0    4…7 0 1   4…7 0…2  0…3        6 7 0…4  0…5       0…6
//! ```
//!
//! Nobody is sent what it has; the root sends the data twice, everybody else about once. `(P-1)` hops, so for large
//! messages on few ranks. The scatter goes before the ring, which lives on what the scatter has brought.

use std::ops::Range;

use super::{Algorithm, Call, EXCHANGE, scatter};
use crate::algorithm::pieces::Pieces;
use crate::algorithm::plan::Plan;
use crate::algorithm::{Entry, Form};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::lanes(
    "scatter-ring",
    "blocks are scattered down a binomial tree, then go around a ring",
    "Thakur et al. 2005",
    Form::ScatterRing,
    plan,
)];

/// The blocks that go to `position` around the ring, in two runs.
fn missing(position: u32, ranks: u32) -> [Range<u32>; 2] {
    [scatter::held(position, ranks).end..ranks, 0..position]
}

fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    let ranks = call.ranks;
    let pieces = Pieces::new(call.bytes.0, ranks, algorithm.segment);
    let position = call.position_of(rank);
    let missing = |position| missing(position, ranks).map(|blocks| pieces.of_blocks(blocks));
    let mut plan = Plan::new(pieces, algorithm.ready);
    scatter::receive(&mut plan, call, position, ranks);
    if position > 0 {
        plan.receive(call.rank_at((position + 1) % ranks), EXCHANGE, 1, missing(position));
    }
    scatter::send(&mut plan, call, position, ranks);
    plan.next_phase();
    let fed = if position == 0 { ranks - 1 } else { position - 1 };
    if fed > 0 {
        plan.send(call.rank_at(fed), EXCHANGE, 1, missing(fed));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_drawn() {
        assert_eq!(missing(1, 8), [2..8, 0..1]);
        assert_eq!(missing(2, 8), [4..8, 0..2]);
        assert_eq!(missing(4, 8), [8..8, 0..4]);
        assert_eq!(missing(7, 8), [8..8, 0..7]);
    }
}
