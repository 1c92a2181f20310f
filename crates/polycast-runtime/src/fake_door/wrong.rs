//! Calls in which something is wrong to one rank alone, as they reach the runtime (decision 66): the rank takes part with what fits, on scratch memory
//! or with another size, and has its error from its door afterwards. All ranks end, count alike and choose alike, and the others' data is right.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::num::NonZeroU64;
use std::ptr::{null, null_mut};
use std::time::Duration;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Collective, CombinationOrder};
use polycast_core::policy::Choice;
use polycast_core::schedule::Contract;
use polycast_core::units::Rank;
use tempfile::NamedTempFile;

use super::collectives::{Called, DoorReduction, assert_nothing_is_left, before, contribution, expected};
use super::job::{Job, Step};
use super::process::{Ended, Member, Told};
use super::random::{Random, seeds, with_seeds};
use super::room;
use super::sizes::ERROR_SIZE;
use super::stage::Delays;
use super::world;
use crate::abi::CollectiveCall;
use crate::interface::{
    LEFT_AND_TIMED, SERVED, polycast_end_of_stock, polycast_plan, polycast_plan_free, polycast_run,
};

/// What a door makes of arguments that are wrong to its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing can be read: no buffer, a type that was not committed or has no bytes. The others get zeros.
    NothingToSend,
    /// What comes is thrown away, and what is in place is not read.
    NothingToReceive,
    Nothing,
    /// Less than it says itself; the rest is zeros.
    LessToSend,
    /// It says another size than the others.
    Size,
    /// It is handed to the MPI and not counted: what no door may do.
    LeftAlone,
}

/// What doors do.
const KINDS: [Kind; 5] =
    [Kind::NothingToSend, Kind::NothingToReceive, Kind::Nothing, Kind::LessToSend, Kind::Size];

/// A call that goes as the rules say, and the rank to which something is wrong.
#[derive(Clone, Debug)]
pub struct WrongCall {
    called: Called,
    wrong: Option<(u32, Kind)>,
}

impl WrongCall {
    fn kind(&self, rank: u32) -> Option<Kind> {
        self.wrong.filter(|(of, _)| *of == rank).map(|(_, kind)| kind)
    }

    /// Its contribution stands where it receives.
    fn is_in_place(&self, rank: u32) -> bool {
        let Called { collective, .. } = self.called;
        !matches!(collective, Collective::Broadcast | Collective::Scatter)
            && self.called.of(rank).is_in_place_at(Rank(rank))
    }

    /// What the rank contributes, as the others get it.
    fn handed_in(&self, number: usize, rank: u32, length: u64) -> Vec<u8> {
        let mut data = contribution(number, rank, length);
        let from = match (self.kind(rank), self.is_in_place(rank)) {
            (Some(Kind::Nothing), _)
            | (Some(Kind::NothingToSend), false)
            | (Some(Kind::NothingToReceive), true) => 0,
            (Some(Kind::LessToSend), false) => data.len() / 2,
            _ => data.len(),
        };
        data[from..].fill(0);
        data
    }

    /// Input and output before the call.
    fn before(&self, number: usize, rank: u32) -> [Vec<u8>; 2] {
        let call = self.called.of(rank);
        let mut buffers = before(&call, number, rank);
        if let Some(holding) = (Contract { call }).before(Rank(rank)) {
            let place = holding.slice.bytes.start as usize..holding.slice.bytes.end as usize;
            let data = self.handed_in(number, rank, holding.slice.length());
            buffers[holding.slice.buffer as usize][place].copy_from_slice(&data);
        }
        buffers
    }

    /// The output of a rank that gets a block of each, whose sizes differ: as much as comes and as there is room for, and behind that what was there.
    fn blocks_that_fit(&self, number: usize, rank: u32) -> Vec<u8> {
        let Called { collective, ref bytes, .. } = self.called;
        let [_, mut output] = self.before(number, rank);
        let own = bytes[rank as usize] as usize;
        for (from, block) in output.chunks_exact_mut(own).enumerate() {
            let its = bytes[from];
            let (all, first) = match collective {
                Collective::Alltoall => (its * bytes.len() as u64, u64::from(rank) * its),
                _ => (its, 0),
            };
            let came = &contribution(number, from as u32, all)[first as usize..][..its as usize];
            let fitting = own.min(came.len());
            block[..fitting].copy_from_slice(&came[..fitting]);
        }
        output
    }

