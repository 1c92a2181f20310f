//! The forms for collectives by `two-level`, from measured parameters. Those of broadcasts are here, the others' in `collectives`.

use std::num::NonZeroU64;

use super::{BetweenNodes, MixedForm, MixedMessage};
use crate::algorithm::broadcast::{Between, CARRYING_MOST, ON_NODE, SCATTER_RING, TwoLevel};
use crate::algorithm::{Algorithm, Registry, SEGMENTS};
use crate::collective::Collective;
use crate::cost::{Predictor, Sends};
use crate::model::{LinkClass, Parameters, Sharing};
use crate::topology::Placed;
use crate::tree::{PlannedTree, Tree};
use crate::units::{Bytes, Nanos, Rank};

/// Predicts a collective on two levels, of one communicator and one root.
pub struct MixedPredictor<'a> {
    pub(super) collective: Collective,
    /// A predictor for one rank of each node, the root's node first.
    pub(super) leaders: Predictor,
    pub(super) parameters: &'a Parameters,
    pub(super) class: LinkClass,
    /// The measured sharing that the ranks of the fullest node do before messages, or as they
    /// leave; none in collectives without it.
    pub(super) leaving: Option<&'a Sharing>,
    /// The measured sharing that the ranks of the fullest node do with messages that have come;
    /// none in collectives without it.
    pub(super) coming: Option<&'a Sharing>,
    /// The number of ranks on the fullest node.
    pub(super) ranks: u32,
}

/// The reason why there is nothing to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMixed {
    /// No second level: all ranks are on one node, or none shares one.
    OneLevel,
    /// A collective on a node of so many ranks was not measured.
    Unmeasured {
        /// The collective to be measured on a node.
        collective: Collective,
        /// The number of ranks on the fullest node.
        ranks: u32,
    },
    /// The model has no form for the collective.
    NoForm,
}

/// The time of a collective on two levels, form by form.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedCost {
    /// The algorithm, with its segment.
    pub algorithm: Algorithm,
    /// The time that the ranks of a node take before anything leaves it, in nanoseconds: to collect
    /// the node's blocks in an allgather or a gather.
    pub before_ns: f64,
    /// The message between nodes.
    pub between: BetweenNodes,
    /// Bytes of a segment that are shared at once, m_s.
    pub overlap: u64,
    /// The time to share the `overlap` bytes, `smcc(m_s)`, in nanoseconds. In collectives other than
    /// the broadcast, with an overlap of 0, the time to share everything.
    pub shared_ns: f64,
    /// The time by each form that is known.
    pub forms: Vec<(MixedForm, Nanos)>,
    /// The form that parameters speak for; see [`MixedMessage::likely`].
    pub used: MixedForm,
}

impl MixedCost {
    /// The time by the form that is used.
    pub fn time(&self) -> Nanos {
        self.by(self.used).expect("the form in use is among those that are known")
    }

    /// The time by a form; `None` if it is not known.
    pub fn by(&self, form: MixedForm) -> Option<Nanos> {
        self.forms.iter().find(|(known, _)| *known == form).map(|(_, time)| *time)
    }
}

