use std::num::NonZeroU64;
use std::sync::Arc;

use super::exchange::{ExchangeKind, Halves, ScatterExchange};
use super::{
    Bottleneck, CostedNetwork, MAX_STEPS, Pipeline, Sends, StreamKind, Transfers, Work, list_schedule,
};
use crate::algorithm::broadcast;
use crate::algorithm::{Algorithm, Form as Kind};
use crate::collective::{Call, Collective};
use crate::model::{LinkClass, Parameters};
use crate::schedule::{self, After, Direction, LaneIndex, Schedule};
use crate::topology::Placed;
use crate::tree::{PlannedTree, Site};
use crate::units::{Bytes, Nanos, Rank};

/// The predicted cost of a broadcast, and its terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The time from the call of the root to the end of the last rank, all ranks being there.
    pub time: Nanos,
    /// The part of the time until the first segment has reached the rank that is last. For a
    /// scatter followed by an exchange, the time of the scatter.
    pub fill: Nanos,
    /// The time between segments at that rank; the time less the fill is a multiple of it. The
    /// exchange after a scatter counts as one interval.
    pub interval: Nanos,
    /// The number of segments.
    pub segments: u64,
    /// The rank or link that sets the interval; in an unsegmented broadcast the slowest hop.
    pub bottleneck: Bottleneck,
}

/// Predicts broadcasts of one communicator from one root. Trees are made once and serve for all sizes.
pub struct Predictor {
    network: CostedNetwork,
    root: Rank,
    sends: Sends,
    work: Work,
    /// The probability that a node loses a multicast datagram, each node for itself.
    datagram_loss: f64,
    /// Makes the trees, as in a job.
    trees: broadcast::Planner,
}

/// The message and the segment that trees are prepared for: enough bytes that no lane is empty. How many does not matter to a
/// tree, except to a link-aware one, which then serves for all sizes.
const PREPARED_FOR: (u64, Option<NonZeroU64>) = (1 << 20, NonZeroU64::new(8 << 10));

/// An algorithm's messages on the network of a [`Predictor`].
pub struct Prepared(PreparedForm);

enum PreparedForm {
    /// A tree of messages, each of which carries this share of the data.
    Tree(Transfers, f64),
    ScatterExchange(ScatterExchange),
}

impl Predictor {
    /// A predictor for ranks that have been placed.
    ///
    /// # Panics
    /// If the root is not one of the ranks.
    pub fn new(placed: &Placed, parameters: &Parameters, root: Rank) -> Predictor {
        assert!(root.index() < placed.host_of.len(), "{root} of {} ranks", placed.host_of.len());
        let network = CostedNetwork::new(placed, parameters);
        Predictor {
            network,
            root,
            sends: Sends::default(),
            work: Work::default(),
            datagram_loss: 0.0,
            trees: broadcast::Planner::new(Site::new(placed)).measured(Arc::new(parameters.clone())),
        }
    }

    /// Sets the part of multicast's datagrams that gets lost, at each node by itself; see
    /// [`super::Loss`].
    pub fn loss(self, datagram_loss: f64) -> Predictor {
        Predictor { datagram_loss, ..self }
    }

    pub(super) fn datagram_loss(&self) -> f64 {
        self.datagram_loss
    }

    /// Sets the way in which a rank's sends share its port.
    pub fn sends(self, sends: Sends) -> Predictor {
        Predictor { sends, ..self }
    }

    /// Sets the times of local work.
    pub fn work(self, work: Work) -> Predictor {
        Predictor { work, ..self }
    }

    /// Leaves links out of the prediction; see [`CostedNetwork::without_links`].
    pub fn without_links(self) -> Predictor {
        Predictor { network: self.network.without_links(), ..self }
    }

    /// The network.
    pub fn network(&self) -> &CostedNetwork {
        &self.network
    }

    /// The network, mutable, for callers that look at links it has not met yet.
    pub fn network_mut(&mut self) -> &mut CostedNetwork {
        &mut self.network
    }

    /// The class of link between most ranks of different nodes that follow each other around the
    /// network, since messages between nodes are what takes time; of two that are as common, the
    /// slower one. For ranks of one node the class within it.
    pub fn usual_class(&self) -> LinkClass {
        let ring = self.trees.site().ring();
        let mut hops = [0u32; 3];
        ring.windows(2).for_each(|two| hops[self.network.class(two[0], two[1]) as usize] += 1);
        let between = LinkClass::ALL.into_iter().filter(|class| *class != LinkClass::SameNode);
        let usual = between.max_by_key(|class| hops[*class as usize]).expect("two classes");
        if hops[usual as usize] == 0 && hops[LinkClass::SameNode as usize] > 0 {
            LinkClass::SameNode
        } else {
            usual
        }
    }

