use super::*;
use crate::algorithm::Registry;
use crate::collective::Collective;
use crate::cost::{Predictor, Sends, Work};
use crate::model::{Curve, Hockney, LinkClass, Parameters, Point, Provenance};
use crate::topology::Topology;
use crate::units::{Bytes, Rank};

/// Patarasuk et al. 2008, Table 2: size, then g and RTT in µs at 100 Mb/s and at 1000 Mb/s.
const TABLE_2: [(u64, [f64; 2], [f64; 2]); 8] = [
    (256, [30.0, 280.0], [13.0, 118.0]),
    (512, [51.0, 414.0], [17.0, 141.0]),
    (1024, [89.0, 678.0], [25.0, 185.0]),
    (2048, [177.0, 988.0], [39.0, 246.0]),
    (4096, [351.0, 1334.0], [69.0, 301.0]),
    (8192, [695.0, 2038.0], [133.0, 422.0]),
    (16384, [1389.0, 3428.0], [267.0, 658.0]),
    (32768, [2781.0, 6208.0], [541.0, 1142.0]),
];

fn table_2(of: impl Fn(&(u64, [f64; 2], [f64; 2])) -> [f64; 2]) -> ClassParameters {
    let curve = |ns: &dyn Fn([f64; 2]) -> f64| {
        Curve::new(TABLE_2.iter().map(|row| Point::exact(row.0, ns(of(row)))).collect()).unwrap()
    };
    ClassParameters::new(curve(&|[gap, rtt]| (rtt / 2.0 - gap) * 1e3), curve(&|[gap, _]| gap * 1e3))
}

fn best_segment(bytes: u64, time: impl Fn(u64) -> f64) -> u64 {
    let candidates = TABLE_2.iter().map(|row| row.0).filter(|segment| *segment <= bytes);
    candidates.min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap()
}

const KIB: u64 = 1024;

/// Patarasuk et al. 2008, Table 3, column "Model", linear tree over the 32 machines of topology (4).
#[test]
fn best_segments_of_a_linear_tree_are_those_of_table_3() {
    let slow = table_2(|row| row.1);
    let expected = [256, 256, 256, 256, 512, 512, 1024, 1024, 1024];
    for (power, expected) in (0..).zip(expected) {
        let bytes = (8 * KIB) << power;
        assert_eq!(
            best_segment(bytes, |s| linear_tree_ns(&slow, 32, bytes, s)),
            expected,
            "{bytes} at 100 Mb/s"
        );
    }
    // The table has g(512 B) as 17 µs, give or take 3 %, so a decision may be as near as that.
    let fast = table_2(|row| row.2);
    let expected = [256, 256, 512, 1024, 1024, 2048, 4096, 4096, 4096];
    for (power, expected) in (0..).zip(expected) {
        let bytes = (8 * KIB) << power;
        let time = |segment| linear_tree_ns(&fast, 32, bytes, segment);
        let best = time(best_segment(bytes, time));
        assert!(time(expected) <= 1.03 * best, "{bytes} at 1000 Mb/s: {} against {best}", time(expected));
    }
}

/// A complete binary tree has other coefficients than the paper's, which it does not give; its best sizes are at most a
/// factor of 2 away.
#[test]
fn best_segments_of_a_binary_tree_are_near_those_of_table_3() {
    let children: Vec<Vec<usize>> =
        (0..32).map(|p| (2 * p + 1..2 * p + 3).filter(|c| *c < 32).collect()).collect();
    for (class, expected) in [
        (table_2(|row| row.1), [256, 512, 1024, 1024, 1024, 1024, 1024, 2048, 4096]),
        (table_2(|row| row.2), [512, 1024, 2048, 4096, 4096, 4096, 8192, 8192, 8192]),
    ] {
        for (power, expected) in (0..).zip(expected) {
            let bytes = (8 * KIB) << power;
            let best = best_segment(bytes, |s| {
                let farthest = farthest(&children, class.latency.at(s), class.gap.at(s));
                binary_tree_ns(&class, farthest, bytes, s)
            });
            assert!(expected <= best * 2 && best <= expected * 2, "{bytes}: {best}, {expected} expected");
        }
    }
}

/// Patarasuk et al. 2008, Figure 8: the last receiver is processor 4, A = 2 and B = 4 — the second child of a second child.
#[test]
fn the_farthest_receiver_of_figure_8() {
    let children = [vec![1, 2], vec![], vec![3, 4], vec![], vec![]];
    assert_eq!(farthest(&children, 1.0, 1.0), [2, 4]);
    assert_eq!(farthest(&[vec![]], 1.0, 1.0), [0, 0]);
}

