use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::mail::{Done, Mail};
use super::random::Random;
use super::{ABORTED, INJECTED, MISUSED};

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// allgather, broadcast, open_private.
    Collective,
    Isend,
    Irecv,
    Poll,
}

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub rank: u32,
    pub function: Function,
    /// Which call of this function on this rank, counted from 0.
    pub nth: u32,
    /// Of collectives: this rank still takes part for the others. Else they wait for it.
    pub is_late: bool,
}

/// Changes the record (src/attach/record.rs) that the others get from a rank.
pub type Tamper = fn(rank: u32, record: &mut [u8]);

/// A collective call on the program's communicator. Ranks must agree on all but the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    Allgather {
        bytes: usize,
    },
    Broadcast {
        bytes: usize,
        root: u32,
    },
    OpenPrivate,
    /// Of the program, by the stock MPI.
    Stock {
        root: u32,
    },
}

struct Meeting {
    what: Collective,
    parts: Vec<Option<Vec<u8>>>,
}

struct RankState {
    collectives: usize,
    calls: HashMap<Function, u32>,
    random: Random,
    /// The last call, for those who ask why it does not return.
    doing: String,
}

struct State {
    meetings: Vec<Meeting>,
    ranks: Vec<RankState>,
    mail: Mail,
    is_aborted: bool,
    failed: Option<String>,
    mismatch: Option<String>,
}

/// All that the ranks of a job share.
pub struct World {
    size: u32,
    /// MPI can make private communicators.
    pub has_private: bool,
    pub fault: Option<Fault>,
    pub tamper: Option<Tamper>,
    state: Mutex<State>,
    changed: Condvar,
}

impl World {
    /// Of this many ranks; `seed` decides what happens when.
    pub fn new(size: u32, seed: u64) -> World {
        let rank = |rank| RankState {
            collectives: 0,
            calls: HashMap::new(),
            random: Random::new(seed.wrapping_mul(1_000_003).wrapping_add(rank)),
            doing: "nothing".to_owned(),
        };
        let state = State {
            meetings: Vec::new(),
            ranks: (0..u64::from(size)).map(rank).collect(),
            mail: Mail::default(),
            is_aborted: false,
            failed: None,
            mismatch: None,
        };
        World {
            size,
            has_private: true,
            fault: None,
            tamper: None,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; whether it is to fail.
    fn enter(&self, state: &mut State, rank: u32, function: Function, doing: String) -> Option<Fault> {
        let mine = &mut state.ranks[rank as usize];
        let calls = mine.calls.entry(function).or_default();
        let nth = *calls;
        *calls += 1;
        mine.doing.clone_from(&doing);
        let fault =
            self.fault.filter(|fault| (fault.rank, fault.function, fault.nth) == (rank, function, nth));
        if fault.is_some() {
            state.failed = Some(doing);
        }
        fault
    }

    /// The parts of those that count for this rank.
    pub fn meet(&self, rank: u32, what: Collective, mut mine: Vec<u8>) -> Result<Vec<Vec<u8>>, c_int> {
        let mut state = self.lock();
        let fault = self.enter(&mut state, rank, Function::Collective, format!("{what:?}"));
        if fault.is_some_and(|fault| !fault.is_late) {
            return Err(INJECTED);
        }
        let index = state.ranks[rank as usize].collectives;
        state.ranks[rank as usize].collectives += 1;
        if index == state.meetings.len() {
            state.meetings.push(Meeting { what, parts: vec![None; self.size as usize] });
        }
        if state.meetings[index].what != what {
            let other = state.meetings[index].what;
            state.mismatch = Some(format!("rank {rank} calls {what:?} where others call {other:?}"));
            state.is_aborted = true;
            self.changed.notify_all();
            return Err(MISUSED);
        }
        if let Some(tamper) = self.tamper.filter(|_| index == 0) {
            tamper(rank, &mut mine);
        }
        state.meetings[index].parts[rank as usize] = Some(mine);
        self.changed.notify_all();
        let is_over = |state: &State| match what {
            Collective::Broadcast { root, .. } | Collective::Stock { root } => {
                state.meetings[index].parts[root as usize].is_some()
            }
            _ => state.meetings[index].parts.iter().all(Option::is_some),
        };
        while !is_over(&state) && !state.is_aborted {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match (is_over(&state), fault) {
            (false, _) => Err(ABORTED),
            (true, Some(_)) => Err(INJECTED),
            (true, None) => {
                Ok(state.meetings[index].parts.iter().map(|part| part.clone().unwrap_or_default()).collect())
            }
        }
    }

    pub fn send(&self, rank: u32, peer: u32, tag: c_int, slot: u32, data: Vec<u8>) -> Result<(), c_int> {
        let mut state = self.lock();
        let doing = format!("isend of {} bytes to rank {peer} with tag {tag}", data.len());
        if self.enter(&mut state, rank, Function::Isend, doing).is_some() {
            return Err(INJECTED);
        }
        let is_eager = state.ranks[rank as usize].random.one_in(2);
        state.mail.send((rank, peer, tag), slot, data, is_eager)
    }

    pub fn receive(
        &self,
        rank: u32,
        peer: u32,
        tag: c_int,
        slot: u32,
        place: usize,
        bytes: usize,
    ) -> Result<(), c_int> {
        let mut state = self.lock();
        let doing = format!("irecv of {bytes} bytes from rank {peer} with tag {tag}");
        if self.enter(&mut state, rank, Function::Irecv, doing).is_some() {
            return Err(INJECTED);
        }
        state.mail.receive((peer, rank, tag), slot, place, bytes)
    }

    /// # Safety
    /// As for [`Mail::poll`].
    pub unsafe fn poll(&self, rank: u32) -> Result<Vec<Done>, c_int> {
        let mut state = self.lock();
        if self.enter(&mut state, rank, Function::Poll, "poll".to_owned()).is_some() {
            return Err(INJECTED);
        }
        let State { mail, ranks, is_aborted, .. } = &mut *state;
        // SAFETY: handed on from the caller.
        let done = unsafe { mail.poll(rank, &mut ranks[rank as usize].random) }?;
        if done.is_empty() && *is_aborted { Err(ABORTED) } else { Ok(done) }
    }

    pub fn abandon(&self, rank: u32) {
        self.lock().mail.abandon(rank);
    }

    pub fn outstanding_receives(&self, rank: u32) -> usize {
        self.lock().mail.outstanding_receives(rank).len()
    }

    /// Nobody waits any more.
    pub fn abort(&self) {
        self.lock().is_aborted = true;
        self.changed.notify_all();
    }

    /// The last call of a rank, and for whose messages it waits.
    pub fn doing(&self, rank: u32) -> String {
        let state = self.lock();
        let doing = &state.ranks[rank as usize].doing;
        let awaited = state.mail.outstanding_receives(rank);
        let awaited = awaited.iter().map(|(peer, tag)| format!(", rank {peer} with tag {tag}"));
        format!("{doing}{}", awaited.collect::<String>())
    }

    /// The call that has failed because the test says so.
    pub fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Ranks that called different collectives: they did not agree on something.
    pub fn mismatch(&self) -> Option<String> {
        self.lock().mismatch.clone()
    }
}
