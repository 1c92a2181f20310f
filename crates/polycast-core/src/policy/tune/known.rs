use std::collections::BTreeMap;

use crate::collective::Collective;
use crate::cost::Predictor;
use crate::cost::mixed::BetweenNodes;
use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance, Sharing};
use crate::network::Network;
use crate::policy::CommunicatorShape;
use crate::topology::{Placed, Topology};
use crate::units::{Bytes, Rank};

/// The time that a message costs its sender beyond its bytes, in nanoseconds, where nobody has
/// measured it; a time that is too small lets segments be too small at first, and the race tries
/// larger ones.
const MESSAGE_NS: f64 = 2000.0;
/// Times of messages within a node, through the memory of a machine: latency, and nanoseconds per
/// byte.
const NODE_LATENCY_NS: f64 = 500.0;
const NODE_NS_PER_BYTE: f64 = 0.2;
/// The times of a network, as far as they are known before the ways to use it are measured: enough
/// to leave out what cannot win.
#[derive(Clone, Debug)]
pub struct Known {
    parameters: Parameters,
    ranks: Placed,
    /// The nodes, with one rank on each.
    nodes: Placed,
}

impl Known {
    /// The most ranks for which anything is predicted.
    pub const MAX_RANKS: usize = 512;

    /// Takes parameters that were measured (`polycast measure`), for ranks on these hosts. `None`:
    /// all are on one, or they are too many to predict anything.
    pub fn measured(parameters: Parameters, topology: &Topology, hosts: &[String]) -> Option<Known> {
        let mut nodes: Vec<&String> = Vec::new();
        hosts.iter().for_each(|host| {
            if !nodes.contains(&host) {
                nodes.push(host)
            }
        });
        let is_for_it = hosts.len() <= Known::MAX_RANKS && nodes.len() > 1;
        is_for_it.then(|| Known { parameters, ranks: topology.place(hosts), nodes: topology.place(&nodes) })
    }

    /// Assumes the rate of all links and the latency of a message alone (Hockney 1994), for ranks
    /// that are placed node by node. `None` as in [`Known::measured`], or if one of the two is not
    /// known.
    pub fn assumed(shape: CommunicatorShape, network: Network) -> Option<Known> {
        let (rate, latency) = network.rate.zip(network.latency)?;
        if shape.ranks as usize > Known::MAX_RANKS || shape.nodes < 2 {
            return None;
        }
        let ns_per_byte = rate.ns_per_byte();
        let curve = |first: f64, slope: f64| {
            let at = |bytes: u64| Point::exact(bytes, first + slope * bytes as f64);
            Curve::new(vec![at(1), at(1 << 20)]).ok()
        };
        let between = ClassParameters::new(curve(latency.0 as f64, 0.0)?, curve(MESSAGE_NS, ns_per_byte)?);
        let within =
            ClassParameters::new(curve(NODE_LATENCY_NS, 0.0)?, curve(MESSAGE_NS / 4.0, NODE_NS_PER_BYTE)?);
        let classes = BTreeMap::from([(LinkClass::SameSwitch, between), (LinkClass::SameNode, within)]);
        let parameters = Parameters::new(Provenance::default(), classes).ok()?;
        let name = |node: u32| format!("n{node}");
        // Each node gets ranks, however few there are.
        let hosts: Vec<String> =
            (0..shape.ranks).map(|rank| name(rank * shape.nodes / shape.ranks)).collect();
        Known::measured(parameters, &Topology::flat((0..shape.nodes).map(name)), &hosts)
    }

    /// The predictor for all ranks.
    pub(super) fn predictor(&self) -> Predictor {
        Predictor::new(&self.ranks, &self.parameters, Rank(0))
    }

    /// The times of sharing among so many ranks of a node, if they were measured.
    pub(super) fn sharing(&self, collective: Collective, ranks: u32) -> Option<&Sharing> {
        self.parameters.sharing_of(collective, ranks)
    }

    /// The predicted times of a tree of nodes by itself, for each of these segments; `None` where
    /// there is no such tree.
    pub(super) fn between_nodes(
        &self,
        tree: &str,
        bytes: u64,
        segments: &[u64],
    ) -> Option<Vec<BetweenNodes>> {
        let mut predictor = Predictor::new(&self.nodes, &self.parameters, Rank(0));
        let hops = predictor.network().ranks().saturating_sub(1);
        let class = self.parameters.class(predictor.usual_class());
        let column = |segment: &u64| {
            let cost = predictor.cost(&format!("{tree}:segment={segment}").parse().ok()?, Bytes(bytes));
            let [whole_ns, interval_ns] = [cost.time, cost.interval].map(|time| time.0 as f64);
            let busy_ns = class.send_overhead.as_ref().map_or(MESSAGE_NS, |busy| busy.at(*segment));
            Some(BetweenNodes { segment: *segment, whole_ns, interval_ns, busy_ns, hops })
        };
        segments.iter().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn each_node_is_there_however_few_ranks_it_has() {
        let network =
            Network { rate: "1gbit".parse().ok(), latency: Some(Nanos(50_000)), multicast_rate: None };
        for (ranks, nodes) in [(5, 4), (9, 8), (16, 4), (512, 511)] {
            let shape = CommunicatorShape::new(ranks, nodes, None).unwrap();
            let known = Known::assumed(shape, network).unwrap();
            assert_eq!(known.predictor().network().nodes(), nodes, "{ranks} ranks");
            assert_eq!(known.nodes.host_of.len(), nodes as usize);
        }
    }

    #[test]
    fn of_one_node_and_of_too_many_ranks_nothing_is_predicted() {
        let shape = |ranks, nodes| CommunicatorShape::new(ranks, nodes, None).unwrap();
        let network =
            Network { rate: "1gbit".parse().ok(), latency: Some(Nanos(50_000)), multicast_rate: None };
        assert!(Known::assumed(shape(8, 1), network).is_none());
        assert!(Known::assumed(shape(513, 513), network).is_none());
        assert!(Known::assumed(shape(8, 8), Network::default()).is_none());
    }

    /// What a message takes its sender counts where it is known.
    #[test]
    fn measured_parameters_are_used_as_they_are() {
        let curve =
            |ns: f64| Curve::new(vec![Point::exact(1, ns), Point::exact(1 << 20, 100.0 * ns)]).unwrap();
        let class = ClassParameters {
            send_overhead: Some(curve(700.0)),
            ..ClassParameters::new(curve(9000.0), curve(5000.0))
        };
        let parameters =
            Parameters::new(Provenance::default(), BTreeMap::from([(LinkClass::SameSwitch, class)])).unwrap();
        let hosts = ["a", "a", "b", "c"].map(str::to_owned);
        let known =
            Known::measured(parameters, &Topology::flat(["a", "b", "c"].map(str::to_owned)), &hosts).unwrap();
        let columns = known.between_nodes("chain", 4096, &[1024, 2048]).unwrap();
        assert_eq!(
            columns.iter().map(|column| (column.segment, column.hops)).collect::<Vec<_>>(),
            [(1024, 2), (2048, 2)]
        );
        assert!((700.0..1000.0).contains(&columns[0].busy_ns), "{columns:?}");
        assert!(known.between_nodes("no-such-tree", 4096, &[1024]).is_none());
        assert!(known.sharing(Collective::Broadcast, 2).is_none());
    }
}
