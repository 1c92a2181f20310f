//! Wormhole networks.

mod booksim;
mod credit_routers;
mod experiments;
mod fabric;
#[path = "conclusions.rs"]
mod long;
mod machine;