    /// What the rank must have in its output afterwards, if anything.
    fn expected(&self, number: usize, rank: u32) -> Option<Vec<u8>> {
        match self.wrong {
            // Scratch memory.
            Some((of, Kind::NothingToReceive | Kind::Nothing)) if of == rank => None,
            Some((_, Kind::Size)) if room::is_of_a_root(&self.called) => {
                room::expected(&self.called, number, rank)
            }
            Some((_, Kind::Size))
                if matches!(self.called.collective, Collective::Allgather | Collective::Alltoall) =>
            {
                Some(self.blocks_that_fit(number, rank))
            }
            _ => expected(&self.called.of(rank), rank, |from, length| self.handed_in(number, from, length)),
        }
    }
}

impl Member {
    /// As doors/common/calls.h and collective.c do it. What was chosen, and how it ended but for the error that the MPI gives afterwards.
    pub fn wrong_call(&mut self, call: &WrongCall, number: usize) -> (Choice, Ended) {
        let rank = self.rank;
        let Called { collective, root, ref bytes, order, .. } = call.called;
        let is_ordered = order != CombinationOrder::Any;
        let reduction = DoorReduction::new(&self.door, is_ordered, 1);
        let is_reduction = matches!(collective, Collective::Reduce | Collective::Allreduce);
        let wanted = CollectiveCall {
            collective: collective as u32,
            root: root as c_int,
            bytes: bytes[rank as usize] as usize,
            reduction: if is_reduction { (&raw const reduction).cast() } else { null() },
        };
        let [input, mut output] = call.before(number, rank);
        let asks = call.kind(rank) != Some(Kind::LeftAlone) && self.asks(&wanted, true);
        let mut plan = null_mut();
        let answer = match asks {
            false => 0,
            // SAFETY: the pointer comes from polycast_attach; the reduction outlives the plan.
            true => unsafe { polycast_plan(self.runtime, &wanted, &mut plan) },
        };
        if answer != SERVED {
            let code = self.stock_call(&call.called);
            if answer == LEFT_AND_TIMED {
                // SAFETY: the pointer comes from polycast_attach.
                unsafe { polycast_end_of_stock(self.runtime) };
            }
            return (Choice::Stock, Ended { code, ..Ended::LEFT });
        }
        let is_in_place = call.called.of(rank).is_in_place_at(Rank(rank));
        let received: *mut c_void = output.as_mut_ptr().cast();
        let (send, receive): (*const c_void, _) = match collective {
            Collective::Broadcast => (received, received),
            Collective::Scatter if is_in_place => (input.as_ptr().cast(), null_mut()),
            _ if is_in_place => (null(), received),
            _ => (input.as_ptr().cast(), received),
        };
        // SAFETY: the plan comes from polycast_plan, and the buffers are as long as the contract says.
        let (choice, code) = unsafe {
            let (choice, code) = ((*plan).choice(), polycast_run(plan, send, receive));
            polycast_plan_free(plan);
            (choice, code)
        };
        let has_data = call.expected(number, rank).is_none_or(|expected| output == expected);
        (choice, Ended { is_served: true, code, has_data })
    }

    /// The MPI's: no data moves, but all come.
    fn stock_call(&self, called: &Called) -> c_int {
        let bytes = called.bytes.iter().copied().max().unwrap_or(0);
        let what = world::Collective::Measured {
            collective: called.collective as u32,
            bytes: bytes as usize,
            root: called.root as i32,
        };
        let outcome = self.door.world.meet(self.door.part, what, Vec::new());
        crate::machine::sleep(Duration::from_nanos(2000 * bytes));
        outcome.err().unwrap_or(0)
    }
}