/// Nupairoj 1998, Table 4.1, whose times are 20 + 2m and so on, m = 1024, over 8 nodes.
#[test]
fn sequential_and_binomial_trees_of_table_4_1() {
    let line = |startup: f64, delay: f64| startup + delay * 1024.0;
    let (hold, end) = (line(20.0, 2.0), line(55.0, 7.0));
    assert_eq!((sequential(8, hold, end), binomial(8, hold, end)), (19631.0, 21669.0));
    let (hold, end) = (line(25.0, 3.0), line(40.0, 4.0));
    assert_eq!((sequential(8, hold, end), binomial(8, hold, end)), (22718.0, 12408.0));
}

/// Nupairoj 1998, Table 4.2: `log2 k * t_end` where that is whole and t_hold <= t_end.
#[test]
fn a_binomial_tree_over_a_power_of_two() {
    for power in 0..12 {
        assert_eq!(binomial(1 << power, 20.0, 55.0), f64::from(power) * 55.0);
    }
    assert_eq!((1..=5).map(|k| binomial(k, 20.0, 55.0)).collect::<Vec<_>>(), [0.0, 55.0, 75.0, 110.0, 110.0]);
    // Its other case, t_hold > t_end, for powers of two and one more.
    for power in 1..12 {
        assert_eq!(binomial(1 << power, 55.0, 20.0), f64::from(power - 1) * 55.0 + 20.0);
        assert_eq!(binomial((1 << power) + 1, 55.0, 20.0), f64::from(power) * 55.0 + 20.0);
    }
    assert_eq!((sequential(1, 20.0, 55.0), chain(1, 55.0), chain(9, 55.0)), (0.0, 0.0, 440.0));
}

/// By hand, with L = 20, o = 3, g = 5, G = 2 and messages of 11 bytes: a body is 20, a message 46.
#[test]
fn log_gp_of_siebert() {
    let p = LogGp { latency_ns: 20.0, overhead_ns: 3.0, gap_ns: 5.0, gap_per_byte_ns: 2.0, residual: 0.0 };
    assert_eq!(log_gp_message_ns(&p, 11), 46.0);
    assert_eq!(log_gp_flat_ns(&p, 8, 11), 20.0 + 6.0 + 7.0 * 20.0 + 6.0 * 5.0);
    assert_eq!(log_gp_chain_ns(&p, 8, 4, 11), 7.0 * 46.0 + 3.0 * 25.0);
    assert_eq!(log_gp_binary_ns(&p, 7, 11), 2.0 * (20.0 + 2.0 * 28.0) + 2.0 * 25.0);
    assert_eq!(log_gp_binary_ns(&p, 8, 11), 3.0 * (20.0 + 2.0 * 28.0) + 2.0 * 25.0);
    assert_eq!(log_gp_binomial_ns(&p, 8, 11), 3.0 * 46.0);
    assert_eq!(log_gp_binomial_ns(&p, 9, 11), 4.0 * 46.0);
    for of in [log_gp_flat_ns, log_gp_binomial_ns] {
        assert_eq!(of(&p, 2, 11), log_gp_message_ns(&p, 11), "two ranks, one message");
    }
}

/// Patarasuk et al. 2008, Table 4, 2 MiB: milliseconds in segments of 256 B to 32 KiB, and whole.
#[test]
fn segments_that_cost_little_more_than_the_message_whole() {
    let slow = [200.93, 198.61, 184.15, 181.35, 180.0, 179.13, 178.79, 178.6, 178.57];
    let fast = [102.07, 70.55, 53.01, 42.83, 37.31, 33.57, 32.74, 31.93, 32.64];
    for (times, expected) in [(slow, KIB), (fast, 8 * KIB)] {
        let sizes = (8..16).map(|power| 1u64 << power).chain([2 << 20]);
        let points = sizes.zip(times).map(|(s, ms)| Point::exact(s, ms * 1e6 * s as f64 / (2 << 20) as f64));
        let none = Curve::new(vec![Point::exact(1, 0.0)]).unwrap();
        let class = ClassParameters::new(none, Curve::new(points.collect()).unwrap());
        assert_eq!(efficient_segment(&class), expected);
    }
    // §5.4, which counts the ranks of a linear tree and log2 P for a binary one.
    assert_eq!([KIB, 8 * KIB].map(|segment| sufficiently_large(32, segment)), [62 * KIB, 496 * KIB]);
    assert_eq!([KIB, 8 * KIB].map(|segment| sufficiently_large(5, segment)), [8 * KIB, 64 * KIB]);
}

