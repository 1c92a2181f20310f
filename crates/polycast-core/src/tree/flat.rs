//! The flat tree: the root sends to everybody.
//!
//! ```text
//!         0
//!     ┌─┬─┼─┬─┐
//!     1 2 3 4 5
//! ```

use std::ops::Range;

pub(super) fn parent(position: u32) -> Option<u32> {
    (position > 0).then_some(0)
}

pub(super) fn children(position: u32, ranks: u32) -> Range<u32> {
    if position == 0 { 1..ranks } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_drawn() {
        assert_eq!(parent(0), None);
        assert_eq!(parent(5), Some(0));
        assert_eq!(children(0, 6), 1..6);
        assert!(children(3, 6).is_empty());
        assert!(children(0, 1).is_empty());
    }
}
