use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::power_of_two;
use crate::algorithm::Algorithm;
use crate::algorithm::build::Build;
use crate::collective::Call;
use crate::model::{LinkClass, Parameters};
use crate::schedule::{Nodes, RankOrder, Schedule};
use crate::tree::{PlannedShape, PlannedTree, SendTimes, Site};
use crate::units::{Bytes, Nanos, Rank};

/// The most ranks, over all trees that are kept: beyond that the oldest trees go. 12 MiB; all roots
/// of a communicator with 1024 ranks.
const MAX_RANKS_KEPT: u64 = 1 << 20;

/// The knowledge that algorithms have of a communicator: where its ranks are, and the trees that
/// were planned for it. Made once for each communicator.
#[derive(Clone, Debug)]
pub struct Planner {
    site: Arc<Site>,
    /// The order of ranks for algorithms that go by positions; `None` if ranks are in the site's
    /// order already.
    order: Option<RankOrder>,
    trees: HashMap<(PlannedShape, Rank), Arc<PlannedTree>>,
    /// The trees that are kept, the oldest first.
    kept: VecDeque<(PlannedShape, Rank)>,
    measured: Option<(LinkClass, Arc<Parameters>)>,
    /// The nodes as this rank sees them, if it is the only one that is planned for.
    nodes: Option<Arc<Nodes>>,
}

/// The times of messages that an optimal tree is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// `t_hold` and `t_end`.
    pub times: SendTimes,
    /// `t_int` of a sender with several ports, where it was measured.
    pub interval: Option<Nanos>,
    /// The origin of the times.
    pub origin: Origin,
}

/// The origin of the times of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The times are given with the algorithm.
    Given,
    /// Measured between ranks that are so far from each other, for messages of this size.
    Measured(LinkClass, Bytes),
    /// Measured likewise, but `g(m)` or `L(m) + g(m)` stands in for a time that was not measured.
    Derived(LinkClass, Bytes),
    /// The times are assumed, because nobody has measured any.
    Assumed,
}

impl Planner {
    /// A planner for the ranks of a site, which other planners may share.
    pub fn new(site: impl Into<Arc<Site>>) -> Planner {
        let site = site.into();
        let order = RankOrder::unless_sorted(site.ring());
        Planner { site, order, trees: HashMap::new(), kept: VecDeque::new(), measured: None, nodes: None }
    }

    /// Adds measured parameters, which all ranks must know alike: trees that are made for the times
    /// of messages take those of the class that most of their hops have.
    pub fn measured(self, parameters: Arc<Parameters>) -> Planner {
        let mut hops = [0u32; 3];
        let tree = PlannedShape::Optimal(SendTimes::default()).plan(&self.site, Rank(0));
        tree.edges().for_each(|(from, to)| hops[self.site.class(from, to) as usize] += 1);
        // Of two that are as common the slower one, which is later.
        let class =
            LinkClass::ALL.into_iter().max_by_key(|class| hops[*class as usize]).expect("three classes");
        Planner { measured: Some((class, parameters)), ..self }
    }

    /// Makes it a planner for one rank, which sees its nodes so.
    pub fn on_nodes(self, nodes: Arc<Nodes>) -> Planner {
        Planner { nodes: Some(nodes), ..self }
    }

    /// The nodes as `rank` sees them.
    pub(in crate::algorithm) fn nodes(&self, rank: Rank) -> Arc<Nodes> {
        let of_site = || Arc::new(Nodes::new(&self.site.hosts(), self.site.ring(), rank));
        self.nodes.clone().unwrap_or_else(of_site)
    }

    /// True if the tree of `algorithm` depends on the size of messages because the times that it is
    /// made for were measured.
    pub fn is_by_size(&self, algorithm: &Algorithm) -> bool {
        takes_times(algorithm) && self.measured.is_some() && algorithm.times().is_none()
    }

    /// The times of messages that the tree of `algorithm` for `call` is made for; `None` if it is made for none.
    pub fn made_for(&self, algorithm: &Algorithm, call: Call) -> Option<Sent> {
        takes_times(algorithm).then(|| self.send_times(algorithm, call))
    }

