use crate::units::Rank;

/// All ranks in depth-first order, `m_0` (the root) to `m_{P-1}`, and where the order goes through the network's edges.
///
/// Seen from the root, what lies beyond a link is a contiguous interval of the order, so which messages cross the link, and
/// in which direction, shows in positions alone:
///
/// ```text
///  position        0   1   2   3   4   5   6   7
///  beyond links    │       └───────────┘   └───┘
///                  │           └───┘
///                  root
/// ```
///
/// # Invariants
/// 1. Intervals are listed in the order of their first positions, an outer one before those inside it; any two are disjoint
///    or one contains the other.
/// 2. No interval is empty or contains position 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traversal {
    ranks: Vec<Rank>,
    beyond: Vec<PositionInterval>,
    /// For each position: the first one of the innermost interval that contains it and began before it, or 0.
    entered_at: Vec<u32>,
    /// For each position: the innermost interval that contains it and goes on after it, an index into `beyond`.
    goes_on: Vec<Option<u32>>,
}

/// The positions beyond one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PositionInterval {
    first: u32,
    last: u32,
    /// The next interval around this one, an index into `Traversal::beyond`.
    outer: Option<u32>,
}

impl Traversal {
    /// The ranks in order, the root first.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// The last position that a message from position `from` may leave uncovered behind a subtree that begins at `start`
    /// (after `from`): a subtree that reaches beyond it uses the same edge out of some interval as `from` itself would for
    /// everything that follows. See [`Traversal::may_follow`].
    pub(super) fn last_before_leaving(&self, from: u32, start: u32) -> u32 {
        let mut around = self.goes_on[from as usize];
        while let Some(interval) = around.map(|index| self.beyond[index as usize]) {
            if interval.last >= start {
                return interval.last;
            }
            around = interval.outer;
        }
        self.ranks.len() as u32 - 1
    }

    /// The last position at which a subtree over positions `start..next` has gone into an interval
    /// that contains `next` as well. If that is after `start`, a message from before `start` to
    /// `next` would go in by the same edge.
    pub(super) fn entered_at(&self, next: u32) -> u32 {
        self.entered_at[next as usize]
    }

    /// True if a rank at `from` that sends to `start`, whose subtree covers `start..next`, can send
    /// to `next` without sharing a directed edge with any message inside that subtree (Patarasuk et
    /// al. 2008, §4.1.2, line 17 of Algorithm 2).
    ///
    /// ```text
    ///   contention out of an interval:         contention into an interval:
    ///     │ from start … e │ … next              from start … │ s … next … │
    ///     └────────────────┘                                  └────────────┘
    ///   the subtree crosses e, and so           the subtree crosses into s, and so
    ///   does from → next                        does from → next
    /// ```
    /// The subtree is connected, so it crosses every boundary inside it, whatever its form.
    #[cfg(test)]
    pub(super) fn may_follow(&self, from: u32, start: u32, next: u32) -> bool {
        next <= self.last_before_leaving(from, start) + 1 && self.entered_at(next) <= start
    }
}

/// A traversal under way.
pub(super) struct Visits {
    ranks: Vec<Rank>,
    beyond: Vec<PositionInterval>,
    open: Vec<u32>,
}

impl Visits {
    pub fn new(ranks: usize) -> Visits {
        Visits { ranks: Vec::with_capacity(ranks), beyond: Vec::new(), open: Vec::new() }
    }

    pub fn ranks(&mut self, ranks: impl IntoIterator<Item = Rank>) {
        self.ranks.extend(ranks);
    }

    /// Goes over a link.
    pub fn enter(&mut self) {
        let outer = self.open.last().copied();
        self.open.push(self.beyond.len() as u32);
        self.beyond.push(PositionInterval { first: self.ranks.len() as u32, last: 0, outer });
    }

    /// Comes back over the link that was entered last; an interval without ranks is dropped.
    pub fn leave(&mut self) {
        let Some(index) = self.open.pop() else { return };
        let end = self.ranks.len() as u32;
        if self.beyond[index as usize].first == end {
            // Nothing was there, so nothing was entered since either.
            self.beyond.truncate(index as usize);
        } else {
            self.beyond[index as usize].last = end - 1;
        }
    }

    pub fn finish(self) -> Traversal {
        let Visits { ranks, beyond, .. } = self;
        let mut entered_at = Vec::with_capacity(ranks.len());
        let mut goes_on = Vec::with_capacity(ranks.len());
        let mut begin = (0..).zip(&beyond).peekable();
        // The intervals around the current position, the innermost last.
        let mut around: Vec<u32> = Vec::new();
        let last_of = |index: &u32| beyond[*index as usize].last;
        for position in 0..ranks.len() as u32 {
            entered_at.push(around.last().map_or(0, |index| beyond[*index as usize].first));
            while let Some((index, _)) = begin.next_if(|(_, interval)| interval.first == position) {
                around.push(index);
            }
            while around.last().is_some_and(|index| last_of(index) == position) {
                around.pop();
            }
            goes_on.push(around.last().copied());
        }
        Traversal { ranks, beyond, entered_at, goes_on }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As drawn above.
    fn traversal() -> Traversal {
        let mut visits = Visits::new(8);
        let mut ranks = (0..).map(Rank);
        let mut take = |visits: &mut Visits, count| visits.ranks(ranks.by_ref().take(count));
        take(&mut visits, 2);
        visits.enter();
        take(&mut visits, 1);
        visits.enter();
        take(&mut visits, 2);
        visits.leave();
        take(&mut visits, 1);
        visits.leave();
        visits.enter();
        visits.enter();
        visits.leave();
        visits.leave();
        visits.enter();
        take(&mut visits, 2);
        visits.leave();
        visits.finish()
    }

    #[test]
    fn intervals_as_drawn() {
        let traversal = traversal();
        let bounds: Vec<_> = traversal.beyond.iter().map(|i| (i.first, i.last, i.outer)).collect();
        assert_eq!(bounds, [(2, 5, None), (3, 4, Some(0)), (6, 7, None)]);
        assert_eq!(traversal.entered_at, [0, 0, 0, 2, 3, 2, 0, 6]);
        assert_eq!(traversal.goes_on, [None, None, Some(0), Some(1), Some(0), None, Some(2), None]);
    }

    #[test]
    fn messages_that_share_an_edge_with_a_subtree_are_seen() {
        let traversal = traversal();
        assert!(traversal.may_follow(0, 1, 2), "nothing is entered or left");
        assert!(!traversal.may_follow(0, 1, 3), "1→2 and 0→3 enter the first interval");
        assert!(traversal.may_follow(0, 1, 6), "a subtree may enter and leave as it likes");
        assert!(traversal.may_follow(2, 3, 5), "the subtree covers an inner interval");
        assert!(!traversal.may_follow(2, 3, 7), "the subtree leaves the first interval, and so does 2→7");
        assert!(traversal.may_follow(2, 3, 6), "the subtree ends where the interval does");
        assert!(
            traversal.may_follow(0, 2, 5),
            "what begins with the subtree is entered by its own root's messages"
        );
    }
}
