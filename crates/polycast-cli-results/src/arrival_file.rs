//! When ranks called, against the first of each call: what `polycast bench` and `simulate --arrival FILE` let ranks do again.
//!
//! ```text
//!     polycast-arrivals 1        of the format
//!     ranks N                    so many numbers in each row
//!     R T0 T1 …                  a row for each call: its root, and how many nanoseconds after the first each rank called
//! ```
//! Lines that begin with `#` say nothing.

use polycast_core::units::Nanos;

/// The first line of a file of recorded arrivals.
pub const HEADING: &str = "polycast-arrivals 1";

/// The most calls in a file, which has the first ones. A measuring job keeps all calls of a file.
pub const MAX_ROWS: usize = 4096;
/// The most ranks of a file, and the most numbers in all.
pub const MAX_NUMBERS: usize = 1 << 22;
/// The longest time that a rank may wait for another.
pub const LONGEST: Nanos = Nanos(3600 * 1_000_000_000);

/// Accepts the text of a file of recorded arrivals.
///
/// # Errors
/// What was expected in its first line.
pub fn check_heading(text: &str) -> Result<(), String> {
    match text.lines().next() {
        Some(HEADING) => Ok(()),
        _ => Err(format!("expected {HEADING} in its first line, as `polycast report --arrivals` writes it")),
    }
}
