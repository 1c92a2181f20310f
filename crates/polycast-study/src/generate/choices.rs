//! The way and the segments for each size of message, chosen by predicted time.

use std::ops::RangeInclusive;

/// A way that a message can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineWay {
    /// MPI's own broadcast: a binomial tree without segments, as MPI libraries have it for short messages.
    Stock,
    /// The contention-free binary tree.
    Tree,
    /// The contention-free chain.
    Chain,
}

/// A row of the routine's table: what holds from a size on. 0 stands for a way that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoiceRow {
    pub from_bytes: u64,
    /// The segment down a tree, where the communicator has one.
    pub tree_segment: u64,
    /// The segment along the chain, for communicators without a tree.
    pub chain_segment: u64,
}

/// Sizes that are decided, as powers of two. Smaller ones are left to MPI: they are a matter of latency, which another layer of
/// software does not better. The last decides for larger ones, too.
const SIZES: RangeInclusive<u32> = 10..=27;

/// Segments that are tried, as powers of two: 256 B and more, as in Patarasuk et al. 2008, §4.2.
const SEGMENTS: RangeInclusive<u32> = 8..=18;

/// The table for predicted times of a way in segments of a size. `has_tree`: whether there are trees at all.
pub fn choose(has_tree: bool, time: impl Fn(RoutineWay, u64, u64) -> f64) -> Vec<ChoiceRow> {
    let mut rows = vec![ChoiceRow { from_bytes: 0, tree_segment: 0, chain_segment: 0 }];
    for bytes in SIZES.map(|power| 1 << power) {
        let best = |way| {
            let segments = SEGMENTS.map(|power| 1 << power).filter(|segment| *segment <= bytes);
            let timed = segments.map(|segment| (time(way, bytes, segment), segment));
            timed
                .min_by(|one, other| one.0.total_cmp(&other.0))
                .expect("the smallest segment is no larger than a size")
        };
        let stock = time(RoutineWay::Stock, bytes, bytes);
        let (chain, chain_segment) = best(RoutineWay::Chain);
        let (tree, tree_segment) = if has_tree { best(RoutineWay::Tree) } else { (f64::INFINITY, 0) };
        let row = ChoiceRow {
            from_bytes: bytes,
            tree_segment: if tree < stock.min(chain) { tree_segment } else { 0 },
            chain_segment: if chain < stock { chain_segment } else { 0 },
        };
        if rows.last().is_some_and(|last| ChoiceRow { from_bytes: last.from_bytes, ..row } != *last) {
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 ranks, a microsecond per message and a nanosecond per byte.
    fn hockney(way: RoutineWay, bytes: u64, segment: u64) -> f64 {
        let time = |bytes: u64| 1000.0 + bytes as f64;
        let segments = bytes.div_ceil(segment) as f64;
        match way {
            RoutineWay::Stock => 6.0 * time(bytes),
            RoutineWay::Tree => 2.0 * (5.0 + segments - 1.0) * time(segment),
            RoutineWay::Chain => (63.0 + segments - 1.0) * time(segment),
        }
    }

    #[test]
    fn short_messages_by_mpi_long_ones_along_the_chain() {
        let rows = choose(true, hockney);
        assert_eq!(rows[0], ChoiceRow { from_bytes: 0, tree_segment: 0, chain_segment: 0 });
        let last = rows[rows.len() - 1];
        assert!(last.tree_segment == 0 && last.chain_segment > 1024, "{rows:?}");
        assert!(rows.iter().any(|row| row.tree_segment > 0), "{rows:?}");
        assert!(rows.is_sorted_by_key(|row| row.from_bytes));
    }

    #[test]
    fn every_row_is_the_best_of_what_was_tried() {
        let rows = choose(true, hockney);
        for bytes in SIZES.map(|power| 1u64 << power) {
            let row = rows.iter().rfind(|row| row.from_bytes <= bytes).unwrap();
            let chosen = match (row.tree_segment, row.chain_segment) {
                (0, 0) => hockney(RoutineWay::Stock, bytes, bytes),
                (0, segment) => hockney(RoutineWay::Chain, bytes, segment),
                (segment, _) => hockney(RoutineWay::Tree, bytes, segment),
            };
            for segment in SEGMENTS.map(|power| 1u64 << power).filter(|segment| *segment <= bytes) {
                for way in [RoutineWay::Stock, RoutineWay::Tree, RoutineWay::Chain] {
                    let segment = if way == RoutineWay::Stock { bytes } else { segment };
                    assert!(chosen <= hockney(way, bytes, segment), "{bytes} {way:?} {segment}");
                }
            }
        }
    }

    #[test]
    fn without_trees_only_the_chain() {
        assert!(choose(false, hockney).iter().all(|row| row.tree_segment == 0));
    }
}
