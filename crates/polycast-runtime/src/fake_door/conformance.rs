//! Ranks that do what MPI demands get their data.

use std::time::Duration;

use super::conditions::Stalled;
use super::job::Job;
use super::process::Ended;
use super::random::{Random, with_seeds};

/// Of some sizes there are more than of others: none or all of a message goes with its announcement.
fn size(random: &mut Random) -> u64 {
    let most = random.one_of(&[16, 2048, 9000, 150_000]);
    random.within(1, most)
}

#[test]
fn all_ranks_get_what_the_root_has() {
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9);
        let calls = [(); 4].map(|()| (random.below(ranks) as u32, size(random) as usize));
        let algorithm = random.algorithm().to_string();
        let job = Job::new(ranks as u32, seed, &algorithm, &calls);
        for (rank, told) in job.run().ranks.iter().enumerate() {
            assert_eq!(told.calls, [Ended::SERVED_WELL; 4], "rank {rank} of {job:?}");
            assert_eq!((told.outstanding_receives, told.closed), (0, 1), "rank {rank} of {job:?}");
        }
    });
}

/// Who sends to whom is found out on the way: nobody waits for a message of somebody else, or of another call.
#[test]
fn dynamic_trees_reach_all_ranks_call_after_call() {
    with_seeds(40, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 17);
        let calls = [(); 6].map(|()| (random.below(ranks) as u32, size(random) as usize));
        let job =
            Job::new(ranks as u32, seed, random.one_of(&["dyn-tree", "dyn-tree:hold=1us,end=900us"]), &calls);
        for (rank, told) in job.run().ranks.iter().enumerate() {
            assert_eq!(told.calls, [Ended::SERVED_WELL; 6], "rank {rank} of {job:?}");
            assert_eq!((told.outstanding_receives, told.closed), (0, 1), "rank {rank} of {job:?}");
        }
    });
}

/// With the fewest tags that an MPI may have, calls 63 apart have the same. One sender's messages stand still, and another one is as many calls ahead.
#[test]
fn dynamic_trees_tell_calls_apart_whose_tags_are_the_same() {
    with_seeds(20, |seed| {
        let calls: Vec<(u32, usize)> = (0..140).map(|call| (u32::from(call == 0), 1000 - call)).collect();
        let mut job = Job::new(3, seed, "dyn-tree:hold=1us,end=900us", &calls);
        job.conditions.tag_most = 32_767;
        job.conditions.eager_bytes = 1 << 20;
        let (one_in, time) = (2, Duration::from_secs(1));
        job.conditions.stalled = Some(Stalled { one_in, time, since: Duration::ZERO, of: Some(1) });
        for (rank, told) in job.run().ranks.iter().enumerate() {
            assert!(told.calls.iter().all(|ended| *ended == Ended::SERVED_WELL), "rank {rank}, seed {seed}");
            assert_eq!(
                (told.calls.len(), told.outstanding_receives),
                (calls.len(), 0),
                "rank {rank}, seed {seed}"
            );
        }
    });
}

#[test]
fn what_is_left_to_stock_is_left_on_all_ranks() {
    let job = Job::new(5, 1, "stock", &[(3, 100), (0, 1)]);
    assert!(job.run().ranks.iter().all(|told| told.attached == 0 && told.calls == [Ended::LEFT; 2]));
}

#[test]
fn without_a_private_communicator_all_is_left_on_all_ranks() {
    for algorithm in ["binomial", "multicast-pull"] {
        let mut job = Job::new(4, 2, algorithm, &[(3, 100), (0, 1)]);
        job.conditions.has_private = false;
        let outcome = job.run();
        assert!(outcome.ranks.iter().all(|told| told.attached == 0 && told.calls == [Ended::LEFT; 2]));
    }
}
