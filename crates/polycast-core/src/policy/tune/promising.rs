use std::collections::BTreeMap;

use super::race::HOPELESS;
use crate::algorithm::{Algorithm, Registry};
use crate::cost::mixed::BetweenNodes;
use crate::cost::{Predictor, compare};
use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
use crate::network::Network;
use crate::policy::{Choice, Collective, CommunicatorShape};
use crate::topology::Topology;
use crate::units::{Bytes, Nanos, Rank};

/// What a message costs its sender beyond its bytes, in nanoseconds. Nobody has measured it when this is asked; one that is too small lets
/// segments be too small at first, and the race tries larger ones.
const MESSAGE_NS: f64 = 2000.0;
/// Within a node: what messages through the memory of a machine take.
const NODE_LATENCY_NS: f64 = 500.0;
const NODE_NS_PER_BYTE: f64 = 0.2;
/// Schedules with more steps in all are not followed, for the ranks wait meanwhile.
const MAX_STEPS: u64 = 50_000;
/// Broadcasts that are predicted to take so many times as long as the best one are not tried.
const FAR: u64 = 3;
/// Of more ranks than these nothing is predicted.
const MAX_RANKS: u32 = 512;

/// Those of the ways that may be the fastest on a network that was measured, the fastest first, behind stock and what cannot be predicted. Messages cost
/// their latency and their bytes at its rate (Hockney 1994). Trees of broadcasts come with the segments that are best by it. All of them, where
/// nothing is known.
pub fn promising(
    ways: Vec<Choice>,
    collective: Collective,
    shape: CommunicatorShape,
    network: Option<Network>,
    bytes: u64,
) -> Vec<Choice> {
    let Some(mut predictor) = network.and_then(|network| predictor(shape, network)) else { return ways };
    let (predictable, mut kept): (Vec<Choice>, Vec<Choice>) =
        ways.into_iter().partition(|way| matches!(way, Choice::Algorithm(of) if is_predictable(of)));
    let predicted = match collective {
        Collective::Broadcast => trees(&mut predictor, bytes),
        _ => followed(&mut predictor, collective, bytes, &predictable),
    };
    kept.extend(predicted);
    kept
}

fn is_predictable(algorithm: &Algorithm) -> bool {
    algorithm.entry.has_schedules() && !algorithm.entry.shares_memory()
}

fn trees(predictor: &mut Predictor, bytes: u64) -> Vec<Choice> {
    let all = Registry::BUILT_IN.compared_schedules(Collective::Broadcast);
    let compared = compare(predictor, &all, &[Bytes(bytes)]).remove(0).predicted;
    let limit = compared.first().map_or(0, |best| best.time.0 * FAR);
    compared
        .iter()
        .take_while(|one| one.time.0 <= limit)
        .map(|one| Choice::Algorithm(one.algorithm))
        .collect()
}

fn followed(predictor: &mut Predictor, collective: Collective, bytes: u64, ways: &[Choice]) -> Vec<Choice> {
    let ranks = u64::from(predictor.network().ranks());
    let mut times: Vec<(Choice, Option<Nanos>)> = Vec::new();
    for way in ways {
        let Choice::Algorithm(algorithm) = way else { continue };
        let messages = algorithm.segment.map_or(1, |segment| bytes.div_ceil(segment.get()));
        // Each rank sends to each in the worst case.
        let is_short = messages * ranks * ranks <= MAX_STEPS;
        let time = is_short.then(|| predictor.follow(algorithm, collective, Bytes(bytes))).flatten();
        times.push((*way, time));
    }
    let best = times.iter().filter_map(|(_, time)| *time).min();
    let is_far = |time: Nanos| best.is_some_and(|best| time.0 as f64 > HOPELESS * best.0 as f64);
    times.retain(|(_, time)| !time.is_some_and(is_far));
    times.sort_by_key(|(_, time)| *time);
    times.into_iter().map(|(way, _)| way).collect()
}

