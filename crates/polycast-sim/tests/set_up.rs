//! The set-up's probe on 2 to 8192 nodes in virtual time: what its datagrams do to links and buffers, how long it takes, and what it finds.

use polycast_core::units::Nanos;
use polycast_protocol::{Probe, ProbeStep, ROUNDS};

const MILLI: u64 = 1_000_000;
const GIGABIT: u64 = 1_000_000_000;
/// A full datagram on Ethernet.
const WIRE_BYTES: usize = 1558;
/// The datagrams that a switch keeps for one of its ports, and a kernel for a socket by default:
/// each takes 2304 of 425,984 bytes there.
const MAX_AT_PORT: usize = 170;
const MAX_IN_SOCKET: usize = 184;
/// A receiver may be away for so long, once in ten times that.
const AWAY: u64 = MILLI;
/// The time from the first node's begin of a round to the last one's.
const SKEW: u64 = 2 * MILLI;
/// The number of receivers that are looked at: all get the same datagrams.
const MAX_RECEIVERS: u32 = 48;

#[derive(Clone, Copy)]
struct Network {
    nodes: u32,
    bits_per_second: u64,
    /// For each receiver.
    loss: f64,
    is_dead: bool,
}

#[derive(Debug, Default)]
struct Found {
    rounds: usize,
    works: bool,
    took: Nanos,
    /// The most that one node has sent, and all together.
    most_sent: u32,
    sent: u64,
    /// Dropped by a port or a socket, at all receivers that are looked at.
    overflowed: u64,
}

/// Splitmix64, as good as any here.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn chance(&mut self, part: f64) -> bool {
        (self.below(1 << 32) as f64) < part * (1u64 << 32) as f64
    }
}

/// The senders that one receiver hears, if datagrams reach the switch at these times, in order.
fn receive(
    network: Network,
    sent: &[(u64, u32)],
    me: u32,
    random: &mut Random,
    found: &mut Found,
) -> Vec<u32> {
    let each = Nanos::on_link(WIRE_BYTES, network.bits_per_second).0;
    let away_from = random.below(10 * AWAY);
    let (mut free_at, mut in_socket, mut heard) = (0u64, 0, Vec::new());
    for &(at, node) in sent.iter().filter(|(_, node)| *node != me) {
        if network.is_dead || random.chance(network.loss) {
            continue;
        }
        if free_at.saturating_sub(at) / each >= MAX_AT_PORT as u64 {
            found.overflowed += 1;
            continue;
        }
        free_at = free_at.max(at) + each;
        let is_away = free_at % (10 * AWAY) >= away_from && free_at % (10 * AWAY) < away_from + AWAY;
        in_socket = if is_away { in_socket + 1 } else { 0 };
        if in_socket > MAX_IN_SOCKET {
            found.overflowed += 1;
            continue;
        }
        heard.push(node);
    }
    heard
}

fn set_up(network: Network) -> Found {
    set_up_in_slots_of(WIRE_BYTES, network)
}

