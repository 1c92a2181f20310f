//! The collectives that are no broadcasts, as operations: by messages in any buffer, with copies and combinations. The results are
//! compared with a plain computation.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::num::NonZeroU64;
use std::time::Duration;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::policy::chooser::{Chosen, Request, Waiting};
use polycast_core::policy::{self, Choice, Epoch};
use polycast_core::schedule::{Buffer, Contract};
use polycast_core::units::{Bytes, Rank};

use super::allocations::outside;
use super::conditions::{Fault, Function};
use super::environments::{is_programs, random_environment};
use super::job::{Job, Outcome, Step};
use super::process::{Ended, Member};
use super::random::{Random, with_seeds};
use super::stage::Delays;
use super::table::RankDoor;
use super::{ABORTED, INJECTED, MISUSED};
use crate::abi::Reduction;
use crate::call::{Buffers, Failure, OperationKey};
use crate::fault::Point;
use crate::interface::code;
use crate::operation::{MAX_KEPT, MAX_KEPT_SCRATCH_BYTES};

const ERROR_INTERNAL: i32 = -1;
const ERROR_SIZE: i32 = -2;

/// An element is a map `x -> ax + b` modulo 256, with odd `a`; combining two applies one after the other. That is associative, does
/// not commute, and forgets nothing.
const ELEMENT: NonZeroU64 = NonZeroU64::new(2).unwrap();

/// A call of a collective.
#[derive(Clone, Debug)]
pub struct Called {
    pub collective: Collective,
    pub root: u32,
    /// [`Call::bytes`] of each rank.
    pub bytes: Vec<u64>,
    pub order: CombinationOrder,
    pub is_in_place: bool,
    pub algorithm: Algorithm,
}

impl Called {
    pub(super) fn of(&self, rank: u32) -> Call {
        let bytes = Bytes(self.bytes[rank as usize]);
        let plain = Call::new(self.collective, self.bytes.len() as u32, Rank(self.root), bytes);
        Call { element: ELEMENT, order: self.order, is_in_place: self.is_in_place, ..plain }
    }
}

/// `right = left ∘ right`; by sums where the order is free.
fn combine(left: &[u8], right: &mut [u8], is_ordered: bool) {
    for (left, right) in left.chunks_exact(2).zip(right.chunks_exact_mut(2)) {
        let [(a, b), (c, d)] = [(left[0], left[1]), (right[0], right[1])];
        let (first, second) = match is_ordered {
            true => (a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)),
            false => (a.wrapping_add(c), b.wrapping_add(d)),
        };
        right.copy_from_slice(&[first, second]);
    }
}

/// A reduction as a door has it: the first field is what the runtime knows of it.
#[repr(C)]
pub(super) struct DoorReduction<'a> {
    reduction: Reduction,
    door: &'a RankDoor,
}

impl DoorReduction<'_> {
    pub(super) fn new(door: &RankDoor, is_ordered: bool, is_exact: u32) -> DoorReduction<'_> {
        let (is_commutative, combine) = ((!is_ordered).into(), combine_through_door as _);
        DoorReduction {
            reduction: Reduction { element_bytes: 2, is_commutative, is_exact, is_own: 0, combine },
            door,
        }
    }
}

unsafe extern "C" fn combine_through_door(
    reduction: *const Reduction,
    from: *const c_void,
    into: *mut c_void,
    bytes: usize,
) -> c_int {
    if !is_programs() {
        return MISUSED;
    }
    outside(|| {
        // SAFETY: it is the first field of one of these; the rest is as polycast.h says.
        let (DoorReduction { reduction, door }, left, right) = unsafe {
            (
                &*reduction.cast::<DoorReduction>(),
                std::slice::from_raw_parts(from.cast::<u8>(), bytes),
                std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes),
            )
        };
        match door.world.combine(door.part, bytes) {
            Ok(()) => combine(left, right, reduction.is_commutative == 0),
            Err(code) => return code,
        }
        0
    })
}

