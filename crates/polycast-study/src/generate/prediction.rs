//! The times by which ways and segments are chosen.

use std::collections::BTreeMap;

use polycast_core::algorithm::broadcast::BINOMIAL;
use polycast_core::cost::{Predictor, Prepared};
use polycast_core::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
use polycast_core::topology::Placed;
use polycast_core::tree::{PlannedShape, Site};
use polycast_core::units::{Bytes, Rank, Rate};

use super::choices::RoutineWay;
use super::layout::BINARY;

/// Between hosts, where nothing was measured: on the way, and for each message, in nanoseconds.
const ASSUMED_LATENCY: f64 = 30_000.0;
const ASSUMED_PER_MESSAGE: f64 = 20_000.0;
/// The assumed latency between ranks of one host, in nanoseconds.
const ASSUMED_LATENCY_IN_MEMORY: f64 = 500.0;
const ASSUMED_PER_MESSAGE_IN_MEMORY: f64 = 500.0;
const ASSUMED_MEMORY_NS_PER_BYTE: f64 = 0.25;
/// The assumed rate of links for which the topology gives none.
const ASSUMED_BITS_PER_SECOND: u64 = 1_000_000_000;

/// The costs of messages, measured or assumed.
pub struct Model {
    parameters: Parameters,
    /// The source of the costs, in a sentence or two.
    pub source: String,
}

impl Model {
    /// A model of the parameters in a parameter file.
    pub fn measured(parameters: Parameters, file: String) -> Model {
        let Provenance { when, place, .. } = parameters.measured();
        Model { source: format!("by the parameters of {file}, measured on {when} ({place})"), parameters }
    }

    /// A model for a place where nothing was measured: the rates of the topology's links, and
    /// figures that are usual for TCP.
    pub fn assumed(placed: &Placed) -> Model {
        let switches = placed.topology.switches.iter().map(|switch| switch.uplink);
        let links = switches.chain(placed.topology.hosts.iter().map(|host| host.link));
        let slowest = links.filter_map(|link| link.rate).min_by_key(|rate| rate.bits_per_second());
        let rate =
            slowest.or(Rate::from_bits_per_second(ASSUMED_BITS_PER_SECOND)).expect("a rate within limits");
        let ns_per_byte = rate.ns_per_byte();
        let classes = BTreeMap::from([
            (
                LinkClass::SameNode,
                class(ASSUMED_LATENCY_IN_MEMORY, ASSUMED_PER_MESSAGE_IN_MEMORY, ASSUMED_MEMORY_NS_PER_BYTE),
            ),
            (LinkClass::AcrossSwitches, class(ASSUMED_LATENCY, ASSUMED_PER_MESSAGE, ns_per_byte)),
        ]);
        let parameters =
            Parameters::new(Provenance::default(), classes).expect("two classes of positive times");
        let source = format!(
            "nothing was measured, so links are taken to carry {rate}, and a message between hosts to take {} us and to keep \
             them {} us",
            ASSUMED_LATENCY / 1e3,
            ASSUMED_PER_MESSAGE / 1e3
        );
        Model { parameters, source }
    }
}

/// The parameters of a class of links whose times grow by the same for each byte.
fn class(latency_ns: f64, per_message_ns: f64, ns_per_byte: f64) -> ClassParameters {
    let line = |at: [f64; 2]| {
        let points = [1, 1 << 20].into_iter().zip(at).map(|(bytes, ns)| Point::exact(bytes, ns));
        Curve::new(points.collect()).expect("two points in rising order")
    };
    let gap = [1, 1 << 20].map(|bytes| per_message_ns + f64::from(bytes) * ns_per_byte);
    ClassParameters::new(line([latency_ns; 2]), line(gap))
}

/// Predicts the ways of one plan, from its first rank.
pub struct Prediction {
    predictor: Predictor,
    stock: Prepared,
    tree: Prepared,
    chain: Prepared,
}

impl Prediction {
    /// A prediction for these ranks.
    pub fn new(placed: &Placed, site: &Site, model: &Model) -> Prediction {
        let root = Rank(0);
        let mut predictor = Predictor::new(placed, &model.parameters, root);
        Prediction {
            stock: predictor.prepare(&BINOMIAL),
            tree: predictor.prepare_tree(&BINARY.plan(site, root)),
            chain: predictor.prepare_tree(&PlannedShape::ContentionFreeChain.plan(site, root)),
            predictor,
        }
    }

    /// A broadcast of `bytes`, in nanoseconds.
    pub fn time_ns(&self, way: RoutineWay, bytes: u64, segment: u64) -> f64 {
        let (way, segment) = match way {
            RoutineWay::Stock => (&self.stock, None),
            RoutineWay::Tree => (&self.tree, Some(segment)),
            RoutineWay::Chain => (&self.chain, Some(segment)),
        };
        way.cost(&self.predictor, Bytes(bytes), segment).time.0 as f64
    }
}
