//! One size: from all repetitions to the figures of its variants.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use polycast_core::units::statistics::{self, Estimate};

use super::collect::Header;
use super::operation::Operation;
use super::point::Point;
use super::remark;
use super::variant::Variant;
use super::withheld;
use crate::jobs::record::{Repetition, Span, TimeFrom, Verdict};

/// The facts that the figures of one size have in common.
pub struct Context<'a> {
    /// The operation.
    pub operation: Operation,
    /// The variants by position, as repetitions name them.
    pub variants: &'a [Variant],
    /// The host of each rank, numbered from 0.
    pub host_of: &'a [usize],
    /// A rank, or `rotate`.
    pub root: &'a str,
    /// The arrival pattern's name.
    pub arrival: &'a str,
    /// The rate of the slowest link, in bits per second; without one there is no wire to compare with.
    pub rate_bits_per_second: Option<u64>,
    /// The span that is measured of a repetition.
    pub span: Span,
    /// The time for each variant of a size.
    pub time_limit: Duration,
}

/// The measurements of one size.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The message size.
    pub bytes: u64,
    /// The ranks and their clock, in the last launch.
    pub header: Header,
    /// The repetitions by launch.
    pub launches: Vec<Vec<Repetition>>,
    /// The launches that measured this size to the end.
    pub complete_launches: usize,
    /// The delay of the arrival pattern in ns; of the last launch.
    pub delay_ns: u64,
    /// The time in ns by which receivers were to call before the root, in the last launch.
    pub advance_ns: u64,
    /// The choices by which polycast served, by variant, in the last launch.
    pub choices: BTreeMap<usize, String>,
    /// The latest, in ns, that a rank could call so that the repetition still counts, by variant,
    /// in the last launch.
    pub tolerance_ns: Vec<u64>,
    /// The bound of the common clock's error, in ns.
    pub clock_error_ns: u64,
}

/// The time that `bytes` need on a link: 1448 of the 1514 bytes of an Ethernet frame are payload of TCP.
pub fn wire_us(bytes: u64, rate_bits_per_second: u64) -> f64 {
    bytes as f64 * 1514.0 / 1448.0 * 8.0 / rate_bits_per_second as f64 * 1e6
}

fn hosts(host_of: &[usize]) -> usize {
    host_of.iter().max().map_or(0, |last| last + 1)
}

/// Returns the bytes that the busiest link must carry; where the root rotates, those of the
/// repetition that needs least. A rate that is given for the ranks of one host says that there are
/// links between them.
fn wire_bytes(context: &Context, bytes: u64) -> u64 {
    let is_linked = hosts(context.host_of) == 1 && context.rate_bits_per_second.is_some();
    let host_of = if is_linked { (0..context.host_of.len()).collect() } else { context.host_of.to_vec() };
    let of = |root| context.operation.wire_bytes(bytes, &host_of, root);
    let ranks = 0..context.host_of.len();
    context.root.parse::<usize>().map_or_else(|_| ranks.map(of).min().unwrap_or(0), of)
}

