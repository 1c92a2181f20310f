//! How many segments a process has. Each takes some hundred kibibytes of its node for as long as its communicator lives, and programs may keep
//! thousands of communicators; those that come late do without.

use std::sync::Mutex;

use crate::of_process::{Shared, of_process};

/// Those of the pool among them, until others need their room.
pub const MAX_SEGMENTS: usize = 64;

of_process! {
    static COUNT: Mutex<usize> = Mutex::new(0);
}

/// One of them.
pub struct Live(());

impl Live {
    /// Whether there may be one more.
    pub fn is_room() -> bool {
        COUNT.change(|count| *count < MAX_SEGMENTS)
    }

    /// One more, if there may be.
    pub fn new() -> Option<Live> {
        COUNT.change(|count| {
            let is_room = *count < MAX_SEGMENTS;
            *count += usize::from(is_room);
            // Not `then_some`: what is made would be dropped under the lock.
            is_room.then(|| Live(()))
        })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        COUNT.change(|count| *count -= 1);
    }
}
