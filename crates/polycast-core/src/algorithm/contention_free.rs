//! Scatter, gather and reduction along trees that are planned for the switches: those of the broadcast, [backwards](crate::tree) where data goes to the
//! root.
//!
//! ```text
//!   switch        │ s0         │ s1         │ s2    │
//!   broadcast     │ 0 ─▶ 1 ─▶ 4 ─▶ 5 ─▶ 2 ─▶ 3 ─▶ 6 │     no directed edge is used by two senders
//!   reduce        │ 0 ◀─ 1 ◀─ 4 ◀─ 5 ◀─ 2 ◀─ 3 ◀─ 6 │     nor, backwards, on the way to two receivers
//! ```
//!
//! Links carry both directions at once, so a tree without contention has none backwards either. Its subtrees are intervals of the order in which the
//! network is walked, not of ranks: what is combined is not in the order of ranks, and at the root a message has only ranks that follow one another.

use std::num::NonZeroU32;

use super::Entry;
use super::broadcast::planned::K;
use crate::collective::Collective::{self, Gather, Reduce, Scatter};
use crate::tree::PlannedShape;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();
const COLLECTIVES: &[Collective] = &[Scatter, Gather, Reduce];

pub(super) static ENTRIES: [Entry; 3] = [
    Entry::planned_for(
        COLLECTIVES,
        [
            "contention-free-chain",
            "from each rank to the next one around the network, whatever ranks are where",
            "Patarasuk et al. 2008, §4.1.1, Algorithm 1",
        ],
        |_, _, _| PlannedShape::ContentionFreeChain,
    )
    .only_commuting(),
    Entry::planned_for(
        COLLECTIVES,
        [
            "contention-free-binary",
            "along a tree of up to two children per rank, no two messages on one link but those of one parent",
            "Patarasuk et al. 2008, §4.1.2, Algorithm 2",
        ],
        |_, _, _| PlannedShape::ContentionFreeKAry(TWO),
    )
    .only_commuting(),
    Entry::planned_for(
        COLLECTIVES,
        [
            "contention-free-k-ary",
            "the same of up to `k` children (2 to 64)",
            "Patarasuk et al. 2008, §4.1.2",
        ],
        |algorithm, _, _| PlannedShape::ContentionFreeKAry(algorithm.number("k")),
    )
    .with(&[K])
    .only_commuting()
    .not_compared(),
];
