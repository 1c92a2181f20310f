//! Reliable broadcast by multicast: the two stages of seeds 0 and 3, and beyond them.
//!
//! Stage 1: the root multicasts every fragment once. Stage 2: a ring of point-to-point messages brings what multicast
//! has lost; whichever copy arrives first counts. `docs/protocol.md` describes both with drawings.
//!
//! ```text
//!                      ┌───────────── endpoint ─────────────┐      one node of one communicator
//!     datagrams ─────▶ │ early ─▶ receiver ◀──┐             │
//!     messages  ─────▶ │            │         chain         │ ─────▶ datagrams, messages
//!     now       ─────▶ │ root_sync ─▶ sender ─┘   pacing    │ ─────▶ deadline
//!                      └────────────────────────────────────┘
//!                          wire, message: how they are written      tag: who may write them
//! ```
//!
//! Nothing here has a socket or a clock: `polycast-runtime` drives it in a job, `polycast-sim` in virtual time.
#![forbid(unsafe_code)]

mod chain;
mod counters;
mod cut;
mod data;
mod early;
mod endpoint;
pub mod message;
mod pacing;
mod receiver;
mod root_sync;
mod sender;
mod spec;
mod tag;
pub mod wire;

pub use counters::Counters;
pub use cut::{Cut, Run};
pub use data::Data;
pub use endpoint::{Action, Delivery, Endpoint, Membership, Mismatch, Peer, Room};
pub use root_sync::{Report, RootSync};
pub use spec::{Form, MULTICAST_NAMES, Multicast, ParseMulticastError};
pub use tag::{KEY_BYTES, Key};
