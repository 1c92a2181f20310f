//! Ranks that tell each other where on their hosts they run.

use polycast_core::topology::Locality;

use super::job::Job;
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};

fn on_socket(socket: u32) -> Locality {
    Locality::from_bits(u64::from(socket) + 1)
}

#[test]
fn any_locality_has_the_roots_bytes_and_costs_no_exchange() {
    with_seeds(100, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 8) as u32;
        let calls: Vec<(u32, usize)> = (0..random.within(1, 4))
            .map(|_| (random.below(ranks.into()) as u32, random.within(1, 30_000) as usize))
            .collect();
        let algorithms = [
            "chain:segment=1KiB",
            "binomial",
            "scatter-ring",
            "contention-free-binary",
            "two-level",
            "multicast-pull",
        ];
        let hosts: Vec<u32> = (0..ranks).map(|_| random.below(2) as u32).collect();
        let mut job =
            Job::new(ranks, seed, random.one_of(&algorithms), &calls).on_hosts(&hosts, Weather::FINE);
        // Then nodes hand on by messages what came by multicast.
        job = job.with(None, "POLYCAST_SHARED_MEMORY", random.one_of(&["on", "off"]));
        let plain = job.run();
        // Some are bound to nothing.
        let place = |_| on_socket(random.below(3) as u32);
        job.conditions.localities = (0..ranks).map(place).collect();
        if random.one_in(4) {
            job.conditions.localities[0] = Locality::default();
        }
        let outcome = job.run();
        for told in &outcome.ranks {
            assert!(told.calls.iter().all(Ended::is_right), "{job:?}");
        }
        assert_eq!((outcome.collectives, outcome.unreceived), (plain.collectives, 0), "{job:?}");
    });
}

#[test]
fn the_report_says_who_stands_elsewhere() {
    let moved = |sockets: [u32; 4], topology: &str| {
        let mut job = Job::new(4, 3, "chain", &[(0, 100)]);
        job = job.with(None, "POLYCAST_REPORT", "on").with(None, "POLYCAST_TOPOLOGY", topology);
        job.conditions.localities = sockets.map(on_socket).to_vec();
        let said = job.run().ranks[0].said.clone();
        assert!(said.contains("served 1 of 1 broadcast "), "{said}");
        said.lines().find_map(|line| Some(line.split_once("order=locality ")?.1.to_owned()))
    };
    assert_eq!(moved([0, 1, 0, 1], ""), Some("moved=2".to_owned()));
    assert_eq!(moved([0, 0, 1, 1], ""), None, "they stand by their numbers");
    assert_eq!(moved([0, 1, 0, 1], "off"), None);
}
