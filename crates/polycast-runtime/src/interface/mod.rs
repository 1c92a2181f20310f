//! The C functions of `include/polycast.h`. Each stops panics: the worst that a bug here does to a job is an MPI error. Those that compute leave the
//! program's floating-point environment alone.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{CollectiveCall, DoorTable, INTERFACE_VERSION, PassedCounts, Passing};
use crate::attach;
use crate::call::{Answer, Failure};
use crate::communicator::{Communicator, Operation, Plan};
use crate::door::Door;
use crate::floating_point::apart;
use crate::identity::build_identity;
use crate::multicast::leave_all_groups;
use crate::{communicator, idle, passing, report, settings, trace};
use polycast_core::policy::chooser::Waiting;
use polycast_core::policy::{Choice, Collective};
use polycast_core::units::{Bytes, Rank};

const ERROR_INTERNAL: c_int = -1;
const ERROR_SIZE: c_int = -2;

/// Number of forms of a function that are not served: nonblocking, and persistent.
const FORMS: u32 = 2;

const LEFT_TO_STOCK: c_int = 0;
pub const SERVED: c_int = 1;
pub const LEFT_AND_TIMED: c_int = 2;

/// The code that C gets for an outcome.
pub(crate) fn code(outcome: Result<(), Failure>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(Failure::Mpi(error)) => error.0,
        Err(Failure::Size) => ERROR_SIZE,
        Err(Failure::Internal) => ERROR_INTERNAL,
    }
}

fn guarded<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    apart(|| catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise))
}

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Version of the interface: only doors of this version are understood.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_interface_version() -> u32 {
    INTERFACE_VERSION
}

/// Identity of this build; never 0.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_build_identity() -> u64 {
    guarded(1, build_identity)
}

/// Counts a call that goes to the stock MPI because polycast serves no such operation.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_count_unserved(function: u32, form: u32, bytes: u64) {
    if form < FORMS {
        let kind = function.saturating_mul(FORMS).saturating_add(form);
        report::UNSERVED.count(kind, bytes);
        trace::unserved(report::UNSERVED.name(kind), bytes);
    }
}

/// Counts a call that goes to the stock MPI although no communicator was asked.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_count_left(collective: u32, because: u32, bytes: u64) {
    if let Some(left) = report::LEFT.get(collective as usize) {
        left.count(because, bytes);
        trace::left(collective, left.name(because), bytes);
    }
}

/// True (1) unless the environment switches everything off.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_is_enabled() -> c_int {
    guarded(0, || settings::is_enabled().into())
}

/// Overrides an environment variable for communicators attached from now on.
///
/// # Safety
/// `name` must be a C string, `value` one or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_set(name: *const c_char, value: *const c_char) -> c_int {
    let text = |pointer: *const c_char| {
        // SAFETY: the caller's promise.
        (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy())
    };
    guarded(-1, || {
        let is_known = text(name).is_some_and(|name| settings::configure(&name, text(value).as_deref()));
        if is_known {
            passing::forget();
        }
        if is_known { 0 } else { -1 }
    })
}

/// What passes on any communicator of `ranks` ranks that is not attached, by collective.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_first_passing(ranks: c_int) -> *const Passing {
    passing::at_first(ranks as u32)
}

/// Lets all ranks of MPI_COMM_WORLD tell each other what they are; 1 if polycast can serve them.
///
/// # Safety
/// As polycast.h says: a valid table of functions that stays, and accepts `world`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_begin(
    door: *const DoorTable,
    world: *mut c_void,
    rank: c_int,
    size: c_int,
    tag_most: c_int,
    has_threads: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(door) = (unsafe { door_of(door, world) }) else { return 0 };
    let begin = || attach::begin(&door, rank as usize, size as usize, tag_most, has_threads != 0);
    guarded(0, || begin().into())
}

/// # Safety
/// The table begins with its version. If that is ours, all of it is valid and stays, and its functions accept `communicator`.
unsafe fn door_of(table: *const DoorTable, communicator: *mut c_void) -> Option<Door> {
    // SAFETY: every version of the table begins with its version, and only a matching one is looked at whole.
    unsafe { (table.cast::<u32>().read() == INTERFACE_VERSION).then(|| Door::new(&*table, communicator)) }
}

