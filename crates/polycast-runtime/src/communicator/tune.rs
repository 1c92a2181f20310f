//! Before the first call of a size its ranks measure together which way serves such calls best (`POLYCAST_TUNE`): apart from the program's
//! data, for as long as there is time.
//!
//! ```text
//!  rank 0   order ─────▶ all    a barrier, then the collective, and so on until rank 0 says at a barrier that it is enough
//!           times ◀───── all    to the end of the last rank
//!           …
//!           what was found ─▶ all, and to the file for later jobs
//! ```
//! # Invariant
//! What the others do follows from rank 0's words alone. It decides by what it has been told and by its own clock.

use std::ffi::{c_int, c_void};
use std::num::NonZeroU64;
use std::ptr::null;
use std::time::{Duration, Instant};

use polycast_core::collective;
use polycast_core::policy::chooser::{Answer, Chosen, Request};
use polycast_core::policy::trials::{Finding, MAX_ARMS, Recalled, Sameness};
use polycast_core::policy::tune::{Found, Known, Order, Session, candidates, levels, promising};
use polycast_core::policy::{self, Capabilities, Choice, Collective, CommunicatorShape, Epoch};
use polycast_core::schedule::{Buffer, Contract};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{CollectiveCall, MpiError, Reduction};
use crate::call::{Buffers, Failure};
use crate::communicator::Communicator;
use crate::machine;
use crate::of_process::change;
use crate::trials::{By, Ledgers, tell};

/// Most bytes that a rank keeps for measuring; a call that needs more is not measured.
const MAX_BYTES: u64 = 128 << 20;
/// Size of the words that are combined, in bytes.
const WORD: NonZeroU64 = NonZeroU64::new(8).unwrap();
/// Divisor of the time that is left: a size has at most that part, for others may come, but at
/// least the shortest share.
const PART_OF_WHAT_IS_LEFT: u32 = 4;
const SHORTEST_SHARE: Duration = Duration::from_millis(250);

/// State by which rank 0 decides what is measured next.
struct Leader {
    session: Session,
    ends: Instant,
}

/// A call that is measured over and over, on this rank.
struct Measured {
    of: collective::Call,
    input: Vec<u64>,
    output: Vec<u64>,
}

impl Communicator {
    /// Finds out which way serves such calls best. Collective.
    pub(super) fn measure(&mut self, request: &Request, root: Rank) -> Result<Answer, Failure> {
        // They are no calls of the program.
        let log = std::mem::take(&mut self.log);
        let outcome = self.measure_apart(request, root);
        self.log = log;
        self.log.begin_again();
        outcome
    }

    fn measure_apart(&mut self, request: &Request, root: Rank) -> Result<Answer, Failure> {
        let Some(serving) = &self.serving else { return Err(Failure::Internal) };
        let (call, shape, budget) = (&request.call, serving.layout.shape, serving.tuning_budget);
        let process = serving.process.clone();
        let began = machine::now();
        let is_first = self.rank == Rank(0);
        let left = budget.unwrap_or_default().saturating_sub(change(&process.measuring, |spent| *spent));
        let share = (left / PART_OF_WHAT_IS_LEFT).max(SHORTEST_SHARE.min(left));
        let is_time = is_first && !share.is_zero();
        let bytes = if is_time { call.bytes.0.to_string() } else { String::new() };
        let told = self.door.say_to_all(bytes)?;
        // Others may have waited for rank 0.
        let began = if is_first { began } else { machine::now() };
        let measured = told
            .parse()
            .ok()
            .and_then(|bytes| Measured::new(shape.ranks, self.rank, call.collective, root, bytes));
        let mut line = String::new();
        if let Some(mut measured) = measured {
            let ways = self.ways(request, shape, measured.of.bytes)?;
            let mut leader = is_first.then(|| {
                let bytes = measured.of.bytes.0;
                // What the job asked its network.
                let known = shape.network.and_then(|network| Known::assumed(shape, network));
                let levels = levels(call.collective, shape, known.as_ref(), bytes);
                let ways = likely(ways, call.collective, known.as_ref(), bytes);
                let session = Session::new(ways, levels, shape.ranks, bytes);
                Leader { session, ends: began + share }
            });
            while let Some(order) = self.order(call.collective, &mut leader)? {
                self.repeat(order, request, &mut measured, &mut leader)?;
            }
            let found = leader.and_then(|leader| leader.session.found());
            let found = found.and_then(|found| self.line_of(call, shape, &found, &process.ledgers));
            line = self.door.say_to_all(found.unwrap_or_default())?;
        }
        change(&process.measuring, |spent| *spent += machine::now() - began);
        let of = Sameness::tuned(call.collective, call.bytes.0, self.chooser.capabilities());
        let known = process.ledgers.tuned_elsewhere(shape, self.chooser.policy(), &line).0.pop();
        let found = known.filter(|found| found.of == of);
        if let Some(Recalled { times, arm, .. }) = &found {
            tell(of, shape, times.clone(), *arm, By::Tuning);
        }
        Ok(Answer::Measured { of, found })
    }

