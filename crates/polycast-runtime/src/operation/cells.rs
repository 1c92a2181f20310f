//! A call through the cells of the only node: fills and reads what the [`Rounds`] of its algorithm say. There is nothing between it and memory, for
//! a message of a few cache lines takes no longer than what would be in between.

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::cells::{CellSource, Put, Rounds, Take};
use polycast_core::collective::{self, Collective};
use polycast_core::policy;
use polycast_core::schedule::Slice;
use polycast_core::units::Bytes;
use polycast_shm::{Cells, Look, Moment};

use super::way::{Made, Way};
use super::{Call, Shared};
use crate::abi::MpiError;
use crate::call::{Activity, Buffers, Failure, OperationKey, Progress};
use crate::fault::{self, Point};
use crate::node_memory::Mapped;

/// A call through cells, kept to serve one call after another that is the same.
pub struct CellCall {
    algorithm: Algorithm,
    of: collective::Call,
    /// Bytes of the rounds: the call's, or fewer if the root has those.
    bytes: u64,
    rounds: Rounds,
    scratch: Vec<u8>,
    /// The round for which `puts` and `takes` were worked out. Most calls have one round, whose
    /// work is worked out once.
    prepared: Option<u64>,
    puts: Vec<Put>,
    takes: Vec<Take>,
    operation: u32,
    round: u64,
    /// True if the cell was filled in this round; `taken` counts what was taken in it.
    is_filled: bool,
    taken: usize,
    /// The first failure. The data that this rank has is then worth nothing, and so is what it
    /// tells from now on.
    failure: Option<Failure>,
    /// Size in bytes that another rank was called with, if it differs from this rank's.
    told: Option<u64>,
}

/// Makes the way of an algorithm that goes through cells.
pub(super) fn make(algorithm: Algorithm, call: &Call, shared: &mut Shared) -> Made {
    let make = || Ok(Box::new(CellCall::new(&algorithm, &call.of, shared).ok_or(Failure::Internal)?) as _);
    algorithm.is_through_cells().then(make)
}

impl Way for CellCall {
    fn begin(&mut self, _: OperationKey, call: &Call, shared: &mut Shared) -> Result<(), Failure> {
        self.begin_operation(call.operation, shared)
    }

    fn progress(&mut self, call: &Call, shared: &mut Shared) -> Result<Progress, Failure> {
        self.go_on(&call.buffers, shared)
    }

    fn leave(&mut self, call: &Call, shared: &mut Shared) {
        if let Some(memory) = &mut shared.memory {
            memory.cells().end(call.operation as u32);
        }
    }

    fn waits_for_memory(&self) -> bool {
        true
    }
}

/// The rounds of a call on this rank; `None` if the ranks share no memory.
fn rounds(algorithm: &Algorithm, call: &collective::Call, shared: &mut Shared) -> Option<Rounds> {
    // A rank that is alone fills no cell.
    let room = match &mut shared.memory {
        Some(memory) => memory.cells().room(),
        None if call.ranks == 1 => u64::MAX,
        None => return None,
    };
    Some(Rounds::new(algorithm, call, shared.rank, room))
}

impl CellCall {
    /// A call through the node's cells; `None` if the ranks share no memory.
    pub fn new(algorithm: &Algorithm, call: &collective::Call, shared: &mut Shared) -> Option<CellCall> {
        let rounds = rounds(algorithm, call, shared)?;
        Some(CellCall {
            algorithm: *algorithm,
            of: *call,
            bytes: call.bytes.0,
            rounds,
            scratch: vec![0; rounds.scratch_bytes() as usize],
            prepared: None,
            puts: Vec::new(),
            takes: Vec::new(),
            operation: 0,
            round: 0,
            is_filled: false,
            taken: 0,
            failure: None,
            told: None,
        })
    }

