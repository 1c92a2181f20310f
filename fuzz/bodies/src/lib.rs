//! What is done with any bytes, and what must be true of it: one function per decoder of bytes from outside.
//!
//! The targets of cargo-fuzz call them, and so does `tests/replay.rs` in `make test`, over the committed corpus and
//! mutations of it. A function returns, or it panics because something is wrong; nothing else is a result.

mod endpoint;
mod found;
mod text;
mod trace;
mod wire;

pub use endpoint::endpoint;
pub use found::{memory, memory_seeds};
pub use text::{addresses, lldp, table, topology};
pub use trace::{trace, trace_seeds};
pub use wire::{datagram, message};

/// MADCAP messages, and a server that gets them.
pub fn madcap(bytes: &[u8]) {
    polycast_madcap::check_any_bytes(bytes);
    wire::madcap_server(bytes);
}

/// What nodes of a copy send each other: lists of files, headers of blocks, requests.
pub fn copy(bytes: &[u8]) {
    polycast_copy::check_any_bytes(bytes);
}

/// What a copy with `-C` brings: compressed blocks, segments of them.
pub fn packed(bytes: &[u8]) {
    polycast_copy::check_any_packed_bytes(bytes);
}

/// Settings that rank 0 sends to the others.
pub fn settings(bytes: &[u8]) {
    polycast::check_any_settings(bytes);
}

/// A function of this crate.
pub type Body = fn(&[u8]);

/// All of them, by the name of their target and of their folder in `fuzz/corpus`.
pub const BODIES: [(&str, Body); 13] = [
    ("datagram", datagram),
    ("message", message),
    ("madcap", madcap),
    ("table", table),
    ("topology", topology),
    ("lldp", lldp),
    ("addresses", addresses),
    ("trace", trace),
    ("endpoint", endpoint),
    ("memory", memory),
    ("settings", settings),
    ("copy", copy),
    ("packed", packed),
];