/// Slots for datagrams of so many bytes.
fn set_up_in_slots_of(slot_bytes: usize, network: Network) -> Found {
    let Network { nodes, bits_per_second, .. } = network;
    let random = &mut Random(nodes.into());
    let mut probes: Vec<Probe> =
        (0..nodes).map(|node| Probe::new(node, nodes, slot_bytes, bits_per_second)).collect();
    let looked_at: Vec<u32> = (0..nodes).step_by(nodes.div_ceil(MAX_RECEIVERS) as usize).collect();
    let mut counts = vec![0; nodes as usize];
    let mut found = Found::default();
    let mut now = 0;
    for _ in ROUNDS {
        found.rounds += 1;
        let mut sent = Vec::new();
        let mut end = now;
        for (node, probe) in (0..).zip(&mut probes) {
            let mut mine = now + random.below(SKEW);
            probe.begin(Nanos(mine));
            if let ProbeStep::Listen(at) = probe.step(Nanos(mine)) {
                mine = at.0;
            }
            if let ProbeStep::Send(copies) = probe.step(Nanos(mine)) {
                sent.extend((0..copies).map(|_| (mine, node)));
                counts[node as usize] += copies;
                probe.sent();
            }
            end = end.max(mine);
        }
        sent.sort_unstable();
        for receiver in &looked_at {
            let heard = receive(network, &sent, *receiver, random, &mut found);
            heard.into_iter().for_each(|node| probes[*receiver as usize].hear(node));
        }
        let mut all = looked_at.iter().map(|receiver| &probes[*receiver as usize]);
        found.works = all.clone().all(Probe::has_heard_all);
        if !found.works {
            // Somebody listens until the end.
            let latest = |probe: &Probe| match probe.step(Nanos(end)) {
                ProbeStep::Listen(until) => until.0,
                _ => end,
            };
            end = all.clone().map(latest).max().unwrap_or(end);
        }
        now = end;
        if found.works {
            break;
        }
        let first = all.next().map(Probe::heard).expect("some are looked at");
        let by_all =
            all.map(Probe::heard).fold(first, |all, one| all.iter().zip(&one).map(|(a, b)| a & b).collect());
        probes.iter_mut().for_each(|probe| probe.repeat(&by_all));
    }
    found.took = Nanos(now);
    found.most_sent = counts.iter().copied().max().unwrap_or(0);
    found.sent = counts.iter().map(|count| u64::from(*count)).sum();
    found
}

#[test]
fn on_a_good_network_each_node_sends_one_datagram_and_none_overflows() {
    for (nodes, most_millis) in [(2, 3), (16, 4), (300, 11), (1024, 28), (8192, 208)] {
        for bits_per_second in [GIGABIT, 10 * GIGABIT] {
            let found = set_up(Network { nodes, bits_per_second, loss: 0.0, is_dead: false });
            assert!(found.works && found.rounds == 1 && found.overflowed == 0, "{nodes} nodes: {found:?}");
            assert!(found.took < Nanos(most_millis * MILLI), "{nodes} nodes: {found:?}");
            let each = if nodes > 96 { 1 } else { 3 };
            assert!(
                found.most_sent == each && found.sent == u64::from(nodes * each),
                "{nodes} nodes: {found:?}"
            );
        }
    }
}

/// Else these tests would say nothing.
#[test]
fn all_at_once_they_overflow() {
    for nodes in [1024, 8192] {
        let found =
            set_up_in_slots_of(0, Network { nodes, bits_per_second: GIGABIT, loss: 0.0, is_dead: false });
        assert!(found.overflowed > 1000 && found.rounds > 1, "{nodes} nodes: {found:?}");
    }
}

#[test]
fn what_got_lost_is_sent_again_and_nothing_else() {
    for nodes in [300, 1024, 8192] {
        let found = set_up(Network { nodes, bits_per_second: GIGABIT, loss: 1e-4, is_dead: false });
        assert!(found.works && found.rounds <= 2, "{nodes} nodes: {found:?}");
        assert!(found.sent < u64::from(nodes) * 11 / 10, "{nodes} nodes: {found:?}");
        let lossy = set_up(Network { nodes, bits_per_second: GIGABIT, loss: 0.01, is_dead: false });
        assert!(lossy.works && lossy.most_sent <= 6, "{nodes} nodes: {lossy:?}");
    }
}

#[test]
fn a_network_without_multicast_is_found_out_without_a_storm() {
    for nodes in [2, 300, 1024, 8192] {
        let found = set_up(Network { nodes, bits_per_second: GIGABIT, loss: 0.0, is_dead: true });
        let slots = Nanos::on_link(5 * WIRE_BYTES * nodes as usize, GIGABIT / 2);
        assert!(!found.works && found.rounds == 3, "{nodes} nodes: {found:?}");
        assert!(found.most_sent <= if nodes > 96 { 5 } else { 9 }, "{nodes} nodes: {found:?}");
        assert!(found.took < Nanos(710 * MILLI) + slots, "{nodes} nodes: {found:?}");
    }
}
