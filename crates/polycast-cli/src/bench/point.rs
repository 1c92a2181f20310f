//! One size and variant: from all repetitions to the figures that are reported.

use serde::Serialize;

use super::analysis::{self, Estimate};
use super::record::{Repetition, Verdict};
use super::variant::Variant;

/// What the figures of one size have in common.
pub struct Context<'a> {
    /// By position, as repetitions name them.
    pub variants: &'a [Variant],
    /// Ranks of the job.
    pub ranks: usize,
    /// Hosts of the job.
    pub nodes: usize,
    /// A rank, or `rotate`.
    pub root: &'a str,
    /// The arrival pattern's name.
    pub arrival: &'a str,
    /// The rate of the slowest link, in bits per second; without one there is no wire to compare with.
    pub rate_bits_per_second: Option<u64>,
}

/// All that was measured of one size.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The message size.
    pub bytes: u64,
    /// By launch.
    pub launches: Vec<Vec<Repetition>>,
    /// The delay of the arrival pattern in ns; of the last launch.
    pub delay_ns: u64,
    /// How late a rank could be and still count, in ns, by variant; of the last launch.
    pub tolerance_ns: Vec<u64>,
    /// The bound of the common clock's error, in ns.
    pub clock_error_ns: u64,
}

/// The figures of one variant at one size; a line of the JSON output. Times in µs; `null` where there is no sample, or
/// no such thing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Point {
    /// The operation.
    pub collective: &'static str,
    /// What served it.
    pub variant: String,
    /// Ranks of the job.
    pub ranks: usize,
    /// Hosts of the job.
    pub nodes: usize,
    /// The message size.
    pub bytes: u64,
    /// A rank, or `rotate`.
    pub root: String,
    /// The arrival pattern.
    pub arrival: String,
    /// The delay of the arrival pattern.
    pub delay_us: f64,
    /// Repetitions that count.
    pub samples: usize,
    /// Repetitions that a rank entered too late.
    pub dropped: usize,
    /// Whether the variant delivers whatever the network does; blast does not.
    pub reliable: bool,
    /// Repetitions that left a rank without data, of a variant that is not reliable.
    pub lost: usize,
    /// Median of the completion: last return − first call.
    pub median_us: Option<f64>,
    /// The 95 % interval of the median.
    pub ci_low_us: Option<f64>,
    /// Its upper end.
    pub ci_high_us: Option<f64>,
    /// 90 % of the completions are not longer.
    pub p90_us: Option<f64>,
    /// 99 % of the completions are not longer.
    pub p99_us: Option<f64>,
    /// The shortest completion.
    pub min_us: Option<f64>,
    /// The longest completion.
    pub max_us: Option<f64>,
    /// The time that the bytes need on the slowest link.
    pub wire_us: Option<f64>,
    /// Median over wire.
    pub ratio_to_wire: Option<f64>,
    /// The slowest over the fastest receiver, by the medians of their returns since the common start.
    pub skew_ratio: Option<f64>,
    /// By rank: the median of its return since the common start, the root's own repetitions left out when it rotates.
    pub per_rank_median_us: Vec<Option<f64>>,
    /// Median of the time that the root spent in the call.
    pub root_occupied_median_us: Option<f64>,
    /// Median from the last call to the last return.
    pub since_last_arrival_median_us: Option<f64>,
    /// Jobs that were started.
    pub launches: usize,
    /// The median of each of them.
    pub launch_median_us: Vec<Option<f64>>,
    /// What `speedup` compares with: `stock` where it was measured, else the first variant.
    pub reference: String,
    /// How many times faster than the reference: the median over pairs of neighbouring repetitions.
    pub speedup: Option<f64>,
    /// The 95 % interval of the speed-up.
    pub speedup_ci_low: Option<f64>,
    /// Its upper end.
    pub speedup_ci_high: Option<f64>,
    /// `speedup` where the reference is stock.
    pub speedup_vs_stock: Option<f64>,
    /// Every rank had the root's data after every repetition that was not lost.
    pub verified: bool,
    /// Repetitions after which a rank had wrong data.
    pub wrong: usize,
    /// How late a rank could be and still count.
    pub tolerance_us: Option<f64>,
    /// The bound of the common clock's error.
    pub clock_error_us: f64,
    /// Whether the place is able to show such a time. `None`: not known.
    pub believed: Option<bool>,
    /// Why it is not to be believed.
    pub doubt: Option<String>,
    /// By rank: the mean time in the call, for the views of other benchmarks.
    #[serde(skip)]
    pub per_rank_mean_us: Vec<f64>,
}