impl<'a> MixedPredictor<'a> {
    /// A predictor for broadcasts by ranks that have been placed.
    ///
    /// # Panics
    /// If the root is not one of the ranks.
    pub fn new(
        placed: &Placed,
        parameters: &'a Parameters,
        root: Rank,
    ) -> Result<MixedPredictor<'a>, NotMixed> {
        MixedPredictor::of(Collective::Broadcast, placed, parameters, root)
    }

    /// A predictor for a collective of ranks that have been placed.
    ///
    /// # Panics
    /// If the root is not one of the ranks.
    pub fn of(
        collective: Collective,
        placed: &Placed,
        parameters: &'a Parameters,
        root: Rank,
    ) -> Result<MixedPredictor<'a>, NotMixed> {
        let hosts = &placed.host_of;
        let mut nodes: Vec<u32> = Vec::new();
        let mut ranks_on = vec![0; placed.topology.hosts.len()];
        for (rank, host) in (0..).zip(hosts) {
            if ranks_on[*host] == 0 {
                nodes.push(rank);
            }
            ranks_on[*host] += 1;
        }
        let ranks = ranks_on.into_iter().max().unwrap_or(0);
        if ranks < 2 || nodes.len() < 2 {
            return Err(NotMixed::OneLevel);
        }
        let (up, down) = on_node(collective).ok_or(NotMixed::NoForm)?;
        let curve = |of: Option<Collective>| {
            let known =
                |of| parameters.sharing_of(of, ranks).ok_or(NotMixed::Unmeasured { collective: of, ranks });
            of.map(known).transpose()
        };
        let (leaving, coming) = (curve(up)?, curve(down)?);
        let of_root = nodes.iter().position(|rank| hosts[*rank as usize] == hosts[root.index()]).unwrap_or(0);
        nodes.rotate_left(of_root);
        let leaders = Predictor::new(&placed.only(&nodes), parameters, Rank(0));
        let class = leaders.usual_class();
        Ok(MixedPredictor { collective, leaders, parameters, class, leaving, coming, ranks })
    }

    /// Sets the way in which a node's sends share its port.
    pub fn sends(self, sends: Sends) -> MixedPredictor<'a> {
        MixedPredictor { leaders: self.leaders.sends(sends), ..self }
    }

    /// Predicts an algorithm form by form. `None` unless it is on two levels, with messages between
    /// nodes and shared memory on each. `between_ns` is 𝓛 where it was measured; else it is
    /// predicted.
    pub fn cost(
        &mut self,
        algorithm: &Algorithm,
        bytes: Bytes,
        between_ns: Option<f64>,
    ) -> Option<MixedCost> {
        if !algorithm.entry.is_on_two_levels() || !algorithm.shares_memory() {
            return None;
        }
        if self.collective != Collective::Broadcast {
            return self.cost_of_others(algorithm, bytes, between_ns);
        }
        let way = TwoLevel::of(algorithm);
        let mut between = match way.between {
            Between::Tree(tree) => self.down(tree, way.cut_segment(), bytes),
            Between::ScatterRing => self.around(way.cut_segment(), bytes),
            Between::Multicast => return None,
        };
        between.whole_ns = between_ns.unwrap_or(between.whole_ns);
        let segment = between.segment;
        let sharing = self.coming?;
        let shared_ns = |bytes: u64| sharing.cost_ns(bytes);
        let penalty = sharing.penalty.as_ref();
        let penalty_ns = |bytes: u64| penalty.map_or(0.0, |penalty| penalty.at(bytes));
        let message = MixedMessage {
            bytes: bytes.0,
            shared_ns: &shared_ns,
            penalty_ns: penalty.is_some().then_some(&penalty_ns as &dyn Fn(u64) -> f64),
        };
        let overlap = way.shared_at_once().min(segment);
        let time = |form| {
            let ns = message.time_ns(form, &between, overlap)?;
            Some((form, Nanos(ns.round() as u64)))
        };
        Some(MixedCost {
            algorithm: *algorithm,
            before_ns: 0.0,
            between,
            overlap,
            shared_ns: sharing.cost_ns(overlap),
            forms: MixedForm::ALL.into_iter().filter_map(time).collect(),
            used: message.likely(&between, overlap).0,
        })
    }

    /// The message between nodes, in segments that go down a tree of nodes.
    fn down(&mut self, tree: Tree, segment: u64, bytes: Bytes) -> BetweenNodes {
        let order: Vec<Rank> = (0..self.leaders.network().ranks()).map(Rank).collect();
        let tree: PlannedTree = Tree::plan(tree, &order);
        let segment = segment.min(bytes.0.max(1));
        let prepared = self.leaders.prepare_tree(&tree);
        let cost = prepared.cost(&self.leaders, bytes, (segment < bytes.0).then_some(segment));
        let sends = order.iter().map(|rank| tree.children(*rank).len()).max().unwrap_or(0);
        BetweenNodes {
            segment,
            whole_ns: cost.time.0 as f64,
            interval_ns: cost.interval.0 as f64,
            busy_ns: self.send_ns(segment) * sends as f64,
            hops: hops(&tree),
        }
    }

    /// The message between nodes by a scatter and the ring of nodes. Each node's link brings all of
    /// the message, at most a block at a time; what goes around sets the interval, and each node
    /// sends one of these for one that comes.
    fn around(&mut self, segment: u64, bytes: Bytes) -> BetweenNodes {
        let nodes = self.leaders.network().ranks();
        let entry = Registry::BUILT_IN.find(Collective::Broadcast, SCATTER_RING).expect("it is there");
        let prepared = self.leaders.prepare(&entry.typical());
        let cost = prepared.cost(&self.leaders, bytes, (segment < bytes.0).then_some(segment));
        let segment = segment.min(bytes.0.div_ceil(nodes.into()).max(1));
        BetweenNodes {
            segment,
            whole_ns: cost.time.0 as f64,
            interval_ns: self.leaders.network().slowest_gap_ns(segment),
            busy_ns: self.send_ns(segment),
            hops: nodes - 1,
        }
    }

    pub(super) fn send_ns(&self, segment: u64) -> f64 {
        let overhead = self.parameters.class(self.class).send_overhead.as_ref();
        overhead.map_or(0.0, |overhead| overhead.at(segment))
    }

    /// The fastest algorithm with each way between nodes, the fastest first. All segment sizes are
    /// compared, with all of each segment shared at once or nothing before the end.
    pub fn best(&mut self, bytes: Bytes) -> Vec<MixedCost> {
        if self.collective != Collective::Broadcast {
            return self.best_of_others(bytes);
        }
        let mut best: Vec<MixedCost> = Vec::new();
        for way in CARRYING_MOST.into_iter().filter_map(|between| ON_NODE.with_between(between)) {
            let cut = SEGMENTS.into_iter().filter(|segment| *segment < bytes.0);
            let ways = std::iter::once(None).chain(cut.map(NonZeroU64::new));
            let ways = ways.map(|segment| Algorithm { segment, ..way });
            let ways = ways.flat_map(|way| [way.without_overlap(), Some(way)]).flatten();
            let costs = ways.filter_map(|algorithm| self.cost(&algorithm, bytes, None));
            best.extend(costs.min_by_key(MixedCost::time));
        }
        best.sort_by_key(MixedCost::time);
        best
    }
}

