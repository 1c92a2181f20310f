//! Contention-free trees where links differ in rate and latency (beyond the papers, which take them as equal).
//!
//! Two things are to be had. A rank behind a fast link can have more children in the time that the slowest link takes for a
//! segment anyway, so the tree gets lower at no cost; and what lies behind a slow link is visited last, because then the
//! chain does not come back over it:
//!
//! ```text
//!     hosts at 1 Gb/s                 hosts at 1 Gb/s
//!    ┌───────────────┐   100 Mb/s    ┌───────────────┐      chain: 2n hops
//!    │       s0      ├───────────────┤      s1       │      here: a lower tree on each side, and every link carries a
//!    └───────────────┘               └───────────────┘      segment in the same 10 intervals of the hosts' links
//! ```
//!
//! Trees of several orders and degrees are made, the time of each is computed ([`Pipelined`]), and the shortest is taken. The
//! chain and the binary tree that take links as equal are among them, so it is never worse than they are.

use super::pipeline::{crossing, on_link};
use super::{Pipelined, PlannedTree, Site, Traversal, contention_free};
use crate::units::{Nanos, Rank};

/// The most children that are tried for a rank: each has the segment later, and the binomial tree's
/// root has no more among 256.
const MAX_DEGREE: u64 = 8;

/// The tree that is fastest for `segments` segments of `segment_bytes`.
pub(super) fn plan(site: &Site, root: Rank, segment_bytes: u64, segments: u64) -> PlannedTree {
    let as_equal = site.from_root(root);
    let slowest_last = site.costliest_last(root, |link| crossing(link, segment_bytes));
    let mut best: Option<(Nanos, PlannedTree)> = None;
    let mut consider = |tree: PlannedTree| {
        let completion = Pipelined::over(&tree, site.paths(), segment_bytes).completion(segments);
        if best.as_ref().is_none_or(|(shortest, _)| completion < *shortest) {
            best = Some((completion, tree));
        }
    };
    consider(contention_free::chain(site, root));
    trees_along(site, &as_equal, segment_bytes).for_each(&mut consider);
    if slowest_last != as_equal {
        trees_along(site, &slowest_last, segment_bytes).for_each(&mut consider);
    }
    best.map(|(_, tree)| tree).expect("a chain was considered")
}

/// Trees with the same degree everywhere, and with degrees for which the time of the ranks' own links suffices.
fn trees_along<'a>(
    site: &'a Site,
    order: &'a Traversal,
    segment_bytes: u64,
) -> impl Iterator<Item = PlannedTree> + 'a {
    let own_link = move |rank: Rank| on_link(site.host_link(rank), segment_bytes).0.max(1);
    let slowest = site.links().map(|link| on_link(link, segment_bytes).0).max().unwrap_or(1);
    let by_rate =
        move |times: u64| move |rank: Rank| (times * slowest / own_link(rank)).clamp(1, MAX_DEGREE) as u32;
    let equal = [1, 2, 4].map(|degree| contention_free::along(order, |_| degree));
    // Where all hosts have links of the same rate, these are among the equal ones, or near them.
    let differ = order.ranks().iter().any(|rank| own_link(*rank) < slowest);
    let by_rate =
        (1..=2).filter(move |_| differ).map(move |times| contention_free::along(order, by_rate(times)));
    equal.into_iter().chain(by_rate)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::{Host, Link, Placed, Switch, Topology};
    use crate::tree::contending_pairs;
    use crate::tree::planned_tests::cluster;
    use crate::tree::shape::PlannedShape;

    const SEGMENT: u64 = 8 << 10;

    fn link(rate: &str, latency_us: u64) -> Link {
        Link { rate: Some(rate.parse().unwrap()), latency: Some(Nanos::from_micros(latency_us)) }
    }

    /// Two switches with 16 hosts each; every fourth host has the slow link.
    fn two_switches(slow: Link) -> Placed {
        let switch = |index, parent| Switch { name: format!("s{index}"), parent, uplink: link("1gbit", 5) };
        let host = |index: usize| {
            let link = if index.is_multiple_of(4) { slow } else { link("1gbit", 5) };
            Host { name: format!("n{index}"), switch: index % 2, link }
        };
        let topology = Topology {
            switches: vec![switch(0, None), switch(1, Some(0))],
            hosts: (0..32).map(host).collect(),
            notes: Vec::new(),
        };
        Placed { topology, host_of: (0..32).collect(), unplaced_hosts: Vec::new() }
    }

    fn completion(site: &Site, tree: &PlannedTree, segments: u64) -> f64 {
        Pipelined::over(tree, site.paths(), SEGMENT).completion(segments).0 as f64
    }

    /// The chain is as long as there are ranks, and the binary tree has slow hosts send twice.
    #[test]
    fn ranks_behind_fast_links_have_more_children() {
        let placed = two_switches(link("100mbit", 5));
        let site = Site::new(&placed);
        let root = Rank(1);
        for (segments, part) in [(4, 0.8), (16, 0.8), (64, 0.95)] {
            let equal = [1, 2].map(|k| completion(&site, &contention_free::k_ary(&site, root, k), segments));
            let tree = plan(&site, root, SEGMENT, segments);
            let taken = completion(&site, &tree, segments) / equal[0].min(equal[1]);
            assert!(taken < part, "{segments} segments: {taken}");
            assert_eq!(contending_pairs(&tree, &placed), 0);
        }
    }

    /// With links taken as equal, the one far host would be visited before the second switch, whose hosts are more.
    #[test]
    fn what_is_far_is_visited_last() {
        let mut placed = two_switches(link("1gbit", 5));
        let far = Switch { name: "far".to_owned(), parent: Some(0), uplink: link("1gbit", 5000) };
        placed.topology.switches.push(far);
        placed.topology.hosts.push(Host { name: "f0".to_owned(), switch: 2, link: link("1gbit", 5) });
        placed.host_of.push(32);
        let site = Site::new(&placed);
        let by_latency = site.costliest_last(Rank(0), |link| crossing(link, SEGMENT));
        assert_eq!(by_latency.ranks().last(), Some(&Rank(32)));
        let chain = |order: &Traversal| completion(&site, &contention_free::chain_along(order.ranks()), 16);
        let saved_ns = chain(&site.from_root(Rank(0))) - chain(&by_latency);
        assert!(saved_ns > 4.9e6, "the way back: {saved_ns}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

        #[test]
        fn never_slower_than_with_links_taken_as_equal(
            cluster in cluster(60, 12),
            rates in prop::collection::vec(0usize..4, 64),
            latencies in prop::collection::vec(1u64..3000, 64),
            segments in 1u64..200,
        ) {
            let mut placed = cluster.placed;
            let any = |index: usize| {
                link(["10mbit", "100mbit", "1gbit", "10gbit"][rates[index]], latencies[index])
            };
            placed.topology.switches.iter_mut().enumerate().for_each(|(i, switch)| switch.uplink = any(i));
            placed.topology.hosts.iter_mut().enumerate().for_each(|(i, host)| host.link = any(i + 12));
            let site = Site::new(&placed);
            let completion = |tree: &PlannedTree| completion(&site, tree, segments);
            let tree = plan(&site, cluster.root, SEGMENT, segments);
            prop_assert_eq!(contending_pairs(&tree, &placed), 0);
            for k in 1..=2 {
                prop_assert!(completion(&tree) <= completion(&contention_free::k_ary(&site, cluster.root, k)));
            }
            let chain = PlannedShape::ContentionFreeChain.plan(&site, cluster.root);
            prop_assert!(completion(&tree) <= completion(&chain));
        }
    }
}