    /// Makes this serve calls like `call` from now on, in the memory that there is.
    #[inline]
    pub fn turn_to(
        &mut self,
        algorithm: &Algorithm,
        call: &collective::Call,
        shared: &mut Shared,
    ) -> Option<()> {
        if self.of != *call || self.algorithm != *algorithm {
            self.rounds = rounds(algorithm, call, shared)?;
            (self.algorithm, self.of, self.prepared) = (*algorithm, *call, None);
            self.bytes = call.bytes.0;
            self.scratch.resize(self.rounds.scratch_bytes() as usize, 0);
        }
        Some(())
    }

    /// The call that this serves, and its algorithm.
    pub fn call(&self) -> (policy::Call, Algorithm) {
        (policy::Call::from(&self.of), self.algorithm)
    }

    /// Begins an operation. All ranks begin their operations in the same order.
    pub fn begin_operation(&mut self, operation: u64, shared: &mut Shared) -> Result<(), Failure> {
        (self.operation, self.round, self.is_filled, self.taken) = (operation as u32, 0, false, 0);
        (self.failure, self.told) = (None, None);
        if self.bytes != self.of.bytes.0 {
            self.rounds = rounds(&self.algorithm, &self.of, shared).ok_or(Failure::Internal)?;
            (self.bytes, self.prepared) = (self.of.bytes.0, None);
        }
        shared.memory.as_mut().ok_or(Failure::Internal)?.cells().begin(self.operation);
        fault::point(Point::Message);
        Ok(())
    }

    /// Goes on as far as the other ranks are. The buffers are valid as [`super::Operations::start`]
    /// says.
    pub fn go_on(&mut self, buffers: &Buffers, shared: &mut Shared) -> Result<Progress, Failure> {
        let cells = shared.memory.as_mut().ok_or(Failure::Internal)?.cells();
        if !cells.is_under_way(self.operation) {
            return Ok(Progress::Pending);
        }
        let before = (self.round, self.is_filled, self.taken);
        while self.round < self.rounds.count() && self.go_on_in_round(buffers, cells) {
            self.round += 1;
            (self.is_filled, self.taken) = (false, 0);
            if self.round < self.rounds.count() {
                cells.reach(self.moment());
            }
        }
        if self.round == self.rounds.count() {
            cells.end(self.operation);
            shared.activity = shared.activity.max(Activity::Datagrams);
            shared.told = self.told;
            return Ok(self.failure.map_or(Progress::Done, Progress::Failed));
        }
        if (self.round, self.is_filled, self.taken) != before {
            shared.activity = shared.activity.max(Activity::Datagrams);
        }
        Ok(Progress::Pending)
    }

    /// Works on in the current round; true if the round is over.
    #[inline]
    fn go_on_in_round(&mut self, buffers: &Buffers, cells: &mut Cells<Mapped>) -> bool {
        if self.prepared != Some(self.round) {
            self.puts.clear();
            self.puts.extend(self.rounds.puts(self.round));
            self.takes.clear();
            self.takes.extend(self.rounds.takes(self.round));
            self.prepared = Some(self.round);
        }
        self.fill(buffers, cells) && self.take(buffers, cells)
    }

    fn moment(&self) -> Moment {
        Moment { operation: self.operation, round: self.round as u32 }
    }

    /// The address of a slice's bytes in this process.
    fn place(&mut self, slice: &Slice, buffers: &Buffers) -> *mut u8 {
        buffers.address(slice, self.scratch.as_mut_ptr())
    }

    /// Fills this rank's cell. False: some rank still needs what is in the cell.
    fn fill(&mut self, buffers: &Buffers, cells: &mut Cells<Mapped>) -> bool {
        if self.is_filled || !self.rounds.fills(self.round) {
            return true;
        }
        let moment = self.moment();
        if !cells.may_fill(moment) {
            return false;
        }
        for put in 0..self.puts.len() {
            let put = self.puts[put].clone();
            let length = put.from.length() as usize;
            if length > 0 {
                let source = self.place(&put.from, buffers);
                // SAFETY: it is inside its buffer (see `Operations::start`), and in the cell, as the rounds were made for; it was allowed above.
                unsafe { cells.fill(moment, put.at, source, length) };
            }
        }
        cells.tell(moment, self.failure.is_none().then_some(self.bytes));
        self.is_filled = true;
        true
    }

