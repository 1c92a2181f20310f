//! Trees that are planned for the ranks where they are; docs/trees.md has their pictures.

use std::num::NonZeroU32;

use super::{Call, Planner, power_of_two};
use crate::algorithm::{Algorithm, Entry, Formulas, MadeFor, Parameter};
use crate::tree::{MAX_CONTENTION_FREE_CHILDREN, PlannedShape, Tree};
use crate::units::Nanos;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The most children of a rank in a contention-free k-ary tree.
pub(in crate::algorithm) const K: Parameter =
    Parameter::number("k", "children of a rank at most", 2, 4).at_most(MAX_CONTENTION_FREE_CHILDREN);
const HOLD: Parameter =
    Parameter::time("hold", "how long a message keeps its sender", "end", Nanos::from_micros(20));
const END: Parameter =
    Parameter::time("end", "until a message can be sent on", "hold", Nanos::from_micros(55));
/// The ports of a sender. More than 64 make no difference: the root has the first one back before
/// the last is used.
const PORTS: Parameter = Parameter::number("ports", "messages that a rank sends at a time", 1, 3).at_most(64);
const BLOCK: Parameter =
    Parameter::number("block", "ranks in a block", 1, 4).or("as many as on the fullest host");

/// The contention-free tree of two children per rank, for callers that choose it themselves.
pub const CONTENTION_FREE_BINARY: Algorithm = Algorithm::plain(&ENTRIES[1]);

pub(super) static ENTRIES: [Entry; 8] = [
    // The ranks by position stand on the site's ring, so their chain is this one.
    Entry::tree(
        "contention-free-chain",
        "each rank forwards to the next one around the network, whatever ranks are where",
        "Patarasuk et al. 2008, §4.1.1, Algorithm 1",
        |_| Tree::Chain,
    )
    .made_for(MadeFor::Links)
    .not_compared(),
    Entry::planned(
        "contention-free-binary",
        "up to two children per rank, no two messages on one link",
        "Patarasuk et al. 2008, §4.1.2, Algorithm 2",
        |_, _, _| PlannedShape::ContentionFreeKAry(TWO),
    ),
    Entry::planned(
        "contention-free-k-ary",
        "up to `k` children (2 to 64), no two messages on one link",
        "Patarasuk et al. 2008, §4.1.2",
        |a, _, _| PlannedShape::ContentionFreeKAry(a.number("k")),
    )
    .with(&[K])
    .not_compared(),
    Entry::planned(
        "link-aware",
        "no two messages on one link, more children where links are fast",
        "polycast",
        link_aware,
    ),
    Entry::planned(
        "opt-tree",
        "the fastest tree for whole messages that hold their sender and arrive after such times; they may be left out",
        "Nupairoj 1998, ch. 4",
        |a, call, planner| PlannedShape::Optimal(planner.send_times(a, call).times),
    )
    .made_for(MadeFor::Times)
    .by(Formulas::Optimal)
    .with(&[HOLD, END]),
    Entry::planned(
        "dyn-tree",
        "the same whose senders divide anew what is left to them, by how long their last message took; who is next is known on the way only",
        "Nupairoj 1998, §6.3",
        |a, call, planner| PlannedShape::Optimal(planner.send_times(a, call).times),
    )
    .made_for(MadeFor::Times)
    .with(&[HOLD, END])
    .dynamic(),
    Entry::planned(
        "alpha-port",
        "the same for senders with several ports",
        "Nupairoj 1998, §4.5",
        |a, call, planner| {
            let (sent, ports) = (planner.send_times(a, call), a.number("ports"));
            let share = Nanos(sent.times.hold.0.div_ceil(ports.get().into()));
            let interval = sent.interval.map_or(share, |interval| interval.min(sent.times.hold));
            PlannedShape::OptimalWithPorts { times: sent.times, interval, ports }
        },
    )
    .made_for(MadeFor::Times)
    .with(&[PORTS, HOLD, END])
    .not_compared(),
    Entry::planned(
        "block-binomial",
        "binomial over blocks of ranks, flat within; without `block`, of the fullest host's size",
        "Nupairoj 1998, §3.4.1",
        |a, _, _| PlannedShape::BlockBinomial { block: a.given_number("block") },
    )
    .made_for(MadeFor::Hosts)
    .with(&[BLOCK])
    .not_compared(),
];

/// Returns the link-aware tree of a call. One tree serves all messages whose number of segments has
/// the same power of two above it.
fn link_aware(algorithm: &Algorithm, call: Call, _: &Planner) -> PlannedShape {
    let bytes = call.bytes.0.max(1);
    let segment_bytes = algorithm.segment.map_or(u64::MAX, |segment| segment.get()).min(power_of_two(bytes));
    PlannedShape::LinkAware { segment_bytes, segments: power_of_two(bytes.div_ceil(segment_bytes)) }
}
