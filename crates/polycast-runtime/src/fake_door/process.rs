//! One process of a job: what the doors in C do, and the program before and after.

use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use polycast_core::policy::Choice;

use super::ahead;
use super::allocations::{self, counted};
use super::conditions::Conditions;
use super::environments;
use super::job::{Broadcast, Job, Step};
use super::machine::RankMachine;
use super::mail::Part;
use super::random::Random;
use super::table::{self, RankDoor, TABLE};
use super::world::{Collective, World};
use crate::abi::{CollectiveCall, PassedCounts, Passing};
use crate::attach::leave_only_numbers;
use crate::communicator::{Communicator, Operation, Process};
use crate::fault;
use crate::interface::{
    LEFT_AND_TIMED, SERVED, polycast_attach, polycast_begin, polycast_build_identity, polycast_detach,
    polycast_end_of_stock, polycast_finalize, polycast_first_passing, polycast_is_enabled, polycast_plan,
    polycast_plan_free, polycast_run, polycast_set, polycast_start, polycast_test, polycast_wait,
};
use crate::machine::test::enter;
use crate::operation::MARK;
use crate::tags::TagSpace;

const ERROR_SIZE: c_int = -2;

/// How a call ended on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub is_served: bool,
    /// 0, an error of MPI or one of polycast.h.
    pub code: c_int,
    /// The rank called with as many bytes as the root, and has them.
    pub has_data: bool,
}

impl Ended {
    pub const SERVED_WELL: Ended = Ended { is_served: true, code: 0, has_data: true };
    pub const LEFT: Ended = Ended { is_served: false, ..Ended::SERVED_WELL };

    /// Whoever serves it.
    pub fn is_right(&self) -> bool {
        self.code == 0 && self.has_data
    }
}

/// What became of a process.
#[derive(Debug, Default)]
pub struct Told {
    /// Up to the first error that ends the program.
    pub calls: Vec<Ended>,
    /// What was chosen for each of them.
    pub choices: Vec<Choice>,
    /// When each had returned, in the time of the ranks.
    pub returned: Vec<Duration>,
    /// When that call, or the last, had returned.
    pub outstanding_receives: usize,
    /// Communicators that polycast takes care of.
    pub attached: usize,
    /// Those of which it is through with all before MPI ends.
    pub closed: usize,
    /// How often each call asked for memory.
    pub allocations: Vec<u64>,
    /// The most memory that it had after a call, but for what the door and the machine have, in bytes.
    pub memory: u64,
    /// What it knows of networks.
    pub networks: Vec<polycast_core::network::Network>,
    /// On standard error.
    pub said: String,
}

/// A communicator of this process, from when it is made until MPI ends.
pub struct Member {
    pub door: Arc<RankDoor>,
    pub rank: u32,
    /// NULL if it is not attached, or not any more.
    pub runtime: *mut Communicator,
    is_attached: bool,
    /// It may be attached.
    is_new: bool,
    /// NULL: it has had no call that the door would make it for.
    passing: *const Passing,
    counts: Box<PassedCounts>,
    world_ranks: Vec<u32>,
}

/// `None` if it panicked outside of polycast.
pub fn run(job: &Job, rank: u32, world: &Arc<World>) -> Option<Told> {
    world.stage.enter(rank);
    enter(Rc::new(RankMachine {
        world: world.clone(),
        rank,
        variables: job.variables_of(rank),
        reads: Cell::new(0),
    }));
    environments::enter(job.environments.get(rank as usize).copied());
    let told = catch_unwind(AssertUnwindSafe(|| run_program(job, rank, world))).ok();
    if told.is_none() {
        world.abort();
    }
    world.stage.leave(rank);
    told
}