    /// The times of messages that the tree of `algorithm` for `bytes` is made for; `None` if the
    /// tree does not depend on any.
    pub fn made_for(&self, algorithm: &Algorithm, bytes: Bytes) -> Option<broadcast::Sent> {
        self.trees.made_for(algorithm, Call::broadcast(self.network.ranks(), self.root, bytes))
    }

    /// The rank that has the data.
    pub fn root(&self) -> Rank {
        self.root
    }

    /// Puts an algorithm's messages on the network; its segments are of no account. An algorithm
    /// whose tree [depends](broadcast::Planner::is_by_size) on the size of messages needs
    /// [`Predictor::prepare_for`].
    pub fn prepare(&mut self, algorithm: &Algorithm) -> Prepared {
        let (bytes, segment) = PREPARED_FOR;
        self.prepare_for(&Algorithm { segment, ..algorithm.whole() }, Bytes(bytes))
    }

    /// True if the algorithm has another tree for every size.
    pub(super) fn is_by_size(&self, algorithm: &Algorithm) -> bool {
        self.trees.is_by_size(algorithm)
    }

    /// Puts an algorithm's messages on the network, for a message of `bytes` in the algorithm's
    /// segments; its tree may depend on both.
    pub(super) fn prepare_for(&mut self, algorithm: &Algorithm, bytes: Bytes) -> Prepared {
        Prepared(match algorithm.entry.form() {
            Kind::ScatterRing => self.exchange(ExchangeKind::Ring),
            Kind::ScatterDoubling => self.exchange(ExchangeKind::Doubling),
            Kind::Tree { parts } => PreparedForm::Tree(self.tree(algorithm, bytes), 1.0 / f64::from(parts)),
        })
    }

    /// Puts a tree's messages on the network, each with all of the data.
    pub fn prepare_tree(&mut self, tree: &PlannedTree) -> Prepared {
        let children = |rank| tree.children(rank).to_vec();
        Prepared(PreparedForm::Tree(
            Transfers::new(&mut self.network, tree.root(), self.sends, children),
            1.0,
        ))
    }

    /// The cost of a broadcast of `bytes` by `algorithm`. To ask for several sizes,
    /// [`Predictor::prepare`] it once.
    pub fn cost(&mut self, algorithm: &Algorithm, bytes: Bytes) -> Cost {
        let segment = algorithm.segment.map(|segment| segment.get());
        let prepared = if self.is_by_size(algorithm) {
            self.prepare_for(algorithm, bytes)
        } else {
            self.prepare(algorithm)
        };
        prepared.cost(self, bytes, segment)
    }

    /// The time of a call of any collective by `algorithm`, which must serve it: its messages are
    /// followed one by one, see [`list_schedule`]. `None` if they are too many.
    pub fn follow(&mut self, algorithm: &Algorithm, collective: Collective, bytes: Bytes) -> Option<Nanos> {
        let mut left = MAX_STEPS;
        // Those of thousands of ranks take gigabytes: no more are made once there are too many steps.
        let counted = self.each_schedule(algorithm, collective, bytes).map(|schedule| {
            left = left.checked_sub(schedule.lanes().iter().map(|lane| lane.steps).sum())?;
            Some(schedule)
        });
        let schedules: Vec<_> = counted.collect::<Option<_>>()?;
        list_schedule(&mut self.network, self.sends, self.work, schedules)
    }

    /// The schedules of all ranks, by rank.
    fn schedules(
        &mut self,
        algorithm: &Algorithm,
        collective: Collective,
        bytes: Bytes,
    ) -> Vec<Box<dyn Schedule>> {
        self.each_schedule(algorithm, collective, bytes).collect()
    }

    fn each_schedule(
        &mut self,
        algorithm: &Algorithm,
        collective: Collective,
        bytes: Bytes,
    ) -> impl Iterator<Item = Box<dyn Schedule>> {
        let ranks = self.network.ranks();
        let call = Call::new(collective, ranks, self.root, bytes);
        (0..ranks).map(move |rank| algorithm.schedule(call, Rank(rank), &mut self.trees))
    }

    fn exchange(&mut self, kind: ExchangeKind) -> PreparedForm {
        let site = self.trees.site();
        let from = site.ring_position(self.root) as usize;
        let rank_at = [&site.ring()[from..], &site.ring()[..from]].concat();
        PreparedForm::ScatterExchange(ScatterExchange::new(&mut self.network, kind, rank_at))
    }

