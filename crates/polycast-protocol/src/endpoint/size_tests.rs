//! Nodes that were called with different sizes: all end, who has room for the root's message has it, and who has less knows its size.

use proptest::prelude::*;

use super::*;
use crate::wire;
use crate::{Acted, ControlChannel, KEY_BYTES, Key};

/// What holds nothing before a broadcast.
const UNTOUCHED: u8 = 0xee;
const PULL: Multicast = Multicast { form: Form::Pull, sync: RootSync::Adaptive, parity: false };

struct Node {
    endpoint: Endpoint,
    buffer: Vec<u8>,
    /// Memory for a message that is longer than the buffer.
    memory: Vec<u8>,
    is_root: bool,
    has_failed: bool,
    /// The root's size, as the node was told.
    told: Option<u64>,
    is_over: bool,
    /// From the predecessor, from the successor, from drawn receivers: MPI keeps the order of each.
    messages: Memory,
    datagrams: std::collections::VecDeque<Vec<u8>>,
}

/// Messages that have come, and those on their way out.
#[derive(Default)]
struct Memory {
    arrived: [std::collections::VecDeque<Vec<u8>>; 3],
    sent: Option<(Peer, Vec<u8>)>,
}

impl ControlChannel for Memory {
    type Error = Mismatch;

    fn has_capacity(&self) -> bool {
        self.sent.is_none()
    }

    fn send(&mut self, to: Peer, message: &mut Vec<u8>) -> Result<(), Mismatch> {
        self.sent = Some((to, message.clone()));
        Ok(())
    }

    fn receive(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>,
    ) -> Result<bool, Mismatch> {
        let mut has_any = false;
        for queue in &mut self.arrived {
            while let Some(message) = queue.pop_front() {
                if take(&message)? == Delivery::Early {
                    queue.push_front(message);
                    break;
                }
                has_any = true;
            }
        }
        Ok(has_any)
    }
}

impl Node {
    /// Gives it what has come; true if there was anything.
    fn receive(&mut self, now: Nanos) -> bool {
        let Node { endpoint, buffer, memory, is_root, messages, datagrams, has_failed, told, .. } = self;
        let mut data = data(*is_root, buffer, memory);
        let mut has_any = false;
        for datagram in datagrams.drain(..) {
            let (header, payload) = wire::open(&datagram, 1, &key()).unwrap();
            if endpoint.on_datagram(&header, payload, now, &mut data).is_err() {
                *has_failed = true;
                endpoint.fail();
            }
            has_any = true;
        }
        has_any |= endpoint.receive_messages(now, &mut data, messages).unwrap_or_else(|_| {
            *has_failed = true;
            endpoint.fail();
            true
        });
        *told = endpoint.message_bytes().or(*told);
        has_any
    }
}

fn data<'a>(is_root: bool, buffer: &'a mut [u8], memory: &'a mut Vec<u8>) -> Data<'a> {
    if is_root { Data::Source(buffer) } else { Data::Growing(buffer, memory) }
}

fn key() -> Key {
    Key::from_bytes([7; KEY_BYTES])
}

fn node(index: u32, nodes: u32, total: usize) -> Node {
    let membership = Membership {
        job: 1,
        communicator: 1,
        key: key(),
        node: index,
        nodes,
        payload_bytes: 10,
        batch_datagrams: 2,
        bits_per_second: None,
        first_operation: 1,
    };
    Node {
        endpoint: Endpoint::new(membership),
        buffer: if index == 0 { (0..total).map(|at| at as u8).collect() } else { vec![UNTOUCHED; total] },
        memory: Vec::new(),
        is_root: index == 0,
        has_failed: false,
        told: None,
        is_over: false,
        messages: Default::default(),
        datagrams: Default::default(),
    }
}

