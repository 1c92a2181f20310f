//! Ranks agree whether polycast serves a communicator, whatever happens to one of them meanwhile.

use super::job::{Ended, Job, Outcome};
use super::random::{Random, with_seeds};
use super::world::Tamper;
use crate::fault::Point;

const CALLS: [(u32, usize); 2] = [(1, 3000), (0, 10)];

fn all_are_left(outcome: &Outcome) -> bool {
    outcome.ranks.iter().all(|told| !told.is_attached && told.calls == [Ended::LEFT; 2])
}

/// Rank 1 has other settings than rank 0, as far as the others know.
const OTHER_SETTINGS: Tamper = |rank, record| record[24] ^= u8::from(rank == 1);

/// Every rank is alone on its host.
const HOSTS_APART: Tamper = |rank, record| record[32] = rank as u8;

#[test]
fn another_build_on_one_rank_leaves_all_to_stock() {
    let other_builds: [Tamper; 3] = [
        |rank, record| record[8] ^= u8::from(rank == 0),
        |rank, record| record[15] ^= u8::from(rank == 1),
        // No polycast at all.
        |rank, record| record[0] ^= u8::from(rank == 1),
    ];
    for tamper in other_builds {
        for ranks in 2..6 {
            let job = Job { tamper: Some(tamper), ..Job::new(ranks, ranks.into(), "binomial", &CALLS) };
            assert!(all_are_left(&job.run()), "{job:?}");
        }
    }
}

#[test]
fn other_settings_on_one_rank_give_way_to_those_of_rank_0() {
    let job = Job { tamper: Some(OTHER_SETTINGS), ..Job::new(4, 7, "chain:segment=1KiB", &CALLS) };
    assert!(job.run().ranks.iter().all(|told| told.calls == [Ended::SERVED_WELL; 2]));
}

#[test]
fn a_panic_while_ranks_agree_leaves_all_to_stock() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9) as u32;
        let point = random.one_of(&[Point::Record, Point::Settings, Point::Agree]);
        let panic = Some((random.below(ranks.into()) as u32, point, 0));
        let tamper = Some(OTHER_SETTINGS);
        let job = Job { panic, tamper, ..Job::new(ranks, seed, "binomial", &CALLS) };
        assert!(all_are_left(&job.run()), "{job:?}");
    });
}

#[test]
fn a_panic_while_multicast_is_set_up_leaves_all_to_what_needs_none() {
    for (ranks, rank) in [(2, 0), (2, 1), (5, 3)] {
        let job = Job {
            panic: Some((rank, Point::Offer, 0)),
            tamper: Some(HOSTS_APART),
            multicast: "on",
            ..Job::new(ranks, 3, "multicast-pull", &CALLS)
        };
        let outcome = job.run();
        for told in &outcome.ranks {
            assert!(told.is_attached, "{job:?}");
            assert_eq!(told.calls, outcome.ranks[0].calls, "{job:?}");
            assert!(told.calls.iter().all(|ended| ended.code == 0 && ended.has_data), "{job:?}: {told:?}");
        }
    }
}
