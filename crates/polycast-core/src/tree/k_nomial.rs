//! The k-nomial tree: in each round every informed rank informs `k - 1` others, so their number grows by the factor
//! `k`. k = 2 is the binomial tree; written in base k, a position's parent is that position with its lowest non-zero
//! digit cleared. Children stand highest place first, so largest subtree first unless ranks are missing at the end:
//! those have the longest way to go.
//!
//! ```text
//!               0                 round 1: 0→4
//!       ┌───────┼───┐             round 2: 0→2 4→6
//!       4       2   1             round 3: 0→1 2→3 4→5 6→7
//!     ┌─┴─┐     │
//!     6   5     3
//!     │
//!     7
//! ```
//!
//! The subtree below a position is the interval that begins there, which is what makes it useful for scattering.

use std::num::NonZeroU32;
use std::ops::Range;

/// The place value (a power of `k`) of the lowest non-zero digit of `position`: its subtree has that many positions
/// if there are enough ranks. For the root the smallest power of `k` that holds all ranks.
fn span(k: NonZeroU32, position: u32, ranks: u32) -> u64 {
    assert!(k.get() >= 2, "a k-nomial tree needs k of at least 2");
    let (k, position) = (u64::from(k.get()), u64::from(position));
    let mut place = 1;
    while place < u64::from(ranks) && (position / place).is_multiple_of(k) {
        place *= k;
    }
    place
}

pub(super) fn parent(k: NonZeroU32, position: u32) -> Option<u32> {
    // The number of ranks does not matter for a parent, only that the position is among them.
    let place = (position > 0).then(|| span(k, position, u32::MAX))?;
    let digit = u64::from(position) / place % u64::from(k.get());
    Some(position - (digit * place) as u32)
}

pub(super) fn children(k: NonZeroU32, position: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let base = u64::from(k.get());
    let largest = span(k, position, ranks) / base;
    let places = std::iter::successors(Some(largest), move |place| Some(place / base));
    places.take_while(|place| *place > 0).flat_map(move |place| {
        (1..base)
            .map(move |digit| u64::from(position) + digit * place)
            .take_while(move |child| *child < u64::from(ranks))
            .map(|child| child as u32)
    })
}

/// The positions at and below `position` in a k-nomial tree over `ranks` positions.
pub fn subtree(k: NonZeroU32, position: u32, ranks: u32) -> Range<u32> {
    let end = u64::from(position) + span(k, position, ranks);
    position..end.min(u64::from(ranks)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINOMIAL: NonZeroU32 = NonZeroU32::new(2).unwrap();
    const TERNARY: NonZeroU32 = NonZeroU32::new(3).unwrap();

    fn all_children(k: NonZeroU32, ranks: u32) -> Vec<Vec<u32>> {
        (0..ranks).map(|p| children(k, p, ranks).collect()).collect()
    }

    #[test]
    fn binomial_as_drawn() {
        let expected: [&[u32]; 8] = [&[4, 2, 1], &[], &[3], &[], &[6, 5], &[], &[7], &[]];
        assert_eq!(all_children(BINOMIAL, 8), expected);
        let parents: Vec<_> = (1..8).map(|p| parent(BINOMIAL, p).unwrap()).collect();
        assert_eq!(parents, [0, 0, 2, 0, 4, 4, 6]);
    }

    #[test]
    fn binomial_with_ranks_missing_at_the_end() {
        let expected: [&[u32]; 6] = [&[4, 2, 1], &[], &[3], &[], &[5], &[]];
        assert_eq!(all_children(BINOMIAL, 6), expected);
        assert!(all_children(BINOMIAL, 1)[0].is_empty());
    }

    #[test]
    fn ternary() {
        let expected: [&[u32]; 9] = [&[3, 6, 1, 2], &[], &[], &[4, 5], &[], &[], &[7, 8], &[], &[]];
        assert_eq!(all_children(TERNARY, 9), expected);
    }

    #[test]
    fn a_subtree_is_an_interval() {
        assert_eq!(subtree(BINOMIAL, 0, 6), 0..6);
        assert_eq!(subtree(BINOMIAL, 4, 6), 4..6);
        assert_eq!(subtree(BINOMIAL, 2, 6), 2..4);
        assert_eq!(subtree(TERNARY, 3, 5), 3..5);
        for (k, ranks) in [(BINOMIAL, 37), (TERNARY, 50)] {
            for position in 0..ranks {
                let mut end = position + 1;
                let mut below: Vec<_> = children(k, position, ranks).map(|c| subtree(k, c, ranks)).collect();
                below.sort_by_key(|subtree| subtree.start);
                for subtree in below {
                    assert_eq!(subtree.start, end);
                    end = subtree.end;
                }
                assert_eq!(subtree(k, position, ranks), position..end);
            }
        }
    }
}
