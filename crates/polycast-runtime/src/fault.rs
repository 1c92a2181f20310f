//! Places where a test lets a rank panic. Outside of tests there is nothing here.

/// Where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// While it finds out what to say of itself.
    Record,
    /// While it reads rank 0's settings.
    Settings,
    /// While it draws its conclusions from what all have said.
    Agree,
    /// Before a communicator's first served call.
    Open,
    /// While it chooses how a broadcast is served.
    Choose,
    /// While it looks at what it has for multicast.
    Offer,
    /// While it looks for memory to share with its node.
    Memory,
    /// Where a message of a broadcast starts.
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

    /// This thread panics when it comes to `point` for the time `nth`, counted from 0.
    pub fn arm(point: Point, nth: u32) {
        ARMED.set(Some((point, nth)));
    }

    /// Panics if it was said so.
    pub fn point(here: Point) {
        let Some((point, nth)) = ARMED.get().filter(|(point, _)| *point == here) else { return };
        ARMED.set(nth.checked_sub(1).map(|nth| (point, nth)));
        assert!(nth > 0, "a test's panic at {here:?}");
    }
}