/// Every datagram but each `lost`-th arrives. `None` if a node waits for ever.
fn run(spec: Multicast, totals: &[usize], lost: usize, is_root_spoiled: bool) -> Option<Vec<Node>> {
    let count = totals.len();
    let mut nodes: Vec<Node> =
        totals.iter().enumerate().map(|(index, total)| node(index as u32, count as u32, *total)).collect();
    for node in &mut nodes {
        let Node { endpoint, buffer, memory, is_root, has_failed, .. } = node;
        let mut data = data(*is_root, buffer, memory);
        endpoint.begin(spec, 0, Nanos(0), &mut data).unwrap();
        if *is_root && is_root_spoiled {
            *has_failed = true;
            endpoint.fail();
        }
    }
    let (mut sent, mut buffer) = (0, Vec::new());
    for round in 0..2000u64 {
        let now = Nanos(round * 100_000);
        for index in 0..count {
            while nodes[index].receive(now) {}
            loop {
                let Node { endpoint, buffer: own, memory, is_root, messages, .. } = &mut nodes[index];
                let data = data(*is_root, own, memory);
                match endpoint.act(now, true, true, &data, &mut buffer, messages).unwrap() {
                    Acted::Nothing => break,
                    Acted::Message => {
                        let (to, message) = messages.sent.take().unwrap();
                        let (node, queue) = match to {
                            Peer::Successor => ((index + 1) % count, 0),
                            Peer::Predecessor => ((index + count - 1) % count, 1),
                            Peer::Drawn(root) => (root as usize, 2),
                        };
                        nodes[node].messages.arrived[queue].push_back(message);
                    }
                    Acted::Datagrams { datagram_bytes } => {
                        for datagram in buffer.chunks(datagram_bytes) {
                            sent += 1;
                            if lost == 0 || sent % lost != 0 {
                                nodes[1..]
                                    .iter_mut()
                                    .for_each(|node| node.datagrams.push_back(datagram.into()));
                            }
                        }
                    }
                }
            }
            if !nodes[index].is_over && nodes[index].endpoint.is_finished() {
                nodes[index].endpoint.end();
                nodes[index].is_over = true;
            }
        }
        if nodes.iter().all(|node| node.is_over) {
            return Some(nodes);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits(
        spec in prop::sample::select(vec![
            PULL,
            Form::Push.into(),
            Multicast { parity: true, ..PULL },
            Multicast { sync: RootSync::Random, ..PULL },
        ]),
        // A few fragments, so that sizes often have the same number of them.
        totals in prop::collection::vec(prop_oneof![2 => Just(40), 3 => 1usize..60, 1 => 1usize..400], 2..6),
        lost in 0usize..5,
        is_root_spoiled in prop::bool::weighted(0.1),
    ) {
        let nodes = run(spec, &totals, lost, is_root_spoiled);
        prop_assert!(nodes.is_some(), "somebody waits");
        let nodes = nodes.unwrap();
        let message = nodes[0].buffer.clone();
        for (index, node) in nodes.iter().enumerate() {
            prop_assert_eq!(node.has_failed, is_root_spoiled, "node {}", index);
            if !node.has_failed {
                let has_grown = !node.memory.is_empty();
                let (own, got) = (node.buffer.len(), if has_grown { &node.memory } else { &node.buffer });
                prop_assert_eq!(&got[..message.len()], &message[..], "node {}", index);
                prop_assert_eq!(has_grown, own < message.len(), "node {}", index);
                prop_assert!(got[message.len()..].iter().all(|byte| *byte == UNTOUCHED), "node {}", index);
                prop_assert!(index == 0 || node.told == Some(message.len() as u64), "node {}", index);
            }
        }
    }
}

/// As many fragments, the last one shorter, and that got lost: what is restored would have the wrong length.
#[test]
fn a_parity_of_a_message_of_another_length_restores_nothing() {
    for (bytes, is_same) in [(40, false), (39, true)] {
        let [mut root, mut other] = [(0, 39), (1, bytes)].map(|(index, bytes)| node(index, 2, bytes));
        let spec = Multicast { parity: true, ..Form::Push.into() };
        root.endpoint.begin(spec, 0, Nanos(0), &mut Data::Source(&root.buffer)).unwrap();
        other.endpoint.begin(spec, 0, Nanos(0), &mut Data::Sink(&mut other.buffer)).unwrap();
        other.datagrams.extend(datagrams_of(&mut root));
        // 0 1 2 3 parity
        assert_eq!((other.datagrams.len(), other.datagrams.remove(3).is_some()), (5, true));
        other.receive(Nanos(0));
        assert_eq!((other.has_failed, other.endpoint.is_complete()), (false, is_same));
        assert!(!is_same || other.buffer == root.buffer);
    }
}

/// All that the root can send now.
fn datagrams_of(root: &mut Node) -> Vec<Vec<u8>> {
    let (capacity, mut buffer) =
        (Capacity { datagrams: true, message: false, has_departed: true }, Vec::new());
    let (data, mut all) = (Data::Source(&root.buffer), Vec::new());
    while let Some(Action::Datagrams { datagram_bytes }) =
        root.endpoint.next_action(Nanos(0), capacity, &data, &mut buffer)
    {
        all.extend(buffer.chunks(datagram_bytes).map(<[u8]>::to_vec));
    }
    all
}

/// What came early takes no room after its broadcast, however that began: here without memory for the rest.
#[test]
fn early_datagrams_without_room_are_forgotten() {
    let [mut root, mut late] = [(0, 400), (1, 30)].map(|(index, bytes)| node(index, 2, bytes));
    root.endpoint.begin(Form::Push.into(), 0, Nanos(0), &mut Data::Source(&root.buffer)).unwrap();
    late.datagrams.extend(datagrams_of(&mut root));
    late.receive(Nanos(0));
    assert!(late.endpoint.early.bytes() > 0, "they came early");
    let begun = late.endpoint.begin(Form::Push.into(), 0, Nanos(0), &mut Data::Sink(&mut late.buffer));
    assert_eq!((begun.is_err(), late.endpoint.early.bytes()), (true, 0));
}

/// Others may answer for it: that says nothing of what it has yet to multicast.
#[test]
fn a_root_that_hears_its_own_broadcast_has_not_sent_all_of_it() {
    let mut root = node(0, 2, 400);
    root.endpoint.begin(PULL, 0, Nanos(0), &mut Data::Source(&root.buffer)).unwrap();
    let (mut capacity, mut buffer) =
        (Capacity { datagrams: true, message: false, has_departed: true }, Vec::new());
    let first = root.endpoint.next_action(Nanos(0), capacity, &Data::Source(&root.buffer), &mut buffer);
    let Some(Action::Datagrams { datagram_bytes }) = first else { panic!("{first:?}") };
    root.datagrams.push_back(buffer[..datagram_bytes].to_vec());
    root.receive(Nanos(0));
    capacity = Capacity { datagrams: false, message: true, has_departed: false };
    let later = Nanos::from_micros(50_000);
    let next = root.endpoint.next_action(later, capacity, &Data::Source(&root.buffer), &mut buffer);
    assert_eq!(next, None, "no end in the midst");
}