/// What a rank contributes to the call of this number.
pub(super) fn contribution(number: usize, rank: u32, length: u64) -> Vec<u8> {
    let byte = |at: u64| (u64::from(rank) * 37 + at * 11 + at / 127 + number as u64 * 53) as u8;
    (0..length).map(|at| if at % 2 == 0 { byte(at) | 1 } else { byte(at) }).collect()
}

/// Input and output before the call; what holds nothing yet is 0xEE.
pub(super) fn before(call: &Call, number: usize, rank: u32) -> [Vec<u8>; 2] {
    let contract = Contract { call: *call };
    let empty = |buffer| vec![0xEE; contract.size(Rank(rank), buffer) as usize];
    let mut buffers = [Buffer::Input, Buffer::Output].map(empty);
    if let Some(holding) = contract.before(Rank(rank)) {
        let place = holding.slice.bytes.start as usize..holding.slice.bytes.end as usize;
        let contribution = contribution(number, rank, holding.slice.length());
        buffers[holding.slice.buffer as usize][place].copy_from_slice(&contribution);
    }
    buffers
}

/// What MPI promises for the output, written down without schedule or contract, of what the ranks hand in: so many bytes.
pub(super) fn expected(call: &Call, rank: u32, handed_in: impl Fn(u32, u64) -> Vec<u8>) -> Option<Vec<u8>> {
    let (ranks, bytes) = (0..call.ranks, call.bytes.0);
    let all = bytes * u64::from(call.ranks);
    let own = (u64::from(rank) * bytes) as usize..(u64::from(rank + 1) * bytes) as usize;
    let is_root = rank == call.root.0;
    let blocks = || ranks.clone().flat_map(|from| handed_in(from, bytes)).collect();
    match call.collective {
        Collective::Broadcast => Some(handed_in(call.root.0, bytes)),
        Collective::Scatter if is_root && call.is_in_place => None,
        Collective::Scatter => Some(handed_in(call.root.0, all)[own].to_vec()),
        Collective::Gather => is_root.then(blocks),
        Collective::Allgather => Some(blocks()),
        Collective::Alltoall => {
            Some(ranks.flat_map(|from| handed_in(from, all)[own.clone()].to_vec()).collect())
        }
        Collective::Barrier => None,
        Collective::Reduce if !is_root => None,
        Collective::Reduce | Collective::Allreduce => {
            let falling = ranks.rev().map(|rank| handed_in(rank, bytes));
            falling.reduce(|mut right, left| {
                combine(&left, &mut right, call.order > CombinationOrder::Any);
                right
            })
        }
    }
}

/// A request for which nothing is asked but what is tried.
pub(super) fn barrier() -> Request {
    Request {
        call: policy::Call::new(Collective::Barrier, Bytes(0)),
        is_root: false,
        may_be_compared: false,
        is_ordered: false,
        is_own: false,
        when: Waiting::Waited,
    }
}

