//! Reliable broadcast by multicast: the two stages of Siebert 2006 and Hoefler et al. 2007, and beyond them.
//!
//! Stage 1: the root multicasts every fragment once. Stage 2: a ring of point-to-point messages brings what multicast
//! has lost; whichever copy arrives first counts. `docs/protocol.md` describes both with drawings.
//!
//! ```text
//!                      ┌───────────── endpoint ─────────────┐      one node of one communicator
//!     datagrams ─────▶ │ early ─▶ receiver ◀──┐             │
//!     messages  ─────▶ │            │    ring_repair        │ ─────▶ datagrams, messages
//!     now       ─────▶ │ root_sync ─▶ sender ─┘   pacing    │ ─────▶ deadline
//!                      └────────────────────────────────────┘
//!                          wire, message: how they are written      tag: who may write them
//! ```
//!
//! Nothing here has a socket or a clock, and messages go through a [`ControlChannel`]: `polycast-runtime` drives it in a job, `polycast-sim` in virtual time.
#![forbid(unsafe_code)]

mod answer_time;
mod control;
mod counters;
mod data;
mod datagram_repair;
mod early;
mod endpoint;
mod fragmentation;
mod hearing;
mod kept;
pub mod message;
mod pacing;
pub mod parity;
mod probe;
mod question;
mod receiver;
mod ring_repair;
mod root_sync;
mod sender;
mod spec;
mod tag;
pub mod wire;

pub use control::{Acted, ControlChannel, RECEIVES_PER_NEIGHBOR};
pub use counters::Counters;
pub use data::Data;
pub use datagram_repair::{read_done, read_request};
pub use endpoint::{Action, Capacity, Delivery, Endpoint, Membership, Mismatch, Peer};
pub use fragmentation::{Fragmentation, Run};
pub use probe::{Probe, ProbeStep, ROUNDS};
pub use root_sync::{ReceptionReport, RootSync};
pub use spec::{Form, Multicast};
pub use tag::{KEY_BYTES, Key};
