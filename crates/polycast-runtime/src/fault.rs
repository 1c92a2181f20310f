//! Places where a test lets a rank panic. Outside of tests there is nothing here.

/// A place at which a test lets a rank panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// While the rank finds out what to tell of itself.
    Record,
    /// While the rank reads rank 0's settings.
    Settings,
    /// While the rank draws its conclusions from what all have told.
    Agree,
    /// Before a communicator's first served call.
    Open,
    /// While the rank chooses how a call is served.
    Choose,
    /// While the rank looks at what it has for multicast.
    Offer,
    /// While the rank looks for memory to share with its node.
    Memory,
    /// At the start of a message.
    Message,
}

/// Does nothing.
#[cfg(not(test))]
#[inline(always)]
pub fn point(_: Point) {}

#[cfg(test)]
pub use armed::{arm, point};

#[cfg(test)]
mod armed {
    use std::cell::Cell;

    use super::Point;

    thread_local! {
        static ARMED: Cell<Option<(Point, u32)>> = const { Cell::new(None) };
    }

    /// Makes this thread panic when it comes to `point` for the time `nth`, counted from 0.
    pub fn arm(point: Point, nth: u32) {
        ARMED.set(Some((point, nth)));
    }

    /// Panics if this thread was armed for it.
    pub fn point(here: Point) {
        let Some((point, nth)) = ARMED.get().filter(|(point, _)| *point == here) else { return };
        ARMED.set(nth.checked_sub(1).map(|nth| (point, nth)));
        assert!(nth > 0, "a test's panic at {here:?}");
    }
}
