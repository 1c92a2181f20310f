//! Measures the parameters of a network between pairs of ranks.
//!
//! ```text
//!  pairs: a pair per link class ──▶ sizes: which message sizes, more where a curve bends
//!                                     └─▶ size: streams and round trips of one size, until they are known well
//!                                           └─▶ RankServer
//!  sharing: what ranks of one node take among themselves, from jobs with polycast
//!  parameters: latency, gap, t_hold … of these ──▶ the core's model::Parameters ──▶ file, table
//! ```
//!
//! How long things take is read from the ranks' own answers, never from a clock here: so all of it can be tested against a
//! network that is a formula.

pub mod doubt;
pub mod estimate;
pub mod pairs;
pub mod parameters;
pub mod sharing;
pub mod size;
pub mod sizes;
pub mod table;

#[cfg(test)]
mod formula;
