use std::collections::BTreeSet;
use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

/// A tree of switches: the one above each, an earlier one; and the switch of each host.
#[derive(Clone, Debug)]
struct Truth {
    above: Vec<usize>,
    switch_of: Vec<usize>,
}

impl Truth {
    /// The hosts below each link, by the switch under it.
    fn below(&self) -> Vec<BTreeSet<usize>> {
        let is_below = |mut switch: usize, top: usize| {
            while switch > top {
                switch = self.above[switch];
            }
            switch == top
        };
        let hosts = |top| (0..self.switch_of.len()).filter(move |host| is_below(self.switch_of[*host], top));
        (1..self.above.len()).map(|top| hosts(top).collect()).collect()
    }

    fn separates(&self, quartet: Quartet) -> bool {
        self.below().iter().any(|below| {
            let inside = |hosts: [usize; 2]| hosts.map(|host| below.contains(&host));
            let (near, far) = (inside(quartet.near), inside(quartet.far));
            near[0] == near[1] && far[0] == far[1] && near[0] != far[0]
        })
    }

    /// What can be seen: the splits of the hosts by links with at least two on either side; of the two sides that without
    /// host 0.
    fn visible(&self) -> BTreeSet<BTreeSet<usize>> {
        splits(self.below().into_iter(), self.switch_of.len())
    }
}

fn splits(sides: impl Iterator<Item = BTreeSet<usize>>, hosts: usize) -> BTreeSet<BTreeSet<usize>> {
    sides
        .filter(|side| (2..=hosts.saturating_sub(2)).contains(&side.len()))
        .map(|side| match side.contains(&0) {
            true => (0..hosts).filter(|host| !side.contains(host)).collect(),
            false => side,
        })
        .collect()
}

fn found(inferred: &Inferred) -> BTreeSet<BTreeSet<usize>> {
    let is_below = |mut switch: usize, top: usize| {
        loop {
            match inferred.parent[switch] {
                _ if switch == top => return true,
                Some(above) => switch = above,
                None => return false,
            }
        }
    };
    let hosts = inferred.switch_of.len();
    let side = |top| (0..hosts).filter(move |host| is_below(inferred.switch_of[*host], top)).collect();
    splits((0..inferred.parent.len()).filter(|top| inferred.parent[*top].is_some()).map(side), hosts)
}

fn truths(hosts: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Truth> {
    (
        prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        prop::collection::vec(any::<prop::sample::Index>(), hosts),
    )
        .prop_map(|(above, hosts)| Truth {
            above: above.iter().enumerate().map(|(switch, any)| any.index(switch.max(1))).collect(),
            switch_of: hosts.iter().map(|any| any.index(above.len())).collect(),
        })
}

fn ask(truth: &Truth) -> Inferred {
    infer(truth.switch_of.len(), |quartet| {
        let mut hosts = [quartet.near, quartet.far].concat();
        hosts.sort_unstable();
        hosts.dedup();
        assert_eq!(hosts.len(), 4, "{quartet:?}");
        Ok::<_, Infallible>(truth.separates(quartet))
    })
    .unwrap()
}

proptest! {
    /// All links that can be seen are found, and no others.
    #[test]
    fn any_tree_is_found(truth in truths(0..24)) {
        let inferred = ask(&truth);
        prop_assert_eq!(found(&inferred), truth.visible());
        // A switch for every branching, none that nothing tells from its neighbour.
        prop_assert_eq!(inferred.parent.len(), truth.visible().len() + 1);
        for (parent, (evidence, witness)) in inferred.parent.iter().zip(inferred.evidence.iter().zip(&inferred.witness)) {
            prop_assert_eq!(parent.is_some(), witness.is_some());
            prop_assert_eq!(parent.is_some(), evidence.yes >= 4);
            prop_assert!(witness.is_none_or(|quartet| truth.separates(quartet)));
        }
    }

    #[test]
    fn questions_stay_linear_per_host(truth in truths(24)) {
        // Two answers to each question; per host, at most one for every other host, and a few per link.
        prop_assert!(ask(&truth).answers <= 2 * 24 * (24 + 4 * truth.above.len()));
    }
}

/// One answer in twenty is wrong: nearly all pairs of hosts are placed rightly all the same.
#[test]
fn wrong_answers_are_outvoted() {
    let mut state = 2026u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut right, mut all) = (0, 0);
    for _ in 0..50 {
        let switch_of = (0..20).map(|_| random(4) as usize).collect();
        let truth = Truth { above: vec![0, 0, 0, 1], switch_of };
        let inferred = infer(20, |quartet| {
            let is_wrong = random(20) == 0;
            Ok::<_, Infallible>(truth.separates(quartet) != is_wrong)
        })
        .unwrap();
        let exact = ask(&truth);
        for a in 0..20 {
            for b in a + 1..20 {
                let together = |found: &Inferred| found.switch_of[a] == found.switch_of[b];
                all += 1;
                right += usize::from(together(&inferred) == together(&exact));
            }
        }
    }
    assert!(right * 100 >= all * 95, "{right} of {all}");
}

/// All answers about one host are wrong while it is inserted: it is found all the same, by those who came later.
#[test]
fn a_host_that_was_overlooked_is_moved() {
    let truth = Truth { above: vec![0, 0], switch_of: [vec![0; 6], vec![1; 6]].concat() };
    let mut latest = 0;
    let inferred = infer(12, |quartet| {
        let hosts = [quartet.near, quartet.far].concat();
        latest = latest.max(*hosts.iter().max().unwrap());
        Ok::<_, Infallible>(latest != 7 && truth.separates(quartet))
    })
    .unwrap();
    assert_eq!(found(&inferred), truth.visible());
}

#[test]
fn an_error_ends_it() {
    assert_eq!(infer(4, |_| Err::<bool, _>("cut off")), Err("cut off"));
}

#[test]
fn a_link_that_is_not_confirmed_is_taken_away() {
    // Yes to the two questions that put 3 beside 0, no to all that come later.
    let mut asked = 0;
    let inferred = infer(4, |_| {
        asked += 1;
        Ok::<_, Infallible>(asked <= 2)
    })
    .unwrap();
    assert_eq!((inferred.parent, inferred.switch_of), (vec![None], vec![0; 4]));
}

#[test]
fn agreement_counts_pairs_of_hosts() {
    let names = ["a", "b", "c"].map(str::to_owned);
    let flat = Topology::flat(names.clone());
    let mut split = flat.clone();
    split.switches.push(Switch { name: "t".into(), parent: Some(0), uplink: Link::default() });
    split.hosts[2].switch = 1;
    split.hosts.push(Host { name: "only here".into(), switch: 1, link: Link::default() });
    let agreement = Agreement::between(&flat, &split);
    assert_eq!(agreement.pairs, 3);
    let wrong = [("a", "c"), ("b", "c")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(agreement.wrong, wrong);
    assert!(Agreement::between(&split, &split).wrong.is_empty());
}