fn run_program(job: &Job, process: u32, world: &Arc<World>) -> Told {
    table::enter(world.clone(), process);
    if let Some((_, point, nth)) = job.panic.filter(|(of, ..)| *of == process) {
        fault::arm(point, nth);
    }
    let mut told = Told::default();
    let is_other = job.other_build == Some(process);
    let is_served = vote(world, process, is_other) || job.ignores_vote == Some(process);
    let of_world = RankDoor::new(world, Part { communicator: 0, process });
    allocations::hold();
    let is_served = is_served && begin(&of_world);
    let mut members: Vec<Option<Member>> = Vec::new();
    for (number, step) in job.program.iter().enumerate() {
        match step {
            Step::Make { members: of } => {
                members.push(Member::make(world, members.len() + 1, of, process, is_served));
            }
            Step::Pause { process: of, time } if *of == process => {
                world.stage.pause(process, *time);
            }
            Step::Pause { .. } => {}
            Step::Free { communicator } => {
                if let Some(member) = &mut members[*communicator] {
                    member.give_up(0);
                }
            }
            Step::Configure(choices) => {
                let value = CString::new(choices[process as usize]).expect("a word");
                // SAFETY: both are C strings.
                assert_eq!(unsafe { polycast_set(c"POLYCAST_BCAST".as_ptr(), value.as_ptr()) }, 0);
            }
            Step::Broadcast(call) => {
                let Some(member) = &mut members[call.communicator] else { continue };
                let (choice, ended, allocations) = member.broadcast(call, number);
                told.allocations.push(allocations);
                told.calls.push(ended);
                told.memory = told.memory.max(allocations::held());
                told.returned.push(Duration::from_nanos(world.stage.nanos()));
                told.choices.push(choice);
                if ![0, ERROR_SIZE].contains(&ended.code) {
                    world.abort();
                    break;
                }
            }
            Step::Wrong(call) => {
                let [Some(member), ..] = &mut members[..] else { continue };
                let (choice, ended) = member.wrong_call(call, number);
                told.choices.push(choice);
                told.calls.push(ended);
            }
            Step::DoubleSum(sum) => {
                let [Some(member), ..] = &mut members[..] else { continue };
                told.calls.push(member.double_sum(sum, job.ranks()));
            }
            Step::Ahead(calls) => {
                let random = &mut Random::new(job.seed.wrapping_mul(1_000_033) ^ u64::from(process));
                told.calls.extend(ahead::start(&mut members, calls, number, random));
            }
            Step::InFlight(_) | Step::Collectives(_) => {
                let random = &mut Random::new(job.seed.wrapping_mul(1_000_003) ^ u64::from(process));
                let ended = match (step, &mut members[..]) {
                    (Step::InFlight(calls), members) => match &mut members[calls[0].communicator] {
                        Some(member) => member.in_flight(calls, number, random),
                        None => continue,
                    },
                    (Step::Collectives(calls), [Some(member), ..]) => {
                        member.collectives(calls, number, random)
                    }
                    _ => continue,
                };
                told.calls.extend(&ended);
                if ended.iter().any(|ended| ![0, ERROR_SIZE].contains(&ended.code)) {
                    // By then all has ended that can.
                    world.stage.wait(process, Some(Duration::from_millis(50)), false);
                    world.abort();
                    break;
                }
            }
        }
    }
    let mut members: Vec<Member> = members.into_iter().flatten().collect();
    let receives = members.iter().map(|member| world.outstanding_receives(member.door.part));
    told.outstanding_receives = receives.sum();
    finalize(&mut members, job.seed, world, process);
    assert!(environments::is_programs(), "polycast leaves the program's floating-point environment as it is");
    told.networks = Process::here().networks.all();
    told.said = world.said(process);
    told.attached = members.iter().filter(|member| member.is_attached).count();
    told.closed = members.iter().filter(|member| member.door.is_closed.load(Ordering::Relaxed)).count();
    told
}

/// As doors/pmpi/vote.c: all ranks are ready alike, or stock serves all.
fn vote(world: &Arc<World>, process: u32, is_other: bool) -> bool {
    let identity = match polycast_is_enabled() {
        0 => 0,
        _ => polycast_build_identity() ^ u64::from(is_other),
    };
    let part = Part { communicator: 0, process };
    let votes = world.meet(part, Collective::Vote, identity.to_le_bytes().to_vec());
    votes.is_ok_and(|votes| {
        identity != 0 && votes.as_chunks().0.iter().all(|vote| *vote == identity.to_le_bytes())
    })
}

/// As doors/common/communicator.c: a private communicator of all ranks, by which they can be served.
fn begin(of_world: &RankDoor) -> bool {
    let RankDoor { world, part, .. } = of_world;
    let Conditions { has_private, tag_most, has_threads, ref hosts, .. } = world.conditions;
    let handle: *mut c_void = (&raw const *of_world).cast_mut().cast();
    let (rank, size) = (part.process as c_int, hosts.len() as c_int);
    let is_open = world.meet(*part, Collective::OpenPrivate, Vec::new());
    // SAFETY: the table accepts this handle.
    let begin = || unsafe { polycast_begin(&TABLE, handle, rank, size, tag_most, has_threads.into()) };
    if let (Some(numbers), Some(tags)) = (world.conditions.numbers, TagSpace::new(TagSpace::bits(tag_most))) {
        leave_only_numbers(numbers, tags.agreed_numbers());
    }
    is_open.is_ok() && has_private && begin() != 0
}