/// Attaches a communicator: makes its state.
///
/// # Safety
/// As polycast.h says: a valid table of functions that accept `communicator`, as many ranks as `size`, a place for the
/// answer, and as many counts as there are collectives, which stay until [`polycast_detach`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_attach(
    door: *const DoorTable,
    communicator: *mut c_void,
    rank: c_int,
    size: c_int,
    world_ranks: *const c_int,
    counts: *mut u32,
    attached: *mut *mut Communicator,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *attached = std::ptr::null_mut() };
    // SAFETY: the same.
    let Some(door) = (unsafe { door_of(door, communicator) }) else { return ERROR_INTERNAL };
    // SAFETY: the same; ranks are not negative.
    let world_ranks = unsafe { std::slice::from_raw_parts(world_ranks.cast::<u32>(), size as usize) };
    guarded(ERROR_INTERNAL, || {
        let counts = counts.cast::<PassedCounts>();
        // SAFETY: the same.
        let state = unsafe { Communicator::new(door, Rank(rank as u32), world_ranks, counts) };
        let state = state.map_or(std::ptr::null_mut(), |state| Box::into_raw(Box::new(state)));
        // SAFETY: the caller's promise.
        unsafe { *attached = state };
        0
    })
}

/// Frees what [`polycast_attach`] made; NULL is allowed. The door's part is closed now or later, unless MPI ends.
///
/// # Safety
/// The pointer comes from [`polycast_attach`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_detach(communicator: *mut Communicator, is_over: c_int) {
    if !communicator.is_null() {
        // SAFETY: the caller's promise.
        guarded((), || unsafe { Box::from_raw(communicator) }.detach(is_over != 0));
    }
}

/// Chooses who serves a call.
///
/// # Safety
/// The communicator comes from [`polycast_attach`], and no other call for it runs. `call` is valid, and so are its pointers that
/// are not NULL; `plan` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_plan(
    communicator: *mut Communicator,
    call: *const CollectiveCall,
    plan: *mut *mut Plan,
) -> c_int {
    // Not guarded: it stops panics itself.
    // SAFETY: the caller's promise.
    let (answer, planned) = match apart(|| unsafe { Plan::choose(communicator, &*call, Waiting::Waited) }) {
        Answer::ToStock => (LEFT_TO_STOCK, std::ptr::null_mut()),
        Answer::ToStockAndTimed => (LEFT_AND_TIMED, std::ptr::null_mut()),
        Answer::Served(planned) => (SERVED, Box::into_raw(planned)),
    };
    // SAFETY: the caller's promise.
    unsafe { plan.write(planned) };
    answer
}

/// Chooses who serves a call that is started and not waited for.
///
/// # Safety
/// As for [`polycast_plan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_plan_ahead(
    communicator: *mut Communicator,
    call: *const CollectiveCall,
    may_wait: c_int,
    plan: *mut *mut Plan,
) -> c_int {
    let when = if may_wait != 0 { Waiting::Prepared } else { Waiting::Ahead };
    // SAFETY: the caller's promise.
    let (answer, planned) = match apart(|| unsafe { Plan::choose(communicator, &*call, when) }) {
        Answer::Served(planned) => (SERVED, Box::into_raw(planned)),
        Answer::ToStock | Answer::ToStockAndTimed => (LEFT_TO_STOCK, std::ptr::null_mut()),
    };
    // SAFETY: the same.
    unsafe { plan.write(planned) };
    answer
}

/// Starts a call as it was planned.
///
/// # Safety
/// As for [`polycast_run`], until the operation has ended; `operation` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_start(
    plan: *mut Plan,
    send: *const c_void,
    receive: *mut c_void,
    operation: *mut Operation,
) -> c_int {
    guarded(ERROR_INTERNAL, || {
        // SAFETY: the caller's promise.
        code(unsafe { (*plan).start(send.cast(), receive.cast()).map(|started| operation.write(started)) })
    })
}

/// Lets an operation go on.
///
/// # Safety
/// [`polycast_start`] has filled `operation`, and it has not ended. No other call for its
/// communicator runs. `has_ended` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_test(operation: *const Operation, has_ended: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = guarded(Some(Err(Failure::Internal)), || unsafe { (*operation).test() });
    // SAFETY: the same.
    unsafe { has_ended.write(outcome.is_some().into()) };
    outcome.map_or(0, code)
}

