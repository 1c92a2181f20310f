//! An erroneous program, which MPIs carry: ranks give different sizes to a call that has a root. Whoever has room for what comes gets it, and
//! nothing behind it is written; who has less room knows it.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::time::Duration;

use polycast_core::algorithm::Registry;
use polycast_core::collective::{Collective, CombinationOrder};

use super::collectives::{Called, assert_nothing_is_left, contribution};
use super::job::{Job, Step};
use super::process::Ended;
use super::random::{Random, with_seeds};
use super::sizes::ERROR_SIZE;
use super::stage::Delays;

const OF_A_ROOT: [Collective; 3] = [Collective::Broadcast, Collective::Scatter, Collective::Gather];
/// What holds nothing before a call.
const UNTOUCHED: u8 = 0xEE;

/// True if the call has sizes of which one rank says what all get.
pub(super) fn is_of_a_root(called: &Called) -> bool {
    OF_A_ROOT.contains(&called.collective)
}

/// What a rank has in its output after a call, of which the ranks may have given different sizes; as far as it has room.
pub(super) fn expected(called: &Called, number: usize, rank: u32) -> Option<Vec<u8>> {
    let (root, ranks) = (called.root, called.bytes.len() as u64);
    let (own, at_root) = (called.bytes[rank as usize], called.bytes[root as usize]);
    let kept = |mut data: Vec<u8>| {
        data.truncate(own as usize);
        data.resize(own as usize, UNTOUCHED);
        data
    };
    match called.collective {
        Collective::Broadcast => Some(kept(contribution(number, root, at_root))),
        Collective::Scatter if rank == root && called.is_in_place => None,
        Collective::Scatter => {
            let all = contribution(number, root, at_root * ranks);
            Some(kept(all[(u64::from(rank) * at_root) as usize..][..at_root as usize].to_vec()))
        }
        _ if rank != root => None,
        _ => {
            let block = |from: u32| kept(contribution(number, from, called.bytes[from as usize]));
            Some((0..ranks as u32).flat_map(block).collect())
        }
    }
}

/// A size and another one: a little more, another message, another segment, much more.
fn two_sizes(random: &mut Random) -> (u64, u64) {
    let [most, most_more] = [random.one_of(&[4, 600, 6000, 40_000]), random.one_of(&[4, 600, 20_000])];
    let (one, more) = (2 * random.within(1, most), 2 * random.within(1, most_more));
    if random.one_in(2) { (one, one + more) } else { (one + more, one) }
}

/// The sizes of a call: of a gather all that send have the same, else none that receives need have another's.
fn sizes(random: &mut Random, collective: Collective, root: usize, ranks: usize) -> Vec<u64> {
    let (at_root, other) = two_sizes(random);
    let mut bytes = vec![other; ranks];
    if collective != Collective::Gather {
        let third = two_sizes(random).0;
        let kinds =
            random.one_of(&[[other, other, other], [at_root, at_root, other], [at_root, other, third]]);
        bytes.iter_mut().for_each(|bytes| *bytes = random.one_of(&kinds));
    }
    bytes[root] = at_root;
    bytes
}

fn any_call(random: &mut Random, ranks: u64, is_on_one_node: bool) -> Called {
    let collective = random.one_of(&OF_A_ROOT);
    let mut all = Registry::BUILT_IN.samples(collective);
    if is_on_one_node {
        all.extend(Registry::BUILT_IN.samples_on_one_node(collective));
    }
    // It is planned for a size (docs/architecture.md).
    all.retain(|algorithm| algorithm.entry.name != "link-aware");
    let mut algorithm = random.one_of(&all);
    algorithm.segment = NonZeroU64::new(random.one_of(&[0, 100, 3000, 16 << 10]));
    let root = random.below(ranks) as u32;
    let mut bytes = sizes(random, collective, root as usize, ranks as usize);
    if collective == Collective::Gather && algorithm.is_through_cells() {
        // In one round (decision 74).
        algorithm.segment = None;
        bytes.iter_mut().for_each(|bytes| *bytes = *bytes % 8000 + 2);
    }
    Called { collective, root, bytes, order: CombinationOrder::Any, is_in_place: random.one_in(3), algorithm }
}

#[test]
fn whoever_has_room_gets_what_comes() {
    let counts = OF_A_ROOT.map(|collective| (collective, [Cell::new(0), Cell::new(0)]));
    with_seeds(300, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 9);
        let hosts: Vec<u32> = match random.one_in(2) {
            false => vec![0; ranks as usize],
            true => (0..ranks).map(|_| random.below(3) as u32).collect(),
        };
        let is_on_one_node = hosts.iter().all(|host| *host == hosts[0]);
        let calls: Vec<Called> =
            (0..random.within(1, 3)).map(|_| any_call(random, ranks, is_on_one_node)).collect();
        let mut job = Job::new(ranks as u32, seed, "chain", &[]);
        job.conditions.hosts = hosts;
        let free = job.program.pop();
        // What one leaves behind serves the next, of which all give the same size.
        let same: Vec<Called> = calls
            .iter()
            .map(|called| Called { bytes: vec![called.bytes[0]; ranks as usize], ..called.clone() })
            .collect();
        job.program.extend([calls.clone(), same, calls.clone()].map(Step::Collectives));
        job.program.extend(free);
        job.conditions.eager_bytes = random.one_of(&[0, 1000, 1 << 20]);
        if random.one_in(2) {
            job.conditions.delays = Delays { one_in: 20, most: Duration::from_millis(2) };
        }
        let outcome = job.run();
        for (rank, told) in outcome.ranks.iter().enumerate() {
            for (at, ended) in told.calls.iter().enumerate() {
                let called = &calls[at % calls.len()];
                let (own, at_root) = (called.bytes[rank], called.bytes[called.root as usize]);
                let is_root = rank == called.root as usize;
                let comes = match called.collective {
                    Collective::Gather if is_root => *called.bytes.iter().max().unwrap(),
                    Collective::Gather => own,
                    _ => at_root,
                };
                let is_of_one_size = at / calls.len() == 1;
                let has_room = is_of_one_size || own >= comes;
                match has_room {
                    true => assert_eq!(*ended, Ended::SERVED_WELL, "call {at} on rank {rank} of {job:?}"),
                    false => assert_eq!(ended.code, ERROR_SIZE, "call {at} on rank {rank} of {job:?}"),
                }
                let count = counts.iter().find(|(of, _)| *of == called.collective).unwrap();
                count.1[usize::from(has_room)].set(count.1[usize::from(has_room)].get() + 1);
            }
            assert_eq!(told.calls.len(), 3 * calls.len(), "rank {rank} of {job:?}");
        }
        assert_eq!(outcome.unreceived, 0, "{job:?}");
        assert_nothing_is_left(&outcome, &job);
    });
    let is_met = |(_, of): &(Collective, [Cell<usize>; 2])| of.iter().all(|count| count.get() > 20);
    assert!(super::random::seeds(300).count() < 300 || counts.iter().all(is_met), "{counts:?}");
}