impl Member {
    /// All of them at a time, each rank in an order of its own.
    pub fn collectives(&mut self, calls: &[Called], number: usize, random: &mut Random) -> Vec<Ended> {
        self.attach();
        // SAFETY: the pointer comes from polycast_attach, and is not NULL where these are called.
        let communicator = unsafe { &mut *self.runtime };
        let request = barrier();
        for called in calls {
            match communicator.provides(Choice::Algorithm(called.algorithm).needs(), &request) {
                Ok(has_all) => assert!(has_all, "nothing is refused"),
                Err(failure) => {
                    let ended = Ended { is_served: true, code: code(Err(failure)), has_data: false };
                    return vec![ended; calls.len()];
                }
            }
        }
        let rank = self.rank;
        let call = |at: usize| calls[at].of(rank);
        let reduction =
            |called: &Called| DoorReduction::new(&self.door, called.order != CombinationOrder::Any, 0);
        let reductions: Vec<DoorReduction> = calls.iter().map(reduction).collect();
        let mut buffers: Vec<[Vec<u8>; 2]> =
            (0..calls.len()).map(|at| before(&call(at), number + at, rank)).collect();
        let mut codes: Vec<Option<c_int>> = vec![None; calls.len()];
        let mut keys: Vec<Option<OperationKey>> = Vec::new();
        let ended = |outcome: Option<Result<(), Failure>>| outcome.map(code);
        for (at, [input, output]) in buffers.iter_mut().enumerate() {
            let choice = Choice::Algorithm(calls[at].algorithm);
            let chosen = Chosen { choice, epoch: Epoch::default(), is_ahead: false };
            let (input, output) = (input.as_ptr(), output.as_mut_ptr());
            let reduction = (&raw const reductions[at]).cast();
            // SAFETY: the buffers are as long as the contract says, and are looked at when all have ended.
            let key = unsafe { communicator.start(chosen, call(at), Buffers { input, output, reduction }) };
            codes[at] = ended(key.err().map(Err));
            keys.push(key.ok());
            let other = random.below(keys.len() as u64) as usize;
            if let (None, Some(key)) = (codes[other], keys[other]) {
                codes[other] = ended(communicator.test(key));
            }
        }
        while let Some(first) = codes.iter().position(Option::is_none) {
            let at = random.below(calls.len() as u64) as usize;
            let at = if codes[at].is_none() { at } else { first };
            let Some(key) = keys[at] else { break };
            codes[at] = match random.one_in(3) {
                true => ended(Some(communicator.wait(key))),
                false => ended(communicator.test(key)),
            };
        }
        assert!(communicator.scratch_bytes() <= MAX_KEPT * MAX_KEPT_SCRATCH_BYTES);
        let told = |at: usize| {
            let code = codes[at].unwrap_or(ERROR_INTERNAL);
            let expected = match super::room::is_of_a_root(&calls[at]) {
                true => super::room::expected(&calls[at], number + at, rank),
                false => expected(&call(at), rank, |from, length| contribution(number + at, from, length)),
            };
            Ended { is_served: true, code, has_data: expected.is_none_or(|e| buffers[at][1] == e) }
        };
        (0..calls.len()).map(told).collect()
    }
}

fn any_call(random: &mut Random, ranks: u64, elements_most: u64, is_on_one_node: bool) -> Called {
    let collective = random.one_of(&Collective::ALL);
    let mut all = Registry::BUILT_IN.samples(collective);
    if is_on_one_node {
        all.extend(Registry::BUILT_IN.samples_on_one_node(collective));
    } else if random.one_in(2) {
        // There are few of them beside the others.
        all.retain(|algorithm| algorithm.shares_memory());
    }
    let mut algorithm = random.one_of(&all);
    algorithm.segment = NonZeroU64::new(random.one_of(&[0, 100, 3000, 16 << 10]));
    let elements = random.one_of(&[0, 1, 7, 600, elements_most]);
    let bytes = if collective == Collective::Barrier { 0 } else { 2 * random.within(elements / 2, elements) };
    Called {
        collective,
        root: random.below(ranks) as u32,
        bytes: vec![bytes; ranks as usize],
        order: if random.one_in(2) { algorithm.entry.keeps } else { CombinationOrder::Any },
        is_in_place: random.one_in(3),
        algorithm,
    }
}

