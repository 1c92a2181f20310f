use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::table::{RankDoor, TABLE};
use super::world::{Collective, Fault, Tamper, World};
use crate::communicator::Communicator;
use crate::fault::{self, Point};
use crate::interface::{
    LEFT_AND_TIMED, SERVED, polycast_attach, polycast_detach, polycast_end_of_stock, polycast_plan,
    polycast_plan_free, polycast_run, polycast_set,
};
use crate::plan::{BROADCAST, CollectiveCall};

/// Who has not returned by then never will.
const PATIENCE: Duration = Duration::from_secs(20);

const ERROR_SIZE: c_int = -2;

/// One call of MPI_Bcast.
#[derive(Clone, Debug)]
pub struct Broadcast {
    pub root: u32,
    /// Of each rank.
    pub bytes: Vec<usize>,
}

/// A program, and what happens to it.
#[derive(Clone, Debug)]
pub struct Job {
    pub ranks: u32,
    pub seed: u64,
    /// POLYCAST_BCAST.
    pub algorithm: String,
    /// POLYCAST_MULTICAST.
    pub multicast: &'static str,
    pub calls: Vec<Broadcast>,
    /// MPI can make private communicators.
    pub has_private: bool,
    pub fault: Option<Fault>,
    pub tamper: Option<Tamper>,
    /// This rank panics there, when it comes there for this time.
    pub panic: Option<(u32, Point, u32)>,
}

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
}

/// What became of a rank.
#[derive(Debug)]
pub struct Told {
    /// Up to the first error that ends the program.
    pub calls: Vec<Ended>,
    /// When that call, or the last, had returned.
    pub outstanding_receives: usize,
    pub is_attached: bool,
    pub is_closed: bool,
}

/// What became of a job.
#[derive(Debug)]
pub struct Outcome {
    pub ranks: Vec<Told>,
    /// The call that failed because the test says so, if it came to that.
    pub failed: Option<String>,
}

impl Job {
    /// Of calls of the same size on all ranks.
    pub fn new(ranks: u32, seed: u64, algorithm: &str, calls: &[(u32, usize)]) -> Job {
        let call = |&(root, bytes): &(u32, usize)| Broadcast { root, bytes: vec![bytes; ranks as usize] };
        Job {
            ranks,
            seed,
            algorithm: algorithm.to_owned(),
            multicast: "off",
            calls: calls.iter().map(call).collect(),
            has_private: true,
            fault: None,
            tamper: None,
            panic: None,
        }
    }

