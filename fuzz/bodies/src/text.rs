//! Files that people write.

use polycast_core::network::Network;
use polycast_core::policy::{
    Call, Capabilities, Choice, Collective, CommunicatorShape, Condition, Epoch, Policy, Rule, Rules, Table,
};
use polycast_core::topology::{Address, Format, MAX_HOSTS, Neighbours, Reading, Topology};
use polycast_core::units::{Bytes, Nanos, Rate};

/// Sizes at both ends of the range and around a limit of the shipped table.
const SIZES: [u64; 7] = [0, 1, 8191, 8192, 1 << 20, (1 << 40) - 1, u64::MAX];

/// A table: if it is one, the prepared policy and its first matching rule agree for all shapes and sizes.
pub fn table(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let table = match Table::parse(text, "fuzz.toml") {
        Ok(table) => table,
        Err(error) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&error.line) && error.column > 0, "{error}: no place of the text");
            return;
        }
    };
    for (ranks, nodes) in [(1, 1), (2, 2), (64, 16), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
        let shape = CommunicatorShape::new(ranks, nodes, None).expect("a shape");
        let rate = Rate::from_bits_per_second;
        let network =
            Network { rate: rate(1 << 30), latency: Some(Nanos(20_000)), multicast_rate: rate(1 << 29) };
        for shape in [shape, shape.on_network(Network::default()), shape.on_network(network)] {
            decides_as_the_first_rule_that_holds(&table, shape);
        }
    }
}

fn decides_as_the_first_rule_that_holds(table: &Table, shape: CommunicatorShape) {
    let policy = Policy::new(Rules::new(&[], None, table, None), shape);
    for there in [Capabilities::ALL, Capabilities::PRIVATE] {
        for bytes in SIZES.map(Bytes) {
            let call = Call::new(Collective::Broadcast, bytes);
            let chosen = policy.choose(&call, there, Epoch::default());
            let holds = |condition: &Condition| {
                condition.property.of(shape, &call, 0).is_some_and(|value| condition.range.contains(value))
            };
            let is_for_it = |rule: &&Rule| {
                rule.collective == call.collective
                    && there.has(rule.choice.needs())
                    && rule.conditions.iter().all(holds)
            };
            let first = table.rules().iter().find(is_for_it).map(|rule| rule.choice);
            assert_eq!(chosen.choice, first.unwrap_or(Choice::Stock), "{bytes} on {shape:?}");
        }
    }
}

/// A topology in any of its formats: if it is one, it is one tree within its limits, and is read again from how it is written.
pub fn topology(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let strict = Topology::parse(text, "t", Reading { spanning_tree: false });
    let tolerant = Topology::parse(text, "t", Reading { spanning_tree: true });
    match (&strict, &tolerant) {
        (Ok(strict), tolerant) => {
            assert_eq!(Ok(strict), tolerant.as_ref(), "a tree is its own spanning tree")
        }
        (Err(error), tolerant) => {
            assert_eq!(error.is_irregular_only(), tolerant.is_ok(), "{error}");
            assert!(!error.problems.is_empty());
            // To YAML a carriage return ends a line, too.
            let lines = text.lines().map(|line| line.split('\r').count()).sum::<usize>().max(1);
            for problem in &error.problems {
                assert!(problem.line <= lines, "{problem}: no line of the text");
            }
        }
    }
    if let Ok(topology) = tolerant {
        check_tree(&topology);
        for format in Format::ALL {
            let written = topology.write(format);
            if written.lost.is_empty() && format.is_readable() {
                let again =
                    Topology::parse(&written.text, "t", Reading::default()).expect("what polycast writes");
                assert_eq!(again.write(format).text, written.text, "{format}");
            }
        }
    }
}

fn check_tree(topology: &Topology) {
    assert!((1..=MAX_HOSTS).contains(&topology.hosts.len()));
    assert_eq!(topology.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
    let top = topology.top().expect("a switch without parent");
    // From the top downward, every switch is met once.
    let below = topology.below();
    let mut order = vec![top];
    for next in 0..topology.switches.len() {
        let switch = *order.get(next).expect("a switch that does not lead up to the top");
        order.extend(&below[switch].switches);
    }
    assert_eq!(order.len(), topology.switches.len());
}

/// A text per host of what lldpcli prints, parted by NUL: if switches are seen, they are one tree.
pub fn lldp(bytes: &[u8]) {
    let texts = bytes.split(|byte| *byte == 0).filter_map(|part| str::from_utf8(part).ok());
    let hosts: Vec<(String, &str)> =
        texts.enumerate().map(|(index, text)| (format!("h{index}"), text)).collect();
    let neighbours: Vec<Neighbours<'_>> =
        hosts.iter().map(|(host, text)| Neighbours { host, file: host, text }).collect();
    if let Ok(topology) = Topology::from_lldp(&neighbours) {
        check_tree(&topology);
        assert!(topology.hosts.len() <= hosts.len());
    }
}

/// Lines of a host and its SLURM_TOPOLOGY_ADDR: what fits together is one tree, and is put together from its own addresses
/// again.
pub fn addresses(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let lines = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, line.split_once(' ')?)));
    let addresses: Vec<Address<'_>> =
        lines.map(|(line, (host, address))| Address { line, host, address }).collect();
    let strict = Topology::from_addresses(&addresses, "t", Reading { spanning_tree: false });
    let tolerant = Topology::from_addresses(&addresses, "t", Reading { spanning_tree: true });
    match (&strict, &tolerant) {
        (Ok(strict), tolerant) => {
            assert_eq!(Ok(strict), tolerant.as_ref(), "a tree is its own spanning tree")
        }
        (Err(error), tolerant) => assert_eq!(error.is_irregular_only(), tolerant.is_ok(), "{error}"),
    }
    if let Ok(topology) = tolerant {
        check_tree(&topology);
    }
}