/// The figures of all variants at one size.
pub fn summarise(context: &Context, measured: &Measured) -> Vec<Point> {
    let stock = context.variants.iter().position(|variant| *variant == Variant::Stock);
    let mut points: Vec<Point> = (0..context.variants.len())
        .map(|variant| one_variant(context, measured, variant, stock.unwrap_or(0)))
        .collect();
    let blast = context.variants.iter().position(|variant| *variant == Variant::Blast);
    let blast_us = blast.and_then(|blast| points[blast].median_us);
    let reference_us = points[stock.unwrap_or(0)].median_us;
    for point in &mut points {
        withheld::look_at(point, reference_us);
        point.ratio_to_blast =
            point.median_us.zip(blast_us).filter(|_| point.reliable).map(|(us, blast)| us / blast);
        point.remark = remark::of(point, context.time_limit);
    }
    points
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

fn one_variant(context: &Context, measured: &Measured, variant: usize, reference: usize) -> Point {
    let all: Vec<&Repetition> =
        measured.launches.iter().flatten().filter(|repetition| repetition.variant == variant).collect();
    let good = that_count(&all);
    let having = |list: &[&Repetition], verdict| list.iter().filter(|one| one.verdict == verdict).count();
    let late = having(&good, Verdict::Late);
    let reliable = context.variants[variant].is_reliable();
    // Late repetitions do not tell whether they lost something.
    let checked = if reliable { &all } else { &good };
    let times = completions(&good, context.span);
    let ranks = context.host_of.len();
    let wire_bytes = wire_bytes(context, measured.bytes);
    let middle = statistics::median(&times);
    let median_us = middle.map(|estimate| estimate.median);
    let wire_us = context.rate_bits_per_second.map(|rate| wire_us(wire_bytes, rate));
    let per_rank_median_us: Vec<_> =
        (0..ranks).map(|rank| rank_median_us(&good, rank, context.span.from)).collect();
    let wrong = all.iter().filter(|repetition| repetition.wrong_ranks > 0).count();
    let speedup = Some(variant).filter(|variant| *variant != reference).and_then(|variant| {
        statistics::speedup(pairs(measured, reference, variant, context.span).into_iter())
    });
    let reference_name = context.variants[reference].to_string();
    let launch_median = |launch: &Vec<Repetition>| {
        let own = launch.iter().filter(|repetition| repetition.variant == variant);
        let own: Vec<_> =
            own.filter(|one| one.counts() || (late > 0 && one.verdict == Verdict::Late)).collect();
        statistics::quantile(&completions(&own, context.span), 0.5)
    };
    Point {
        collective: context.operation.name().to_owned(),
        mpi: String::new(), // of the session
        variant: context.variants[variant].to_string(),
        algorithm: measured.choices.get(&variant).cloned(),
        ranks,
        nodes: hosts(context.host_of),
        bytes: measured.bytes,
        block_bytes: context.operation.block_bytes(measured.bytes, ranks),
        root: context.root.to_owned(),
        arrival: context.arrival.to_owned(),
        delay_us: us(measured.delay_ns as i64),
        time_from: context.span.from,
        time_to: context.span.to,
        samples: good.len(),
        late,
        dropped: having(&all, Verdict::Late) - late,
        reliable,
        lost: having(&all, Verdict::Lost),
        median_us,
        ci_low_us: low(middle),
        ci_high_us: high(middle),
        p90_us: statistics::quantile(&times, 0.9),
        p99_us: statistics::quantile(&times, 0.99),
        min_us: times.first().copied(),
        max_us: times.last().copied(),
        wire_bytes,
        wire_us,
        ratio_to_wire: wire_us
            .filter(|wire| *wire > 0.0)
            .and_then(|wire| median_us.map(|median| median / wire)),
        bandwidth_mb_per_s: median_us.filter(|us| *us > 0.0).map(|us| measured.bytes as f64 / us),
        ratio_to_blast: None,
        skew_ratio: Some(context.operation)
            .filter(|operation| !operation.ends_at_root())
            .and_then(|operation| skew(&good, &per_rank_median_us, operation.collective().has_root())),
        root_occupied_median_us: median_of(&good, |repetition| {
            repetition.times_ns.get(repetition.root).map(|(start, end)| end - start)
        }),
        since_last_arrival_median_us: median_of(&good, |repetition| Some(repetition.since_last_arrival_ns())),
        launches: measured.launches.len(),
        launch_median_us: measured.launches.iter().map(launch_median).collect(),
        speedup: speedup.map(|estimate| estimate.median),
        speedup_ci_low: low(speedup),
        speedup_ci_high: high(speedup),
        speedup_withheld: None,
        speedup_vs_stock: speedup.filter(|_| reference_name == "stock").map(|estimate| estimate.median),
        reference: reference_name,
        verified: wrong == 0 && !checked.is_empty(),
        wrong,
        tolerance_us: measured.tolerance_ns.get(variant).map(|ns| us(*ns as i64)),
        clock_error_us: us(measured.clock_error_ns as i64),
        believed: None,
        doubt: None,
        remark: None,
        per_rank_mean_us: (0..ranks).map(|rank| rank_mean_us(&good, rank)).collect(),
        per_rank_median_us,
    }
}

fn low(estimate: Option<Estimate>) -> Option<f64> {
    estimate?.interval.map(|(low, _)| low)
}

fn high(estimate: Option<Estimate>) -> Option<f64> {
    estimate?.interval.map(|(_, high)| high)
}

/// The fewest repetitions that give an interval.
pub const FEWEST: usize = 6;

/// Selects the repetitions that no rank entered too late; where they are too few for an interval,
/// all that are complete, so that a busy machine has figures, too, with a remark.
fn that_count<'a>(all: &[&'a Repetition]) -> Vec<&'a Repetition> {
    let on_time: Vec<_> = all.iter().filter(|repetition| repetition.counts()).copied().collect();
    if on_time.len() >= FEWEST {
        return on_time;
    }
    all.iter().filter(|repetition| repetition.verdict != Verdict::Lost).copied().collect()
}

fn completions(repetitions: &[&Repetition], span: Span) -> Vec<f64> {
    statistics::sorted(repetitions.iter().map(|repetition| us(repetition.completion_ns(span))).collect())
}

