//! Which algorithm serves a call: decided by a table, which is data with reasons.
//!
//! ```text
//! text ──Table::parse──▶ Table ─▶ Rules ──Policy::new(shape)──▶ Policy ──choose(call, capabilities, epoch)──▶ Decision
//!                                         once per communicator          a few nanoseconds per call        │
//!                                                      Explanation: every rule looked at, and why ◀────────┘
//! ```
//!
//! The library and `polycast explain` both ask [`Policy::choose`], so they agree. Where parameters of the network have been
//! measured, a [`Prediction`] decides among trees, and the table between trees, stock and multicast.
//!
//! [`tune`] finds by measurement what serves a network best, and writes rules; [`trials`] does so in jobs.
//!
//! All ranks of a communicator decide alone and must decide alike, so a table may ask only for what all of them
//! know: the collective, the communicator's shape, the total bytes, and how many calls came before ([`CallCounts`]). The format is documented in `docs/table.md`.

mod call;
mod capabilities;
pub mod challengers;
mod choice;
mod choose;
pub mod chooser;
mod comments;
mod condition;
mod epoch;
mod explanation;
mod parse;
mod passing;
mod prediction;
mod rules;
mod shape;
mod sums;
mod table;
mod to_stock;
pub mod trials;
pub mod tune;
mod write;

pub use crate::collective::{Collective, ParseCollectiveError};
pub use call::Call;
pub use capabilities::Capabilities;
pub use choice::{Choice, ParseChoiceError};
pub use choose::{By, Decision, Interval, Policy};
pub use condition::{Condition, Property, Range};
pub use epoch::{CallCounts, Epoch};
pub use explanation::{Explanation, LookedAt, Verdict, nearest_rule};
pub use parse::{MAX_EPOCHS, MAX_RULES, MAX_TEXT_BYTES, TableError};
pub use passing::Passing;
pub use prediction::{Prediction, choice as predicted_choice};
pub use rules::Rules;
pub use shape::{CommunicatorShape, CommunicatorShapeError};
pub use sums::{ParseServedSumsError, ServedSums};
pub use table::{Rule, SHIPPED_TEXT, Table};
pub use to_stock::{Ranks, ToStock, passing_at_first};
