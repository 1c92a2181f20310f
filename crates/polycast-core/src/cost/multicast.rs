use super::{Network, wire_bytes};
use crate::units::Rank;
use polycast_protocol::{Form, Multicast, RootSync};

/// What a broadcast by multicast takes without loss, in nanoseconds: every link carries the bytes once, at the same time,
/// so the slowest link decides. Nothing of it is measured apart; the parameters give the latency of a short message.
///
/// ```text
///   push   wire time + one hop
///   pull   the same, and a question and its answer around the ring
///   sync   random: one more hop, from a receiver to the root; a delay: itself
/// ```
pub fn multicast_ns(network: &mut Network, root: Rank, multicast: Multicast, bytes: u64) -> f64 {
    let hop_ns = network.slowest_hop_ns(0);
    let wire_ns = network.slowest_ns_per_byte(root) * wire_bytes(bytes) as f64;
    let ring_ns = if multicast.form == Form::Pull { 2.0 * hop_ns } else { 0.0 };
    let sync_ns = match multicast.sync {
        RootSync::None | RootSync::Adaptive => 0.0,
        RootSync::Delay(delay) => delay.0 as f64,
        RootSync::Random => hop_ns,
    };
    sync_ns + wire_ns + hop_ns + ring_ns
}