/// Patarasuk et al. 2008, Table 1: what the formulas come to where X is very large, in T(m); and §3.1: the binary tree is
/// faster than the linear one for `X <= P - 2 log2 P + 1`, counted as there, where the heights are P and log2 P.
#[test]
fn pipelines_in_terms_of_a_message() {
    let line = |bytes: u64| Point::exact(bytes, 1e-3 * bytes as f64);
    let zero = Curve::new(vec![Point::exact(1, 0.0)]).unwrap();
    let class = ClassParameters::new(zero, Curve::new([1, 1 << 30].map(line).to_vec()).unwrap());
    let bytes = 1 << 30;
    let message_ns = class.hop_ns(bytes);
    let of = |formulas, segment| ClosedForms::of(formulas, &class, 32, bytes, segment).hockney.unwrap();
    for (formulas, segment, expected) in [
        (Formulas::Flat, None, 31.0),
        (Formulas::Binomial, None, 5.0),
        (Formulas::Chain, Some(1 << 10), 1.0),
        (Formulas::Binary, Some(1 << 10), 2.0),
    ] {
        let times = of(formulas, segment) / message_ns;
        assert!((times - expected).abs() < 1e-3 * expected, "{formulas:?}: {times}");
    }
    for ranks in [8u32, 32, 1024] {
        // Here H is the number of hops: one less for the chain, so the border is one lower.
        let border = u64::from(ranks - 2 * ranks.ilog2());
        let faster = |segments: u64| {
            let of = |formulas| {
                ClosedForms::of(formulas, &class, ranks, segments << 10, Some(1 << 10)).hockney.unwrap()
            };
            of(Formulas::Binary) <= of(Formulas::Chain) + 1e-9
        };
        assert!(faster(border) && !faster(border + 1), "{ranks}");
    }
}

/// Nupairoj 1998, §3.1: 9, 10 and 15 for t_send 2, t_net 1, t_recv 2 and 4 nodes.
#[test]
fn three_trees_of_four_nodes() {
    let (hold, end) = (2.0, 2.0 + 1.0 + 2.0);
    assert_eq!((sequential(4, hold, end), binomial(4, hold, end), chain(4, end)), (9.0, 10.0, 15.0));
}

/// Where a message takes 1 us and 8 ns a byte, a combination 3 ns and a copy nothing, the schedules of powers of two take what is counted, and others
/// no longer; pairwise exchanges wait for a grant before each step but the first besides.
#[test]
fn stages_are_those_of_the_schedules() {
    let curve = |at: &dyn Fn(u64) -> f64| {
        Curve::new([1, 1 << 20].map(|bytes| Point::exact(bytes, at(bytes))).to_vec()).unwrap()
    };
    let class = ClassParameters::new(curve(&|_| 1000.0), curve(&|bytes| 8.0 * bytes as f64));
    let hockney = Hockney { alpha_ns: 1000.0, beta_ns: 8.0, residual: 0.0 };
    let parameters = Parameters::new(Provenance::default(), [(LinkClass::SameSwitch, class)].into()).unwrap();
    let work = Work { copy_ns_per_byte: 0.0, combine_ns_per_byte: 3.0 };
    let mut counted = 0;
    for ranks in [2u32, 3, 8, 13, 16] {
        let hosts: Vec<String> = (0..ranks).map(|rank| format!("h{rank}")).collect();
        let placed = Topology::flat(hosts.clone()).place(&hosts);
        let predictor = Predictor::new(&placed, &parameters, Rank(0)).without_links();
        let mut predictor = predictor.sends(Sends::InTurn).work(work);
        for collective in Collective::ALL {
            let bytes = Bytes(if collective == Collective::Barrier { 0 } else { u64::from(ranks) * 1000 });
            for algorithm in Registry::BUILT_IN.compared(collective) {
                let name = algorithm.entry.name;
                let Some(Formulas::Stages(stages)) = algorithm.entry.formulas else { continue };
                let Some(stages) = stages(ranks) else { continue };
                let grants = if name == "pairwise" { f64::from(ranks - 2) * 1000.0 } else { 0.0 };
                let followed = predictor.follow(&algorithm, collective, bytes).unwrap().0 as f64;
                let by_stages = stages.ns(&hockney, 3.0, bytes) + grants;
                // Beyond powers of two the last messages need not wait for each other.
                let most = if ranks.is_power_of_two() { 1.0 } else { 1.3 };
                let ratio = by_stages / followed;
                assert!(
                    (1.0 - 1e-6..most + 1e-6).contains(&ratio),
                    "{collective} {name} of {ranks}: {followed} and {by_stages}"
                );
                counted += 1;
            }
        }
    }
    // Twelve of powers of two, eight of others.
    assert_eq!(counted, 3 * 12 + 2 * 8);
}
