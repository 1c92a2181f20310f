//! How one collective call is served: found once, run as often as the door likes.

use std::ffi::{c_int, c_void};

use polycast_core::collective::Call;
use polycast_core::units::{Bytes, Rank};

use crate::attached::Attached;
use crate::communicator::{Chosen, Decision};
use crate::messages::OperationKey;
use crate::operation::{Buffers, Failure};

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
    pub combine: unsafe extern "C" fn(*const Reduction, *const c_void, *mut c_void, usize) -> c_int,
}

/// `POLYCAST_BROADCAST`.
pub const BROADCAST: u32 = 0;

/// `polycast_plan` of polycast.h: a broadcast.
pub struct Plan {
    communicator: *mut Attached,
    chosen: Chosen,
    bytes: u64,
    root: Rank,
}

/// `polycast_operation` of polycast.h, field by field.
#[repr(C)]
pub struct Operation {
    pub communicator: *mut Attached,
    pub key: u32,
}

impl Operation {
    /// Lets it go on; `None`: it has not ended.
    ///
    /// # Safety
    /// [`Plan::start`] has given it, and neither this nor [`Operation::wait`] has said that it has ended. Nobody else uses its
    /// communicator meanwhile.
    pub unsafe fn test(&self) -> Option<Result<(), Failure>> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.communicator }.test(OperationKey(self.key))
    }

    /// # Safety
    /// As for [`Operation::test`].
    pub unsafe fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.communicator }.wait(OperationKey(self.key))
    }
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
    pub unsafe fn choose(communicator: *mut Attached, call: &CollectiveCall) -> Answer {
        if call.collective != BROADCAST {
            return Answer::Left;
        }
        let bytes = call.bytes as u64;
        // SAFETY: the caller's promise.
        let state = unsafe { &mut *communicator };
        let decision = state.plan(bytes);
        if decision == Decision::Left {
            return Answer::Left;
        }
        let root = Rank(call.root as u32);
        state.comes_from(root);
        match decision {
            Decision::Left | Decision::LeftAndTimed => Answer::LeftAndTimed,
            Decision::Served(chosen) => {
                let plan = Plan { communicator, chosen, bytes, root };
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
    /// The root's message is at `send`, and elsewhere there is room for it at `receive`, until the operation has ended. Nobody else
    /// uses the communicator meanwhile.
    pub unsafe fn start(&self, send: *const u8, receive: *mut u8) -> Result<Operation, Failure> {
        // SAFETY: the promise of `choose`.
        let communicator = unsafe { &mut *self.communicator };
        let buffer = if communicator.rank() == self.root { send.cast_mut() } else { receive };
        let call = Call::broadcast(communicator.ranks(), self.root, Bytes(self.bytes));
        // SAFETY: the caller's promise; a root's message is only read.
        let key = unsafe { communicator.start(self.chosen, call, Buffers::broadcast(buffer)) }?;
        Ok(Operation { communicator: self.communicator, key: key.0 })
    }

    /// # Safety
    /// As for [`Plan::start`].
    pub unsafe fn run(&self, send: *const u8, receive: *mut u8) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.start(send, receive)?.wait() }
    }

    /// # Safety
    /// Nobody else uses the communicator meanwhile.
    pub unsafe fn free(self: Box<Plan>) {
        // SAFETY: the promise of `choose`.
        unsafe { &mut *self.communicator }.plans.0.push(self);
    }
}
