//! Where on its host a rank runs, and the order of a host's ranks in which those that are near each other stand together.
//!
//! ```text
//!   package       ┌────── 0 ──────┐ ┌────── 1 ──────┐       a launcher that hands ranks out to sockets by turns:
//!   NUMA node     ┌── 0 ──┐┌── 1 ─┐ ┌── 2 ──┐┌── 3 ─┐         by rank       0 ═ 1 ═ 2 ═ 3       a chain crosses at each hop
//!   last cache    ┌0┐ ┌1┐  …                                  by locality   0 ─ 2 ═ 1 ─ 3       and once
//!   core          ││││ …
//! ```
//! A rank that may run in several of a level has no place there: nobody knows where it is. So a level counts only for ranks that all have one.

use std::ops::RangeInclusive;

use crate::units::Rank;

/// Package, NUMA node, last cache, core: what is further out comes first.
pub const LEVELS: usize = 4;
const BITS: usize = 16;

/// Where a rank runs. By what two localities have in common in front they are near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality(u64);

impl Locality {
    /// By the processors that the rank is bound to, and at each level a list of those that are around one of them, as Linux writes it. What it has
    /// not, or is no list, is as if the rank ran in several.
    pub fn new<T: AsRef<str>>(bound: &[u32], around: [Option<T>; LEVELS]) -> Locality {
        let place = |list: &Option<T>| lowest_around(bound, list.as_ref()?.as_ref());
        let level = |list| place(&list).and_then(|lowest| u16::try_from(lowest.checked_add(1)?).ok());
        Locality(around.into_iter().fold(0, |all, list| all << BITS | u64::from(level(list).unwrap_or(0))))
    }

    /// For other ranks of the host.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// What another rank has told.
    pub fn from_bits(bits: u64) -> Locality {
        Locality(bits)
    }

    /// All bits of the levels where it has a place.
    fn known(self) -> u64 {
        let places = (0..LEVELS).map(|level| 0xffff << (level * BITS));
        places.filter(|level| self.0 & level != 0).sum()
    }
}