/// `count` calls in flight at a time, twice: what the first leave behind serves the second. Half of those that are spread have ranks on several hosts.
pub(super) fn job(
    random: &mut Random,
    seed: u64,
    ranks: u64,
    count: u64,
    is_spread: bool,
) -> (Job, Vec<Called>) {
    // More than travels with an announcement.
    let hosts: Vec<u32> = match is_spread && random.one_in(2) {
        false => vec![0; ranks as usize],
        true => (0..ranks).map(|_| random.below(3) as u32).collect(),
    };
    let is_on_one_node = hosts.iter().all(|host| *host == hosts[0]);
    let calls: Vec<Called> = (0..count).map(|_| any_call(random, ranks, 6000, is_on_one_node)).collect();
    let mut job = Job::new(ranks as u32, seed, "chain", &[]);
    job.conditions.hosts = hosts;
    let free = job.program.pop();
    job.program.extend([Step::Collectives(calls.clone()), Step::Collectives(calls.clone())]);
    job.program.extend(free);
    job.conditions.eager_bytes = random.one_of(&[0, 1000, 1 << 20]);
    if random.one_in(2) {
        job.conditions.delays = Delays { one_in: 20, most: Duration::from_millis(2) };
    }
    (job, calls)
}

pub(super) fn assert_nothing_is_left(outcome: &Outcome, job: &Job) {
    assert!(outcome.ranks.iter().all(|told| told.outstanding_receives == 0), "{job:?}");
}

#[test]
fn collectives_in_flight_have_the_right_results() {
    let counts = Collective::ALL.map(|collective| (collective, Cell::new(0)));
    with_seeds(100, |seed| {
        let random = &mut Random::new(seed);
        let (ranks, count) = (random.within(2, 9), random.within(1, 4));
        let (mut job, calls) = job(random, seed, ranks, count, true);
        job.environments = (0..ranks).map(|_| random_environment(random)).collect();
        let outcome = job.run();
        for (rank, told) in outcome.ranks.iter().enumerate() {
            assert_eq!(told.calls, vec![Ended::SERVED_WELL; 2 * calls.len()], "rank {rank} of {job:?}");
        }
        assert_eq!(outcome.unreceived, 0, "{job:?}");
        assert_nothing_is_left(&outcome, &job);
        for (collective, count) in &counts {
            count.set(count.get() + calls.iter().filter(|call| call.collective == *collective).count());
        }
    });
    let is_met = |(_, count): &(Collective, Cell<usize>)| count.get() > 10;
    assert!(super::random::seeds(100).count() < 100 || counts.iter().all(is_met), "{counts:?}");
}

/// All ranks end, and those whose result would be wrong know it. In the others' calls nothing has happened.
#[test]
fn sizes_that_differ_spoil_one_collective() {
    with_seeds(120, |seed| {
        let random = &mut Random::new(seed);
        let (ranks, count) = (random.within(2, 7), random.within(1, 3));
        let (mut job, mut calls) = job(random, seed, ranks, count, true);
        let wrong = random.below(calls.len() as u64) as usize;
        let others = random.below(ranks) as usize;
        // What ranks choose for a broadcast of another size, policy says (see `sizes`).
        if matches!(calls[wrong].collective, Collective::Barrier | Collective::Broadcast) {
            return;
        }
        calls[wrong].bytes[others] += 2 * random.within(1, 6000);
        job.program[1] = Step::Collectives(calls.clone());
        job.program.remove(2);
        let outcome = job.run();
        for (rank, told) in outcome.ranks.iter().enumerate() {
            for (at, ended) in told.calls.iter().enumerate() {
                let knows = at == wrong && ended.code == ERROR_SIZE;
                // Who sends only does not know; what it has in its output is no matter of this call.
                let is_right = ended.code == 0 && ended.has_data;
                let is_other = at == wrong && rank == others && ended.code == 0;
                assert!(knows || is_right || is_other, "call {at} on rank {rank}: {ended:?} of {job:?}");
            }
            assert_eq!(told.calls.len(), calls.len(), "rank {rank} of {job:?}");
        }
        assert_nothing_is_left(&outcome, &job);
    });
}

