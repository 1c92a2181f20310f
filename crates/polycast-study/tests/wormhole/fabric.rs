//! The network by events against the network cycle by cycle, and against closed forms.

use std::collections::BTreeMap;

use polycast_study::wormhole::{
    Arbitration, Choice, CycleByCycle, Fabric, Message, Node, Notice, Switching, Topology,
};
use proptest::prelude::*;

/// The times at which each message has left and has arrived, and for how long it was delayed.
type Times = BTreeMap<(u64, bool), (u64, u64)>;

/// The behaviour of receivers: each message is taken `take_after` after its arrival.
#[derive(Clone, Copy, Debug)]
struct Receivers {
    bytes: u64,
    take_after: u64,
}

fn entry(message: Message, notice: Notice, at: u64) -> ((u64, bool), (u64, u64)) {
    match notice {
        Notice::Left => ((message.number, false), (at, 0)),
        Notice::Arrived { delayed } => ((message.number, true), (at, delayed)),
    }
}

/// The messages to be taken, by the time `delivered at + take_after`.
type Taken = BTreeMap<(u64, u64), (Node, u64)>;

fn by_events(
    topology: Topology,
    switching: Switching,
    receivers: Receivers,
    sent: &[(u64, Message)],
) -> Times {
    let mut fabric = Fabric::new(topology, switching, receivers.bytes);
    sent.iter().for_each(|(at, message)| fabric.send(*at, *message));
    let (mut times, mut taken) = (Times::new(), Taken::new());
    loop {
        let at = match (fabric.soonest(), taken.first_key_value().map(|((at, _), _)| *at)) {
            (Some(network), Some(receiver)) => network.min(receiver),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => break,
        };
        while let Some(entry) = taken.first_entry().filter(|entry| entry.key().0 == at) {
            let (node, bytes) = entry.remove();
            fabric.taken(at, node, bytes);
        }
        fabric.step(at, |when, message, notice| {
            assert!(when > at, "told too late");
            let (key, value) = entry(message, notice, when);
            assert_eq!(times.insert(key, value), None);
            if key.1 {
                taken.insert((when + receivers.take_after, message.number), (message.to, message.flits));
            }
        });
    }
    assert_eq!(fabric.under_way(), 0);
    times
}

fn by_cycles(
    topology: Topology,
    switching: Switching,
    receivers: Receivers,
    sent: &[(u64, Message)],
) -> Times {
    let mut network = CycleByCycle::new(topology, switching, receivers.bytes);
    sent.iter().for_each(|(at, message)| network.send(*at, *message));
    let (mut times, mut taken) = (Times::new(), Taken::new());
    for cycle in 0.. {
        while let Some(entry) = taken.first_entry().filter(|entry| entry.key().0 == cycle) {
            let (node, bytes) = entry.remove();
            network.taken(node, bytes);
        }
        network.step(|at, message, notice| {
            let (key, value) = entry(message, notice, at);
            assert_eq!(times.insert(key, value), None);
            if key.1 {
                taken.insert((at + receivers.take_after, message.number), (message.to, message.flits));
            }
        });
        if network.is_empty() && taken.is_empty() {
            return times;
        }
        assert!(cycle < 1_000_000, "deadlock");
    }
    unreachable!("cycles go on")
}

fn topologies() -> impl Strategy<Value = Topology> {
    prop_oneof![
        (1u32..5, 2u32..5).prop_map(|(width, height)| Topology::Mesh { width, height }),
        (1u32..5).prop_map(|stages| Topology::Multistage { stages }),
    ]
}

fn switchings() -> impl Strategy<Value = Switching> {
    let arbitration = prop_oneof![
        Just(Arbitration::FirstCome),
        Just(Arbitration::FirstComeOrDrawn),
        Just(Arbitration::OldestMessage)
    ];
    let choice = prop_oneof![Just(Choice::Straight), Just(Choice::Drawn)];
    (1u64..4, 1u64..6, 0u64..4, arbitration, choice, any::<u64>()).prop_map(
        |(flit_time, buffer_flits, router_delay, arbitration, choice, seed)| Switching {
            flit_time,
            buffer_flits,
            router_delay,
            arbitration,
            choice,
            seed,
        },
    )
}

fn messages(nodes: u32) -> impl Strategy<Value = Vec<(u64, Message)>> {
    let message = (0u64..150, 0..nodes, 1..nodes, prop_oneof![1u64..4, 1u64..40]);
    prop::collection::vec(message, 1..40).prop_map(move |drawn| {
        let numbered = (0..).zip(drawn);
        numbered
            .map(|(number, (at, from, away, flits))| {
                (at, Message { from, to: (from + away) % nodes, flits, number })
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_leaves_and_arrives_when_it_does_cycle_by_cycle(
        (topology, sent) in topologies().prop_flat_map(|it| (Just(it), messages(it.nodes()))),
        switching in switchings(),
        (bytes, take_after) in (1u64..100, 1u64..50),
    ) {
        let receivers = Receivers { bytes, take_after };
        let times = by_events(topology, switching, receivers, &sent);
        prop_assert_eq!(times.len(), 2 * sent.len());
        prop_assert_eq!(times, by_cycles(topology, switching, receivers, &sent));
    }
}

const FREE: Receivers = Receivers { bytes: u64::MAX, take_after: 1 };

#[test]
fn in_an_empty_network_a_message_takes_a_flit_time_per_channel_and_per_further_flit() {
    for topology in ["mesh:5x4", "min:16"] {
        let topology: Topology = topology.parse().unwrap();
        let switching = Switching { router_delay: 3, ..Switching::plain(2) };
        for (from, to) in
            (0..topology.nodes()).flat_map(|from| (0..topology.nodes()).map(move |to| (from, to)))
        {
            if from == to {
                continue;
            }
            let message = Message { from, to, flits: 100, number: 0 };
            let times = by_events(topology, switching, FREE, &[(7, message)]);
            let channels = u64::from(topology.distance(from, to));
            // A flit that stands in the only buffer while the head waits in a router keeps the next one back.
            let arrived = 7 + 2 * (channels + 99) + 3 * (channels - 1);
            assert_eq!(times[&(0, true)], (arrived, 0), "{topology} {from} {to}");
        }
    }
}

#[test]
fn messages_of_one_pair_stay_in_order() {
    let topology: Topology = "min:16".parse().unwrap();
    let sent: Vec<_> =
        (0..20).map(|number| (number, Message { from: 3, to: 12, flits: 5, number })).collect();
    for choice in [Choice::Straight, Choice::Drawn] {
        let times = by_events(topology, Switching { choice, ..Switching::plain(1) }, FREE, &sent);
        let arrived: Vec<u64> = (0..20).map(|number| times[&(number, true)].0).collect();
        assert!(arrived.is_sorted(), "{arrived:?}");
    }
}

#[test]
fn a_receiver_without_room_stops_the_message_in_the_network() {
    let topology: Topology = "mesh:3x1".parse().unwrap();
    let message = |number, flits| (number, Message { from: 0, to: 2, flits, number });
    let sent = [message(0, 60), message(1, 50), message(2, 10)];
    let times = by_events(topology, Switching::plain(1), Receivers { bytes: 100, take_after: 1000 }, &sent);
    let first = times[&(0, true)].0;
    assert_eq!(first, 63);
    // Its head waits at the receiver; the last message waits behind it, though there would be room for it, and goes over the
    // last channel but one when that is free.
    assert_eq!(times[&(1, true)].0, first + 1000 + 50);
    assert_eq!(times[&(2, true)].0, first + 1000 + 50 + 1 + 10);
}
