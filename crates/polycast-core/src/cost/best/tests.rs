use super::*;
use crate::algorithm::Registry;
use crate::collective::Collective;
use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
use crate::topology::Topology;
use crate::units::Rank;

/// Patarasuk et al. 2008, Table 2 at 100 Mb/s, in part.
fn predictor(ranks: u32) -> Predictor {
    let curve = |points: [(u64, f64); 4]| {
        Curve::new(points.map(|(bytes, us)| Point::exact(bytes, us * 1e3)).to_vec()).unwrap()
    };
    let latency = curve([(256, 110.0), (1024, 250.0), (2048, 318.0), (32768, 323.0)]);
    let gap = curve([(256, 30.0), (1024, 89.0), (2048, 177.0), (32768, 2781.0)]);
    let classes = [(LinkClass::SameSwitch, ClassParameters::new(latency, gap))].into();
    let parameters = Parameters::new(Provenance::default(), classes).unwrap();
    let names: Vec<String> = (0..ranks).map(|rank| format!("h{rank}")).collect();
    Predictor::new(&Topology::flat(names.clone()).place(&names), &parameters, Rank(0))
}

fn powers() -> Vec<Bytes> {
    (0..=24).map(|power| Bytes(1 << power)).collect()
}

#[test]
fn short_messages_go_down_low_trees_and_long_ones_down_a_chain() {
    let comparisons =
        compare(&mut predictor(32), &Registry::BUILT_IN.compared_schedules(Collective::Broadcast), &powers());
    let intervals = intervals(&comparisons);
    let names: Vec<String> = intervals.iter().map(|(_, candidate, _)| candidate.to_string()).collect();
    assert!(intervals[0].0 == Bytes(0) && !names[0].starts_with("chain"), "{names:?}");
    assert!(names.last().unwrap().starts_with("chain:segment="), "{names:?}");
    assert!(intervals.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1));
}

#[test]
fn the_segment_size_is_the_best_of_those_that_are_tried() {
    let mut predictor = predictor(32);
    let comparisons = compare(&mut predictor, &["chain".parse().unwrap()], &powers());
    for comparison in comparisons {
        let best = comparison.predicted[0];
        for segment in [None].into_iter().chain(SEGMENTS.map(NonZeroU64::new)) {
            let algorithm = Algorithm { segment, .."chain".parse().unwrap() };
            let other = predictor.cost(&algorithm, comparison.bytes);
            assert!(best.time <= other.time, "{}: {} against {algorithm}", comparison.bytes, best.algorithm);
        }
    }
}

#[test]
fn multicast_wins_where_the_wire_is_slow() {
    let comparisons = compare(
        &mut predictor(32),
        &Registry::BUILT_IN.compared(Collective::Broadcast),
        &[Bytes(64), Bytes(1 << 20)],
    );
    let last = &comparisons[1].predicted;
    assert_eq!((last[0].algorithm.to_string().as_str(), last[0].cost), ("multicast-push", None));
    // About 85 ns per byte, headers included.
    assert!(last[0].time > Nanos(80 << 20) && last[0].time < Nanos(90 << 20), "{}", last[0].time);
    assert_eq!(last.len(), Registry::BUILT_IN.compared(Collective::Broadcast).len());
    assert!(last.is_sorted_by_key(|predicted| predicted.time));
}

#[test]
fn borders_are_between_the_sizes_compared() {
    let comparison = |bytes, text: &str, time| {
        let algorithm = text.parse().unwrap();
        Comparison {
            bytes: Bytes(bytes),
            predicted: vec![Predicted { algorithm, time: Nanos(time), cost: None }],
        }
    };
    let comparisons = [comparison(4, "flat", 1), comparison(16, "flat", 2), comparison(64, "chain", 3)];
    let found: Vec<_> =
        intervals(&comparisons).into_iter().map(|(first, _, time)| (first.0, time.0)).collect();
    assert_eq!(found, [(0, 1), (32, 3)]);
}
