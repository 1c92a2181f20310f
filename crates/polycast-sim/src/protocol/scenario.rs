use polycast_core::algorithm::Algorithm;
use polycast_core::units::Nanos;
use polycast_protocol::{Form, Multicast, RootSync};

use super::faults::Faults;
use super::random::Random;

/// A run: nodes, their broadcasts, the hardware, and what goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The seed of everything that is drawn while the scenario runs.
    pub seed: u64,
    /// The number of nodes, at least 2.
    pub nodes: u32,
    /// Payload of a full datagram.
    pub payload_bytes: u32,
    /// Datagrams that a root hands over at once.
    pub batch_datagrams: u32,
    /// The rate to which the roots pace themselves; `None`: they do not.
    pub bits_per_second: Option<u64>,
    /// Communicators of all nodes, which share a group, a key and each node's socket.
    pub communicators: Vec<Communicator>,
    /// True if a node serves its communicators at the same time, as with one thread each; else one
    /// call after the other.
    pub is_concurrent: bool,
    /// The costs of the hardware if nothing goes wrong.
    pub hardware: Hardware,
    /// The faults: what goes wrong.
    pub faults: Faults,
}

/// The broadcasts of one communicator.
#[derive(Clone, Debug, PartialEq)]
pub struct Communicator {
    /// The number of the communicator's first broadcast.
    pub first_operation: u64,
    /// The broadcasts, in this order on all nodes.
    pub broadcasts: Vec<Broadcast>,
}

/// A broadcast: one call of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The form of multicast.
    pub spec: Multicast,
    /// The node that is the root.
    pub root: u32,
    /// The length of the message, at least 1.
    pub bytes: u64,
}

/// Processors and ports as in LogGP, the same at all nodes. The default: they cost no time. One switch, to which each
/// node is joined by a full-duplex link, as in [`Network`](crate::Network).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hardware {
    /// The time that a processor needs to hand over a message or a batch of datagrams (o).
    pub send_overhead: Nanos,
    /// The time that a processor needs to take a message or a datagram (o).
    pub receive_overhead: Nanos,
    /// The time for which a byte occupies a port (G).
    pub ns_per_byte: f64,
    /// The bytes that a packet needs on the wire beside its payload.
    pub frame_bytes: u64,
    /// The payload of a full packet: longer messages are several.
    pub packet_bytes: usize,
    /// The bytes that may wait at a node's own port before a root holds its datagrams back; `None`:
    /// any number.
    pub send_buffer_bytes: Option<u64>,
    /// True if messages do not wait for datagrams at their node's own port: fair queues.
    pub is_fair: bool,
}

impl Hardware {
    /// Hardware of the order of a cluster on gigabit Ethernet: 8 ns per byte; 5 µs of processor
    /// time for each message, batch or datagram; packets of 1472 bytes, with 66 bytes of headers,
    /// checksum and gap around each. Delays come from [`Faults`].
    pub fn gigabit() -> Hardware {
        Hardware {
            send_overhead: Nanos(5_000),
            receive_overhead: Nanos(5_000),
            ns_per_byte: 8.0,
            frame_bytes: 66,
            packet_bytes: 1472,
            send_buffer_bytes: Some(256 << 10),
            is_fair: false,
        }
    }

    /// Hardware on Fast Ethernet, of the order of the cluster that ipmc was measured on (Siebert
    /// 2006, §4.2): 80 ns per byte, and processors a fifth as fast as those of
    /// [`Hardware::gigabit`].
    pub fn fast_ethernet() -> Hardware {
        Hardware {
            send_overhead: Nanos(25_000),
            receive_overhead: Nanos(25_000),
            ns_per_byte: 80.0,
            send_buffer_bytes: Some(64 << 10),
            ..Hardware::gigabit()
        }
    }

    /// Hardware of the order of InfiniBand of 2006 (Hoefler et al. 2007, §4): 1 ns per byte, half a
    /// microsecond of processor time, packets of 2 KiB.
    pub fn infiniband() -> Hardware {
        Hardware {
            send_overhead: Nanos(500),
            receive_overhead: Nanos(500),
            ns_per_byte: 1.0,
            packet_bytes: 2048,
            ..Hardware::gigabit()
        }
    }

    /// The time for which a frame of `bytes` occupies a port.
    pub(super) fn occupancy(&self, bytes: usize) -> Nanos {
        let packets = bytes.div_ceil(self.packet_bytes.max(1)) as u64;
        Nanos(((bytes as u64 + packets * self.frame_bytes) as f64 * self.ns_per_byte) as u64)
    }
}

/// The most that a drawn run may cost: nodes times fragments, over all its broadcasts.
const MAX_WORK: u64 = 2000;

impl Scenario {
    /// The bytes of its message that the root of a broadcast has at the time `since` after its
    /// beginning; `None`: all.
    pub(super) fn there_bytes(&self, Broadcast { spec, bytes, .. }: Broadcast, since: Nanos) -> Option<u64> {
        let trickle = self.faults.trickle.filter(|_| spec.form == Form::Pull)?;
        Some(trickle.there_bytes(bytes, since))
    }

