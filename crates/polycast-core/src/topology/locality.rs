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

/// Levels of a host, the outermost first: package, NUMA node, last cache, core.
const LEVELS: usize = 4;
const BITS: usize = 12;
/// Bits of a rank's position before the reordering.
const POSITION_BITS: usize = 16;

/// Caches of a processor, and NUMA nodes, that are looked at.
const MAX_CACHES: u32 = 16;
const MAX_NODES: usize = 1024;

/// A rank's place on its host: at each level one more than the lowest processor of the place, or 0
/// if unknown. The more leading levels two localities have in common, the nearer to each other they
/// are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality(u64);

impl Locality {
    /// Bytes that [`Locality::put_before`] puts in front of a text.
    pub const DIGITS: usize = LEVELS * BITS / 4;

    /// Finds the place of a rank that is bound to the processors `bound`. `file` reads a file below
    /// `/sys/devices/system`, where Linux describes the machine. A level whose file is missing or
    /// is no list is unknown, as if the rank ran in several places.
    ///
    /// ```text
    ///   cpu/cpuN/topology/core_siblings_list      the package       node/has_cpu, node/nodeN/cpulist         the NUMA node
    ///   cpu/cpuN/topology/thread_siblings_list    the core          cpu/cpuN/cache/indexN/shared_cpu_list    the cache of the highest level
    /// ```
    pub fn find(bound: &[u32], file: &dyn Fn(&str) -> Option<String>) -> Locality {
        let Some(first) = bound.first() else { return Locality::default() };
        let of_first = |name: &str| file(&format!("cpu/cpu{first}/{name}"));
        let of_cache = |cache: u32, name: &str| of_first(&format!("cache/index{cache}/{name}"));
        let mut last = None;
        for cache in 0..MAX_CACHES {
            let Some(kind) = of_cache(cache, "type") else { break };
            let level: Option<u32> = of_cache(cache, "level").and_then(|level| level.trim().parse().ok());
            if kind.trim() != "Instruction" && level.is_some() {
                last = last.max(Some((level, cache)));
            }
        }
        let nodes = file("node/has_cpu").and_then(|nodes| list(&nodes)).into_iter().flatten().flatten();
        let node = nodes.take(MAX_NODES).find_map(|node| {
            file(&format!("node/node{node}/cpulist")).filter(|list| lowest_around(bound, list).is_some())
        });
        let around = [
            of_first("topology/core_siblings_list"),
            node,
            last.and_then(|(_, cache)| of_cache(cache, "shared_cpu_list")),
            of_first("topology/thread_siblings_list"),
        ];
        Locality::new(around.map(|list| lowest_around(bound, &list?)))
    }

    fn new(lowest: [Option<u32>; LEVELS]) -> Locality {
        let place = |lowest: Option<u32>| lowest.map_or(0, |lowest| u64::from(lowest) + 1);
        let known = |place: u64| if place < 1 << BITS { place } else { 0 };
        Locality(lowest.into_iter().fold(0, |all, lowest| all << BITS | known(place(lowest))))
    }

    /// Writes the locality as hexadecimal digits in front of a text that a rank tells others.
    pub fn put_before(self, text: &str) -> String {
        format!("{:0digits$x}{text}", self.0, digits = Locality::DIGITS)
    }

    /// Removes the digits of [`Locality::put_before`] from a text and reads them. Anything else in
    /// their place reads as an unknown locality.
    pub fn take_from(text: &mut String) -> Locality {
        let bits = text.get(..Locality::DIGITS).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        *text = text.chars().skip(Locality::DIGITS).collect();
        Locality::from_bits(bits.unwrap_or(0))
    }

    /// A locality from its bits: the places of each level, one more than their lowest processors.
    pub fn from_bits(bits: u64) -> Locality {
        Locality(bits & ((1 << (LEVELS * BITS)) - 1))
    }

    /// The bits of the locality, which [`Locality::from_bits`] reads.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// A mask of all bits of the levels at which the place is known.
    fn known(self) -> u64 {
        let levels = (0..LEVELS).map(|level| ((1 << BITS) - 1) << (level * BITS));
        levels.filter(|level| self.0 & level != 0).sum()
    }
}

