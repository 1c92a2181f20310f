//! The plan of one collective call: found once, run as often as the door likes.

use std::ffi::c_int;
use std::num::NonZeroU64;

use polycast_core::collective::{self, Collective, CombinationOrder};
use polycast_core::policy::chooser::{Chosen, Request, Waiting};
use polycast_core::policy::{self, Choice, ServedSums};
use polycast_core::units::{Bytes, Rank};

use crate::abi::{CollectiveCall, Reduction};
use crate::call::{Answer, Buffers, Failure, OperationKey};
use crate::communicator::Communicator;
use crate::floating_point;

/// Value of [`Reduction::is_exact`]: the result is exact if two ranks contribute.
const EXACT_OF_TWO: u32 = 2;

/// Shortest call of two ranks for which ways are compared. Shorter ones go as the rules say: ways
/// then differ in calls and wake-ups, on which machines agree; in copies they do not.
const COMPARED_OF_TWO_FROM: Bytes = Bytes(8 << 10);

impl Reduction {
    /// Combines in the program's floating-point environment, since the numbers are the program's.
    ///
    /// # Safety
    /// `bytes` bytes are readable at `from` and writable at `into`, and the two do not overlap.
    pub unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize) -> c_int {
        // SAFETY: the caller's promise.
        floating_point::as_programs(|| unsafe { (self.combine)(self, from.cast(), into.cast(), bytes) })
    }

    /// The order in which contributions are to be combined, by a way that keeps so much of it. Sums by
    /// a way that keeps another order go by that, as rules or the user say.
    fn order(&self, ranks: u32, keeps: CombinationOrder) -> CombinationOrder {
        let is_exact = self.is_exact == 1 || self.is_exact == EXACT_OF_TWO && ranks <= 2;
        match (is_exact, self.is_commutative != 0) {
            (false, _) if keeps == CombinationOrder::Tree => CombinationOrder::Tree,
            (_, true) => CombinationOrder::Any,
            (_, false) => CombinationOrder::Ranks,
        }
    }

    /// True if the bits of the result depend on the order of contributions. Of two ranks' sums they do
    /// not, but where the MPI combines all sums, it combines these, too.
    fn is_sum(&self, ranks: u32, served: ServedSums) -> bool {
        match self.is_exact {
            EXACT_OF_TWO => ranks > 2 || served == ServedSums::Mpi,
            is_exact => is_exact == 0,
        }
    }

    /// True if a way may change from call to call: the order of contributions then makes no
    /// difference to the result's bits.
    fn may_be_compared(&self, ranks: u32, bytes: Bytes) -> bool {
        let is_exact = match self.is_exact {
            EXACT_OF_TWO => ranks == 2 && bytes >= COMPARED_OF_TWO_FROM,
            is_exact => is_exact != 0,
        };
        is_exact && self.is_commutative != 0
    }
}

/// `polycast_plan` of polycast.h.
pub struct Plan {
    communicator: *mut Communicator,
    chosen: Chosen,
    of: policy::Call,
    root: Rank,
    reduction: *const Reduction,
}

/// `polycast_operation` of polycast.h, field by field.
#[repr(C)]
pub struct Operation {
    pub communicator: *mut Communicator,
    pub key: u32,
}

impl Operation {
    /// Lets the operation go on; `None` if it has not ended.
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

impl Plan {
    /// The way that serves the call.
    #[cfg(test)]
    pub fn choice(&self) -> polycast_core::policy::Choice {
        self.chosen.choice
    }