    /// Ways that may serve such calls. Collective: tries multicast and shared memory if some way
    /// needs them.
    fn ways(
        &mut self,
        request: &Request,
        shape: CommunicatorShape,
        bytes: Bytes,
    ) -> Result<Vec<Choice>, Failure> {
        let collective = request.call.collective;
        let all = candidates(collective, shape, bytes.0, self.chooser.capabilities());
        for needed in [Capabilities::MULTICAST, Capabilities::SHARED] {
            if let Some(one) = all.iter().find(|way| way.needs().has(needed)) {
                self.provides(one.needs(), request)?;
            }
        }
        Ok(candidates(collective, shape, bytes.0, self.chooser.capabilities()))
    }

    /// The next measurement, as rank 0 says; `None` at the end. Collective.
    fn order(&self, collective: Collective, leader: &mut Option<Leader>) -> Result<Option<Order>, MpiError> {
        let next = leader.as_mut().and_then(|leader| {
            let left = leader.ends.saturating_duration_since(machine::now());
            leader.session.next(left.as_secs_f64() * 1e6)
        });
        let text = next.map_or_else(String::new, |Order { choice, warms_up, repetitions }| {
            format!("{} {repetitions} {choice}", u32::from(warms_up))
        });
        let told = self.door.say_to_all(text)?;
        let mut words = told.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (warms_up, repetitions, choice) = (word() == "1", word().parse(), word());
        let choice = Choice::read(collective, choice);
        Ok(repetitions.ok().zip(choice.ok()).map(|(repetitions, choice)| Order {
            choice,
            warms_up,
            repetitions,
        }))
    }

    /// Measures a way as ordered, and tells rank 0 the times. Collective.
    fn repeat(
        &mut self,
        Order { choice, warms_up, repetitions }: Order,
        request: &Request,
        measured: &mut Measured,
        leader: &mut Option<Leader>,
    ) -> Result<(), Failure> {
        let mut times = vec![0u64; repetitions as usize];
        let mut made = 0;
        if self.provides(choice.needs(), request)? {
            let (mut last, mut all) = (Duration::ZERO, Duration::ZERO);
            for number in 0..repetitions + u32::from(warms_up) {
                let [last_us, all_us] = [last, all].map(|time| time.as_secs_f64() * 1e6);
                let is_enough = |leader: &Leader| !leader.session.goes_on(last_us, all_us);
                let mut word = [u64::from(leader.as_ref().is_some_and(is_enough))];
                self.door.sum(&mut word)?;
                if word[0] > 0 && number > 0 {
                    break;
                }
                let begun = machine::now();
                let outcome = measured.call(self, choice);
                last = machine::now() - begun;
                all += last;
                match outcome {
                    Ok(()) => {}
                    Err(failure @ Failure::Mpi(_)) => return Err(failure),
                    // This rank alone; nobody waits for it.
                    Err(_) => last = Duration::from_secs(3600),
                }
                // What is left after the first one, which may have made connections, is all that there is.
                made += usize::from(number > 0 || !warms_up);
                times[made.saturating_sub(1)] = last.as_nanos() as u64;
            }
            made = made.max(1);
        }
        let mine: Vec<u8> = times[..made].iter().flat_map(|time| time.to_le_bytes()).collect();
        let all = self.door.allgather_bytes(&mine, self.ranks as usize)?;
        if let Some(leader) = leader {
            let (words, _) = all.as_chunks::<8>();
            let all: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let latest = |number: usize| all[number..].iter().step_by(made).max().copied().unwrap_or(0);
            leader.session.took((0..made).map(|number| latest(number) as f64 / 1e3).collect());
        }
        Ok(())
    }

