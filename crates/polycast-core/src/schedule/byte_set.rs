use std::collections::BTreeMap;
use std::ops::Range;

/// A set of bytes, kept as disjoint ranges that do not touch.
#[derive(Debug, Default)]
pub(super) struct ByteSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl ByteSet {
    /// Adds `range`; false if some of it was there already.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let before = self.ranges.range(..=range.start).next_back().map(|(start, end)| *start..*end);
        let behind = self.ranges.range(range.start..).next().map(|(start, end)| *start..*end);
        let is_new = before.as_ref().is_none_or(|before| before.end <= range.start)
            && behind.as_ref().is_none_or(|behind| range.end <= behind.start);
        if !is_new {
            self.insert_overlapping(range);
            return false;
        }
        let mut joined = range.clone();
        if let Some(behind) = behind.filter(|behind| behind.start == range.end) {
            self.ranges.remove(&behind.start);
            joined.end = behind.end;
        }
        if let Some(before) = before.filter(|before| before.end == range.start) {
            joined.start = before.start;
        }
        self.ranges.insert(joined.start, joined.end);
        true
    }

    fn insert_overlapping(&mut self, mut range: Range<u64>) {
        while let Some((&start, &end)) =
            self.ranges.range(..=range.end).next_back().filter(|(_, end)| **end >= range.start)
        {
            self.ranges.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.ranges.insert(range.start, range.end);
    }

    pub fn contains(&self, range: &Range<u64>) -> bool {
        let around = self.ranges.range(..=range.start).next_back();
        range.is_empty() || around.is_some_and(|(_, end)| range.end <= *end)
    }

    /// The first byte below `end` that is not in the set.
    pub fn first_missing(&self, end: u64) -> Option<u64> {
        let first = self.ranges.get(&0).copied().unwrap_or(0);
        (first < end).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_single_bytes(
            ranges in prop::collection::vec((0u64..40, 0u64..12), 0..20),
            (start, length) in (0u64..40, 0u64..12),
        ) {
            let mut set = ByteSet::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, length) in ranges {
                let is_new = (start..start + length).all(|byte| !bytes.contains(&byte));
                bytes.extend(start..start + length);
                prop_assert_eq!(set.insert(start..start + length), is_new);
            }
            let range = start..start + length;
            prop_assert_eq!(set.contains(&range), range.clone().all(|byte| bytes.contains(&byte)));
            prop_assert_eq!(set.first_missing(50), (0..50).find(|byte| !bytes.contains(byte)));
            let ends: Vec<_> = set.ranges.iter().collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "ranges touch");
        }
    }
}
