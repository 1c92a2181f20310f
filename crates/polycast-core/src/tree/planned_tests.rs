//! What planned trees promise, on random clusters.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::topology::{Paths, Placed, Topology};

/// Ranks on a random tree of switches, several of them on a host or none, in random order.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub placed: Placed,
    pub root: Rank,
}

pub(super) fn cluster(ranks_most: u32, switches_most: usize) -> impl Strategy<Value = Cluster> {
    (1..=ranks_most, 1..=switches_most, 1..40usize, any::<u64>()).prop_map(
        |(ranks, switches, hosts, seed)| {
            let mut random = fastrand::Rng::with_seed(seed);
            let topology = Topology::random(switches, hosts, |n| random.usize(..n));
            let host_of = (0..ranks).map(|_| random.usize(..hosts)).collect();
            let placed = Placed { topology, host_of, unplaced_hosts: Vec::new() };
            Cluster { placed, root: Rank(random.u32(..ranks)) }
        },
    )
}

/// Every pair of messages, edge by edge.
fn contending_pairs_one_by_one(tree: &PlannedTree, placed: &Placed) -> u64 {
    let paths = Paths::new(placed);
    let messages: Vec<_> = tree.edges().map(|(from, to)| (from, paths.between(from, to))).collect();
    let mut pairs = 0;
    for (index, (from, path)) in messages.iter().enumerate() {
        for (other, other_path) in &messages[..index] {
            pairs += u64::from(from != other && path.iter().any(|edge| other_path.contains(edge)));
        }
    }
    pairs
}

fn k(k: u32) -> NonZeroU32 {
    NonZeroU32::new(k).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contention_is_counted_without_looking_at_pairs(cluster in cluster(60, 12), k in 1u32..5) {
        let order: Vec<Rank> = (0..cluster.placed.host_of.len() as u32).map(Rank).collect();
        let tree = Tree::KAry(NonZeroU32::new(k).unwrap()).plan(&order);
        let one_by_one = contending_pairs_one_by_one(&tree, &cluster.placed);
        prop_assert_eq!(contending_pairs(&tree, &cluster.placed), one_by_one);
    }

    #[test]
    fn contention_free_trees_never_contend(cluster in cluster(200, 30), k in 1u32..7) {
        let site = Site::new(&cluster.placed);
        for shape in [
            PlannedShape::ContentionFreeChain,
            PlannedShape::ContentionFreeKAry(NonZeroU32::new(k).unwrap()),
        ] {
            let tree = shape.plan(&site, cluster.root);
            prop_assert_eq!(tree.root(), cluster.root);
            prop_assert_eq!(contending_pairs_one_by_one(&tree, &cluster.placed), 0, "{:?}", shape);
            prop_assert!(tree.degree() <= k || shape == PlannedShape::ContentionFreeChain);
        }
    }

    #[test]
    fn the_ring_contends_nowhere(cluster in cluster(100, 30)) {
        let site = Site::new(&cluster.placed);
        let paths = Paths::new(&cluster.placed);
        let mut used = std::collections::HashSet::new();
        let ring = site.ring();
        for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            for edge in paths.between(*from, *to) {
                prop_assert!(used.insert(edge), "{:?} is used twice", edge);
            }
        }
    }
}

/// Algorithm 2 as the paper has it: heights of all intervals, contention found by walking through the network. The paper
/// gives every rank two children where it can; `or_one` also tries a single one, which is lower now and then.
fn paper_height(placed: &Placed, order: &[Rank], or_one: bool) -> u32 {
    let ranks = order.len();
    let paths = Paths::new(placed);
    let mut best = vec![vec![0; ranks]; ranks];
    let mut tree = vec![vec![Vec::<(usize, usize)>::new(); ranks]; ranks];
    let way = |(from, to): (usize, usize)| paths.between(order[from], order[to]);
    for length in 1..ranks {
        for i in 0..ranks - length {
            let j = i + length;
            if length == 1 {
                best[i][j] = 1;
                tree[i][j] = vec![(i, j)];
                continue;
            }
            let free = |k: usize| {
                let mine = way((i, k));
                tree[i + 1][k - 1].iter().all(|m| way(*m).iter().all(|edge| !mine.contains(edge)))
            };
            let height = |k: usize| best[i + 1][k - 1].max(best[k][j]) + 1;
            let k =
                (i + 2..=j).filter(|k| free(*k)).min_by_key(|k| height(*k)).expect("i + 2 is always free");
            if or_one && best[i + 1][j] + 1 < height(k) {
                best[i][j] = best[i + 1][j] + 1;
                tree[i][j] = [&tree[i + 1][j][..], &[(i, i + 1)]].concat();
            } else {
                best[i][j] = height(k);
                tree[i][j] = [&tree[i + 1][k - 1][..], &tree[k][j], &[(i, i + 1), (i, k)]].concat();
            }
        }
    }
    best[0][ranks - 1]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn binary_trees_are_as_high_as_those_of_the_paper(cluster in cluster(24, 12)) {
        let site = Site::new(&cluster.placed);
        let order = site.from_root(cluster.root);
        let tree = PlannedShape::ContentionFreeKAry(k(2)).plan(&site, cluster.root);
        prop_assert_eq!(tree.height(), paper_height(&cluster.placed, order.ranks(), true));
        prop_assert!(tree.height() <= paper_height(&cluster.placed, order.ranks(), false));
    }
}

/// Patarasuk et al. 2008, Figure 5: the mean over 20 clusters of each size.
#[test]
fn heights_stay_within_twice_the_complete_binary_tree() {
    let mut random = fastrand::Rng::with_seed(1);
    for hosts in [64, 128, 256] {
        for hosts_per_switch in [8, 16] {
            let heights = (0..20).map(|_| {
                let cluster = Topology::random(hosts / hosts_per_switch, hosts, |n| random.usize(..n));
                let placed =
                    Placed { topology: cluster, host_of: (0..hosts).collect(), unplaced_hosts: vec![] };
                PlannedShape::ContentionFreeKAry(k(2)).plan(&Site::new(&placed), Rank(0)).height()
            });
            let mean = f64::from(heights.sum::<u32>()) / 20.0;
            let complete = (hosts + 1).next_power_of_two().ilog2() - 1;
            assert!(mean <= 2.0 * f64::from(complete), "{hosts} hosts: {mean}, complete {complete}");
        }
    }
}
