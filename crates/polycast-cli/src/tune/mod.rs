//! What `polycast tune` keeps, and shows.

mod map;
mod picture;
mod store;

pub use map::Map;
pub use store::{Key, Record, Store};

use polycast_core::policy::tune::Found;

/// What was found for a size.
#[derive(Clone, Debug)]
pub struct Size {
    /// As it was asked for.
    pub bytes: u64,
    /// By which rules count it.
    pub block_bytes: u64,
    /// What serves it.
    pub found: Found,
}