    /// Takes what other ranks have put into their cells. False: some rank has not filled its cell
    /// yet.
    fn take(&mut self, buffers: &Buffers, cells: &Cells<Mapped>) -> bool {
        let moment = self.moment();
        while let Some(take) = self.takes.get(self.taken).cloned() {
            let length = take.to.length() as usize;
            match &take.from {
                CellSource::Own(from) => {
                    let from = self.place(from, buffers);
                    // SAFETY: both are inside their buffers (see `Operations::start`), and no other's.
                    unsafe { self.put(&take, from, buffers) };
                }
                CellSource::Cell { writer, at } => {
                    let is_own = *writer == self.rounds.rank();
                    match if is_own { Look::Filled(self.bytes) } else { cells.look(writer.0, moment) } {
                        Look::NotYet => return false,
                        Look::Filled(bytes) if bytes == self.bytes => {
                            // SAFETY: it is filled, and this rank has not passed this round; for the rest as above.
                            let put = |from: *const u8| unsafe { self.put(&take, from, buffers) };
                            // SAFETY: the same.
                            unsafe { cells.read(writer.0, moment, (*at, length), put) };
                        }
                        Look::Filled(told) => {
                            let (writer, at) = (writer.0, *at);
                            self.told = Some(told);
                            if self.turns_to(told, cells) {
                                return false;
                            }
                            match self.rounds.fitting_bytes(told) {
                                Some(length) => {
                                    let take = take.shortened(length);
                                    // SAFETY: so much of it is filled, and this rank has not passed this round; for the rest as above.
                                    let put = |from: *const u8| unsafe { self.put(&take, from, buffers) };
                                    // SAFETY: the same.
                                    unsafe { cells.read(writer, moment, (at, length as usize), put) };
                                }
                                None => {
                                    self.failure.get_or_insert(Failure::Size);
                                }
                            }
                        }
                        Look::Nothing => {
                            self.failure.get_or_insert(Failure::Size);
                        }
                    }
                }
            }
            self.taken += 1;
        }
        true
    }

    /// Goes on, before anything was taken, as one of fewer bytes, if the writer's cells are all that this rank takes from and there are several of them.
    #[cold]
    fn turns_to(&mut self, told: u64, cells: &Cells<Mapped>) -> bool {
        let is_from_root = matches!(self.of.collective, Collective::Broadcast | Collective::Scatter);
        let is_first = (self.round, self.taken, self.bytes) == (0, 0, self.of.bytes.0);
        if !is_from_root || !is_first || told > self.bytes || self.rounds.fitting_bytes(told).is_some() {
            return false;
        }
        let of = collective::Call { bytes: Bytes(told), ..self.of };
        self.rounds = Rounds::new(&self.algorithm, &of, self.rounds.rank(), cells.room());
        (self.bytes, self.prepared) = (told, None);
        true
    }

    /// Copies or combines the bytes at `from`; does nothing after a failure.
    ///
    /// # Safety
    /// As many bytes are readable there and writable where they go, and they do not overlap.
    unsafe fn put(&mut self, take: &Take, from: *const u8, buffers: &Buffers) {
        let (place, bytes) = (self.place(&take.to, buffers), take.to.length() as usize);
        if bytes == 0 || self.failure.is_some() {
            return;
        }
        if !take.combines {
            // SAFETY: the caller's promise.
            unsafe { place.copy_from_nonoverlapping(from, bytes) };
            return;
        }
        // SAFETY: the caller's promise, which is about calls that combine.
        let code = unsafe {
            let reduction = buffers.reduction.as_ref();
            reduction.map_or(-1, |reduction| reduction.combine(from, place, bytes))
        };
        if code != 0 {
            self.failure = Some(Failure::Mpi(MpiError(code)));
        }
    }
}