/// Ways that serve such calls wherever the ranks are.
fn ways(random: &mut Random, collective: Collective, is_on_one_node: bool) -> [Algorithm; 2] {
    let mut all = Registry::BUILT_IN.samples(collective);
    if is_on_one_node {
        all.extend(Registry::BUILT_IN.samples_on_one_node(collective));
    }
    // It is planned for a size (docs/architecture.md).
    all.retain(|algorithm| algorithm.entry.name != "link-aware");
    [(); 2].map(|()| {
        let segment = NonZeroU64::new(random.one_of(&[0, 100, 3000]));
        Algorithm { segment, ..random.one_of(&all) }
    })
}

/// A program of calls of one collective, which is served from a call on, and in another way soon afterwards: who counts otherwise shows it.
struct Case {
    job: Job,
    calls: Vec<WrongCall>,
    served_from: usize,
    table: NamedTempFile,
}

/// Calls that are served differently, from `served_from` on.
const BETWEEN: usize = 4;
/// Calls from the last that is left to the end.
const LOOKED_AT: usize = 12;

fn case(random: &mut Random, seed: u64, has_trials: bool) -> Case {
    let collectives: Vec<Collective> =
        Collective::ALL.into_iter().filter(|of| *of != Collective::Barrier).collect();
    let collective = random.one_of(&collectives);
    let ranks = random.within(2, 6);
    let hosts: Vec<u32> = match random.one_in(2) {
        true => vec![0; ranks as usize],
        false => (0..ranks).map(|_| random.below(3) as u32).collect(),
    };
    let ways = ways(random, collective, hosts.iter().all(|host| *host == hosts[0]));
    let keeps = ways.iter().map(|way| way.entry.keeps).min().unwrap_or(CombinationOrder::Any);
    let order = if random.one_in(2) { keeps } else { CombinationOrder::Any };
    let served_from = random.one_of(&[0, 3, 256]) as usize;
    let bytes = random.one_of(&[8, 600, 9000]);
    let right = |random: &mut Random| Called {
        collective,
        root: random.below(ranks) as u32,
        bytes: vec![bytes; ranks as usize],
        order,
        is_in_place: random.one_in(3),
        algorithm: ways[0],
    };
    let first_wrong = served_from.saturating_sub(2);
    let calls = (0..served_from + LOOKED_AT).map(|at| {
        let mut called = right(random);
        let is_last = at + 3 > served_from + LOOKED_AT;
        let wrong = (at >= first_wrong && !is_last && random.one_in(2)).then(|| {
            let kind = random.one_of(&KINDS[..if has_trials { KINDS.len() - 1 } else { KINDS.len() }]);
            (random.below(ranks) as u32, kind)
        });
        if let Some((rank, Kind::Size)) = wrong {
            called.bytes[rank as usize] = 2 * random.within(1, bytes);
        }
        WrongCall { called, wrong }
    });
    let calls: Vec<WrongCall> = calls.collect();
    let table = NamedTempFile::new().unwrap();
    let rule = |condition: &str, choice: &str| {
        format!("[[rule]]\ncollective = \"{collective}\"\n{condition}use = \"{choice}\"\n")
    };
    let from = |call: usize| format!("earlier_calls = \"{call}..\"\n");
    let rules = [
        rule(&from(served_from + BETWEEN), &ways[1].to_string()),
        rule(&from(served_from), &ways[0].to_string()),
        rule("", "stock"),
    ];
    std::fs::write(table.path(), "version = 1\n".to_owned() + &rules.concat()).unwrap();
    let mut job = Job::new(ranks as u32, seed, "", &[]);
    job.conditions.hosts = hosts;
    job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
    job = job.with(None, "POLYCAST_TRIALS", if has_trials { "on" } else { "off" });
    job.conditions.eager_bytes = random.one_of(&[0, 1000, 1 << 20]);
    if random.one_in(2) {
        job.conditions.delays = Delays { one_in: 20, most: Duration::from_millis(2) };
    }
    let mut case = Case { job, calls, served_from, table };
    case.write_program();
    case
}

impl Case {
    fn write_program(&mut self) {
        let mut program = vec![self.job.program[0].clone()];
        program.extend(self.calls.iter().cloned().map(Step::Wrong));
        program.push(Step::Free { communicator: 0 });
        self.job.program = program;
    }

