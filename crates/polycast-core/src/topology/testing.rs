//! Random topologies for the tests of this module.

use proptest::prelude::*;
use proptest::sample::Index;

use super::{Host, Link, Switch, Topology};
use crate::units::{Nanos, Rate};

fn any_link() -> impl Strategy<Value = Link> {
    let rate = prop::option::of(8_000..1_000_000_000_000u64);
    (rate, prop::option::of(any::<u64>())).prop_map(|(rate, latency)| Link {
        rate: rate.and_then(Rate::from_bits_per_second),
        latency: latency.map(Nanos),
    })
}

/// Any tree, described in any order, with some notes.
pub(super) fn any_topology() -> impl Strategy<Value = Topology> {
    let switches = prop::collection::vec((any::<Index>(), any_link()), 1..12);
    let hosts = prop::collection::vec((any::<Index>(), any_link()), 1..20);
    let notes = prop::collection::vec(".{0,20}", 0..3);
    (switches, hosts, notes, any::<bool>()).prop_map(|(switches, hosts, notes, reversed)| {
        let count = switches.len();
        // Each switch but the first hangs below an earlier one; turned around, below a later one.
        let turn = |index: usize| if reversed { count - 1 - index } else { index };
        let mut topology = Topology { notes, ..Topology::default() };
        for index in 0..count {
            let (parent, uplink) = switches[turn(index)];
            let parent = (turn(index) > 0).then(|| turn(parent.index(turn(index))));
            let uplink = if parent.is_some() { uplink } else { Link::default() };
            topology.switches.push(Switch { name: format!("s{index}"), parent, uplink });
        }
        for (index, (switch, link)) in hosts.iter().enumerate() {
            let name = format!("n{index}");
            topology.hosts.push(Host { name, switch: switch.index(count), link: *link });
        }
        topology
    })
}

/// Changes a topology into one that Slurm's formats can express: no latencies, one rate below each
/// switch, something below each switch, hosts in the order of their switches.
pub(super) fn as_slurm_can_say(mut topology: Topology) -> Topology {
    let rate_below: Vec<Option<Rate>> = topology
        .switches
        .iter()
        .map(|switch| switch.uplink.rate)
        .map(|rate| {
            rate.and_then(|rate| Rate::from_bits_per_second(rate.bits_per_second() / 1_000_000 * 1_000_000))
        })
        .collect();
    for index in 0..topology.switches.len() {
        topology.hosts.push(Host { name: format!("own{index}"), switch: index, link: Link::default() });
    }
    topology.hosts.sort_by_key(|host| host.switch);
    for host in &mut topology.hosts {
        host.link = Link { rate: rate_below[host.switch], latency: None };
    }
    for switch in &mut topology.switches {
        let rate = switch.parent.and_then(|parent| rate_below[parent]);
        switch.uplink = Link { rate, latency: None };
    }
    topology.notes.clear();
    topology
}