fn median_of(good: &[&Repetition], time_ns: impl Fn(&Repetition) -> Option<i64>) -> Option<f64> {
    let times = good.iter().filter_map(|repetition| time_ns(repetition)).map(us).collect();
    statistics::quantile(&statistics::sorted(times), 0.5)
}

/// Returns the median time at which a rank returned, in µs. Where roots rotate, a rank counts as a
/// receiver only.
fn rank_median_us(good: &[&Repetition], rank: usize, from: TimeFrom) -> Option<f64> {
    let rotates = good.iter().any(|repetition| repetition.root != good[0].root);
    median_of(good, |repetition| {
        repetition.returned_ns(rank, from).filter(|_| !rotates || repetition.root != rank)
    })
}

fn rank_mean_us(good: &[&Repetition], rank: usize) -> f64 {
    let times = good.iter().filter_map(|repetition| repetition.times_ns.get(rank));
    let total: i64 = times.map(|(start, end)| end - start).sum();
    us(total) / good.len().max(1) as f64
}

/// Returns the slowest over the fastest receiver: of all ranks, but for the root where there is
/// one.
fn skew(good: &[&Repetition], per_rank_median_us: &[Option<f64>], has_root: bool) -> Option<f64> {
    let first_root = good.first()?.root;
    let rotates = good.iter().any(|repetition| repetition.root != first_root);
    let receivers =
        per_rank_median_us.iter().enumerate().filter(|(rank, _)| rotates || !has_root || *rank != first_root);
    let medians: Vec<f64> = receivers.filter_map(|(_, median)| *median).collect();
    let fastest = medians.iter().copied().reduce(f64::min).filter(|fastest| *fastest > 0.0)?;
    medians.iter().copied().reduce(f64::max).map(|slowest| slowest / fastest)
}

/// Pairs the completions of two variants in the same cycle of the same launch. As with a single
/// variant, late repetitions are taken where there are too few pairs without.
fn pairs(measured: &Measured, reference: usize, other: usize, span: Span) -> Vec<(f64, f64)> {
    let on_time = pairs_of(measured, reference, other, span, Repetition::counts);
    if on_time.len() >= FEWEST {
        return on_time;
    }
    pairs_of(measured, reference, other, span, |repetition| repetition.verdict != Verdict::Lost)
}

