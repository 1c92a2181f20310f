//! What `polycast tune` keeps, and shows.

mod map;
mod picture;
mod store;

pub use map::Map;
pub use store::{Key, Record, Store};

use polycast_core::policy::tune::Found;

/// The best choice for a size.
#[derive(Clone, Debug)]
pub struct Size {
    /// The size as the user asked for it.
    pub bytes: u64,
    /// The size in bytes by which rules count.
    pub block_bytes: u64,
    /// The result of the race: the best choice, with its time.
    pub found: Found,
}
