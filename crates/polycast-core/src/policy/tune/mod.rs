//! What serves a network best, found by measuring: which ways are to be measured, and the rules that their times come to.
//!
//! ```text
//!  candidates ─▶ Race ─┬─ next ─▶ somebody measures ─┐          Found, one for each size ─▶ rules ─▶ Table
//!                      ▲                             │            │ best here, another there
//!                      └────────── took ◀────────────┘            └─▶ a size between them
//! ```
//!
//! A race is of one collective, shape of communicator and size. All candidates are measured for a short time; who is slower than the best
//! one beyond both intervals is out, the others are measured for twice the time, and so on. Segments, overlaps, buffers and radices next to the
//! best ones so far enter the race as long as they may win. In a job its ranks run it together, in a [`Session`].
//! [`mixed`] says what of the ways on two levels is worth measuring.

mod known;
mod levels;
pub mod mixed;
mod promising;
mod race;
mod rules;
mod search;
mod session;
mod ways;

pub use known::Known;
pub use levels::{Levels, levels};
pub use promising::promising;
pub use race::{Effort, Found, Measured, Race, candidates};
pub use rules::{between, rules};
pub use search::{Aim, Search, Task};
pub use session::{Order, Session};