    /// Runs it.
    ///
    /// # Panics
    /// If a rank does not return, or ranks meet in different collectives.
    pub fn run(&self) -> Outcome {
        let Job { fault, tamper, has_private, .. } = *self;
        let mut world = World::new(self.ranks, self.seed);
        (world.fault, world.tamper, world.has_private) = (fault, tamper, has_private);
        let world = Arc::new(world);
        let (sender, receiver) = mpsc::channel();
        for rank in 0..self.ranks {
            let (job, world, sender) = (self.clone(), world.clone(), sender.clone());
            std::thread::spawn(move || {
                let told = catch_unwind(AssertUnwindSafe(|| job.run_rank(rank, world)));
                let _ = sender.send((rank, told.ok()));
            });
        }
        drop(sender);
        let mut told: Vec<Option<Told>> = (0..self.ranks).map(|_| None).collect();
        let end = Instant::now() + PATIENCE;
        while told.iter().any(Option::is_none) {
            match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((rank, Some(of_rank))) => told[rank as usize] = Some(of_rank),
                Ok((rank, None)) => panic!("rank {rank} panicked outside of polycast: {self:?}"),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let stuck = (0..self.ranks).filter(|rank| told[*rank as usize].is_none());
        let stuck: Vec<String> = stuck.map(|rank| format!("rank {rank}: {}", world.doing(rank))).collect();
        if !stuck.is_empty() {
            world.abort();
            panic!("these have not returned after {PATIENCE:?}: {}\n{self:?}", stuck.join("; "));
        }
        if let Some(mismatch) = world.mismatch() {
            panic!("{mismatch}\n{self:?}");
        }
        Outcome { ranks: told.into_iter().flatten().collect(), failed: world.failed() }
    }

    /// What the doors in C do, and the program before and after.
    fn run_rank(&self, rank: u32, world: Arc<World>) -> Told {
        for (name, value) in [
            ("POLYCAST_BCAST", self.algorithm.as_str()),
            ("POLYCAST_MULTICAST", self.multicast),
            ("POLYCAST_TABLE", ""),
            ("POLYCAST_TOPOLOGY", ""),
            ("POLYCAST_PARAMS", ""),
        ] {
            set(name, value);
        }
        let door = RankDoor { world, rank, is_closed: AtomicBool::new(false) };
        let handle: *mut c_void = (&raw const door).cast_mut().cast();
        if let Some((_, point, nth)) = self.panic.filter(|(of, ..)| *of == rank) {
            fault::arm(point, nth);
        }
        let mut communicator = null_mut();
        // SAFETY: the table accepts this handle, which lives until the end of this function.
        let error = unsafe {
            polycast_attach(&TABLE, handle, rank as c_int, self.ranks as c_int, 0, &mut communicator)
        };
        let communicator = if error == 0 { communicator } else { null_mut() };
        let mut calls = Vec::new();
        for (number, call) in self.calls.iter().enumerate() {
            let ended = broadcast(call, number, communicator, &door);
            calls.push(ended);
            if ![0, ERROR_SIZE].contains(&ended.code) {
                door.world.abort();
                break;
            }
        }
        let outstanding_receives = door.world.outstanding_receives(rank);
        // SAFETY: the pointer comes from polycast_attach.
        unsafe { polycast_detach(communicator, 0) };
        Told {
            calls,
            outstanding_receives,
            is_attached: !communicator.is_null(),
            is_closed: door.is_closed.load(Ordering::Relaxed),
        }
    }
}

fn broadcast(call: &Broadcast, number: usize, communicator: *mut Communicator, door: &RankDoor) -> Ended {
    let RankDoor { world, rank, .. } = door;
    let bytes = call.bytes[*rank as usize];
    let is_root = *rank == call.root;
    let expected = data(number, bytes);
    let mut buffer = if is_root { expected.clone() } else { vec![0xaa; bytes] };
    let wanted = CollectiveCall {
        collective: BROADCAST,
        root: call.root as c_int,
        bytes,
        counts: null(),
        reduction: null(),
    };
    let mut plan = null_mut();
    let choice = match communicator.is_null() {
        true => 0,
        // SAFETY: the pointer comes from polycast_attach.
        false => unsafe { polycast_plan(communicator, &wanted, &mut plan) },
    };
    let code = if choice == SERVED {
        let place: *mut c_void = buffer.as_mut_ptr().cast();
        // SAFETY: the plan comes from polycast_plan, and the buffer has these bytes.
        unsafe {
            let code = polycast_run(plan, place, place);
            polycast_plan_free(plan);
            code
        }
    } else {
        let outcome = world.meet(*rank, Collective::Stock { root: call.root }, buffer.clone());
        if choice == LEFT_AND_TIMED {
            // SAFETY: the pointer comes from polycast_attach.
            unsafe { polycast_end_of_stock(communicator) };
        }
        match outcome {
            Ok(mut parts) => {
                buffer = std::mem::take(&mut parts[call.root as usize]);
                0
            }
            Err(code) => code,
        }
    };
    let has_data = bytes == call.bytes[call.root as usize] && buffer == expected;
    Ended { is_served: choice == SERVED, code, has_data }
}

/// No two broadcasts have the same, and no two stretches of one.
fn data(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index + index / 251 + 17 * number) as u8).collect()
}

/// For the process of this rank.
fn set(name: &str, value: &str) {
    let [name, value] = [name, value].map(|text| CString::new(text).expect("no NUL"));
    // SAFETY: both are C strings.
    assert_eq!(unsafe { polycast_set(name.as_ptr(), value.as_ptr()) }, 0);
}
