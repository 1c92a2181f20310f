//! Wormhole networks.

mod experiments;
mod fabric;
#[path = "conclusions.rs"]
mod long;
mod machine;
