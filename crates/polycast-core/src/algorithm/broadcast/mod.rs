//! Broadcast: every rank ends with the root's bytes.
//!
//! Algorithms that need no knowledge of the network name ranks by *position*: the root is 0, the others follow around the
//! site's ring. The others send down a tree that the [`Planner`] has made for the ranks where they are.

mod planner;
mod scatter;
pub(super) mod tree_pipeline;

super::registry::files! {
    mod by_position;
    mod split_binary;
    mod scatter_ring;
    mod scatter_doubling;
    mod double_tree;
    pub(in crate::algorithm) mod planned;
    mod two_level;
    mod multicast;
}

pub use super::two_level::within::Within;
pub use by_position::{BINOMIAL, CHAIN};
pub use planned::CONTENTION_FREE_BINARY;
pub use planner::{Origin, Planner, Sent};
pub use two_level::{Between, ON_NODE, TwoLevel};
pub(crate) use two_level::{CARRYING_MOST, SCATTER_RING, TREES as TREES_OF_NODES};

use super::Algorithm;
use crate::collective::Call;
use crate::schedule::Channel;

/// Returns the least power of two that is not below `bytes`; for more than 2^63 bytes, 2^63.
fn power_of_two(bytes: u64) -> u64 {
    bytes.checked_next_power_of_two().unwrap_or(1 << 63)
}

/// The channel of what runs down a tree.
const DOWN: Channel = 0;
/// The channel of what ranks exchange after a scatter; [`super::plan::READY`] stands between the two.
const EXCHANGE: Channel = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_beyond_the_powers_of_two() {
        let sizes = [0, 5, 1 << 63, (1 << 63) + 1, u64::MAX];
        assert_eq!(sizes.map(power_of_two), [1, 8, 1 << 63, 1 << 63, 1 << 63]);
    }
}