/// The lowest processor of a list that all of these are in, which tells it from other lists.
pub fn lowest_around(bound: &[u32], list: &str) -> Option<u32> {
    let processors = |item: &str| -> Option<RangeInclusive<u32>> {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    let list: Vec<RangeInclusive<u32>> = list.trim().split(',').map(processors).collect::<Option<_>>()?;
    let is_in = |processor| list.iter().any(|range| range.contains(processor));
    let lowest = list.iter().map(|range| *range.start()).min()?;
    (!bound.is_empty() && bound.iter().all(is_in)).then_some(lowest)
}

/// Brings ranks of a host that are near each other together: packages, in each its NUMA nodes, and so on. What was first stands in front at each level, so
/// ranks of which nothing is known, or that are all alike, stay where they are. `localities` has an entry per rank.
pub fn by_locality(ranks: &mut [Rank], localities: &[Locality]) {
    let of = |rank: &Rank| localities[rank.index()];
    let places: Vec<u64> = ranks.iter().map(|rank| of(rank).0).collect();
    let known = ranks.iter().fold(u64::MAX, |known, rank| known & of(rank).known());
    let are_alike = places.iter().all(|place| place & known == places[0] & known);
    if are_alike || ranks.len() > 1 << BITS {
        return;
    }
    // Of each rank where the first one stands that is as near, level by level.
    let mut keys = vec![0; ranks.len()];
    for level in (0..LEVELS).rev() {
        let mut groups: Vec<(u64, usize)> =
            places.iter().map(|place| (place & known) >> (level * BITS)).zip(0..).collect();
        groups.sort_unstable();
        for group in groups.chunk_by(|one, other| one.0 == other.0) {
            group.iter().for_each(|(_, at)| keys[*at] = keys[*at] << BITS | group[0].1 as u64);
        }
    }
    let mut order: Vec<(u64, usize)> = keys.into_iter().zip(0..).collect();
    order.sort_unstable();
    let before = ranks.to_vec();
    ranks.iter_mut().zip(order).for_each(|(place, (_, at))| *place = before[at]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(places: [u64; 4]) -> Locality {
        Locality(places.into_iter().fold(0, |all, place| all << BITS | place))
    }

    fn order(localities: &[Locality]) -> Vec<u32> {
        let mut ranks: Vec<Rank> = (0..localities.len() as u32).map(Rank).collect();
        by_locality(&mut ranks, localities);
        ranks.into_iter().map(|rank| rank.0).collect()
    }

    #[test]
    fn lists_are_as_linux_writes_them() {
        for (bound, list, lowest) in [
            (&[3][..], "0-3,8-11\n", Some(0)),
            (&[3, 8], "0-3,8-11", Some(0)),
            (&[3, 4], "0-3,8-11", None),
            (&[5], "5", Some(5)),
            (&[9], "8,1,9", Some(1)),
            (&[], "0-3", None),
            (&[0], "", None),
            (&[0], "0-", None),
            (&[0], "0-1-2", None),
            (&[0], "0,x", None),
            (&[0], "3-0", None),
            (&[0], "0-4294967296", None),
            (&[7], "0-4294967295", Some(0)),
        ] {
            assert_eq!(lowest_around(bound, list), lowest, "{bound:?} in {list:?}");
        }
    }

    #[test]
    fn a_place_is_known_at_each_level_that_all_processors_are_in() {
        let around = |bound: &[u32]| {
            Locality::new(bound, [Some("0-7,16-23"), Some("0-7,16-23"), Some("4-7,20-23"), Some("5,21")])
        };
        assert_eq!(around(&[5, 21]), at([1, 1, 5, 6]));
        assert_eq!(around(&[5, 6]), at([1, 1, 5, 0]));
        assert_eq!(around(&[1, 5]), at([1, 1, 0, 0]));
        assert_eq!(around(&[5, 8]), Locality::default());
        assert_eq!(Locality::new(&[0], [None, Some("0"), Some("oops"), Some("65534")]), at([0, 1, 0, 0]));
        let far =
            |processor: u32| Locality::new(&[processor], [None, None, None, Some(processor.to_string())]);
        assert_eq!((far(65_534), far(65_535)), (at([0, 0, 0, 65_535]), Locality::default()));
        assert_eq!(far(u32::MAX), Locality::default());
    }

    #[test]
    fn what_is_near_stands_together_behind_what_was_first() {
        let sockets = [1, 9, 1, 9, 1, 9].map(|socket| at([socket, 0, 0, 0]));
        assert_eq!(order(&sockets), [0, 2, 4, 1, 3, 5]);
        // Two caches on each of two NUMA nodes.
        let caches =
            [(2, 7), (1, 1), (2, 5), (1, 3), (2, 7), (1, 1)].map(|(node, cache)| at([1, node, cache, 0]));
        assert_eq!(order(&caches), [0, 4, 2, 1, 5, 3]);
    }

    #[test]
    fn a_level_that_some_rank_lacks_does_not_count() {
        let mut places =
            [(1, 7), (2, 5), (1, 6), (2, 4), (1, 7)].map(|(node, cache)| at([0, node, cache, 0]));
        assert_eq!(order(&places), [0, 4, 2, 1, 3]);
        places[4] = at([0, 1, 0, 0]);
        assert_eq!(order(&places), [0, 2, 4, 1, 3]);
        places[1] = Locality::default();
        assert_eq!(order(&places), [0, 1, 2, 3, 4]);
        assert_eq!(order(&[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn an_order_has_all_ranks_once_and_groups_together(
            places in prop::collection::vec(prop::array::uniform4(1..4u64), 1..40),
            lacks in prop::array::uniform4(any::<bool>()),
        ) {
            let localities: Vec<Locality> = places
                .iter()
                .map(|of| at(std::array::from_fn(|level| if lacks[level] { 0 } else { of[level] })))
                .collect();
            let order = order(&localities);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.iter().copied().eq(0..places.len() as u32));
            for level in 0..LEVELS {
                let group = |rank: &u32| localities[*rank as usize].0 >> (level * BITS);
                let groups: Vec<&[u32]> = order.chunk_by(|one, other| group(one) == group(other)).collect();
                let mut seen: Vec<u64> = groups.iter().map(|of| group(&of[0])).collect();
                // In each group the first rank is the lowest, and at the outermost level groups go by these.
                prop_assert!(groups.iter().all(|of| of.iter().min() == of.first()));
                prop_assert!(level < LEVELS - 1 || groups.iter().map(|of| of[0]).is_sorted());
                seen.sort_unstable();
                let count = seen.len();
                seen.dedup();
                prop_assert_eq!(seen.len(), count, "{:?} at level {}", order, level);
            }
            let innermost: Vec<&[u32]> =
                order.chunk_by(|one, other| localities[*one as usize] == localities[*other as usize]).collect();
            prop_assert!(innermost.iter().all(|of| of.is_sorted()));
            let first = localities[0];
            if localities.iter().all(|of| *of == first) || lacks == [true; 4] {
                prop_assert!(order.is_sorted());
            }
        }

        #[test]
        fn no_text_is_too_much(text in ".{0,40}", bound in prop::collection::vec(any::<u32>(), 0..4)) {
            let _ = lowest_around(&bound, &text);
        }
    }
}
