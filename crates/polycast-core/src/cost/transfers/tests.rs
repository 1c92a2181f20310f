use super::*;
use crate::model::{ClassParameters, Curve, LinkClass, Parameters, Point, Provenance};
use crate::topology::{Host, Link, Placed, Switch, Topology};

/// `g(m) = m`, `L = 0`, so that a link has passed a message of 1448 bytes after 1448 ns.
fn network(switch_of_rank: &[usize]) -> CostedNetwork {
    let zero = Curve::new(vec![Point::exact(1, 0.0)]).unwrap();
    let bytes = Curve::new([1, 1 << 20].map(|bytes| Point::exact(bytes, bytes as f64)).to_vec()).unwrap();
    let classes = [(LinkClass::SameSwitch, ClassParameters::new(zero, bytes))].into();
    let parameters = Parameters::new(Provenance::default(), classes).unwrap();
    let link = Link::default();
    let top = Switch { name: "top".into(), parent: None, uplink: link };
    let leaves = (1..3).map(|leaf| Switch { name: format!("s{leaf}"), parent: Some(0), uplink: link });
    let hosts = (0..).zip(switch_of_rank);
    let topology = Topology {
        switches: [top].into_iter().chain(leaves).collect(),
        hosts: hosts.map(|(rank, switch)| Host { name: format!("h{rank}"), switch: *switch, link }).collect(),
        notes: Vec::new(),
    };
    let host_of = (0..switch_of_rank.len()).collect();
    CostedNetwork::new(&Placed { topology, host_of, unplaced_hosts: Vec::new() }, &parameters)
}

fn time(network: &mut CostedNetwork, sends: Sends, children: &[&[u32]]) -> f64 {
    let children = |rank: Rank| children[rank.index()].iter().copied().map(Rank).collect();
    let transfers = Transfers::new(network, Rank(0), sends, children);
    transfers.pipeline(network, 1448, StreamKind::Single).after(1.0).0
}

/// 0 wakes 1, its neighbour; then both send to the other switch at the same time, over one uplink.
#[test]
fn messages_that_are_under_way_together_wait_for_a_link() {
    let tree: [&[u32]; 4] = [&[1, 2], &[3], &[], &[]];
    let mut shared = network(&[1, 1, 2, 2]);
    assert_eq!(time(&mut shared, Sends::InTurn, &tree), 3.0 * 1448.0);
    let mut apart = network(&[1, 1, 1, 1]);
    assert_eq!(time(&mut apart, Sends::InTurn, &tree), 2.0 * 1448.0);
}

/// Two hops over the same uplink, one after the other.
#[test]
fn messages_that_follow_each_other_do_not_wait() {
    let tree: [&[u32]; 4] = [&[2], &[3], &[1], &[]];
    let mut network = network(&[1, 1, 2, 2]);
    assert_eq!(time(&mut network, Sends::InTurn, &tree), 3.0 * 1448.0);
}

#[test]
fn contention_is_between_ranks() {
    let tree: [&[u32]; 4] = [&[2, 3], &[], &[1], &[]];
    let mut network = network(&[1, 1, 2, 2]);
    let children = |rank: Rank| tree[rank.index()].iter().copied().map(Rank).collect();
    let transfers = Transfers::new(&mut network, Rank(0), Sends::InTurn, children);
    assert!(!transfers.is_contended(), "0 sends twice over its uplink, but one message at a time");
}

/// Both children have had their first turn, 14480 bytes each, when the port goes round between what remains.
#[test]
fn overlapping_messages_begin_one_after_the_other() {
    let tree: [&[u32]; 3] = [&[1, 2], &[], &[]];
    let mut network = network(&[1, 1, 1]);
    let children = |rank: Rank| tree[rank.index()].iter().copied().map(Rank).collect();
    let transfers = Transfers::new(&mut network, Rank(0), Sends::Overlapping, children);
    let hops = |bytes| transfers.hops(&network, bytes, StreamKind::Single)[1..].to_vec();
    assert_eq!(hops(1000), [1000.0, 2000.0]);
    assert_eq!(hops(20_000), [40_000.0 - 14_480.0, 40_000.0]);
}