/// As doors/common/communicator.c: what is still there is given up in any order, and MPI frees it.
fn finalize(members: &mut [Member], seed: u64, world: &World, process: u32) {
    Random::new(seed ^ u64::from(process)).shuffle(members);
    members.iter().for_each(|member| member.door.is_over.store(true, Ordering::Relaxed));
    members.iter_mut().for_each(|member| member.give_up(1));
    // SAFETY: the table is one.
    unsafe { polycast_finalize(&TABLE, process as c_int) };
    // What fails there has failed before.
    let _ = world.meet(Part { communicator: 0, process }, Collective::Finalize, Vec::new());
}

/// What a rank has in its buffer after a broadcast: as much of the root's data as there is room for, and behind that what was there.
fn received(call: &Broadcast, number: usize, bytes: usize) -> Vec<u8> {
    let mut buffer = data(number, call.bytes[call.root as usize]);
    buffer.truncate(bytes);
    buffer.resize(bytes, 0xaa);
    buffer
}

impl Member {
    /// `None` if this process is none.
    fn make(world: &Arc<World>, number: usize, of: &[u32], process: u32, is_served: bool) -> Option<Member> {
        world.make(number, of);
        let rank = of.iter().position(|member| *member == process)? as u32;
        let part = Part { communicator: number, process };
        Some(Member {
            door: Arc::new(RankDoor::new(world, part)),
            rank,
            runtime: null_mut(),
            is_attached: false,
            is_new: is_served && of.len() > 1,
            passing: null(),
            counts: Box::default(),
            world_ranks: of.to_vec(),
        })
    }

    /// As doors/common/communicator.c.
    pub fn attach(&mut self) {
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        let handle: *mut c_void = Arc::as_ptr(&self.door).cast_mut().cast();
        // SAFETY: the table accepts this handle, which lives until MPI has ended, as the counts do.
        let error = unsafe {
            polycast_attach(
                &TABLE,
                handle,
                self.rank as c_int,
                self.world_ranks.len() as c_int,
                self.world_ranks.as_ptr().cast(),
                self.counts.as_mut_ptr(),
                &mut self.runtime,
            )
        };
        assert_eq!(error, 0, "attaching gives no error");
        self.is_attached = !self.runtime.is_null();
        self.passing = self.runtime.cast_const().cast();
    }

    fn give_up(&mut self, is_over: c_int) {
        // SAFETY: the pointer comes from polycast_attach, and is not used again.
        unsafe { polycast_detach(std::mem::replace(&mut self.runtime, null_mut()), is_over) };
    }

    /// As doors/common/calls.h: true if the runtime, which has the communicator then, is asked about
    /// the call.
    pub fn asks(&mut self, wanted: &CollectiveCall, is_waited: bool) -> bool {
        let of = wanted.collective as usize;
        // SAFETY: tables have an entry for each collective; that of an attached communicator stays as long as it.
        let passing = |table: *const Passing| unsafe { *table.add(of) };
        if self.passing.is_null() {
            let table = polycast_first_passing(self.world_ranks.len() as c_int);
            // Nothing is counted yet.
            if passing(table).passes(wanted.bytes, &mut { u32::MAX }) {
                return false;
            }
            self.passing = table;
        }
        let is_left = !self.is_new && self.runtime.is_null();
        if is_left || is_waited && passing(self.passing).passes(wanted.bytes, &mut self.counts[of]) {
            return false;
        }
        self.attach();
        !self.runtime.is_null()
    }

    /// What was chosen, how it ended, and how often it asked for memory.
    fn broadcast(&mut self, call: &Broadcast, number: usize) -> (Choice, Ended, u64) {
        let bytes = call.bytes[self.rank as usize];
        let expected = data(number, bytes);
        let mut buffer = if self.rank == call.root { expected.clone() } else { vec![0xaa; bytes] };
        let wanted = wanted(call.root, bytes);
        let mut plan = null_mut();
        let asks = self.asks(&wanted, true);
        let choose = || match asks {
            false => 0,
            // SAFETY: the pointer comes from polycast_attach.
            true => unsafe { polycast_plan(self.runtime, &wanted, &mut plan) },
        };
        let (choice, of_plan) = counted(choose);
        let mut allocations = of_plan;
        let mut chosen = Choice::Stock;
        let code = if choice == SERVED {
            let place: *mut c_void = buffer.as_mut_ptr().cast();
            // SAFETY: the plan comes from polycast_plan, and the buffer has these bytes.
            unsafe {
                chosen = (*plan).choice();
                let (code, of_run) = counted(|| {
                    let code = polycast_run(plan, place, place);
                    polycast_plan_free(plan);
                    code
                });
                allocations += of_run;
                code
            }
        } else {
            let code = self.broadcast_by_stock(call.root, &mut buffer);
            if choice == LEFT_AND_TIMED {
                // SAFETY: the pointer comes from polycast_attach.
                unsafe { polycast_end_of_stock(self.runtime) };
            }
            code
        };
        let has_data = buffer == received(call, number, bytes);
        (chosen, Ended { is_served: choice == SERVED, code, has_data }, allocations)
    }

