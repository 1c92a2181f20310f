//! The number of segments of a process. Each takes some hundred kibibytes of its node for as long
//! as its communicator lives, and programs may keep thousands of communicators; those that come
//! late do without.

use std::sync::Mutex;

use crate::of_process::{Shared, of_process};

/// Most segments of a process. Those of the pool count, until others need their room.
pub const MAX_SEGMENTS: usize = 64;

of_process! {
    static COUNT: Mutex<usize> = Mutex::new(0);
}

/// A segment that counts.
pub struct Live(());

impl Live {
    /// True if there may be one more segment.
    pub fn is_room() -> bool {
        COUNT.change(|count| *count < MAX_SEGMENTS)
    }

    /// Counts one more segment, if there may be one.
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