/// Reads numbers as Linux lists them, such as `0-3,8`.
fn list(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let numbers = |item: &str| -> Option<RangeInclusive<u32>> {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').map(numbers).collect()
}

/// The lowest processor of a list, which tells the list from others; `None` unless all of `bound`
/// are in the list.
fn lowest_around(bound: &[u32], text: &str) -> Option<u32> {
    let list = list(text)?;
    let is_in = |processor| list.iter().any(|range| range.contains(processor));
    let lowest = list.iter().map(|range| *range.start()).min();
    lowest.filter(|_| bound.iter().all(is_in))
}

/// True if the order of ranks can matter on some host: it has at least three, and they are not all
/// bound alike. `ranks` has for each rank its host and what it is bound to. Ranks that may
/// run anywhere are bound alike, so the kernel need not be asked what they share.
pub fn may_order(ranks: &[(u64, u64)]) -> bool {
    let sorted = |of: &dyn Fn(&(u64, u64)) -> u64| {
        let mut all: Vec<u64> = ranks.iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let (mut hosts, mut both) = (sorted(&|of| of.0), sorted(&|of| of.0 ^ of.1.rotate_left(1)));
    let have_three = hosts.windows(3).any(|of| of[0] == of[2]);
    hosts.dedup();
    both.dedup();
    have_three && both.len() > hosts.len()
}

/// Reorders the ranks of a host so that ranks near each other stand together: by package, in each
/// package by NUMA node, and so on. At each level the place of the earliest rank comes first, so
/// ranks of unknown or equal places stay where they are. `localities` has an entry per rank.
pub fn by_locality(ranks: &mut [Rank], localities: &[Locality]) {
    let of = |rank: &Rank| localities[rank.index()];
    let known = ranks.iter().fold(u64::MAX, |known, rank| known & of(rank).known());
    let places: Vec<u64> = ranks.iter().map(|rank| of(rank).0 & known).collect();
    if places.iter().all(|place| *place == places[0]) || ranks.len() > 1 << POSITION_BITS {
        return;
    }
    let before = ranks.to_vec();
    let position = |packed: u64| (packed & ((1 << POSITION_BITS) - 1)) as usize;
    let mut order: Vec<u64> = (0..ranks.len() as u64).collect();
    // The innermost level first: a later one keeps that order in each of its places.
    for level in 0..LEVELS {
        let place = |at: u64| places[position(at)] >> (level * BITS);
        let mut near: Vec<u64> = (0..).take(order.len()).map(|at| place(at) << POSITION_BITS | at).collect();
        near.sort_unstable();
        let mut first = vec![0; order.len()];
        for group in near.chunk_by(|one, other| one >> POSITION_BITS == other >> POSITION_BITS) {
            group.iter().for_each(|at| first[position(*at)] = position(group[0]) as u64);
        }
        let stands =
            |(now, at): (u64, u64)| (first[position(at)] << POSITION_BITS | now) << POSITION_BITS | at;
        order = (0..).zip(order).map(|(now, at)| stands((now, position(at) as u64))).collect();
        order.sort_unstable();
    }
    ranks.iter_mut().zip(order).for_each(|(place, at)| *place = before[position(at)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(places: [u64; 4]) -> Locality {
        Locality::new(places.map(|place| (place as u32).checked_sub(1)))
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
    fn a_processor_whose_number_is_too_high_is_nowhere() {
        let far = |lowest: u32| Locality::new([None, None, None, Some(lowest)]);
        assert_eq!((far(4094), far(4095), far(u32::MAX)), (at([0, 0, 0, 4095]), at([0; 4]), at([0; 4])));
        assert_eq!(Locality::from_bits(far(3).to_bits() | 1 << 48), far(3), "whatever a rank tells");
    }

    #[test]
    fn a_locality_stands_before_a_text() {
        let mut text = at([1, 2, 3, 4095]).put_before("hôte");
        assert_eq!(text, "001002003fffhôte");
        assert_eq!((Locality::take_from(&mut text), text.as_str()), (at([1, 2, 3, 4095]), "hôte"));
        assert_eq!((Locality::take_from(&mut text), text.as_str()), (at([0; 4]), ""));
    }

    #[test]
    fn there_is_nothing_to_order_where_ranks_are_few_or_bound_alike() {
        assert!(may_order(&[(1, 5), (1, 6), (1, 5)]));
        assert!(may_order(&[(2, 5), (1, 6), (2, 6), (2, 5)]));
        assert!(!may_order(&[(1, 5), (1, 6), (2, 5), (2, 6)]));
        assert!(!may_order(&[(1, 5), (1, 5), (1, 5), (2, 6)]));
        assert!(!may_order(&[]));
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
            let _ = Locality::find(&bound, &|_| Some(text.clone()));
        }
    }
}
