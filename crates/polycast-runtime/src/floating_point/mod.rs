//! The floating-point environment of a thread: traps, rounding, what becomes of the smallest numbers, and the exceptions that were raised.
//!
//! A program may have changed its own, and all ranks must choose alike: what this library computes for itself, it computes in the one that compilers take
//! for granted, and the program's is as it was afterwards. What is the program's or the MPI's is called in the program's.
//!
//! ```text
//!  program's  ──▶ polycast_…       ┌──▶ MPI, sums of floating-point numbers, the program's operations ──┐         ┌──▶
//!  the library's  └─ apart ────────┘ as_programs                                                         └─────────┘
//! ```
//! (docs/decisions/0065)

use std::cell::Cell;

#[cfg_attr(miri, path = "none.rs")]
#[cfg_attr(all(not(miri), target_arch = "x86_64"), path = "x86_64.rs")]
#[cfg_attr(all(not(miri), target_arch = "aarch64"), path = "aarch64.rs")]
#[cfg_attr(all(not(miri), not(any(target_arch = "x86_64", target_arch = "aarch64"))), path = "any.rs")]
mod machine;

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod any;
#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests;

pub use machine::Environment;

thread_local! {
    /// The program's environment while the library works on this thread, which the program called.
    static PROGRAMS: Cell<Option<Environment>> = const { Cell::new(None) };
}

/// Does work of the library's own: it neither depends on the program's environment nor leaves
/// anything in it. It may be called by a callback of the program's.
#[inline]
pub fn apart<R>(work: impl FnOnce() -> R) -> R {
    let before = PROGRAMS.replace(Some(Environment::left()));
    let result = outlined(work);
    if let Some(programs) = PROGRAMS.replace(before) {
        programs.restore();
    }
    result
}

/// Calls what is not the library's: the call has the program's environment, and what it changes
/// there stays.
#[inline]
pub fn as_programs<R>(call: impl FnOnce() -> R) -> R {
    let Some(programs) = PROGRAMS.get() else { return call() };
    programs.restore();
    let result = call();
    PROGRAMS.set(Some(Environment::left()));
    result
}

/// Runs `work` behind a call: a compiler knows no floating-point environment, and would move such
/// work to before the change.
#[inline(never)]
fn outlined<R>(work: impl FnOnce() -> R) -> R {
    work()
}
