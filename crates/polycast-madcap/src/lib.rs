//! MADCAP (RFC 2730): a server at the site hands out multicast addresses, so that jobs do not meet on one.
//!
//! ```text
//! client ── REQUEST (scope, lease identifier) ──▶ server     one round trip: the server is known, so nothing needs to be
//! client ◀── ACK (address, lease time) ────────── server     discovered; servers that are searched for get DISCOVER first
//! client ── RENEW / RELEASE ───────────────────▶ server
//! ```
//!
//! The client leaves alone what a job does not need: leases that start later, several addresses at once, finding servers by
//! multicast, the list of scopes.
#![forbid(unsafe_code)]

mod client;
mod lease_renewer;
mod message;
mod scope;
mod server;

pub use client::{Client, ClientError, Lease};
pub use lease_renewer::LeaseRenewer;
pub use message::{DecodeError, Kind, LeaseId, Message, NakCode};
pub use scope::{ParseScopeError, Scope};
pub use server::{Event, Server, ServerError};

/// The UDP port of servers.
pub const PORT: u16 = 2535;

/// Decodes any bytes, for a fuzzer. Panics if a message that could be decoded does not survive
/// being encoded.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        let again = Message::decode(&message.encode());
        assert_eq!(again, Ok(message), "decoded from {bytes:?}");
    }
}