/// Waits for the end of an operation.
///
/// # Safety
/// [`polycast_start`] has filled `operation`, and it has not ended. No other call for its
/// communicator runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_wait(operation: *const Operation) -> c_int {
    // SAFETY: the caller's promise.
    guarded(ERROR_INTERNAL, || code(unsafe { (*operation).wait() }))
}

/// Runs a call as it was planned, and waits for its end.
///
/// # Safety
/// The plan comes from [`polycast_plan`]; no other call for its communicator runs. The root's message is at `send`; elsewhere
/// `receive` has room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_run(plan: *mut Plan, send: *const c_void, receive: *mut c_void) -> c_int {
    guarded(ERROR_INTERNAL, || {
        // SAFETY: the caller's promise.
        code(unsafe { (*plan).run(send.cast(), receive.cast()) })
    })
}

/// Gives a plan back.
///
/// # Safety
/// The plan comes from [`polycast_plan`] and is not used again; its communicator is there, and no other call for it runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_plan_free(plan: *mut Plan) {
    // SAFETY: the caller's promise.
    guarded((), || unsafe { Box::from_raw(plan).free() });
}

/// Takes note that the stock MPI has done a call for which [`polycast_plan`] gave
/// `POLYCAST_LEFT_AND_TIMED`.
///
/// # Safety
/// The pointer comes from [`polycast_attach`]; no other call for this communicator runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_end_of_stock(communicator: *mut Communicator) {
    // SAFETY: the caller's promise.
    let communicator = unsafe { &mut *communicator };
    guarded((), || communicator.end_of_stock());
}

/// Notes that the program makes a window: see [`idle::expect_one_sided`].
#[unsafe(no_mangle)]
pub extern "C" fn polycast_window_made() {
    guarded((), idle::expect_one_sided);
}

/// Names the way that serves such a call of this many bytes; 1 if it is still being compared with
/// other ways, else 0.
///
/// # Safety
/// The pointer comes from [`polycast_attach`]; no other call for this communicator runs. `text` has room for `size`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_name_choice(
    communicator: *const Communicator,
    collective: u32,
    bytes: usize,
    text: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let communicator = unsafe { &*communicator };
    guarded(0, || {
        let expected = |&collective| communicator.expected(collective, Bytes(bytes as u64));
        let expected = Collective::ALL.get(collective as usize).map(expected);
        let (choice, is_compared) = expected.unwrap_or((Choice::Stock, false));
        let name = choice.to_string();
        if let Some(room) = size.checked_sub(1) {
            let length = name.len().min(room);
            // SAFETY: the caller's promise; `length` bytes and their final NUL are no more than `size`.
            unsafe {
                std::ptr::copy_nonoverlapping(name.as_ptr(), text.cast(), length);
                text.add(length).write(0);
            }
        }
        is_compared.into()
    })
}

/// Ends polycast as MPI ends: prints the report and writes the trace if they were asked for, and
/// leaves all messages to the MPI and all multicast groups.
///
/// # Safety
/// As polycast.h says: a valid table of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polycast_finalize(door: *const DoorTable, world_rank: c_int) {
    // SAFETY: the caller's promise; it is the table that polycast_attach has checked, or nothing was attached.
    let door = unsafe { &*door };
    guarded((), || {
        let mut is_collective = false;
        let summary = report::summary(|values| {
            is_collective = true;
            door.sum_over_world(values).is_ok()
        });
        trace::end();
        communicator::leave_all_to_mpi();
        leave_all_groups();
        if is_collective {
            door.take_leave();
        }
        if world_rank == 0 {
            // No communicator of all ranks may have been attached.
            settings::warn_of_problems();
            report::publish(&summary);
        }
    });
}

/// Reports and writes what was asked for, since the program calls MPI_Abort.
#[unsafe(no_mangle)]
pub extern "C" fn polycast_aborting(world_rank: c_int) {
    guarded((), || {
        trace::write_now();
        report::aborting(world_rank as u32);
    });
}

#[cfg(all(test, not(miri)))]
mod header;
