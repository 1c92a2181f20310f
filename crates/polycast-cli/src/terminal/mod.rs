//! How the tool writes for people: quantities with the unit that fits, and tables and paragraphs within [`WIDTH`] columns.

mod colour;
mod paragraph;
mod table;

pub use colour::{Paint, is_colourful};
pub use paragraph::{hanging, paragraph};
pub use polycast_core::units::quantity::{
    count, digits, exact_size, interval, margin, nanoseconds, range, size,
};
pub use table::table;

/// Columns of the narrowest terminal that is written for. Wider ones get the same: what is pasted into a mail or a
/// ticket stays readable, and tests see what users see.
pub const WIDTH: usize = 80;
