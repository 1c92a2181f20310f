//! The probe: every host in turn sends numbered datagrams of full size to a random group, all others count them.
//!
//! ```text
//!   round 1   h0 ──200──▶ h1 h2 h3     then h1, then h2, …      full size, as a broadcast sends them
//!   round 2   the same with small ones, if some host missed all: an MTU on the way lets these pass, a filter does not
//!   rounds 3… a few from each host, every second, as long as --watch says: a snooping switch may forget a member
//! ```

pub mod datagram;
pub mod diagnosis;
pub mod matrix;
pub mod tally;

#[cfg(test)]
mod tests;
