//! An erroneous program: ranks call with different sizes. All return, who has room for what comes has it, who has less knows it, and the next call
//! is right.

use super::job::{Broadcast, Job, Step};
use super::process::Ended;
use super::random::{Random, with_seeds};

pub(super) const ERROR_SIZE: i32 = -2;

/// One rank is wrong, or some, or most.
fn sizes(random: &mut Random, ranks: u64) -> Vec<usize> {
    let kinds = [(); 3].map(|()| {
        let most = random.one_of(&[10, 3000, 60_000]);
        random.within(1, most) as usize
    });
    let one_in = random.one_of(&[2, ranks]);
    let mut sizes: Vec<usize> = (0..ranks)
        .map(|_| if random.one_in(one_in) { kinds[random.below(3) as usize] } else { kinds[0] })
        .collect();
    sizes[random.below(ranks) as usize] = kinds[0] + 1;
    sizes
}

#[test]
fn ranks_with_different_sizes_return_and_go_on() {
    with_seeds(80, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9);
        let mut roots = || random.below(ranks) as u32;
        let next = [(roots(), 5000), (roots(), 1)];
        let root = roots();
        // `link-aware` is planned for a size (docs/architecture.md).
        let mut algorithm = random.algorithm();
        while algorithm.entry.name == "link-aware" {
            algorithm = random.algorithm();
        }
        let algorithm = algorithm.to_string();
        let mut job = Job::new(ranks as u32, seed, &algorithm, &next);
        if random.one_in(2) {
            job.conditions.hosts = (0..ranks as u32).collect();
        }
        let bytes = sizes(random, ranks);
        job.program.insert(1, Step::Broadcast(Broadcast { communicator: 0, root, bytes: bytes.clone() }));
        let outcome = job.run();
        for (rank, told) in outcome.ranks.iter().enumerate() {
            let first = told.calls[0];
            assert!([0, ERROR_SIZE].contains(&first.code), "rank {rank}: {first:?} of {job:?}");
            assert!(
                first.code != 0 || first.has_data || rank == root as usize,
                "rank {rank}: {first:?} of {job:?}"
            );
            assert_eq!(told.calls[1..], [Ended::SERVED_WELL; 2], "rank {rank} of {job:?}");
            assert_eq!(told.outstanding_receives, 0, "rank {rank} of {job:?}");
        }
        for (rank, told) in outcome.ranks.iter().enumerate() {
            let lacks_room = bytes[rank] < bytes[root as usize];
            assert_eq!(told.calls[0].code == ERROR_SIZE, lacks_room, "rank {rank} of {job:?}");
        }
    });
}

/// Each of them costs a turn at the processor where ranks share them.
#[test]
fn a_segment_that_is_not_long_is_one_message() {
    let messages = |hosts: &[u32], bytes: usize| {
        let mut job = Job::new(hosts.len() as u32, 1, "binomial", &[(0, bytes)]);
        job.conditions.hosts = hosts.to_vec();
        let outcome = job.run();
        assert!(outcome.ranks.iter().all(|told| told.calls[..] == [Ended::SERVED_WELL]), "{job:?}");
        outcome.messages
    };
    // Those that measure the way to other hosts are the same for all lengths.
    let of_segments = |hosts: &[u32], bytes: usize| messages(hosts, bytes) - messages(hosts, 0);
    let (apart, together, many) = ([0, 1, 2, 3], [0; 4], (0..65).collect::<Vec<u32>>());
    assert_eq!(of_segments(&apart, 32 << 10), 0);
    assert_eq!(of_segments(&apart, (32 << 10) + 1), 3);
    assert_eq!(of_segments(&together, 8 << 10), 0);
    assert_eq!(of_segments(&together, (8 << 10) + 1), 3);
    // What all lanes of a rank take together is limited.
    assert_eq!(of_segments(&many, 32 << 10), 64);
}
