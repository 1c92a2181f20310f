//! How one collective call is served: found once, run as often as the door likes.

use polycast_core::units::Rank;

use crate::communicator::{Chosen, Communicator, Decision};
use crate::operation::Failure;

/// `polycast_call` of polycast.h, field by field.
#[repr(C)]
pub struct CollectiveCall {
    pub collective: u32,
    pub root: i32,
    pub bytes: usize,
    pub counts: *const usize,
    pub reduction: *const Reduction,
}

/// `polycast_reduction` of polycast.h, field by field.
#[repr(C)]
pub struct Reduction {
    pub element_bytes: usize,
    pub is_commutative: u32,
}

/// `POLYCAST_BROADCAST`.
pub const BROADCAST: u32 = 0;

/// `polycast_plan` of polycast.h: a broadcast.
pub struct Plan {
    communicator: *mut Communicator,
    chosen: Chosen,
    bytes: u64,
    root: Rank,
}

/// Plans that are not used, so that a call takes no new memory.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "doors hold the addresses of plans")]
pub struct Pool(Vec<Box<Plan>>);

/// Who serves a call.
pub enum Answer {
    Left,
    LeftAndTimed,
    Served(Box<Plan>),
}

impl Plan {
    /// What serves it.
    #[cfg(test)]
    pub fn choice(&self) -> polycast_core::policy::Choice {
        self.chosen.choice
    }

    /// Only broadcasts are served.
    ///
    /// # Safety
    /// The communicator is valid, nobody else uses it meanwhile, and it outlives the plan.
    #[inline]
    pub unsafe fn choose(communicator: *mut Communicator, call: &CollectiveCall) -> Answer {
        if call.collective != BROADCAST {
            return Answer::Left;
        }
        let bytes = call.bytes as u64;
        // SAFETY: the caller's promise.
        let state = unsafe { &mut *communicator };
        match state.plan(bytes) {
            Decision::Left => Answer::Left,
            Decision::LeftAndTimed => Answer::LeftAndTimed,
            Decision::Served(chosen) => {
                let plan = Plan { communicator, chosen, bytes, root: Rank(call.root as u32) };
                Answer::Served(match state.plans.0.pop() {
                    Some(mut memory) => {
                        *memory = plan;
                        memory
                    }
                    None => Box::new(plan),
                })
            }
        }
    }

    /// # Safety
    /// The root's message is at `send`, and elsewhere there is room for it at `receive`. Nobody else uses the communicator
    /// meanwhile.
    pub unsafe fn run(&self, send: *const u8, receive: *mut u8) -> Result<(), Failure> {
        // SAFETY: the promise of `choose`.
        let communicator = unsafe { &mut *self.communicator };
        let buffer = if communicator.rank() == self.root { send.cast_mut() } else { receive };
        // SAFETY: the caller's promise; a root's message is only read.
        unsafe { communicator.broadcast(self.chosen, buffer, self.bytes, self.root) }
    }

    /// # Safety
    /// Nobody else uses the communicator meanwhile.
    pub unsafe fn free(self: Box<Plan>) {
        // SAFETY: the promise of `choose`.
        unsafe { &mut *self.communicator }.plans.0.push(self);
    }
}
