//! Algorithms turn (ranks, root, bytes, this rank) into a schedule; they only describe, nothing here sends.
//!
//! ```text
//! "chain:segment=8KiB" ──Registry::read──▶ Algorithm ──schedule(call, rank)──▶ lanes of messages
//!                             │                │
//!                             └─▶ Entry ◀──────┘   name, what it is, its source, parameters with their ranges, how it is built
//! ```
//!
//! Whoever needs the algorithms (parsing, printing, predictions, tests, lists) asks the [`Registry`]; there is no other list.
//! An algorithm is an [`Entry`] in one file below the collective that it serves, its address: `scatter-ring` is
//! `broadcast/scatter_ring.rs`. One that is just a tree is a line of `broadcast/by_position.rs` or `broadcast/planned.rs`.
//! A broadcast cuts the data into `pieces` and lists who gets which of them from whom; the `plan` makes a schedule of that
//! list and finds out by itself what each send has to wait for. Algorithms of other collectives than the broadcast list their
//! steps themselves.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
mod blocks;
pub mod broadcast;
mod build;
pub mod cells;
mod contention_free;
mod direct;
mod entry;
mod exchange;
mod fan_in;
mod formulas;
pub mod gather;
mod intervals;
mod parameter;
mod parse;
mod pieces;
mod plan;
pub mod reduce;
mod registry;
mod rule;
pub mod scatter;
mod shares;
mod spec;
mod two_level;
mod work;

pub use build::{Builder, OnNodes};
pub use entry::{Entry, Form, MadeFor, Raced};
pub use formulas::{Formulas, Stages};
pub(crate) use parameter::NONE;
pub use parameter::{Domain, Need, Parameter, SEGMENTS};
pub use parse::ParseAlgorithmError;
pub use registry::Registry;
pub use spec::{Algorithm, ParameterValues};
pub use work::{CallWork, Spread};
