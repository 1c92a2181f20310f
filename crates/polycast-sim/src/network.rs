use polycast_core::units::Rate;

/// A network of one switch, or [several](crate::Schedules::paths), to which every rank's host is
/// joined by a full-duplex link.
///
/// ```text
///   rank 0 ══╗   ╔══ rank 2      a message of m bytes occupies the sender's port for m * ns_per_byte, reaches the
///            switch              receiver's port latency_ns after it began to leave, and occupies that for
///   rank 1 ══╝   ╚══ rank 3      m * ns_per_byte too; the switch never drops and never blocks
/// ```
///
/// A link between switches is occupied by what crosses it as the ports are, and adds no latency. Ranks of a host send and receive over its one
/// link, and to each other through [memory](SharedMemory), without overheads.
///
/// Processors are modelled as in LogGP: each message costs the sender and the receiver an overhead, in which the
/// rank does nothing else. What arrives before its receive is posted is buffered without limit, and counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// The time from the sender's port to the receiver's port, in nanoseconds.
    pub latency_ns: u64,
    /// The time for which a byte occupies a port, in nanoseconds.
    pub ns_per_byte: f64,
    /// The payload of a full packet, at least 1.
    pub packet_bytes: u64,
    /// The bytes that a packet needs on the wire beside its payload; an empty message is a packet,
    /// too.
    pub frame_bytes: u64,
    /// The time that a send costs the sending rank's processor, in nanoseconds.
    pub send_overhead_ns: u64,
    /// The time that a message costs the receiving rank's processor, in nanoseconds.
    pub receive_overhead_ns: u64,
    /// The time that a byte that is copied or combined costs a rank's processor, in nanoseconds.
    pub local_ns_per_byte: f64,
    /// Messages of at least this many bytes wait until their receive is posted: the sender asks, the receiver
    /// answers, `latency_ns` each. Smaller ones, or all with `None`, are sent eagerly.
    pub rendezvous_threshold: Option<u64>,
    /// The memory through which ranks publish to others on their node.
    pub shared: SharedMemory,
}

/// Memory that the ranks of a node share: whoever publishes copies into it, whoever fetches copies out of it, and buses are
/// never the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedMemory {
    /// The time until one rank sees what another has written, in nanoseconds.
    pub latency_ns: u64,
    /// The time that copying a byte costs a rank's processor, in nanoseconds.
    pub ns_per_byte: f64,
    /// The number of published steps of a lane that the memory holds, at least 1. A further one
    /// waits until all readers are done with the oldest.
    pub buffers: u32,
}

impl SharedMemory {
    /// The time for which copying `bytes` in or out occupies the processor.
    pub(crate) fn copy_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.ns_per_byte).round() as u64
    }
}

impl Network {
    /// A cluster on plain Ethernet with TCP: 20 µs from port to port, 3 µs of processor time at either end,
    /// copies at 10 GB/s, rendezvous from 64 KiB; 16 buffers of shared memory, which is seen after 0.2 µs.
    pub fn ethernet(bits_per_second: f64) -> Self {
        Network {
            latency_ns: 20_000,
            ns_per_byte: 8e9 / bits_per_second,
            packet_bytes: u64::MAX,
            frame_bytes: 0,
            send_overhead_ns: 3_000,
            receive_overhead_ns: 3_000,
            local_ns_per_byte: 0.1,
            rendezvous_threshold: Some(64 << 10),
            shared: SharedMemory { latency_ns: 200, ns_per_byte: 0.1, buffers: 16 },
        }
    }

    /// The network with links of this rate; unchanged if no rate is known.
    pub fn at(self, rate: Option<Rate>) -> Self {
        let ns_per_byte = rate.map_or(self.ns_per_byte, Rate::ns_per_byte);
        Network { ns_per_byte, ..self }
    }

    /// Links that take `ns_per_byte` and nothing else that costs time: for comparing with closed forms.
    pub fn bare(ns_per_byte: f64) -> Self {
        Network {
            latency_ns: 0,
            ns_per_byte,
            packet_bytes: u64::MAX,
            frame_bytes: 0,
            send_overhead_ns: 0,
            receive_overhead_ns: 0,
            local_ns_per_byte: 0.0,
            rendezvous_threshold: None,
            shared: SharedMemory { latency_ns: 0, ns_per_byte: 0.0, buffers: 16 },
        }
    }

    /// The time for which a message of `bytes` occupies a port.
    pub fn occupancy_ns(&self, bytes: u64) -> u64 {
        let packets = bytes.div_ceil(self.packet_bytes).max(1);
        ((bytes + packets * self.frame_bytes) as f64 * self.ns_per_byte).round() as u64
    }

    /// The time for which copying or combining `bytes` occupies the processor.
    pub(crate) fn local_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.local_ns_per_byte).round() as u64
    }

    pub(crate) fn needs_rendezvous(&self, bytes: u64) -> bool {
        self.rendezvous_threshold.is_some_and(|threshold| bytes >= threshold)
    }
}