/// The collectives that the ranks of a node do among themselves: before messages or as they leave,
/// and with what has come. `None` if the model is not about the collective: in an all-to-all each
/// rank has other data for each, which no other collective on a node takes as long as, and a
/// barrier has no segments.
fn on_node(collective: Collective) -> Option<(Option<Collective>, Option<Collective>)> {
    use Collective::{Allgather, Allreduce, Alltoall, Barrier, Broadcast, Gather, Reduce, Scatter};
    Some(match collective {
        Broadcast => (None, Some(Broadcast)),
        Reduce => (Some(Reduce), None),
        Allreduce => (Some(Reduce), Some(Broadcast)),
        Gather => (Some(Gather), None),
        Scatter => (None, Some(Scatter)),
        Allgather => (Some(Gather), Some(Broadcast)),
        Alltoall | Barrier => return None,
    })
}

/// The number of hops on the longest way from the root.
pub(super) fn hops(tree: &PlannedTree) -> u32 {
    let mut level = vec![tree.root()];
    let mut hops = 0;
    loop {
        level = level.iter().flat_map(|rank| tree.children(*rank).to_vec()).collect();
        if level.is_empty() {
            return hops;
        }
        hops += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClassParameters, Curve, Point, Provenance};
    use crate::topology::Topology;

    fn line(startup: f64, ns_per_byte: f64) -> Curve {
        let at = |bytes: u64| Point::exact(bytes, startup + ns_per_byte * bytes as f64);
        Curve::new(vec![at(0), at(1 << 20)]).unwrap()
    }

    /// L 10 µs, g 80 ns per byte, os 1 µs; sharing 1 µs and 1 ns per byte.
    fn parameters(ranks: u32) -> Parameters {
        let mut class = ClassParameters::new(line(10e3, 0.0), line(0.0, 80.0));
        class.send_overhead = Some(line(1e3, 0.0));
        let classes = [(LinkClass::SameSwitch, class)].into();
        let sharing =
            Sharing { collective: Collective::Broadcast, ranks, cost: line(1e3, 1.0), penalty: None };
        Parameters::new(Provenance::default(), classes).unwrap().with_sharing(vec![sharing]).unwrap()
    }

    fn placed(nodes: usize, each: usize) -> Placed {
        let hosts: Vec<String> = (0..nodes * each).map(|rank| format!("n{}", rank / each)).collect();
        Topology::flat((0..nodes).map(|node| format!("n{node}"))).place(&hosts)
    }

    #[test]
    fn there_have_to_be_two_levels_that_were_measured() {
        let parameters = parameters(4);
        let new = |nodes, each| MixedPredictor::new(&placed(nodes, each), &parameters, Rank(0)).err();
        assert_eq!(new(1, 4), Some(NotMixed::OneLevel));
        assert_eq!(new(8, 1), Some(NotMixed::OneLevel));
        let collective = Collective::Broadcast;
        assert_eq!(new(8, 2), Some(NotMixed::Unmeasured { collective, ranks: 2 }));
        assert_eq!(new(8, 4), None);
    }

    #[test]
    fn a_chain_of_nodes_by_hand() {
        let parameters = parameters(4);
        let mut levels = MixedPredictor::new(&placed(8, 4), &parameters, Rank(5)).unwrap();
        let mut cost = |text: &str| levels.cost(&text.parse().unwrap(), Bytes(64_000), None);
        let all = cost("two-level:between=chain,segment=1000").unwrap();
        // 7 hops of 10 + 80 µs, and 63 further segments.
        let between_ns = 7.0 * 90e3 + 63.0 * 80e3;
        assert_eq!((all.between.whole_ns, all.between.interval_ns), (between_ns, 80e3));
        assert_eq!((all.between.busy_ns, all.between.hops, all.overlap), (1e3, 7, 1000));
        assert_eq!(all.used, MixedForm::Complete, "2 µs fit into 79");
        assert_eq!(all.time(), Nanos((between_ns + 2e3) as u64));
        assert_eq!(all.by(MixedForm::LargestPenalty), Some(Nanos((between_ns + 2e3 + 2e3 * 133.0) as u64)));
        assert_eq!(all.by(MixedForm::Penalty), None);
        let none = cost("two-level:between=chain,segment=1000,overlap=none").unwrap();
        assert_eq!((none.used, none.time()), (MixedForm::NoOverlap, Nanos((between_ns + 65e3) as u64)));
        // Whole buffers: 300 bytes are two of 200, and five of them make a segment.
        let some = cost("two-level:between=chain,segment=1000,buffer=200,overlap=300").unwrap();
        assert_eq!((some.overlap, some.between.segment), (400, 1000));
        assert_eq!(cost("chain:segment=1000"), None);
        let measured = levels.cost(&"two-level:between=chain".parse().unwrap(), Bytes(64_000), Some(1e6));
        assert_eq!(measured.unwrap().time(), Nanos(1_065_000));
    }

    #[test]
    fn other_trees_send_more_often_and_reach_less_far() {
        let parameters = parameters(2);
        let mut levels = MixedPredictor::new(&placed(8, 2), &parameters, Rank(0)).unwrap();
        let mut of = |tree: &str| {
            let text = format!("two-level:between={tree},segment=1000");
            let between = levels.cost(&text.parse().unwrap(), Bytes(64_000), None).unwrap().between;
            (between.hops, between.busy_ns / 1e3, between.interval_ns / 80e3)
        };
        assert_eq!(of("chain"), (7, 1.0, 1.0));
        assert_eq!(of("binary"), (3, 2.0, 2.0));
        assert_eq!(of("binomial"), (3, 3.0, 3.0));
        assert_eq!(of("flat"), (1, 7.0, 7.0));
    }

    /// Four nodes, of which each brings and hands on three blocks of 16,000 bytes around the ring, in segments or whole.
    #[test]
    fn a_ring_of_nodes_by_hand() {
        let parameters = parameters(4);
        let placed = placed(4, 4);
        let mut levels = MixedPredictor::new(&placed, &parameters, Rank(5)).unwrap().sends(Sends::InTurn);
        let mut cost = |text: &str| {
            let text = format!("two-level:between=scatter-ring{text}");
            levels.cost(&text.parse().unwrap(), Bytes(64_000), None).unwrap()
        };
        let all = cost("");
        // Two blocks and one down the scatter, then three hops of one.
        let block_ns = 16_000.0 * 80.0;
        let between_ns = 3.0 * block_ns + 2.0 * 10e3 + 3.0 * (block_ns + 10e3);
        // Links carry headers, too.
        let whole_ns = all.between.whole_ns;
        assert!((1.0..1.003).contains(&(whole_ns / between_ns)), "{whole_ns} {between_ns}");
        assert_eq!(all.between.segment, 16_000);
        assert_eq!((all.between.interval_ns, all.between.busy_ns, all.between.hops), (block_ns, 1e3, 3));
        assert_eq!((all.overlap, all.used), (16_000, MixedForm::Complete));
        assert_eq!(all.time(), Nanos((whole_ns + 17e3) as u64));
        let none = cost(",overlap=none");
        assert_eq!((none.used, none.time()), (MixedForm::NoOverlap, Nanos((whole_ns + 65e3) as u64)));
        let cut = cost(",segment=1000");
        assert_eq!((cut.between.segment, cut.between.interval_ns, cut.overlap), (1000, 80e3, 1000));
    }

    #[test]
    fn the_best_of_each_way_between_nodes() {
        let parameters = parameters(4);
        let mut levels = MixedPredictor::new(&placed(8, 4), &parameters, Rank(0)).unwrap();
        let best = levels.best(Bytes(1 << 20));
        assert_eq!(best.len(), CARRYING_MOST.len());
        assert!(best.is_sorted_by_key(MixedCost::time));
        assert!(best[0].algorithm.to_string().starts_with("two-level:between=chain,segment="), "{best:?}");
        assert!(best.iter().all(|cost| cost.used != MixedForm::NoOverlap), "{best:?}");
    }
}
