//! What `polycast tune` keeps, and shows.

mod map;
mod store;

pub use map::map;
pub use store::{Key, Record, Store};