/// What a tree of nodes takes by itself, whole in segments of these sizes; `None` where nothing can be predicted.
pub(super) fn between_nodes(
    shape: CommunicatorShape,
    network: Network,
    tree: &str,
    bytes: u64,
    segments: &[u64],
) -> Option<Vec<BetweenNodes>> {
    let of_nodes = CommunicatorShape { ranks: shape.nodes, ranks_per_node: 1, ..shape };
    let mut predictor = predictor(of_nodes, network)?;
    let column = |segment: &u64| {
        let algorithm: Algorithm = format!("{tree}:segment={segment}").parse().ok()?;
        let cost = predictor.cost(&algorithm, Bytes(bytes));
        let [whole_ns, interval_ns] = [cost.time, cost.interval].map(|time| time.0 as f64);
        let hops = shape.nodes.saturating_sub(1);
        Some(BetweenNodes { segment: *segment, whole_ns, interval_ns, busy_ns: MESSAGE_NS, hops })
    };
    segments.iter().map(column).collect()
}

/// Of ranks that are placed node by node.
fn predictor(shape: CommunicatorShape, network: Network) -> Option<Predictor> {
    let (rate, latency) = network.rate.zip(network.latency)?;
    if shape.ranks > MAX_RANKS || shape.nodes < 2 {
        return None;
    }
    let ns_per_byte = 8e9 / rate.bits_per_second() as f64;
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
    // Each node gets some, however few there are.
    let hosts: Vec<String> = (0..shape.ranks).map(|rank| name(rank * shape.nodes / shape.ranks)).collect();
    let placed = Topology::flat((0..shape.nodes).map(name)).place(&hosts);
    Some(Predictor::new(&placed, &parameters, Rank(0)))
}

#[cfg(test)]
mod tests {
    use super::super::candidates;
    use super::*;
    use crate::policy::Capabilities;

    fn kept(collective: Collective, mbit: u64, bytes: u64) -> (usize, Vec<String>) {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let network = Network {
            rate: format!("{mbit}mbit").parse().ok(),
            latency: Some(Nanos(50_000)),
            multicast_rate: None,
        };
        let all = candidates(collective, shape, bytes, Capabilities::ALL);
        let kept = promising(all.clone(), collective, shape, Some(network), bytes);
        (all.len(), kept.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_cannot_win_is_not_tried() {
        let (all, long) = kept(Collective::Broadcast, 50, 256 << 10);
        assert!(long.len() * 3 <= all * 2, "{long:?} of {all}");
        assert_eq!(long[0], "stock");
        assert!(long.iter().any(|way| way.starts_with("chain:segment=")), "{long:?}");
        assert!(long.contains(&"multicast-pull".to_owned()), "it is not predicted");
        for hopeless in ["flat", "chain", "binomial"] {
            assert!(!long.contains(&hopeless.to_owned()), "{hopeless} in {long:?}");
        }
        let (_, short) = kept(Collective::Broadcast, 1000, 8);
        assert!(short.contains(&"binomial".to_owned()) && !short.contains(&"chain".to_owned()), "{short:?}");
    }

    #[test]
    fn each_collective_keeps_what_may_win() {
        for collective in Collective::ALL {
            for bytes in [8, 64 << 10] {
                let (all, kept) =
                    kept(collective, 100, if collective == Collective::Barrier { 0 } else { bytes });
                assert!(kept.len() >= 2 && kept.len() <= all + 8, "{collective}: {kept:?}");
            }
        }
        let (_, kept) = kept(Collective::Allreduce, 100, 64 << 10);
        assert!(!kept.contains(&"flat".to_owned()) && kept.contains(&"ring".to_owned()), "{kept:?}");
    }

    #[test]
    fn each_node_is_there_however_few_ranks_it_has() {
        let network =
            Network { rate: "1gbit".parse().ok(), latency: Some(Nanos(50_000)), multicast_rate: None };
        for (ranks, nodes) in [(5, 4), (9, 8), (16, 4), (512, 511)] {
            let shape = CommunicatorShape::new(ranks, nodes, None).unwrap();
            assert_eq!(predictor(shape, network).unwrap().network().nodes(), nodes, "{ranks} ranks");
        }
    }

    #[test]
    fn where_nothing_is_known_all_are_tried() {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let all = candidates(Collective::Broadcast, shape, 4096, Capabilities::ALL);
        assert_eq!(promising(all.clone(), Collective::Broadcast, shape, None, 4096), all);
        assert_eq!(promising(all.clone(), Collective::Broadcast, shape, Some(Network::default()), 4096), all);
    }
}
