//! Wormhole networks.

mod fabric;
mod machine;
