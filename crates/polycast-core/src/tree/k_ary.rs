//! The complete k-ary tree, numbered breadth first; k = 2 is the binary tree:
//!
//! ```text
//!              0
//!          ┌───┴───┐
//!          1       2
//!        ┌─┴─┐   ┌─┴─┐
//!        3   4   5   6
//!       ┌┴┐
//!       7 8
//! ```

use std::num::NonZeroU32;
use std::ops::Range;

pub(super) fn parent(k: NonZeroU32, position: u32) -> Option<u32> {
    position.checked_sub(1).map(|before| before / k)
}

pub(super) fn children(k: NonZeroU32, position: u32, ranks: u32) -> Range<u32> {
    let first = position.saturating_mul(k.get()).saturating_add(1).min(ranks);
    first..first.saturating_add(k.get()).min(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: NonZeroU32 = NonZeroU32::new(2).unwrap();
    const TERNARY: NonZeroU32 = NonZeroU32::new(3).unwrap();

    #[test]
    fn binary_as_drawn() {
        let children: Vec<_> = (0..9).map(|p| children(BINARY, p, 9)).collect();
        assert_eq!(children[..4], [1..3, 3..5, 5..7, 7..9]);
        assert!(children[4..].iter().all(Range::is_empty));
        let parents: Vec<_> = (1..9).map(|p| parent(BINARY, p).unwrap()).collect();
        assert_eq!(parents, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(parent(BINARY, 0), None);
    }

    #[test]
    fn ternary_with_a_last_family_that_is_not_full() {
        assert_eq!(children(TERNARY, 0, 6), 1..4);
        assert_eq!(children(TERNARY, 1, 6), 4..6);
        assert!(children(TERNARY, 2, 6).is_empty());
        assert_eq!(parent(TERNARY, 5), Some(1));
    }
}