/// The time that `bytes` need on a link: 1448 of the 1514 bytes of an Ethernet frame are payload of TCP.
pub fn wire_us(bytes: u64, rate_bits_per_second: u64) -> f64 {
    bytes as f64 * 1514.0 / 1448.0 * 8.0 / rate_bits_per_second as f64 * 1e6
}

/// The figures of all variants at one size.
pub fn summarise(context: &Context, measured: &Measured) -> Vec<Point> {
    let stock = context.variants.iter().position(|variant| *variant == Variant::Stock);
    (0..context.variants.len())
        .map(|variant| one_variant(context, measured, variant, stock.unwrap_or(0)))
        .collect()
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

fn one_variant(context: &Context, measured: &Measured, variant: usize, reference: usize) -> Point {
    let all: Vec<&Repetition> =
        measured.launches.iter().flatten().filter(|repetition| repetition.variant == variant).collect();
    let good: Vec<&Repetition> = all.iter().filter(|repetition| repetition.counts()).copied().collect();
    let having = |verdict| all.iter().filter(|repetition| repetition.verdict == verdict).count();
    let reliable = context.variants[variant].is_reliable();
    // Late repetitions do not tell whether they lost something.
    let checked = if reliable { &all } else { &good };
    let times = completions(good.iter().copied());
    let middle = analysis::median(&times);
    let median_us = middle.map(|estimate| estimate.median);
    let wire_us = context.rate_bits_per_second.map(|rate| wire_us(measured.bytes, rate));
    let per_rank_median_us: Vec<_> = (0..context.ranks).map(|rank| rank_median_us(&good, rank)).collect();
    let wrong = all.iter().filter(|repetition| repetition.wrong_ranks > 0).count();
    let speedup = Some(variant)
        .filter(|variant| *variant != reference)
        .and_then(|variant| analysis::speedup(pairs(measured, reference, variant)));
    let reference_name = context.variants[reference].to_string();
    let launch_median = |launch: &Vec<Repetition>| {
        let own = launch.iter().filter(|repetition| repetition.variant == variant && repetition.counts());
        analysis::quantile(&completions(own), 0.5)
    };
    Point {
        collective: "bcast",
        variant: context.variants[variant].to_string(),
        ranks: context.ranks,
        nodes: context.nodes,
        bytes: measured.bytes,
        root: context.root.to_owned(),
        arrival: context.arrival.to_owned(),
        delay_us: us(measured.delay_ns as i64),
        samples: good.len(),
        dropped: having(Verdict::Late),
        reliable,
        lost: having(Verdict::Lost),
        median_us,
        ci_low_us: low(middle),
        ci_high_us: high(middle),
        p90_us: analysis::quantile(&times, 0.9),
        p99_us: analysis::quantile(&times, 0.99),
        min_us: times.first().copied(),
        max_us: times.last().copied(),
        wire_us,
        ratio_to_wire: wire_us
            .filter(|wire| *wire > 0.0)
            .and_then(|wire| median_us.map(|median| median / wire)),
        skew_ratio: skew(&good, &per_rank_median_us),
        root_occupied_median_us: median_of(&good, |repetition| {
            repetition.times_ns.get(repetition.root).map(|(start, end)| end - start)
        }),
        since_last_arrival_median_us: median_of(&good, |repetition| Some(repetition.since_last_arrival_ns())),
        launches: measured.launches.len(),
        launch_median_us: measured.launches.iter().map(launch_median).collect(),
        speedup: speedup.map(|estimate| estimate.median),
        speedup_ci_low: low(speedup),
        speedup_ci_high: high(speedup),
        speedup_vs_stock: speedup.filter(|_| reference_name == "stock").map(|estimate| estimate.median),
        reference: reference_name,
        verified: wrong == 0 && !checked.is_empty(),
        wrong,
        tolerance_us: measured.tolerance_ns.get(variant).map(|ns| us(*ns as i64)),
        clock_error_us: us(measured.clock_error_ns as i64),
        believed: None,
        doubt: None,
        per_rank_mean_us: (0..context.ranks).map(|rank| rank_mean_us(&good, rank)).collect(),
        per_rank_median_us,
    }
}

fn low(estimate: Option<Estimate>) -> Option<f64> {
    estimate?.interval.map(|(low, _)| low)
}

fn high(estimate: Option<Estimate>) -> Option<f64> {
    estimate?.interval.map(|(_, high)| high)
}

fn completions<'a>(repetitions: impl Iterator<Item = &'a Repetition>) -> Vec<f64> {
    analysis::sorted(repetitions.map(|repetition| us(repetition.completion_ns())).collect())
}