    /// The times that an optimal tree for `call` is made for: those of a message of the size of the call, or of a segment. The
    /// same tree serves all up to the next power of two.
    pub(super) fn send_times(&self, algorithm: &Algorithm, call: Call) -> Sent {
        let given = algorithm.times().map(|times| Sent { times, interval: None, origin: Origin::Given });
        let measured = || {
            let (class, parameters) = self.measured.as_ref()?;
            let segment = algorithm.segment.map_or(u64::MAX, |segment| segment.get());
            let bytes = power_of_two(call.bytes.0.min(segment).max(1));
            let curves = parameters.class(*class);
            let nanos = |ns: f64| Nanos(ns.round().max(1.0) as u64);
            let times = SendTimes { hold: nanos(curves.hold_ns(bytes)), end: nanos(curves.end_ns(bytes)) };
            // Over another port a sender can go on when the call returns.
            let interval = curves.send_overhead.as_ref().map(|overhead| nanos(overhead.at(bytes)));
            let is_measured = curves.hold.is_some() && curves.end.is_some();
            let origin = if is_measured { Origin::Measured } else { Origin::Derived };
            Some(Sent { times, interval, origin: origin(parameters.stand_in(*class), Bytes(bytes)) })
        };
        let assumed = Sent { times: SendTimes::default(), interval: None, origin: Origin::Assumed };
        given.or_else(measured).unwrap_or(assumed)
    }

    /// A planner for ranks of which nothing is known: each on a host of its own, all on one switch.
    ///
    /// # Panics
    /// If there is no rank.
    pub fn flat(ranks: u32) -> Planner {
        Planner::new(Site::flat(ranks))
    }

    /// The site: where the ranks are.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// A tree for these ranks; planned when it is asked for, and kept for a while.
    pub fn planned(&mut self, shape: PlannedShape, root: Rank) -> Arc<PlannedTree> {
        if let Some(tree) = self.trees.get(&(shape, root)) {
            return Arc::clone(tree);
        }
        while (self.kept.len() as u64 + 1) * u64::from(self.site.ranks()) > MAX_RANKS_KEPT {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.trees.remove(&oldest);
        }
        let tree = Arc::new(shape.plan(&self.site, root));
        self.kept.push_back((shape, root));
        self.trees.insert((shape, root), Arc::clone(&tree));
        tree
    }

    /// The whole tree that `algorithm` sends the data of `call` down; `None` if it is not one tree.
    pub fn tree(&mut self, algorithm: &Algorithm, call: Call) -> Option<Arc<PlannedTree>> {
        let tree = match algorithm.entry.build {
            Build::Planned(shape) => {
                let shape = shape(algorithm, call, self);
                return Some(self.planned(shape, call.root));
            }
            Build::Tree(tree) => tree(algorithm),
            Build::Lanes(..)
            | Build::Any(_)
            | Build::OnNodes(_)
            | Build::OnOneNode(_)
            | Build::Multicast(_) => return None,
        };
        let from = self.site.ring_position(call.root) as usize;
        let ring = self.site.ring();
        Some(Arc::new(tree.plan(&[&ring[from..], &ring[..from]].concat())))
    }

    /// Makes a schedule for positions on the site's ring, and turns it into one for the ranks that
    /// stand there.
    pub(in crate::algorithm) fn in_order<S: Schedule + 'static>(
        &self,
        call: Call,
        rank: Rank,
        make: impl Fn(Call, Rank) -> S,
    ) -> Box<dyn Schedule> {
        match &self.order {
            None => Box::new(make(call, rank)),
            Some(order) => {
                let by_position = Call { root: order.position(call.root), ..call };
                Box::new(order.apply(make(by_position, order.position(rank))))
            }
        }
    }
}