    /// Makes a tree from the schedules that the ranks would run: a rank that sends on what it
    /// receives on a lane is the parent there.
    fn tree(&mut self, algorithm: &Algorithm, bytes: Bytes) -> Transfers {
        // None at all would have no messages.
        let schedules = self.schedules(algorithm, Collective::Broadcast, bytes.max(Bytes(2)));
        let root: (Rank, Option<LaneIndex>) = (self.root, None);
        Transfers::of_nodes(&mut self.network, root, self.sends, |(rank, lane)| {
            children(&schedules, rank, lane)
        })
    }
}

/// The children of a rank in the tree of its lane: each rank that is sent what `rank` receives on
/// `lane` (or has from the beginning, without a lane), with the lane that it receives on.
fn children(
    schedules: &[Box<dyn Schedule>],
    rank: Rank,
    lane: Option<LaneIndex>,
) -> Vec<(Rank, Option<LaneIndex>)> {
    let schedule = &schedules[rank.index()];
    let sends = (0..).zip(schedule.lanes()).filter(|(_, lane)| lane.is_send());
    let onward = sends.filter(|(index, _)| match (schedule.step(*index, 0).after, lane) {
        (After::Start, None) => true,
        (After::Steps { lane: source, .. }, Some(lane)) => source == lane,
        _ => false,
    });
    let onward = onward.filter_map(|(_, lane)| lane.stream()).map(|sent| {
        let end = schedule::Stream { peer: rank, direction: Direction::Receive, ..sent };
        (sent.peer, schedules[sent.peer.index()].lanes().iter().position(|lane| lane.stream() == Some(end)))
    });
    onward.collect()
}

impl Prepared {
    /// The cost of a broadcast of `bytes` in segments of at most `segment` bytes, or whole.
    /// `predictor` is the one that prepared the algorithm.
    pub fn cost(&self, predictor: &Predictor, bytes: Bytes, segment: Option<u64>) -> Cost {
        let longest = segment.unwrap_or(u64::MAX).min(self.share_of(bytes)).max(1);
        let stream = if longest < self.share_of(bytes) { StreamKind::Segments } else { StreamKind::Single };
        let is_whole = segment.is_none();
        SegmentedCost { is_whole, ..self.segmented_for(predictor, longest, stream) }.cost(bytes)
    }

    /// The algorithm in segments of at most `segment` bytes: the part of the prediction that all
    /// sizes have in common.
    pub fn segmented<'a>(&'a self, predictor: &'a Predictor, segment: u64) -> SegmentedCost<'a> {
        self.segmented_for(predictor, segment, StreamKind::Segments)
    }

    fn segmented_for<'a>(
        &'a self,
        predictor: &'a Predictor,
        segment: u64,
        stream: StreamKind,
    ) -> SegmentedCost<'a> {
        let pipeline = match &self.0 {
            PreparedForm::Tree(transfers, _) => transfers.pipeline(&predictor.network, segment, stream),
            PreparedForm::ScatterExchange(_) => Pipeline::default(),
        };
        SegmentedCost { prepared: self, predictor, segment, is_whole: false, pipeline }
    }

    /// The number of bytes that a message of the tree carries if nothing is cut.
    fn share_of(&self, bytes: Bytes) -> u64 {
        match &self.0 {
            PreparedForm::Tree(_, share) => (bytes.0 as f64 * share).ceil() as u64,
            PreparedForm::ScatterExchange(_) => bytes.0,
        }
    }
}

/// An algorithm with a segment size on the network of a [`Predictor`].
pub struct SegmentedCost<'a> {
    prepared: &'a Prepared,
    predictor: &'a Predictor,
    segment: u64,
    is_whole: bool,
    pipeline: Pipeline,
}

impl SegmentedCost<'_> {
    /// The cost of a broadcast of `bytes`, which is more than one segment.
    pub fn cost(&self, bytes: Bytes) -> Cost {
        if let PreparedForm::ScatterExchange(both) = &self.prepared.0 {
            let segment = (!self.is_whole).then_some(self.segment);
            let halves = both.cost(&self.predictor.network, self.predictor.sends, bytes.0, segment);
            let Halves { scatter_ns, exchange_ns, bottleneck } = halves;
            let [time, fill, interval] = [scatter_ns + exchange_ns, scatter_ns, exchange_ns].map(nanos);
            return Cost { time, fill, interval, segments: 2, bottleneck };
        }
        let segments = (self.prepared.share_of(bytes) as f64 / self.segment as f64).max(1.0);
        let (time_ns, way) = self.pipeline.after(segments);
        Cost {
            time: nanos(time_ns),
            fill: nanos(way.fill_ns),
            interval: nanos(way.interval_ns),
            segments: segments.ceil() as u64,
            bottleneck: way.bottleneck,
        }
    }
}

fn nanos(ns: f64) -> Nanos {
    Nanos(ns.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests;
