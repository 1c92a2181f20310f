//! Scatter + recursive doubling: after the scatter, ranks at distance 1, 2, 4, … exchange what they have.
//!
//! The blocks are as many as the largest power of two of ranks, the *core*. In round `r` position `p` meets
//! `p xor 2^r`, and the two groups of `2^r` positions around them become one group that shares its blocks:
//!
//! ```text
//!     scatter     0: 0…7      1: 1     2: 2 3     3: 3     4: 4…7     5: 5     6: 6 7     7: 7
//!     round 0     0 ─▶ 1      0   2 ─▶ 3     2    4 ─▶ 5   4     6 ─▶ 7      6
//!     round 1     0 ─▶ 2    0 1   1 ◀▶ 3   0 1 | 2 3       4 ─▶ 6   4 5     5 ◀▶ 7
//!     round 2     0 ─▶ 4  0…3     1 ◀▶ 5      2 ◀▶ 6       3 ◀▶ 7
//! ```
//!
//! `z(p)`, the number of trailing zero bits, says what the scatter has saved: p holds its group of round `z(p)`
//! already and lies apart from everything that later rounds bring. So **p receives its partner's group in round r if
//! and only if `r >= z(p)`**; the root never does. The partner can always serve it: either the scatter gave the
//! partner that group too (`r = z(p)`), or the rounds before did. Every byte comes exactly once.
//!
//! Ranks beyond the core, fewer than it has, are fed by core position 1, 2, … as those get hold of the data (not by
//! the root, which sends twice the data already). `2 log2 P` hops.
//!
//! The scatter goes before the rounds: as long as blocks are missing at their owners, the rounds cannot go far.

use std::ops::Range;

use super::{Algorithm, Call, EXCHANGE, scatter};
use crate::algorithm::pieces::Pieces;
use crate::algorithm::plan::Plan;
use crate::algorithm::{Entry, Form};
use crate::units::Rank;

pub(super) static ENTRIES: [Entry; 1] = [Entry::lanes(
    "scatter-doubling",
    "blocks are scattered, then exchanged over doubling distances",
    "Thakur et al. 2005",
    Form::ScatterDoubling,
    plan,
)];

/// Returns the number of positions that take part in scatter and rounds: the largest power of two
/// that is not above the number of ranks.
fn core_of(ranks: u32) -> u32 {
    1 << ranks.ilog2()
}

/// The blocks that the `2^round` positions around `position` share before this round.
fn group(position: u32, round: u32) -> Range<u32> {
    let start = position >> round << round;
    start..start + (1 << round)
}

/// True if `position` is brought something in `round`.
fn receives_in(position: u32, round: u32) -> bool {
    position != 0 && round >= position.trailing_zeros()
}

/// Returns the blocks that `position` holds before `round`, in the order in which it got them.
fn held_before(position: u32, round: u32, core: u32) -> impl Iterator<Item = Range<u32>> {
    let scattered = scatter::held(position, core);
    let in_group = scattered.start..scattered.end.min(group(position, round).end);
    let brought = (0..round).filter(move |r| receives_in(position, *r));
    std::iter::once(in_group).chain(brought.map(move |r| group(position ^ (1 << r), r)))
}

/// The messages that bring `position` its partner's group: in the order in which the partner got hold of it, or all
/// at once if nothing is cut.
fn brought(pieces: Pieces, position: u32, round: u32, core: u32) -> Vec<Range<u64>> {
    let partner = position ^ (1 << round);
    if pieces.is_whole() {
        vec![pieces.of_blocks(group(partner, round))]
    } else {
        held_before(partner, round, core).map(|blocks| pieces.of_blocks(blocks)).collect()
    }
}

fn plan(algorithm: &Algorithm, call: Call, rank: Rank) -> Plan {
    let core = core_of(call.ranks);
    let pieces = Pieces::new(call.bytes.0, core, algorithm.segment);
    let mut plan = Plan::new(pieces, algorithm.ready);
    let position = call.position_of(rank);
    if position < core {
        plan_core(&mut plan, call, position, core);
    } else {
        let feeder = position - core + 1;
        let runs = held_before(feeder, core.ilog2(), core).map(|blocks| pieces.of_blocks(blocks));
        plan.receive(call.rank_at(feeder), EXCHANGE, pieces.per_message(), runs);
    }
    plan
}

fn plan_core(plan: &mut Plan, call: Call, position: u32, core: u32) {
    let pieces = plan.pieces();
    let rounds = core.ilog2();
    scatter::receive(plan, call, position, core);
    for round in (0..rounds).filter(|round| receives_in(position, *round)) {
        let partner = call.rank_at(position ^ (1 << round));
        plan.receive(partner, EXCHANGE, pieces.per_message(), brought(pieces, position, round, core));
    }
    scatter::send(plan, call, position, core);
    plan.next_phase();
    for round in 0..rounds {
        let partner = position ^ (1 << round);
        if receives_in(partner, round) {
            let runs = brought(pieces, partner, round, core);
            plan.send(call.rank_at(partner), EXCHANGE, pieces.per_message(), runs);
        }
    }
    let beyond = u64::from(core) + u64::from(position);
    if position > 0 && beyond - 1 < u64::from(call.ranks) {
        let runs = held_before(position, rounds, core).map(|blocks| pieces.of_blocks(blocks));
        plan.send(call.rank_at((beyond - 1) as u32), EXCHANGE, pieces.per_message(), runs);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
mod tests {
    use super::*;

    fn held(position: u32, round: u32) -> Vec<Range<u32>> {
        held_before(position, round, 8).collect()
    }

    #[test]
    fn as_drawn() {
        assert_eq!(held(1, 3), [1..2, 0..1, 2..4, 4..8]);
        assert_eq!(held(6, 3), [6..8, 4..6, 0..4]);
        assert_eq!(held(4, 3), [4..8, 0..4]);
        assert_eq!(held(0, 2), [0..4]);
        assert_eq!(held(6, 0), [6..7]);
        let receivers = |round| (0..8).filter(|p| receives_in(*p, round)).collect::<Vec<_>>();
        assert_eq!(receivers(0), [1, 3, 5, 7]);
        assert_eq!(receivers(1), [1, 2, 3, 5, 6, 7]);
        assert_eq!(receivers(2), [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_is_held_before_a_round_is_the_group_of_that_round() {
        for position in 0..32 {
            for round in 0..=5 {
                let mut runs: Vec<_> = held_before(position, round, 32).collect();
                runs.sort_by_key(|run| run.start);
                assert!(runs.is_sorted_by(|a, b| a.end == b.start));
                assert_eq!(
                    runs[0].start..runs[runs.len() - 1].end,
                    group(position, round),
                    "{position} {round}"
                );
            }
        }
    }
}
