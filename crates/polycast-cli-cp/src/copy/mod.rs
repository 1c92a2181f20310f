//! `polycast cp`: the same files on every node.
//!
//! ```text
//!   polycast cp ─┬─ polycast cp-agent   reads the files: the source           commands on its standard input, events on its
//!                ├─ polycast cp-agent   on n1 ◀─ blocks ─ the source          standard output, a JSON object a line; the key
//!                └─ polycast cp-agent   on n2 ◀─ blocks ─ n1                  of the copy goes no other way
//!
//!   in an agent:   feed ─▶ store ─▶ writer ─▶ staging folder ─commit─▶ destination
//!                  ring ──▶  └─▶ serve, to whoever asks
//! ```
//!
//! What is pure of it (manifest, stream, who takes from whom) is the crate `polycast-copy`.

mod address;
pub mod agent;
mod backing;
mod clock;
mod commit;
mod contact;
pub mod coordinator;
mod crew;
mod feed;
mod group;
mod in_common;
mod journal;
mod lane;
mod message;
mod multicast;
mod neighbour;
mod node;
mod outcome;
mod packing;
mod place;
pub mod report;
pub mod request;
mod ring;
mod scan;
mod serve;
mod staging;
mod store;
mod strangers;
mod tally;
