//! Which algorithm serves a call: decided by a table, which is data with reasons.
//!
//! ```text
//! text ──Table::parse──▶ Table ──broadcast_rules(shape)──▶ BroadcastChoices ──choose(bytes)──▶ Choice
//!                          │        once per communicator       a few nanoseconds per call
//!                          └──explain(collective, shape, bytes)──▶ Explanation: every rule looked at, and why
//! ```
//!
//! Where parameters of the network have been measured, a [`Prediction`] decides among trees, and the table between trees, stock
//! and multicast: [`Table::broadcast_rules_and`].
//!
//! All ranks of a communicator decide alone and must decide alike, so a table may ask only for what all of them
//! know: the collective, the communicator's shape and the total bytes. The format is documented in `docs/table.md`.

mod broadcast_choices;
mod choice;
mod collective;
mod condition;
mod explanation;
mod parse;
mod prediction;
mod rules;
mod shape;
mod table;

pub use broadcast_choices::BroadcastChoices;
pub use choice::{Choice, ParseChoiceError};
pub use collective::{Collective, ParseCollectiveError};
pub use condition::{Condition, Property, Range};
pub use explanation::{Explanation, LookedAt, Verdict};
pub use parse::{MAX_RULES, MAX_TEXT_BYTES, TableError};
pub use prediction::{Prediction, choice as predicted_choice};
pub use rules::Rules;
pub use shape::{CommunicatorShape, CommunicatorShapeError};
pub use table::{Rule, SHIPPED_TEXT, Table};