    /// Plans a call; a collective that only a newer door may know is the MPI's.
    ///
    /// # Safety
    /// The communicator is valid, nobody else uses it meanwhile, and it outlives the plan. So does the call's reduction, if it has one.
    #[inline]
    pub unsafe fn choose(
        communicator: *mut Communicator,
        call: &CollectiveCall,
        when: Waiting,
    ) -> Answer<Box<Plan>> {
        let CollectiveCall { collective, root, bytes, reduction } = *call;
        let Some(&collective) = Collective::ALL.get(collective as usize) else { return Answer::ToStock };
        let root = if collective.has_root() { Rank(root as u32) } else { Rank(0) };
        // SAFETY: the caller's promise.
        let (state, reduction_of) = unsafe { (&mut *communicator, reduction.as_ref()) };
        let is_sum =
            |reduction: &Reduction| reduction.is_sum(state.ranks(), state.chooser.policy().served_sums());
        let of = policy::Call {
            is_sum: collective.combines() && reduction_of.is_some_and(is_sum),
            ..policy::Call::new(collective, Bytes(bytes as u64))
        };
        let is_ordered = reduction_of.is_some_and(|reduction| reduction.is_commutative == 0);
        let may_be_compared = !of.is_sum
            && reduction_of.is_none_or(|reduction| reduction.may_be_compared(state.ranks(), of.bytes));
        let is_own = reduction_of.is_some_and(|reduction| reduction.is_own != 0);
        let is_root = state.rank() == root;
        let request = Request { call: of, is_root, may_be_compared, is_ordered, is_own, when };
        match state.plan(&request, root) {
            Answer::ToStock => Answer::ToStock,
            Answer::ToStockAndTimed => Answer::ToStockAndTimed,
            Answer::Served(chosen) => {
                let plan = Plan { communicator, chosen, of, root, reduction };
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
    /// What the rank hands in is at `send`, and there is room for what it gets at `receive`, as polycast.h says, until the operation has
    /// ended. Nobody else uses the communicator meanwhile.
    pub unsafe fn start(&self, send: *const u8, receive: *mut u8) -> Result<Operation, Failure> {
        // SAFETY: the promise of `choose`.
        let communicator = unsafe { &mut *self.communicator };
        // SAFETY: the same.
        let (call, buffers) = unsafe { self.call(communicator, send, receive) }?;
        // SAFETY: the caller's promise; a root's message is only read.
        let key = unsafe { communicator.start(self.chosen, call, buffers) }?;
        Ok(Operation { communicator: self.communicator, key: key.0 })
    }

    /// # Safety
    /// As for [`Plan::start`].
    pub unsafe fn run(&self, send: *const u8, receive: *mut u8) -> Result<(), Failure> {
        // SAFETY: the promise of `choose`.
        let communicator = unsafe { &mut *self.communicator };
        // SAFETY: the same.
        let (call, buffers) = unsafe { self.call(communicator, send, receive) }?;
        // SAFETY: the caller's promise; a root's message is only read.
        unsafe { communicator.run(self.chosen, call, buffers) }
    }

    /// # Safety
    /// The reduction is valid, if there is one.
    unsafe fn call(
        &self,
        communicator: &Communicator,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(collective::Call, Buffers), Failure> {
        let Plan { of, root, .. } = *self;
        let mut call = collective::Call::new(of.collective, communicator.ranks(), root, of.bytes);
        // SAFETY: the caller's promise.
        if let Some(reduction) = unsafe { self.reduction.as_ref() } {
            call.element = NonZeroU64::new(reduction.element_bytes as u64).ok_or(Failure::Internal)?;
            call.order = reduction.order(call.ranks, keeps(communicator, self.chosen.choice));
        }
        let is_root = communicator.rank() == root;
        call.is_in_place = match of.collective {
            Collective::Broadcast | Collective::Barrier => false,
            Collective::Scatter => is_root && receive.is_null(),
            _ => send.is_null(),
        };
        let buffers = match of.collective {
            Collective::Broadcast if is_root => Buffers::broadcast(send.cast_mut()),
            Collective::Broadcast => Buffers::broadcast(receive),
            _ => Buffers { input: send, output: receive, reduction: self.reduction },
        };
        Ok((call, buffers))
    }

    /// # Safety
    /// Nobody else uses the communicator meanwhile.
    pub unsafe fn free(self: Box<Plan>) {
        // SAFETY: the promise of `choose`.
        let communicator = unsafe { &mut *self.communicator };
        communicator.end_of_served();
        communicator.plans.0.push(self);
    }
}

/// The order in which a choice combines contributions where the communicator's ranks are.
#[inline]
fn keeps(communicator: &Communicator, choice: Choice) -> CombinationOrder {
    match (&communicator.serving, choice) {
        (Some(serving), Choice::Algorithm(algorithm)) => algorithm.keeps_on(&serving.shared.nodes),
        _ => CombinationOrder::Any,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;

    unsafe extern "C" fn nothing(_: *const Reduction, _: *const c_void, _: *mut c_void, _: usize) -> c_int {
        0
    }

    #[test]
    fn sums_go_by_the_tree_where_their_way_keeps_it() {
        let order = |is_exact, is_commutative, ranks, keeps| {
            let reduction =
                Reduction { element_bytes: 8, is_commutative, is_exact, is_own: 0, combine: nothing };
            reduction.order(ranks, keeps)
        };
        assert_eq!(order(EXACT_OF_TWO, 1, 3, CombinationOrder::Tree), CombinationOrder::Tree);
        assert_eq!(order(EXACT_OF_TWO, 1, 2, CombinationOrder::Tree), CombinationOrder::Any);
        assert_eq!(order(EXACT_OF_TWO, 1, 3, CombinationOrder::Ranks), CombinationOrder::Any);
        assert_eq!(order(0, 0, 3, CombinationOrder::Tree), CombinationOrder::Tree);
        assert_eq!(order(0, 0, 3, CombinationOrder::Ranks), CombinationOrder::Ranks);
        assert_eq!(order(1, 1, 3, CombinationOrder::Tree), CombinationOrder::Any);
    }

    #[test]
    fn what_has_the_same_bits_in_any_order_is_compared() {
        let compared = |is_exact, is_commutative, ranks, bytes| {
            let reduction =
                Reduction { element_bytes: 8, is_commutative, is_exact, is_own: 0, combine: nothing };
            reduction.may_be_compared(ranks, Bytes(bytes))
        };
        // Sums of integers.
        assert!(compared(1, 1, 2, 8) && compared(1, 1, 8, 8));
        // Of doubles.
        assert!(compared(EXACT_OF_TWO, 1, 2, 8 << 10));
        assert!(!compared(EXACT_OF_TWO, 1, 2, 8184) && !compared(EXACT_OF_TWO, 1, 3, 1 << 20));
        // Maxima of doubles; what does not commute.
        assert!(!compared(0, 1, 2, 1 << 20) && !compared(1, 0, 2, 1 << 20));
    }
}
