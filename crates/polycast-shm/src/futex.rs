//! Sleeping until another process has changed a number in memory that both have mapped.

use std::time::Duration;

use rustix::thread::Timespec;
use rustix::thread::futex::{self, Flags};

use crate::sync::AtomicU32;

/// Sleeps while the number is `value`, no longer than `longest`, or until it is woken, also by a
/// signal. Whatever the kernel says, the caller looks again.
pub fn sleep(number: &AtomicU32, value: u32, longest: Duration) {
    let time = Timespec { tv_sec: longest.as_secs() as _, tv_nsec: longest.subsec_nanos().into() };
    let _ = futex::wait(number, Flags::empty(), value, Some(&time));
}

/// Wakes all who sleep on the number.
pub fn wake(number: &AtomicU32) {
    let _ = futex::wake(number, Flags::empty(), i32::MAX as u32);
}