    /// Keeps the finding for later jobs, and returns its line; `None` if there is no way but the
    /// MPI's.
    fn line_of(
        &self,
        call: &policy::Call,
        shape: CommunicatorShape,
        found: &Found,
        ledgers: &Ledgers,
    ) -> Option<String> {
        let nanos = |time: &polycast_core::policy::tune::Measured| (time.median_us * 1e3) as u64;
        let mut ways = vec![(found.best, found.time.as_ref().map_or(0, nanos))];
        ways.extend(found.second.as_ref().map(|(choice, time)| (*choice, nanos(time))));
        ways.retain(|(way, _)| *way != Choice::Stock);
        let arm = if found.best == Choice::Stock { ways.len() } else { 0 };
        ways.push((Choice::Stock, found.stock.as_ref().map_or(0, nanos)));
        if ways.len() < 2 {
            return None;
        }
        let mut times = [0; MAX_ARMS];
        times.iter_mut().zip(&ways).for_each(|(time, (_, nanos))| *time = *nanos);
        let of = Sameness::tuned(call.collective, call.bytes.0, self.chooser.capabilities());
        let ways: Vec<Choice> = ways.into_iter().map(|(way, _)| way).collect();
        Some(ledgers.keep_tuned(shape, &ways, &Finding { of, arm: arm as u8, nanos: times }))
    }
}

/// Leaves out ways that cannot win, and puts first those that are likely to be fast.
fn likely(ways: Vec<Choice>, collective: Collective, known: Option<&Known>, bytes: u64) -> Vec<Choice> {
    let mut ways = promising(ways, collective, known, bytes);
    if known.is_some() {
        return ways;
    }
    // By them others are judged before they have taken long.
    ways.sort_by_key(|way| match way {
        Choice::Stock => 0,
        way if way.needs() != Capabilities::PRIVATE => 1,
        Choice::Algorithm(algorithm) if algorithm.segment.is_some() => 2,
        Choice::Algorithm(_) => 3,
    });
    ways
}

impl Measured {
    /// A call to measure; `None`, on all ranks alike, if it takes too much memory.
    fn new(ranks: u32, rank: Rank, collective: Collective, root: Rank, bytes: u64) -> Option<Measured> {
        let is_combined = collective.combines();
        let bytes = if is_combined { bytes.next_multiple_of(WORD.get()) } else { bytes };
        let element = if is_combined { WORD } else { NonZeroU64::MIN };
        let of = collective::Call { element, ..collective::Call::new(collective, ranks, root, Bytes(bytes)) };
        let contract = Contract { call: of };
        let all =
            (0..ranks).map(|rank| [Buffer::Input, Buffer::Output].map(|of| contract.size(Rank(rank), of)));
        let most = all.map(|[input, output]| input.saturating_add(output)).max().unwrap_or(0);
        let memory = |buffer| {
            let bytes = contract.size(rank, buffer);
            // Pages that nobody has written are all the same one.
            vec![1u64; bytes.div_ceil(WORD.get()).max(1) as usize]
        };
        (most <= MAX_BYTES).then(|| Measured {
            of,
            input: memory(Buffer::Input),
            output: memory(Buffer::Output),
        })
    }

    fn call(&mut self, communicator: &mut Communicator, choice: Choice) -> Result<(), Failure> {
        let collective::Call { collective, root, bytes, .. } = self.of;
        let (input, output) = (self.input.as_ptr().cast::<u8>(), self.output.as_mut_ptr().cast::<u8>());
        if choice == Choice::Stock {
            let (collective, root, bytes) = (collective as u32, root.0 as i32, bytes.0 as usize);
            let call = CollectiveCall { collective, root, bytes, reduction: null() };
            // SAFETY: the buffers are as long as the contract says, and nobody looks at them.
            return Ok(unsafe { communicator.door.stock(&call, input, output) }?);
        }
        let buffers = match collective {
            Collective::Broadcast => Buffers::broadcast(output),
            _ => Buffers { input, output, reduction: &raw const ADD },
        };
        // SAFETY: the same; they stay until the call has ended.
        unsafe { communicator.run(Chosen { choice, epoch: Epoch::FIRST, is_ahead: false }, self.of, buffers) }
    }
}

/// Addition of words: combining costs as much as with a simple operation of MPI.
static ADD: Reduction =
    Reduction { element_bytes: 8, is_commutative: 1, is_exact: 1, is_own: 0, combine: add };

unsafe extern "C" fn add(_: *const Reduction, from: *const c_void, into: *mut c_void, bytes: usize) -> c_int {
    for word in 0..bytes / 8 {
        // SAFETY: polycast.h's: both have these bytes, of whole elements. Nothing is said of where they begin.
        unsafe {
            let (from, into) = (from.cast::<u64>().add(word), into.cast::<u64>().add(word));
            into.write_unaligned(into.read_unaligned().wrapping_add(from.read_unaligned()));
        }
    }
    0
}