fn pairs_of(
    measured: &Measured,
    reference: usize,
    other: usize,
    span: Span,
    is_good: impl Fn(&Repetition) -> bool,
) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for launch in &measured.launches {
        let of = |variant: usize| {
            launch.iter().filter(move |one| one.variant == variant).filter(|one| is_good(one))
        };
        let time = |repetition: &Repetition| (repetition.cycle, us(repetition.completion_ns(span)));
        let by_cycle: HashMap<u64, f64> = of(reference).map(time).collect();
        pairs.extend(of(other).map(time).filter_map(|(cycle, us)| Some((*by_cycle.get(&cycle)?, us))));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repetition(cycle: u64, variant: usize, late: bool, ends: [i64; 3]) -> Repetition {
        let times_ns = ends.iter().map(|end| (0, *end)).collect();
        let verdict = if late { Verdict::Late } else { Verdict::Counts };
        Repetition { cycle, variant, root: 0, verdict, wrong_ranks: 0, times_ns }
    }

    fn context(variants: &[Variant]) -> Context<'_> {
        let rate_bits_per_second = Some(20_000_000);
        let (span, time_limit) = (Span::default(), Duration::from_secs(3));
        Context {
            operation: Operation::Bcast,
            variants,
            host_of: &[0, 1, 2],
            root: "0",
            arrival: "none",
            rate_bits_per_second,
            span,
            time_limit,
        }
    }

    #[test]
    fn figures_of_two_alternated_variants() {
        let variants = [Variant::Polycast, Variant::Stock];
        let launch: Vec<_> = (0..10)
            .flat_map(|cycle| {
                let slower = 1000 * (cycle as i64 + 1);
                [
                    repetition(cycle, 0, cycle == 9, [100, slower, slower / 2]),
                    repetition(cycle, 1, false, [100, slower * 2, slower * 3]),
                ]
            })
            .collect();
        let measured = Measured { bytes: 1448, launches: vec![launch], ..Measured::default() };
        let points = summarise(&context(&variants), &measured);
        let polycast = &points[0];
        assert_eq!((polycast.samples, polycast.dropped, polycast.verified), (9, 1, true));
        assert_eq!((polycast.median_us, polycast.ci_low_us), (Some(5.0), Some(2.0)));
        assert_eq!((polycast.speedup, polycast.speedup_ci_high), (Some(3.0), Some(3.0)));
        assert_eq!((polycast.reference.as_str(), points[1].speedup), ("stock", None));
        assert_eq!(polycast.skew_ratio, Some(2.0));
        assert_eq!(polycast.per_rank_median_us[0], Some(0.1));
        // One full frame at 20 Mb/s.
        assert!((polycast.wire_us.unwrap() - 605.6).abs() < 1e-9);
    }

    /// Of 33 repetitions of a size 33 were late on a busy machine, and its row was empty.
    #[test]
    fn a_point_never_comes_out_empty() {
        let variants = [Variant::Stock, Variant::Polycast];
        let point = |on_time: u64, late: u64| {
            let of = |variant, slower| {
                let all = (0..on_time + late).map(move |cycle| (cycle, cycle >= on_time));
                all.map(move |(cycle, late)| {
                    repetition(cycle, variant, late, [slower * (10 + i64::from(late)); 3])
                })
            };
            let launch = of(0, 2000).chain(of(1, 1000)).collect();
            let measured = Measured { bytes: 22_000, launches: vec![launch], ..Measured::default() };
            summarise(&context(&variants), &measured).remove(1)
        };
        let busy = point(0, 33);
        assert_eq!((busy.samples, busy.late, busy.dropped), (33, 33, 0));
        assert_eq!((busy.median_us, busy.bandwidth_mb_per_s), (Some(11.0), Some(2000.0)));
        assert_eq!((busy.speedup, busy.speedup_ci_low), (Some(2.0), Some(2.0)));
        let remark = busy.remark.unwrap();
        assert!(remark.contains("all 33 repetitions are late"), "{remark}");
        let few = point(5, 3);
        assert_eq!((few.samples, few.late, few.dropped, few.median_us), (8, 3, 0, Some(10.0)));
        let enough = point(6, 30);
        assert_eq!((enough.samples, enough.late, enough.dropped, enough.median_us), (6, 0, 30, Some(10.0)));
        assert!(enough.remark.unwrap().contains("30 of 36 repetitions were late and are left out"));
        assert_eq!(point(36, 1).remark, None);
    }

    #[test]
    fn blast_is_what_the_others_are_held_against() {
        let variants = [Variant::Polycast, Variant::Blast];
        let launch =
            (0..8).flat_map(|c| [repetition(c, 0, false, [1500; 3]), repetition(c, 1, false, [1000; 3])]);
        let choices = BTreeMap::from([(0, "multicast-pull".to_owned())]);
        let measured =
            Measured { bytes: 1, launches: vec![launch.collect()], choices, ..Measured::default() };
        let points = summarise(&context(&variants), &measured);
        assert_eq!((points[0].ratio_to_blast, points[1].ratio_to_blast), (Some(1.5), None));
        assert_eq!((points[0].algorithm.as_deref(), &points[1].algorithm), (Some("multicast-pull"), &None));
    }

    #[test]
    fn wrong_data_is_seen_even_in_repetitions_that_do_not_count() {
        let variants = [Variant::Stock];
        let mut late = repetition(0, 0, true, [1, 1, 1]);
        late.wrong_ranks = 1;
        let measured = Measured { launches: vec![vec![late]], ..Measured::default() };
        let point = &summarise(&context(&variants), &measured)[0];
        assert_eq!((point.verified, point.wrong, point.samples, point.late), (false, 1, 1, 1));
    }

    #[test]
    fn a_lost_blast_is_neither_timed_nor_wrong() {
        let variants = [Variant::Stock, Variant::Blast];
        let mut launch: Vec<_> = (0..3).map(|cycle| repetition(cycle, 1, false, [10; 3])).collect();
        launch[0].verdict = Verdict::Lost;
        let blast = |launch: &[Repetition]| {
            let measured = Measured { launches: vec![launch.to_vec()], ..Measured::default() };
            summarise(&context(&variants), &measured).remove(1)
        };
        let some = blast(&launch);
        assert_eq!((some.samples, some.lost, some.dropped, some.wrong), (2, 1, 0, 0));
        assert!(some.verified && !some.reliable);
        let all = blast(&launch[..1]);
        assert!(!all.verified && all.median_us.is_none(), "nothing arrived, so nothing was verified");
    }

    #[test]
    fn where_roots_rotate_each_rank_counts_as_receiver() {
        let variants = [Variant::Stock];
        let mut launch: Vec<_> = (0..3).map(|cycle| repetition(cycle, 0, false, [2000; 3])).collect();
        for (root, repetition) in launch.iter_mut().enumerate() {
            repetition.root = root;
            repetition.times_ns[root].1 = 10;
        }
        let measured = Measured { launches: vec![launch], ..Measured::default() };
        let point = &summarise(&context(&variants), &measured)[0];
        assert_eq!(point.per_rank_median_us, [Some(2.0); 3]);
        assert_eq!((point.skew_ratio, point.root_occupied_median_us), (Some(1.0), Some(0.01)));
    }
}
