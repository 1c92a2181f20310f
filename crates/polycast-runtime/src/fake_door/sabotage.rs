//! A fake door that sees nothing proves nothing: what no MPI and no runtime does is done on purpose here, and must be noticed.

use std::time::Duration;

use super::job::Job;
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};

/// What is found to be wrong.
fn wrong(job: &Job) -> String {
    job.try_run().expect_err("something is wrong")
}

#[test]
fn a_lost_message_is_noticed() {
    with_seeds(5, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 6) as u32;
        let calls = [(0, 3000), (1, 50_000)];
        let mut job = Job::new(ranks, seed, random.one_of(&["chain:segment=1KiB", "scatter-ring"]), &calls);
        job.conditions.loses_message = Some(random.below(u64::from(ranks) - 1) as u32);
        match job.try_run() {
            Err(wrong) => {
                assert!(wrong.starts_with("nobody goes on: rank 0 in communicator 1: "), "{wrong}");
            }
            // What came in place of a lane's first message was not what it is.
            Ok(outcome) => {
                let failed = outcome.ranks.iter().filter(|told| !told.calls[0].is_right());
                assert!(failed.count() > 0, "{outcome:?}");
            }
        }
    });
}

#[test]
fn a_rank_that_skips_what_is_agreed_is_noticed() {
    for rank in 0..3 {
        let job = Job::new(3, 1, "binomial", &[(0, 10)]).with(Some(1), "POLYCAST", "off");
        let wrong = wrong(&Job { ignores_vote: Some(rank), ..job });
        // It waits for the others, where they tell each other what they are.
        assert!(wrong.starts_with("nobody goes on: "), "{wrong}");
    }
}

#[test]
fn the_same_seed_runs_the_same_way() {
    with_seeds(5, |seed| {
        let weather = Weather { lost: 100, doubled: 100, latest: Duration::from_millis(1), ..Weather::FINE };
        let calls = [(0, 30_000), (2, 500), (1, 9000)];
        let job = Job::new(4, seed, "multicast-pull", &calls).on_hosts(&[0, 1, 2, 2], weather);
        let [first, second] = [(); 2].map(|()| job.run());
        assert!(first.ranks.iter().all(|told| told.calls.iter().all(Ended::is_right)));
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
        assert!(first.took > Duration::ZERO);
    });
}