fn takes_times(algorithm: &Algorithm) -> bool {
    algorithm.entry.parameters.iter().any(|parameter| parameter.name == "hold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClassParameters, Curve, Point, Provenance};

    #[test]
    fn trees_are_kept_within_the_limit() {
        let ranks = 1 << 18;
        let mut planner = Planner::flat(ranks);
        let chain =
            |planner: &mut Planner, root| planner.planned(PlannedShape::ContentionFreeChain, Rank(root));
        let first = chain(&mut planner, 0);
        for root in 1..4 {
            chain(&mut planner, root);
        }
        assert!(Arc::ptr_eq(&first, &chain(&mut planner, 0)), "four are within the limit");
        chain(&mut planner, 4);
        assert_eq!(planner.trees.len(), 4);
        assert!(!Arc::ptr_eq(&first, &chain(&mut planner, 0)), "the fifth took the place of the first");
    }

    /// Two hosts with four ranks each: most hops are on a host, where times were measured at 4 KiB and 64 KiB.
    #[test]
    fn optimal_trees_are_made_for_measured_times() {
        let line = |at: [f64; 2]| {
            let points = [4096, 65536].into_iter().zip(at).map(|(bytes, us)| Point::exact(bytes, us * 1e3));
            Some(Curve::new(points.collect()).unwrap())
        };
        let class = |scale: f64| {
            let mut class = ClassParameters::new(line([0.0, 0.0]).unwrap(), line([1.0, 2.0]).unwrap());
            class.hold = line([10.0 * scale, 40.0 * scale]);
            class.end = line([90.0 * scale, 41.0 * scale]);
            class.send_overhead = line([3.0, 50.0]);
            class
        };
        let classes = [(LinkClass::SameNode, class(1.0)), (LinkClass::SameSwitch, class(7.0))].into();
        let parameters = Arc::new(Parameters::new(Provenance::default(), classes).unwrap());
        let site = Site::by_host(&[0, 0, 0, 0, 1, 1, 1, 1]);
        let planner = Planner::new(site.clone()).measured(parameters);
        let call = |bytes| Call::broadcast(8, Rank(0), Bytes(bytes));
        let us = |hold, end| SendTimes { hold: Nanos::from_micros(hold), end: Nanos::from_micros(end) };
        for (text, bytes, expected) in [
            ("opt-tree", 4096, us(10, 90)),
            ("opt-tree", 4095, us(10, 90)),
            ("opt-tree", 65536, us(40, 41)),
            ("opt-tree:segment=4KiB", 65536, us(10, 90)),
            ("opt-tree:hold=1us,end=2us", 65536, us(1, 2)),
            ("alpha-port:ports=3", 65536, us(40, 41)),
        ] {
            let algorithm: Algorithm = text.parse().unwrap();
            let sent = planner.send_times(&algorithm, call(bytes));
            assert_eq!(sent.times, expected, "{text} {bytes}");
            assert_eq!(planner.is_by_size(&algorithm), algorithm.times().is_none());
        }
        assert_eq!(planner.made_for(&"chain".parse().unwrap(), call(4096)), None);
        let optimal: Algorithm = "opt-tree".parse().unwrap();
        let measured = Origin::Measured(LinkClass::SameNode, Bytes(8192));
        assert_eq!(planner.send_times(&optimal, call(5000)).origin, measured);
        let without = Planner::new(site).send_times(&optimal, call(5000));
        assert_eq!((without.times, without.origin), (SendTimes::default(), Origin::Assumed));
        // Flat where a send is short beside a hop, binomial where it is not: by size, in the same job.
        let mut planner = planner;
        let mut degree = |bytes| planner.tree(&optimal, call(bytes)).unwrap().children(Rank(0)).len();
        assert_eq!((degree(4096), degree(65536)), (7, 3));
    }

    #[test]
    fn trees_by_position_follow_the_ring() {
        let mut planner = Planner::new(Site::by_host(&[7, 5, 7, 5]));
        let call = Call::broadcast(4, Rank(2), crate::units::Bytes(1));
        let tree = planner.tree(&"chain".parse().unwrap(), call).unwrap();
        assert_eq!(tree.downwards(), [2, 1, 3, 0].map(Rank));
        assert!(planner.tree(&"scatter-ring".parse().unwrap(), call).is_none());
    }
}
