//! How the tool writes for people: quantities with the unit that fits, and tables and paragraphs within [`width`] columns.

mod colour;
mod paragraph;
mod table;

use std::ops::RangeInclusive;
use std::sync::OnceLock;

pub use colour::{Paint, is_colourful};
pub use paragraph::{hanging, paragraph};
pub use polycast_core::units::quantity::{
    count, digits, exact_size, interval, margin, nanoseconds, range, size,
};
pub use table::table;

/// The columns of an output that has no width: a pipe, a file, text for a mail or a ticket.
pub const WIDTH: usize = 80;

/// The least and the most columns. Fewer leave no room for a table, and over more no eye finds back
/// to the next line.
const COLUMNS: RangeInclusive<usize> = 20..=160;

/// Returns the columns to write for: the variable COLUMNS, else those of the terminal that reads
/// standard output, else [`WIDTH`].
pub fn width() -> usize {
    static FOUND: OnceLock<usize> = OnceLock::new();
    // Unit tests are the same whoever watches them.
    if cfg!(test) { WIDTH } else { *FOUND.get_or_init(found) }
}

fn found() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let real = || {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    let columns = said.filter(|columns| *columns > 0).or_else(|| real().filter(|columns| *columns > 0));
    columns.map_or(WIDTH, |columns: usize| columns.clamp(*COLUMNS.start(), *COLUMNS.end()))
}
