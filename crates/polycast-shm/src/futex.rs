//! Sleeping until another process has changed a number in memory that both have mapped. (Linux; nix has no function for it.)

use std::ptr::null;
use std::time::Duration;

use nix::libc::{FUTEX_WAIT, FUTEX_WAKE, SYS_futex, syscall, timespec};

use crate::sync::AtomicU32;

/// Sleeps while the number is `value`, no longer than `longest`, or until it is woken, also by a
/// signal.
pub fn sleep(number: &AtomicU32, value: u32, longest: Duration) {
    let time = timespec { tv_sec: longest.as_secs() as _, tv_nsec: longest.subsec_nanos() as _ };
    // SAFETY: the kernel only reads the number, which is there as long as the reference, and the time. Whatever it says, the caller looks again.
    unsafe { syscall(SYS_futex, number.as_ptr(), FUTEX_WAIT, value, &raw const time, null::<u32>(), 0) };
}

/// Wakes all who sleep on the number.
pub fn wake(number: &AtomicU32) {
    // SAFETY: the kernel takes the number for no more than a place.
    unsafe {
        syscall(SYS_futex, number.as_ptr(), FUTEX_WAKE, i32::MAX, null::<timespec>(), null::<u32>(), 0)
    };
}