    fn in_flight(&mut self, calls: &[Broadcast], number: usize, random: &mut Random) -> Vec<Ended> {
        self.attach();
        let bytes = |call: &Broadcast| call.bytes[self.rank as usize];
        let expected: Vec<Vec<u8>> = (number..).zip(calls).map(|(at, call)| data(at, bytes(call))).collect();
        let mut buffers = expected.clone();
        let of_others = calls.iter().zip(&mut buffers).filter(|(call, _)| call.root != self.rank);
        of_others.for_each(|(_, buffer)| buffer.fill(0xaa));
        let (mut started, mut codes) = (Vec::new(), vec![None; calls.len()]);
        let test = |operation: &Operation| {
            let mut has_ended = 0;
            // SAFETY: polycast_start has filled it, and it is asked no more when it has ended.
            let code = unsafe { polycast_test(operation, &mut has_ended) };
            (has_ended != 0).then_some(code)
        };
        for (at, (call, buffer)) in calls.iter().zip(&mut buffers).enumerate() {
            let place: *mut c_void = buffer.as_mut_ptr().cast();
            let mut operation = Operation { communicator: null_mut(), key: 0 };
            let mut plan = null_mut();
            // SAFETY: the pointer comes from polycast_attach, and is not NULL where calls are in flight. The buffer has these bytes,
            // and is looked at when all have ended.
            let code = unsafe {
                assert_eq!(polycast_plan(self.runtime, &wanted(call.root, bytes(call)), &mut plan), SERVED);
                polycast_start(plan, place, place, &mut operation)
            };
            codes[at] = (code != 0).then_some(code);
            started.push((operation, plan));
            let other = random.below(started.len() as u64) as usize;
            codes[other] = codes[other].or_else(|| test(&started[other].0));
        }
        while codes.contains(&None) {
            let at = random.below(calls.len() as u64) as usize;
            codes[at] = codes[at].or_else(|| match random.one_in(3) {
                // SAFETY: polycast_start has filled it, and it has not ended.
                true => Some(unsafe { polycast_wait(&started[at].0) }),
                false => test(&started[at].0),
            });
        }
        // SAFETY: they come from polycast_plan, and what they started has ended.
        started.iter().for_each(|(_, plan)| unsafe { polycast_plan_free(*plan) });
        let ended = |at: usize| Ended {
            is_served: true,
            code: codes[at].unwrap_or(0),
            has_data: buffers[at] == received(&calls[at], number + at, bytes(&calls[at])),
        };
        (0..calls.len()).map(ended).collect()
    }

    fn broadcast_by_stock(&self, root: u32, buffer: &mut Vec<u8>) -> c_int {
        let RankDoor { world, part, .. } = &*self.door;
        match world.meet(*part, Collective::Stock { root }, buffer.clone()) {
            Ok(outcome) => {
                *buffer = outcome.to_vec();
                0
            }
            Err(code) => code,
        }
    }
}

pub(super) fn wanted(root: u32, bytes: usize) -> CollectiveCall {
    let collective = polycast_core::collective::Collective::Broadcast as u32;
    CollectiveCall { collective, root: root as c_int, bytes, reduction: null() }
}

/// No two broadcasts have the same, and no two stretches of one. Some begin as announcements do, of so many bytes as follow.
pub(super) fn data(number: usize, bytes: usize) -> Vec<u8> {
    const MAX_BYTES: usize = 1 << 18;
    static ALL: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..MAX_BYTES).map(|index| (index + index / 251) as u8).collect());
    let mut data = ALL[1009 * (number % 100)..][..bytes].to_vec();
    let announcement = [MARK, (bytes as u64).saturating_sub(16).to_le_bytes()].concat();
    if number % 3 == 1 && bytes >= 32 {
        data.iter_mut().zip(announcement).for_each(|(byte, marked)| *byte = marked);
    }
    data
}
