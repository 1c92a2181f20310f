//! Wormhole networks.

mod experiments;
mod fabric;
mod machine;
