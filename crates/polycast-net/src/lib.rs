//! The network side of multicast: which interface, which group, and a socket that is a member of it.
//!
//! Nothing here knows the protocol: a datagram is bytes. Linux facts that shape this crate (what must be set, what must be
//! checked, what the kernel grants) are told where they are met; docs/decisions/0007-sockets.md has the choice behind it.

mod datagrams;
mod family;
mod group;
pub mod interface;
pub mod routes;
mod socket;
pub mod verbs;

pub use datagrams::{Carrier, Datagrams};
pub use family::Family;
pub use group::{Group, GroupBlock, Hops, Ports, Range};
pub use interface::{Interface, InterfaceChoice, InterfaceError};
pub use socket::{OpenError, Socket, SocketOptions, Step, receive_buffer_bytes};
