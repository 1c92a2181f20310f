//! The chain (linear tree, pipeline): each rank forwards to the next.
//!
//! ```text
//!     0 ─ 1 ─ 2 ─ 3
//! ```

pub(super) fn parent(position: u32) -> Option<u32> {
    position.checked_sub(1)
}

pub(super) fn children(position: u32, ranks: u32) -> impl Iterator<Item = u32> {
    (position + 1 < ranks).then_some(position + 1).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_drawn() {
        let chain: Vec<_> = (0..4).map(|p| (parent(p), children(p, 4).next())).collect();
        assert_eq!(chain, [(None, Some(1)), (Some(0), Some(2)), (Some(1), Some(3)), (Some(2), None)]);
    }
}