    /// A scenario of one communicator, on hardware and a network of no cost and no faults.
    ///
    /// # Panics
    /// If a broadcast is no multicast, as `multicast-pull:sync=none`.
    pub fn calm(nodes: u32, broadcasts: &[(&str, u32, u64)]) -> Scenario {
        let broadcasts = broadcasts
            .iter()
            .map(|&(spec, root, bytes)| Broadcast {
                spec: spec.parse::<Algorithm>().ok().and_then(|read| read.multicast()).expect(spec),
                root,
                bytes,
            })
            .collect();
        Scenario {
            seed: 0,
            nodes,
            payload_bytes: 16,
            batch_datagrams: 4,
            bits_per_second: None,
            communicators: vec![Communicator { first_operation: 0, broadcasts }],
            is_concurrent: false,
            hardware: Hardware::default(),
            faults: Faults::default(),
        }
    }

    /// The run that belongs to a seed; its number of nodes lies in `nodes`, each power of two as likely as the next.
    pub fn from_seed(seed: u64, nodes: std::ops::RangeInclusive<u32>) -> Scenario {
        let mut random = Random::new(seed);
        let random = &mut random;
        let (least, most) = (f64::from(*nodes.start()), f64::from(*nodes.end()));
        let nodes = (random.log_within(least, most + 1.0) as u32).clamp(*nodes.start(), *nodes.end());
        let communicators = if random.chance(0.3) { 2 } else { 1 };
        let work = random.log_within(50.0, MAX_WORK as f64) as u64 / communicators;
        let payload_bytes = random.log_within(1.0, 64.0) as u32;
        let mut scenario = Scenario {
            seed,
            nodes,
            payload_bytes,
            batch_datagrams: random.within(1, 8) as u32,
            bits_per_second: random.chance(0.2).then(|| random.log_within(1e6, 1e9) as u64),
            communicators: (0..communicators)
                .map(|_| Communicator::draw(random, nodes, payload_bytes, work))
                .collect(),
            is_concurrent: random.chance(0.5),
            hardware: Hardware::draw(random),
            faults: Faults::draw(random, nodes),
        };
        // Behind all else, so that older seeds keep what they had.
        scenario.hardware.is_fair = random.chance(0.3);
        scenario
    }

    /// The calls of each thread of a node, in order: communicator and broadcast.
    pub(super) fn threads(&self) -> Vec<Vec<(usize, usize)>> {
        let calls = |(index, communicator): (usize, &Communicator)| -> Vec<(usize, usize)> {
            (0..communicator.broadcasts.len()).map(|broadcast| (index, broadcast)).collect()
        };
        let each: Vec<_> = self.communicators.iter().enumerate().map(calls).collect();
        if self.is_concurrent {
            return each;
        }
        let mut one: Vec<_> = each.concat();
        one.sort_by_key(|(communicator, broadcast)| (*broadcast, *communicator));
        vec![one]
    }
}

impl Communicator {
    fn draw(random: &mut Random, nodes: u32, payload_bytes: u32, mut work: u64) -> Communicator {
        let count = random.log_within(1.0, 12.0) as u64;
        let first_operation = match random.below(8) {
            0..=2 => u64::MAX - random.below(count),
            3 => (1 << 63) - random.below(count),
            4 => 0,
            _ => random.number(),
        };
        let (is_one_root, first_root) = (random.chance(0.5), random.below(nodes.into()) as u32);
        let is_one_spec = random.chance(0.5);
        let first_spec = draw_spec(random);
        let mut broadcasts = Vec::new();
        for _ in 0..count {
            let most = (work / u64::from(nodes)).clamp(1, 300);
            let fragments = random.log_within(1.0, most as f64 + 1.0) as u64;
            work = work.saturating_sub(fragments * u64::from(nodes));
            let shorter = random.below(u64::from(payload_bytes));
            broadcasts.push(Broadcast {
                spec: if is_one_spec { first_spec } else { draw_spec(random) },
                root: if is_one_root { first_root } else { random.below(nodes.into()) as u32 },
                bytes: fragments * u64::from(payload_bytes) - shorter,
            });
        }
        Communicator { first_operation, broadcasts }
    }
}

fn draw_spec(random: &mut Random) -> Multicast {
    let delay = RootSync::Delay(Nanos::from_micros(random.below(200)));
    Multicast {
        form: random.one_of(&[Form::Push, Form::Pull]),
        sync: random.one_of(&[RootSync::None, delay, RootSync::Random, RootSync::Adaptive]),
        parity: random.chance(0.3),
    }
}

impl Hardware {
    fn draw(random: &mut Random) -> Hardware {
        if random.chance(0.6) {
            return Hardware::default();
        }
        Hardware {
            send_overhead: Nanos(random.below(6000)),
            receive_overhead: Nanos(random.below(6000)),
            ns_per_byte: random.log_within(0.1, 100.0),
            frame_bytes: random.below(100),
            packet_bytes: random.within(50, 500) as usize,
            send_buffer_bytes: random.chance(0.5).then(|| random.log_within(100.0, 1e5) as u64),
            is_fair: false,
        }
    }
}
