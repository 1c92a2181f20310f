use std::fmt;

/// A process in a communicator, `0..size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank's position when the ring is counted from `root`: the root becomes 0, the others
    /// follow in order.
    pub fn relative_to(self, root: Rank, size: u32) -> u32 {
        debug_assert!(self.0 < size && root.0 < size);
        if self.0 >= root.0 { self.0 - root.0 } else { size - root.0 + self.0 }
    }

    /// The rank that stands at `position` when the ring is counted from `root`; undoes [`Rank::relative_to`].
    pub fn from_relative(position: u32, root: Rank, size: u32) -> Rank {
        debug_assert!(position < size && root.0 < size);
        let until_wrap = size - root.0;
        Rank(if position < until_wrap { root.0 + position } else { position - until_wrap })
    }

    /// The rank as an index into a list with one entry per rank.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_positions_are_a_rotation() {
        for size in 1..20 {
            for root in 0..size {
                for rank in 0..size {
                    let position = Rank(rank).relative_to(Rank(root), size);
                    assert_eq!(position, (rank + size - root) % size);
                    assert_eq!(Rank::from_relative(position, Rank(root), size), Rank(rank));
                }
            }
        }
    }

    #[test]
    fn the_largest_communicator_does_not_overflow() {
        let size = u32::MAX;
        assert_eq!(Rank(0).relative_to(Rank(size - 1), size), 1);
        assert_eq!(Rank::from_relative(size - 1, Rank(size - 1), size), Rank(size - 2));
    }
}
