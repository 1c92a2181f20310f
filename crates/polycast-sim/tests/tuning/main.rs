//! The whole tuner on clusters in virtual time, beside an exhaustive search of the same ways: what it costs, and what it misses.

mod cluster;

use std::cell::RefCell;

use cluster::{Cluster, Field};
use polycast_core::collective::Collective;
use polycast_core::policy::tune::{Aim, Found, Search};
use polycast_core::policy::{Capabilities, Choice};
use polycast_sim::Network;

/// The factor up to which a choice is as good as the best, beyond the intervals of the two
/// searches.
const AS_GOOD: f64 = 1.03;

/// The clusters that the tuner was developed with.
fn known() -> [Cluster; 2] {
    let slow = Network { latency_ns: 50_000, ..Network::ethernet(50e6) };
    let two_levels = Network { latency_ns: 50_000, ..Network::ethernet(100e6) };
    [
        Cluster {
            name: "8 hosts, 50 Mb/s",
            network: slow,
            nodes: 8,
            ranks_per_node: 1,
            noise: 0.05,
            told: Some(("50mbit", 50_000)),
            stock_cuts_from: 128 << 10,
        },
        Cluster {
            name: "4 hosts of 4 ranks, 100 Mb/s",
            network: two_levels,
            nodes: 4,
            ranks_per_node: 4,
            noise: 0.05,
            told: Some(("100mbit", 50_000)),
            stock_cuts_from: 128 << 10,
        },
    ]
}

/// The clusters that the tuner was not developed with: other shapes, other rates, more noise, and
/// one of which nothing is known beforehand.
fn held_out() -> [Cluster; 2] {
    let busy = Network { latency_ns: 30_000, send_overhead_ns: 8_000, ..Network::ethernet(200e6) };
    [
        Cluster {
            name: "12 hosts, 200 Mb/s, busy processors",
            network: busy,
            nodes: 12,
            ranks_per_node: 1,
            noise: 0.1,
            told: Some(("200mbit", 50_000)),
            stock_cuts_from: 1 << 20,
        },
        Cluster {
            name: "6 hosts of 2 ranks, 1 Gb/s, unknown",
            network: Network::ethernet(1e9),
            nodes: 6,
            ranks_per_node: 2,
            noise: 0.08,
            told: None,
            stock_cuts_from: 32 << 10,
        },
    ]
}

fn tune(field: &mut Field<'_>, aim: Aim<'_>, sizes: &[u64]) -> Vec<(u64, Found)> {
    let block = aim.block;
    let mut search = Search::new(aim, sizes, Vec::new());
    while let Some(task) = search.task() {
        search.took(&field.measure(&task, block(task.bytes)));
        search.finished(false);
    }
    search.found().map(|(bytes, found)| (bytes, found.clone())).collect()
}

/// Time of tuning and of the exhaustive search, in seconds, and the points that are worse.
fn compare(cluster: &Cluster, sizes: &[u64], seed: u64) -> (f64, f64, Vec<String>) {
    let (mut spent, mut exhaustive, mut worse) = (0.0, 0.0, Vec::new());
    for collective in Collective::ALL {
        let (truths, known) = (RefCell::default(), cluster.known());
        let ranks = u64::from(cluster.shape().ranks);
        let block = |bytes: u64| match collective {
            Collective::Scatter | Collective::Gather | Collective::Allgather | Collective::Alltoall => {
                bytes / ranks
            }
            _ => bytes,
        };
        let aim = |is_exhaustive| Aim {
            collective,
            shape: cluster.shape(),
            // In virtual time multicast is a protocol of its own.
            there: Capabilities::ALL.without(Capabilities::MULTICAST),
            known: known.as_ref(),
            block: &block,
            is_exhaustive,
        };
        let sizes = if collective == Collective::Barrier { &[0][..] } else { sizes };
        let mut field = Field::new(cluster, collective, &truths, seed);
        let found = tune(&mut field, aim(false), sizes);
        let mut other = Field::new(cluster, collective, &truths, !seed);
        let best = tune(&mut other, aim(true), sizes);
        println!(
            "{}, {collective}: {:.0} s of {:.0} s, {} measurements of {}",
            cluster.name,
            field.spent_us / 1e6,
            other.spent_us / 1e6,
            field.measured,
            other.measured
        );
        (spent, exhaustive) = (spent + field.spent_us / 1e6, exhaustive + other.spent_us / 1e6);
        for bytes in sizes {
            let of = |found: &[(u64, Found)]| found.iter().find(|(of, _)| of == bytes).unwrap().1.clone();
            let (found, best) = (of(&found), of(&best));
            let truth = |choice: Choice| field.truth_us(choice, block(*bytes)).unwrap();
            // Neither search knows times better than to its interval.
            let own = found.time.unwrap();
            let limit_us =
                truth(best.best).max(best.time.unwrap().high_us) * AS_GOOD * own.high_us / own.median_us;
            if truth(found.best) > limit_us {
                worse.push(format!(
                    "{}, {collective} of {bytes}: {} takes {:.0} us, {} {:.0}",
                    cluster.name,
                    found.best,
                    truth(found.best),
                    best.best,
                    truth(best.best)
                ));
            }
        }
    }
    println!("{}: {:.1} % of the exhaustive search", cluster.name, 100.0 * spent / exhaustive);
    (spent, exhaustive, worse)
}

fn all(clusters: &[Cluster], sizes: &[u64], seeds: u64, most_percent: f64) {
    for cluster in clusters {
        for seed in 1..=seeds {
            let (spent, exhaustive, worse) = compare(cluster, sizes, seed);
            assert_eq!(worse, [""; 0], "seed {seed}");
            assert!(spent * 100.0 <= most_percent * exhaustive, "{}: {spent} of {exhaustive}", cluster.name);
        }
    }
}

const KIB: u64 = 1 << 10;

#[test]
fn a_tuning_finds_what_an_exhaustive_search_finds() {
    all(&known(), &[KIB, 16 * KIB, 256 * KIB, 1024 * KIB], 1, 12.0);
}

#[test]
fn and_on_networks_that_it_was_not_made_for() {
    // Where calls are short, much of the time is that of starting tasks.
    all(&held_out(), &[KIB, 16 * KIB, 256 * KIB], 1, 18.0);
}

/// Tunes the sizes that `polycast tune` goes through where nobody says otherwise.
#[test]
#[ignore = "make test-all: minutes"]
fn all_sizes_with_several_seeds() {
    let sizes: Vec<u64> = (0..7).map(|power| KIB << (2 * power)).collect();
    all(&known(), &sizes, 2, 12.0);
    all(&held_out(), &sizes, 2, 12.0);
}
