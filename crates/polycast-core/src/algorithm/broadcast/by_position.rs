//! Trees that need no knowledge of the network: the root is position 0, and the others follow around the site's ring.
//!
//! With X segments over P ranks and T the time of a segment ([`super::tree_pipeline`]): a chain carries the data over every link
//! once, so with enough segments it comes closest to the wire, `(P-1 + X-1) * T`; a flat tree, `(P-2) * t_hold + t_end`, is right
//! for few ranks and where the root's sends are cheap compared with a hop; a binary tree is the compromise between the chain's
//! length and the flat tree's width; a binomial one has the fewest rounds for messages that are not cut, `ceil(log2 P)`.

use std::num::NonZeroU32;

use crate::algorithm::{Algorithm, Entry, Formulas, Parameter};
use crate::tree::Tree;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();
const CHILDREN: &[Parameter] = &[Parameter::number("k", "children of a rank at most", 2, 4)];
const FACTOR: &[Parameter] = &[Parameter::number("k", "the factor", 2, 4)];

const PATARASUK: &str = "Patarasuk et al. 2008, §3";
const HOEFLER: &str = "Hoefler and Moor 2014";

/// The chain, for callers that choose it themselves.
pub const CHAIN: Algorithm = Algorithm::plain(&ENTRIES[1]);
/// The binomial tree, for callers that choose it themselves.
pub const BINOMIAL: Algorithm = Algorithm::plain(&ENTRIES[4]);

pub(super) static ENTRIES: [Entry; 6] = [
    Entry::tree("flat", "the root sends to everybody itself", PATARASUK, |_| Tree::Flat).by(Formulas::Flat),
    Entry::tree("chain", "each rank forwards to the next one", PATARASUK, |_| Tree::Chain)
        .by(Formulas::Chain),
    Entry::tree("binary", "two children per rank", PATARASUK, |_| Tree::KAry(TWO)).by(Formulas::Binary),
    Entry::tree("k-ary", "`k` children per rank", PATARASUK, |a| Tree::KAry(a.number("k"))).with(CHILDREN),
    Entry::tree("binomial", "the number of informed ranks doubles in each round", PATARASUK, |_| {
        Tree::KNomial(TWO)
    })
    .by(Formulas::Binomial)
    .tried_if_short(),
    Entry {
        same_as: Some((2, "binomial")),
        ..Entry::tree(
            "k-nomial",
            "the number of informed ranks grows by the factor `k` in each round",
            HOEFLER,
            |a| Tree::KNomial(a.number("k")),
        )
        .with(FACTOR)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_tree_is_the_one_of_this_name() {
        assert_eq!(BINOMIAL.to_string(), "binomial");
    }
}
