//! How long an algorithm takes, from the measured model and the topology.
//!
//! ```text
//! Parameters + Placed ──▶ Predictor ──prepare(algorithm)──▶ Prepared ──segmented(segment)──▶ SegmentedCost ──cost(bytes)──▶ Cost
//!                           └──compare(algorithms, sizes)──▶ per size all candidates, the fastest first ──▶ intervals
//! ```
//!
//! Patarasuk et al. 2008, §4.2, give the form: the time until the first segment has reached a rank, and for each further segment the
//! *interval* at which segments follow each other. Here the interval is that of the slowest of the ranks and links on the
//! way, and a link that several messages of the tree use at the same time is slower by as much.
//!
//! That is quick, and is how trees are compared. Schedules of any form, of any collective, are followed message by message:
//! [`list_schedule()`]. What nodes of several ranks share through their memory meanwhile is [`mixed`]'s.
//!
//! What is not modelled, and why: `docs/models.md`.

mod algorithms;
mod best;
pub mod closed_forms;
mod exchange;
mod list_schedule;
pub mod mixed;
mod multicast;
mod network;
mod pipeline;
mod transfers;

pub use algorithms::{Cost, Predictor, Prepared, SegmentedCost};
pub use best::{Comparison, Predicted, borders, compare, intervals};
pub use list_schedule::{MAX_STEPS, Work, list_schedule};
pub use multicast::{Loss, multicast_ns};
pub use network::{CostedNetwork, LinkIndex, wire_bytes};
pub use pipeline::{Bottleneck, Pipeline};
pub use transfers::{Sends, StreamKind, Transfers};
