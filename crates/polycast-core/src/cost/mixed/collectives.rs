//! The forms for the other collectives on two levels ("derived via a similar approach", Wu 2005, §4.5.2).
//!
//! ```text
//!   reduce       each segment is combined on a node before it leaves: a broadcast backwards, smcc of a reduction
//!   allreduce    up a tree of nodes and down again in segments, smcc of a reduction and of a broadcast
//!   allgather    smcc of a gather, then blocks of nodes go around their ring; each is shared while the next comes (§3.4.3)
//!   gather       smcc of a gather, then 𝓛: "no overlap" (§3.4.2); whole messages are the same for all
//!   scatter      𝓛, then smcc of a scatter: the same
//! ```

use std::num::NonZeroU64;

use super::predictor::hops;
use super::{BetweenNodes, MixedCost, MixedForm, MixedMessage, MixedPredictor};
use crate::algorithm::broadcast::TREES_OF_NODES;
use crate::algorithm::{Algorithm, Registry, SEGMENTS};
use crate::collective::Collective;
use crate::model::Sharing;
use crate::tree::Tree;
use crate::units::{Bytes, Nanos, Rank};

/// The most segments that a message is cut into, because following more takes long.
const MAX_SEGMENTS: u64 = 64;

impl MixedPredictor<'_> {
    pub(super) fn cost_of_others(
        &mut self,
        algorithm: &Algorithm,
        bytes: Bytes,
        between_ns: Option<f64>,
    ) -> Option<MixedCost> {
        let name = algorithm.between();
        let inner = Registry::BUILT_IN.read(self.collective, name).ok()?;
        let inner = Algorithm { segment: algorithm.segment, ..inner };
        let nodes = u64::from(self.leaders.network().ranks());
        // Those of a node go together, as many for each as the fullest has.
        let has_blocks =
            matches!(self.collective, Collective::Gather | Collective::Scatter | Collective::Allgather);
        let of_node = Bytes(bytes.0 * if has_blocks { u64::from(self.ranks) } else { 1 });
        let whole_ns = match between_ns {
            Some(ns) => ns,
            None => self.leaders.follow(&inner, self.collective, of_node)?.0 as f64,
        };
        let cut = algorithm.segment.map(|segment| segment.get()).filter(|segment| *segment < of_node.0);
        let cost_ns =
            |sharing: Option<&Sharing>, bytes| sharing.map_or(0.0, |sharing| sharing.cost_ns(bytes));
        let (up, down) = (self.leaving, self.coming);
        let tree =
            TREES_OF_NODES.iter().find(|(tree, _)| !has_blocks && *tree == name).map(|(_, tree)| *tree);
        // What is brought to the leader before anything leaves, what is shared meanwhile, and how that is cut.
        let (before_ns, total, segment, overlaps) = match self.collective {
            Collective::Allgather => (
                cost_ns(up, of_node.0),
                of_node.0 * nodes,
                cut.unwrap_or(of_node.0),
                inner.entry.is_around_ring,
            ),
            Collective::Gather | Collective::Scatter => (0.0, of_node.0, of_node.0, false),
            _ => (0.0, bytes.0, cut.unwrap_or(bytes.0), tree.is_some() && cut.is_some()),
        };
        let segment = segment.max(1);
        let overlap = if overlaps { algorithm.overlap_bytes().min(segment) } else { 0 };
        let before_is_all = self.collective == Collective::Allgather;
        let shared_ns = |bytes: u64| cost_ns(up.filter(|_| !before_is_all), bytes) + cost_ns(down, bytes);
        // That of a reduction was not measured.
        let penalty = down.and_then(|sharing| sharing.penalty.as_ref()).filter(|_| before_is_all);
        let penalty_ns = |bytes: u64| penalty.map_or(0.0, |penalty| penalty.at(bytes));
        let (sends, hops) = tree.map_or((1, 1), |tree| self.shape(tree));
        // Up and down again.
        let ways = if self.collective == Collective::Allreduce { 2 } else { 1 };
        let per_segment = if tree.is_some() && ways == 2 { sends + 1 } else { sends };
        let class = self.parameters.class(self.class);
        let between = BetweenNodes {
            segment,
            whole_ns,
            interval_ns: class.gap.at(segment) * per_segment as f64,
            busy_ns: self.send_ns(segment) * per_segment as f64,
            hops: hops * ways,
        };
        let message = MixedMessage {
            bytes: total,
            shared_ns: &shared_ns,
            penalty_ns: penalty.is_some().then_some(&penalty_ns as &dyn Fn(u64) -> f64),
        };
        let late = BetweenNodes { whole_ns: whole_ns + before_ns, ..between };
        let time = |form| Some((form, Nanos(message.time_ns(form, &late, overlap)?.round() as u64)));
        let known = if overlap == 0 { &MixedForm::ALL[..1] } else { &MixedForm::ALL[..] };
        Some(MixedCost {
            algorithm: *algorithm,
            before_ns,
            between,
            overlap,
            shared_ns: shared_ns(if overlap == 0 { total } else { overlap }),
            forms: known.iter().filter_map(|form| time(*form)).collect(),
            used: message.likely(&late, overlap).0,
        })
    }

    /// The most children of a node in a tree of nodes, and the hops to its farthest node.
    fn shape(&self, tree: Tree) -> (usize, u32) {
        let order: Vec<Rank> = (0..self.leaders.network().ranks()).map(Rank).collect();
        let tree = Tree::plan(tree, &order);
        (order.iter().map(|rank| tree.children(*rank).len()).max().unwrap_or(1), hops(&tree))
    }

    /// The fastest with each algorithm between nodes, the fastest first: whole, and in segments.
    pub(super) fn best_of_others(&mut self, bytes: Bytes) -> Vec<MixedCost> {
        let Some(two_level) = Registry::BUILT_IN.two_level(self.collective) else { return Vec::new() };
        let cut =
            SEGMENTS.into_iter().filter(|segment| (2..=MAX_SEGMENTS).contains(&bytes.0.div_ceil(*segment)));
        let segments: Vec<Option<NonZeroU64>> =
            std::iter::once(None).chain(cut.map(NonZeroU64::new)).collect();
        let mut best: Vec<MixedCost> = Vec::new();
        let ways = two_level.entry.between_nodes().iter().filter_map(|name| two_level.with_between(name));
        for way in ways {
            let algorithms = segments.iter().map(|segment| Algorithm { segment: *segment, ..way });
            let costs = algorithms.filter_map(|algorithm| self.cost_of_others(&algorithm, bytes, None));
            best.extend(costs.min_by_key(MixedCost::time));
        }
        best.sort_by_key(MixedCost::time);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::mixed::NotMixed;
    use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
    use crate::topology::{Placed, Topology};

    fn line(startup: f64, ns_per_byte: f64) -> Curve {
        let at = |bytes: u64| Point::exact(bytes, startup + ns_per_byte * bytes as f64);
        Curve::new(vec![at(0), at(1 << 20)]).unwrap()
    }

    /// L 10 µs, g 80 ns per byte, os 1 µs; 1, 2, 3 and 4 ns per byte for a broadcast, reduction, gather and scatter among two.
    fn parameters() -> Parameters {
        let mut class = ClassParameters::new(line(10e3, 0.0), line(0.0, 80.0));
        class.send_overhead = Some(line(1e3, 0.0));
        let classes = [(LinkClass::SameSwitch, class)].into();
        let collectives =
            [Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter];
        let sharing = |(index, collective): (usize, &Collective)| Sharing {
            collective: *collective,
            ranks: 2,
            cost: line(0.0, 1.0 + index as f64),
            penalty: (index == 0).then(|| line(0.0, 0.5)),
        };
        let sharing = collectives.iter().enumerate().map(sharing).collect();
        Parameters::new(Provenance::default(), classes).unwrap().with_sharing(sharing).unwrap()
    }

    /// Four nodes of two.
    fn placed() -> Placed {
        let hosts: Vec<String> = (0..8).map(|rank| format!("n{}", rank / 2)).collect();
        Topology::flat((0..4).map(|node| format!("n{node}"))).place(&hosts)
    }

    fn cost(collective: Collective, text: &str, between_ns: f64) -> MixedCost {
        let parameters = parameters();
        let mut levels = MixedPredictor::of(collective, &placed(), &parameters, Rank(0)).unwrap();
        let algorithm = Registry::BUILT_IN.read(collective, text).unwrap();
        levels.cost(&algorithm, Bytes(10_000), Some(between_ns)).unwrap()
    }

    fn times(cost: &MixedCost) -> Vec<u64> {
        cost.forms.iter().map(|(_, time)| time.0).collect()
    }

    #[test]
    fn a_reduction_is_a_broadcast_backwards() {
        // k = 10; smcc(1000) = 2 µs fits into 80 - 1; all of it takes 20 µs.
        let reduce = cost(Collective::Reduce, "two-level:between=chain,segment=1000", 1e6);
        assert_eq!(times(&reduce), [1_020_000, 1_002_000, 1_002_000, 1_002_000 + 2000 * (10 + 9 + 2)]);
        assert_eq!((reduce.used, reduce.between.hops), (MixedForm::Complete, 3));
        let whole = cost(Collective::Reduce, "two-level:between=chain", 1e6);
        assert_eq!((times(&whole), whole.used), (vec![1_020_000], MixedForm::NoOverlap));
        let none = cost(Collective::Reduce, "two-level:between=chain,segment=1000,overlap=none", 1e6);
        assert_eq!((times(&none), none.used), (vec![1_020_000], MixedForm::NoOverlap));
        // 200 bytes of each segment at once, and 8000 when all is there.
        let part = cost(Collective::Reduce, "two-level:between=chain,segment=1000,overlap=200", 1e6);
        assert_eq!((part.overlap, times(&part)[1]), (200, 1_000_400 + 16_000));
        // Down again: 2 + 1 ns per byte, two messages each way through a port, twice as far.
        let both = cost(Collective::Allreduce, "two-level:between=chain,segment=1000", 1e6);
        assert_eq!((both.between.interval_ns, both.between.hops), (160e3, 6));
        assert_eq!(both.time().0, 1_003_000);
        let ring = cost(Collective::Allreduce, "two-level", 1e6);
        assert_eq!((times(&ring), ring.used), (vec![1_030_000], MixedForm::NoOverlap));
    }

    #[test]
    fn blocks_of_nodes_are_shared_as_they_come_around() {
        // Of a node 20,000 bytes: 60 µs to collect them, 20 to share them, of all four 80; ovp 10 µs.
        let ring = cost(Collective::Allgather, "two-level:between=ring", 1e6);
        assert_eq!((ring.before_ns, ring.overlap, ring.between.segment), (60e3, 20_000, 20_000));
        let complete = 1_080_000;
        let expected = [1_140_000, complete, complete, complete + 10_000 * 7, complete + 20_000 * 7];
        assert_eq!(times(&ring), expected);
        assert_eq!(ring.used, MixedForm::Penalty);
        let rounds = cost(Collective::Allgather, "two-level:between=recursive-doubling", 1e6);
        assert_eq!((times(&rounds), rounds.used), (vec![1_140_000], MixedForm::NoOverlap));
    }

    #[test]
    fn what_only_the_root_has_is_not_overlapped() {
        for (collective, expected) in [(Collective::Gather, 1_060_000), (Collective::Scatter, 1_080_000)] {
            let cost = cost(collective, "two-level", 1e6);
            assert_eq!((times(&cost), cost.used), (vec![expected], MixedForm::NoOverlap), "{collective}");
        }
        let parameters = parameters();
        for collective in [Collective::Alltoall, Collective::Barrier] {
            let none = MixedPredictor::of(collective, &placed(), &parameters, Rank(0)).err();
            assert_eq!(none, Some(NotMixed::NoForm), "{collective}");
        }
    }

    /// 𝓛 is what the leaders take by the same algorithm, and the best come with all that there may be between nodes.
    #[test]
    fn the_best_of_each() {
        let parameters = parameters();
        for (collective, count) in
            [(Collective::Allgather, 3), (Collective::Reduce, 5), (Collective::Allreduce, 7)]
        {
            let mut levels = MixedPredictor::of(collective, &placed(), &parameters, Rank(3)).unwrap();
            let best = levels.best(Bytes(64 << 10));
            assert_eq!(best.len(), count, "{collective}");
            assert!(best.is_sorted_by_key(MixedCost::time) && best[0].between.whole_ns > 0.0, "{best:?}");
        }
        let mut levels = MixedPredictor::of(Collective::Allgather, &placed(), &parameters, Rank(0)).unwrap();
        let ring = Registry::BUILT_IN.read(Collective::Allgather, "two-level:between=ring").unwrap();
        let cost = levels.cost(&ring, Bytes(1000), None).unwrap();
        // Three rounds of 10 + 160 µs, and copying the own block.
        assert!((510e3..511e3).contains(&cost.between.whole_ns), "{cost:?}");
    }
}