fn median_of(good: &[&Repetition], time_ns: impl Fn(&Repetition) -> Option<i64>) -> Option<f64> {
    let times = good.iter().filter_map(|repetition| time_ns(repetition)).map(us).collect();
    analysis::quantile(&analysis::sorted(times), 0.5)
}

/// When a rank returned, since the common start. Where roots rotate, a rank counts as a receiver only.
fn rank_median_us(good: &[&Repetition], rank: usize) -> Option<f64> {
    let rotates = good.iter().any(|repetition| repetition.root != good[0].root);
    median_of(good, |repetition| {
        let (_, end_ns) = repetition.times_ns.get(rank)?;
        (!rotates || repetition.root != rank).then_some(*end_ns)
    })
}

fn rank_mean_us(good: &[&Repetition], rank: usize) -> f64 {
    let times = good.iter().filter_map(|repetition| repetition.times_ns.get(rank));
    let total: i64 = times.map(|(start, end)| end - start).sum();
    us(total) / good.len().max(1) as f64
}

/// The slowest over the fastest receiver.
fn skew(good: &[&Repetition], per_rank_median_us: &[Option<f64>]) -> Option<f64> {
    let first_root = good.first()?.root;
    let rotates = good.iter().any(|repetition| repetition.root != first_root);
    let receivers = per_rank_median_us.iter().enumerate().filter(|(rank, _)| rotates || *rank != first_root);
    let medians: Vec<f64> = receivers.filter_map(|(_, median)| *median).collect();
    let fastest = medians.iter().copied().reduce(f64::min).filter(|fastest| *fastest > 0.0)?;
    medians.iter().copied().reduce(f64::max).map(|slowest| slowest / fastest)
}

/// Completions of two variants in the same cycle of the same launch, where both count.
fn pairs(measured: &Measured, reference: usize, other: usize) -> impl Iterator<Item = (f64, f64)> {
    measured.launches.iter().flat_map(move |launch| {
        let of = move |variant: usize| {
            let own =
                launch.iter().filter(move |repetition| repetition.variant == variant && repetition.counts());
            own.map(|repetition| (repetition.cycle, us(repetition.completion_ns())))
        };
        let by_cycle: std::collections::HashMap<u64, f64> = of(reference).collect();
        of(other).filter_map(move |(cycle, time)| by_cycle.get(&cycle).map(|base| (*base, time)))
    })
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
        Context { variants, ranks: 3, nodes: 3, root: "0", arrival: "none", rate_bits_per_second }
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

    #[test]
    fn wrong_data_is_seen_even_in_repetitions_that_do_not_count() {
        let variants = [Variant::Stock];
        let mut late = repetition(0, 0, true, [1, 1, 1]);
        late.wrong_ranks = 1;
        let measured = Measured { launches: vec![vec![late]], ..Measured::default() };
        let point = &summarise(&context(&variants), &measured)[0];
        assert_eq!((point.verified, point.wrong, point.samples), (false, 1, 0));
        assert_eq!((point.median_us, point.skew_ratio), (None, None));
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