/// MPI refuses a message or a combination, or polycast panics: the call ends there, the others in flight are done everywhere.
#[test]
fn a_collective_that_fails_takes_no_other_with_it() {
    let failures = [(); 4].map(|()| Cell::new(0));
    with_seeds(120, |seed| {
        let random = &mut Random::new(seed);
        let ranks = random.within(2, 6);
        let rank = random.below(ranks) as u32;
        // On one host, so that nothing fails while hosts are asked about the network.
        let (mut job, calls) = job(random, seed, ranks, 3, false);
        let (nth, way) = (random.below(8) as u32, random.below(4) as usize);
        let code = match way {
            0 => {
                job.panic = Some((rank, Point::Message, nth));
                ERROR_INTERNAL
            }
            _ => {
                let function = [Function::Isend, Function::Irecv, Function::Combine][way - 1];
                job.conditions.fault = Some(Fault { rank, function, nth, is_late: false });
                INJECTED
            }
        };
        let outcome = job.run();
        let mine = &outcome.ranks[rank as usize].calls;
        let Some(wrong) = mine.iter().position(|ended| ended.code != 0) else { return };
        failures[way].set(failures[way].get() + 1);
        assert_eq!(mine[wrong].code, code, "{job:?}");
        for (other, told) in outcome.ranks.iter().enumerate() {
            for (at, ended) in told.calls.iter().enumerate().take(calls.len() * (wrong / calls.len() + 1)) {
                let is_in_memory = calls[at % calls.len()].algorithm.shares_memory();
                let is_told = ended.code == ERROR_SIZE && is_in_memory;
                let is_its = at == wrong && (is_told || [0, code, ABORTED].contains(&ended.code));
                assert!(
                    is_its || *ended == Ended::SERVED_WELL,
                    "call {at} on rank {other}: {told:?} of {job:?}"
                );
            }
            assert_eq!(told.outstanding_receives, 0, "rank {other}: {told:?} of {job:?}");
        }
    });
    let is_met = failures.iter().all(|count| count.get() > 0);
    assert!(super::random::seeds(120).count() < 120 || is_met, "{failures:?}");
}

/// An element for all, and more on one rank: of a few bytes not every lane has a step.
#[test]
fn a_rank_that_is_told_of_a_single_element_ends() {
    for collective in Collective::ALL.into_iter().skip(1).filter(|of| *of != Collective::Barrier) {
        for algorithm in Registry::BUILT_IN.samples(collective) {
            for other in 0..4 {
                let mut bytes = vec![2; 4];
                bytes[other] = 200;
                let (order, is_in_place) = (CombinationOrder::Any, other % 2 == 0);
                let called = Called { collective, root: 0, bytes, order, is_in_place, algorithm };
                let mut job = Job::new(4, 7, "chain", &[]);
                job.program.insert(1, Step::Collectives(vec![called]));
                let outcome = job.run();
                for (rank, told) in outcome.ranks.iter().enumerate() {
                    let code = told.calls[0].code;
                    assert!([0, ERROR_SIZE].contains(&code), "{code} on rank {rank} of {job:?}");
                }
                assert_nothing_is_left(&outcome, &job);
            }
        }
    }
}

/// Programs that reduce gigabytes once need them for something else afterwards.
#[test]
fn much_scratch_memory_is_given_back() {
    let algorithm = "recursive-doubling";
    let algorithm = Registry::BUILT_IN.read(Collective::Allreduce, algorithm).unwrap();
    // Twice the data.
    let bytes = vec![MAX_KEPT_SCRATCH_BYTES as u64 * MAX_KEPT as u64 / 2 + 2; 2];
    let called = Called {
        collective: Collective::Allreduce,
        root: 0,
        bytes,
        order: CombinationOrder::Any,
        is_in_place: false,
        algorithm,
    };
    let mut job = Job::new(2, 7, "chain", &[]);
    job.program.insert(1, Step::Collectives(vec![called]));
    let outcome = job.run();
    assert!(outcome.ranks.iter().all(|told| told.calls == [Ended::SERVED_WELL]));
}