    /// The rules, for who looks at a test that failed.
    fn rules(&self) -> String {
        std::fs::read_to_string(self.table.path()).unwrap()
    }
}

/// Whether a call of different sizes ended on a rank as it may: with the error, with the right data, or, on the rank that is wrong, in any way without
/// an error (who sends only does not know).
fn ended_as_it_may(call: &WrongCall, rank: u32, ended: &Ended) -> bool {
    match call.wrong {
        Some((of, Kind::Size)) => {
            let is_right_or_wrong = ended.is_right() || (of == rank && ended.code == 0);
            ended.code == ERROR_SIZE || is_right_or_wrong
        }
        _ => ended.is_right(),
    }
}

#[test]
fn a_rank_to_which_something_is_wrong_is_counted() {
    let counts: Vec<(Collective, Kind, Cell<usize>)> = Collective::ALL
        .into_iter()
        .filter(|of| *of != Collective::Barrier)
        .flat_map(|of| KINDS.map(|kind| (of, kind, Cell::new(0))))
        .collect();
    with_seeds(300, |seed| {
        let random = &mut Random::new(seed);
        let has_trials = random.one_in(3);
        let case = case(random, seed, has_trials);
        let Case { job, calls, served_from, .. } = &case;
        let outcome = job.run();
        let of_first = &outcome.ranks[0];
        for (rank, told) in outcome.ranks.iter().enumerate() {
            let place =
                |at| format!("call {at}, rank {rank}, seed {seed}: {:?}\n{}", calls[at], case.rules());
            assert_eq!(told.calls.len(), calls.len(), "rank {rank}, seed {seed}");
            for (at, (call, ended)) in calls.iter().zip(&told.calls).enumerate() {
                assert!(ended_as_it_may(call, rank as u32, ended), "{ended:?}, {}", place(at));
                assert_eq!(told.choices[at], of_first.choices[at], "{}", place(at));
                assert_eq!(ended.is_served, of_first.calls[at].is_served, "{}", place(at));
                assert!(has_trials || ended.is_served == (at >= *served_from), "{}", place(at));
            }
        }
        assert_eq!(outcome.unreceived, 0, "{job:?}");
        assert_nothing_is_left(&outcome, job);
        for (call, _) in calls.iter().zip(&of_first.calls).filter(|(_, ended)| ended.is_served) {
            let is_its = |of: &&(Collective, Kind, _)| {
                of.0 == call.called.collective && call.wrong.is_some_and(|(_, kind)| kind == of.1)
            };
            counts.iter().filter(is_its).for_each(|(.., count)| count.set(count.get() + 1));
        }
    });
    let is_met = |(.., count): &(Collective, Kind, Cell<usize>)| count.get() > 5;
    assert!(seeds(300).count() < 300 || counts.iter().all(is_met), "{counts:?}");
}

/// What the test above looks for is there if a rank makes a call by itself, whether the others' is served or left.
#[test]
fn a_rank_that_leaves_a_call_alone_is_noticed() {
    with_seeds(20, |seed| {
        let random = &mut Random::new(seed);
        let mut case = case(random, seed, false);
        let rank = random.below(u64::from(case.job.ranks())) as u32;
        let at = (case.served_from + random.below(2) as usize).saturating_sub(1);
        for (number, call) in case.calls.iter_mut().enumerate() {
            let bytes = call.called.bytes[call.called.root as usize];
            call.called.bytes.fill(bytes);
            call.wrong = (number == at).then_some((rank, Kind::LeftAlone));
        }
        case.write_program();
        match case.job.try_run() {
            Err(wrong) => {
                let is_it = wrong.starts_with("nobody goes on: ") || wrong.contains(" where others call ");
                assert!(is_it, "{wrong}");
            }
            // Nobody waits for a rank that only receives.
            Ok(outcome) => {
                let choices = |told: &Told| told.choices == outcome.ranks[0].choices;
                assert!(!outcome.ranks.iter().all(choices), "{:?}", case.job);
            }
        }
    });
}
