//! One node of a ring, with neighbours that do anything in any order, but do not lie about the bytes of a message: the
//! tag keeps out who would.
//!
//! 1. The buffer holds at every place what was there before, or what belongs there; a root's buffer is not touched.
//! 2. A node that says it is complete is.
//! 3. What it sends is true, within its limits, and does not go on for ever.
//! 4. When its neighbours at last do their part, the broadcast finishes.

use arbitrary::{Result, Unstructured};
use polycast_core::units::Nanos;
use polycast_protocol::message::{self, Body, MessageHeader};
use polycast_protocol::parity::{Class, classes_for, length, parity};
use polycast_protocol::wire::{FLAG_LAST, Header, Kind, LENGTH_BYTES, open};
use polycast_protocol::{
    Action, Capacity, Data, Delivery, Endpoint, Form, Fragmentation, Key, Membership, Mismatch, Multicast,
    ReceptionReport, RootSync, Run,
};

use crate::wire::{JOB, key};

const COMMUNICATOR: u32 = 3;
/// As in `protocol::early`.
const MAX_EARLY_BYTES: usize = 4 << 20;
/// What an untouched buffer holds.
const UNTOUCHED: u8 = 0xee;
/// More than any broadcast of this size needs.
const MAX_STEPS: usize = 20_000;
const CAPACITY: Capacity = Capacity { datagrams: true, message: true, has_departed: true };

/// Any sequence of datagrams, messages, actions and time for one node of a ring.
pub fn endpoint(bytes: &[u8]) {
    // It ends where the bytes end.
    let _ = run(&mut Unstructured::new(bytes));
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let mut world = World::new(input)?;
    world.begin(input)?;
    while !input.is_empty() {
        world.step(input)?;
        world.check();
        if world.endpoint.is_finished() || input.ratio(1u8, 60u8)? {
            world.leave();
            world.begin(input)?;
        }
    }
    world.finish();
    Ok(())
}

struct World {
    endpoint: Endpoint,
    key: Key,
    node: u32,
    nodes: u32,
    payload_bytes: u32,
    now: Nanos,
    /// What the broadcast in progress carries, and the program's buffer for it.
    message: Vec<u8>,
    buffer: Vec<u8>,
    form: Form,
    sent: Vec<u8>,
    /// What the node has asked its predecessor for.
    asked: Vec<Run>,
    /// The broadcasts that it has left, maybe before its predecessor had sent everything.
    left: Vec<u64>,
}

/// What the broadcast of this number carries, the same for all nodes.
fn truth(operation: u64) -> Vec<u8> {
    (0..truth_bytes(operation)).map(|at| (operation ^ (at * 31)) as u8 & 0x7f).collect()
}

fn truth_bytes(operation: u64) -> u64 {
    1 + operation.wrapping_mul(0x9e37_79b9) % 700
}

impl World {
    fn new(input: &mut Unstructured<'_>) -> Result<World> {
        let nodes = input.int_in_range(2..=5)?;
        let node = input.int_in_range(0..=nodes - 1)?;
        let payload_bytes = input.int_in_range(5..=80)?;
        let membership = Membership {
            job: JOB,
            communicator: COMMUNICATOR,
            key: key(),
            node,
            nodes,
            payload_bytes,
            batch_datagrams: input.int_in_range(1..=8)?,
            bits_per_second: input.arbitrary::<bool>()?.then_some(1_000_000),
            first_operation: u64::MAX - input.int_in_range(0..=4)?,
        };
        let endpoint = Endpoint::new(membership);
        Ok(World {
            endpoint,
            key: key(),
            node,
            nodes,
            payload_bytes,
            now: Nanos(0),
            message: vec![],
            buffer: vec![],
            form: Form::Push,
            sent: vec![],
            asked: vec![],
            left: vec![],
        })
    }

    fn begin(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let sync = match input.int_in_range(0..=3)? {
            0 => RootSync::None,
            1 => RootSync::Delay(Nanos(input.arbitrary::<u16>()?.into())),
            2 => RootSync::Random,
            _ => RootSync::Adaptive,
        };
        let form = if input.arbitrary()? { Form::Push } else { Form::Pull };
        let spec = Multicast { form, sync, parity: input.arbitrary()? };
        self.form = form;
        let mut mismatch = self.begin_with(spec);
        while mismatch.is_err() {
            // Lies that had come early: the broadcast is given up.
            self.leave();
            mismatch = self.begin_with(spec);
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.left.push(self.endpoint.operation());
        self.endpoint.end();
    }

    fn begin_with(&mut self, spec: Multicast) -> std::result::Result<(), Mismatch> {
        self.asked.clear();
        self.message = truth(self.endpoint.operation());
        self.buffer = if self.is_root() { self.message.clone() } else { vec![UNTOUCHED; self.message.len()] };
        let root = self.root();
        let mut data = program_data(root == self.node, &mut self.buffer);
        self.endpoint.begin(spec, root, self.now, &mut data)
    }

    fn root(&self) -> u32 {
        (self.endpoint.operation() % u64::from(self.nodes)) as u32
    }

    fn is_root(&self) -> bool {
        self.root() == self.node
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let ahead = *input.choose(&[0, 0, 0, 0, 0, 1, 1, 2, 9, u64::MAX])?;
        let operation = self.endpoint.operation().wrapping_add(ahead);
        match input.int_in_range(0..=9)? {
            0..=2 => self.true_datagram(operation, input),
            3 if input.ratio(1u8, 20u8)? => self.flood(input),
            3 => self.false_datagram(operation, input),
            4 => self.fragments(operation, &[any_run(input)?, any_run(input)?]),
            5 => self.request(operation, input),
            6 => self.short_message(operation, input),
            7 => self.any_message(input),
            8 => self.act(input),
            _ => {
                self.now = self.now + Nanos(input.arbitrary::<u32>()?.into());
                Ok(())
            }
        }
    }

    fn datagram(&mut self, header: &Header, payload: &[u8]) {
        let mut data = program_data(self.is_root(), &mut self.buffer);
        let _ = self.endpoint.on_datagram(header, payload, self.now, &mut data);
    }

    fn message(&mut self, message: &[u8]) -> std::result::Result<Delivery, Mismatch> {
        let mut data = program_data(self.is_root(), &mut self.buffer);
        self.endpoint.on_message(message, self.now, &mut data)
    }

    fn cut(&self, operation: u64) -> Fragmentation {
        Fragmentation::new(truth_bytes(operation), self.payload_bytes).expect("not empty")
    }

    fn header(&self, operation: u64, kind: Kind, flags: u16, fragment: u32) -> Header {
        Header { kind, flags, job: JOB, communicator: COMMUNICATOR, operation, fragment }
    }

    /// The flag of the last fragment.
    fn last(&self, operation: u64, fragment: u32) -> u16 {
        if self.cut(operation).is_last(fragment) { FLAG_LAST } else { 0 }
    }

    fn true_datagram(&mut self, operation: u64, input: &mut Unstructured<'_>) -> Result<()> {
        let (message, cut) = (truth(operation), self.cut(operation));
        let flags = input.int_in_range(0..=31)?;
        match input.int_in_range(0..=9)? {
            8 => {
                let asked = [any_run(input)?, any_run(input)?]
                    .map(|run| [run.first, run.count].map(u32::to_le_bytes));
                let node = input.int_in_range(0..=self.nodes)?;
                let flags = input.arbitrary()?;
                self.datagram(
                    &self.header(operation, Kind::Request, flags, node),
                    asked.concat().as_flattened(),
                );
            }
            // Its successor's may come when that has everything, which nobody here checks: its neighbour does what it likes.
            9 => {
                let sent = input.arbitrary::<u8>()?;
                let node = input.int_in_range(0..=self.nodes)?;
                let payload = u64::from(sent).to_le_bytes();
                self.datagram(&self.header(operation, Kind::Done, flags, node), &payload);
            }
            0 => {
                let has_room = self.payload_bytes as usize >= LENGTH_BYTES;
                let payload = if has_room { &truth_bytes(operation).to_le_bytes()[..] } else { &[] };
                self.datagram(&self.header(operation, Kind::End, flags, cut.fragments()), payload);
            }
            1 => {
                let most = classes_for(cut);
                let flags = match input.int_in_range(0..=most)? {
                    0 => flags,
                    number => flags | Class { index: number - 1, classes: most }.flags(),
                };
                let mut payload = Vec::new();
                parity(cut, &message, Class::from_flags(flags, cut), &mut payload);
                self.datagram(&self.header(operation, Kind::Parity, flags, length(cut)), &payload);
            }
            _ => {
                let fragment = input.int_in_range(0..=cut.fragments() - 1)?;
                let range = cut.range(fragment).expect("it exists");
                let flags = flags | self.last(operation, fragment);
                self.datagram(&self.header(operation, Kind::Data, flags, fragment), &message[range]);
            }
        }
        Ok(())
    }

    /// Of a rank that disagrees about the length of the message.
    fn false_datagram(&mut self, operation: u64, input: &mut Unstructured<'_>) -> Result<()> {
        let fragments = self.cut(operation).fragments();
        let kind =
            *input.choose(&[Kind::Data, Kind::End, Kind::Parity, Kind::Probe, Kind::Request, Kind::Done])?;
        let number = match kind {
            Kind::Data => input.arbitrary()?,
            Kind::Parity => length(self.cut(operation)).wrapping_add(input.int_in_range(1..=u32::MAX - 1)?),
            _ => fragments.wrapping_add(input.int_in_range(1..=u32::MAX - 1)?),
        };
        let longer = vec![0xff; self.payload_bytes as usize + 1];
        self.datagram(&self.header(operation, kind, input.arbitrary()?, number), &longer);
        Ok(())
    }

    /// A root that is far ahead, or an old datagram that somebody sends again and again.
    fn flood(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let operation = self.endpoint.operation().wrapping_add(input.int_in_range(0..=3)?);
        let range = self.cut(operation).range(0).expect("the first one");
        let payload = truth(operation)[range].to_vec();
        for _ in 0..2 * MAX_EARLY_BYTES / (64 + payload.len()) {
            let flags = self.last(operation, 0);
            self.datagram(&self.header(operation, Kind::Data, flags, 0), &payload);
        }
        Ok(())
    }

    fn message_header(&self, operation: u64, root_waited: bool) -> MessageHeader {
        let message_bytes = truth_bytes(operation);
        MessageHeader {
            communicator: COMMUNICATOR,
            operation,
            message_bytes,
            root_waited,
            leaves: false,
            knows_of_deaf: false,
        }
    }

    /// From the predecessor; runs beyond the message are claimed without bytes for them.
    fn fragments(&mut self, operation: u64, runs: &[Run]) -> Result<()> {
        let mut message = Vec::new();
        let (message_header, cut) = (self.message_header(operation, false), self.cut(operation));
        message::encode_fragments(&message_header, runs, cut, &truth(operation), &mut message);
        // A claim in the middle would shift what stands behind it: that would be a lie about bytes.
        let is_true = runs.iter().all(|run| cut.run_range(*run).is_some());
        if is_true || runs.iter().all(|run| cut.run_range(*run).is_none()) {
            let _ = self.message(&message);
        }
        Ok(())
    }

    fn request(&mut self, operation: u64, input: &mut Unstructured<'_>) -> Result<()> {
        let mut message = Vec::new();
        let runs = [any_run(input)?, any_run(input)?];
        message::encode_request(&self.message_header(operation, false), &runs, &mut message);
        let _ = self.message(&message);
        Ok(())
    }

    fn short_message(&mut self, operation: u64, input: &mut Unstructured<'_>) -> Result<()> {
        let mut message_header = self.message_header(operation, input.arbitrary()?);
        if input.ratio(1u8, 8u8)? {
            (message_header.message_bytes, message_header.communicator) = input.arbitrary()?;
        }
        let mut message = Vec::new();
        message_header.leaves = input.ratio(1u8, 8u8)?;
        match input.int_in_range(0..=3)? {
            0 => message::encode_end(&message_header, &mut message),
            1 => message::encode_done(&message_header, &mut message),
            2 => message::encode_deaf(&message_header, &mut message),
            _ => {
                let report = ReceptionReport { seen: input.arbitrary()?, repaired: input.arbitrary()? };
                message::encode_arrived(&message_header, &report, &mut message);
            }
        }
        let _ = self.message(&message);
        Ok(())
    }

    fn any_message(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let bytes: Vec<u8> = input.arbitrary()?;
        // These say how long the message is.
        if !matches!(message::decode(&bytes), Some((_, Body::Fragments(..) | Body::End))) {
            let _ = self.message(&bytes);
        }
        Ok(())
    }

    /// Takes actions until there is none.
    fn act(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let capacity = Capacity {
            datagrams: input.arbitrary()?,
            message: input.arbitrary()?,
            has_departed: input.arbitrary()?,
        };
        self.drain(capacity);
        Ok(())
    }

    fn drain(&mut self, capacity: Capacity) {
        for _ in 0..MAX_STEPS {
            let data = program_data(self.is_root(), &mut self.buffer);
            let Some(action) = self.endpoint.next_action(self.now, capacity, &data, &mut self.sent) else {
                return;
            };
            self.check_sent(action);
        }
        panic!("actions without end");
    }

    fn check_sent(&mut self, action: Action) {
        let operation = self.endpoint.operation();
        let (message, cut) = (&self.message, self.cut(operation));
        match action {
            Action::Datagrams { datagram_bytes } => {
                for datagram in self.sent.chunks(datagram_bytes) {
                    let (header, payload) = open(datagram, JOB, &self.key).expect("its own datagram");
                    assert_eq!(header.communicator, COMMUNICATOR);
                    // Words that it has said in broadcasts before, and what it has pushed there, are said again.
                    let of = header.operation;
                    assert!(of == operation || self.left.contains(&of), "{of} in {operation}");
                    if header.kind == Kind::Data {
                        let range = self.cut(of).range(header.fragment).expect("it exists");
                        assert_eq!(payload, &truth(of)[range]);
                        assert_eq!(header.flags & FLAG_LAST, self.last(of, header.fragment));
                    }
                }
            }
            Action::Message { .. } => {
                let (message_header, body) = message::decode(&self.sent).expect("its own message");
                assert_eq!(
                    message_header,
                    MessageHeader {
                        root_waited: message_header.root_waited,
                        leaves: message_header.leaves,
                        knows_of_deaf: message_header.knows_of_deaf,
                        // 0: it does not know yet.
                        message_bytes: truth_bytes(operation) * u64::from(message_header.message_bytes > 0),
                        ..self.message_header(operation, false)
                    }
                );
                if let Body::Fragments(runs, bytes) = body {
                    let ranges = runs.iter().map(|run| cut.run_range(run).expect("they exist"));
                    let expected: Vec<u8> = ranges.flat_map(|range| message[range].to_vec()).collect();
                    assert_eq!(bytes, expected);
                } else if let Body::Request(runs) = body {
                    assert!(runs.iter().all(|run| cut.run_range(run).is_some()));
                    self.asked.extend(runs.iter());
                }
            }
        }
    }

    fn check(&self) {
        let mut places = self.buffer.iter().zip(&self.message);
        assert!(places.all(|(found, right)| found == right || *found == UNTOUCHED));
        assert!(!self.endpoint.is_complete() || self.buffer == self.message);
        assert!(!self.endpoint.is_finished() || self.endpoint.is_complete());
        assert!(self.endpoint.early_bytes() <= MAX_EARLY_BYTES);
    }

    /// The neighbours do their part: the successor has everything, the drawn receiver has called, the predecessor sends what it still
    /// had for broadcasts that the node has left, pushes everything or says that it has it, and answers.
    fn finish(&mut self) {
        for operation in self.left.clone() {
            self.answer(operation, &[Run { first: 0, count: self.cut(operation).fragments() }]);
        }
        let operation = self.endpoint.operation();
        let message_header = self.message_header(operation, false);
        if self.form == Form::Push {
            self.answer(operation, &[Run { first: 0, count: self.cut(operation).fragments() }]);
        }
        let mut message = Vec::new();
        message::encode_end(&message_header, &mut message);
        self.message(&message).expect("true");
        message::encode_done(&message_header, &mut message);
        self.message(&message).expect("true");
        message::encode_arrived(&message_header, &ReceptionReport::default(), &mut message);
        self.message(&message).expect("true");
        for _ in 0..MAX_STEPS {
            self.drain(CAPACITY);
            self.check();
            if self.endpoint.is_finished() {
                return;
            }
            if self.asked.is_empty() {
                let deadline = self.endpoint.deadline(true).expect("nothing to wait for, and not finished");
                assert!(deadline > self.now, "a deadline that has passed leads to no action");
                self.now = deadline;
            }
            let asked = std::mem::take(&mut self.asked);
            self.answer(operation, &asked);
        }
        panic!("not finished although all neighbours have done their part");
    }

    fn answer(&mut self, operation: u64, runs: &[Run]) {
        if !runs.is_empty() {
            self.fragments(operation, runs).expect("no input");
        }
    }
}

fn program_data(is_root: bool, buffer: &mut [u8]) -> Data<'_> {
    if is_root { Data::Source(buffer) } else { Data::Sink(buffer) }
}

/// Mostly within a message.
fn any_run(input: &mut Unstructured<'_>) -> Result<Run> {
    Ok(match input.ratio(1u8, 8u8)? {
        true => Run { first: input.arbitrary()?, count: input.arbitrary()? },
        false => Run { first: input.int_in_range(0..=20)?, count: input.int_in_range(1..=10)? },
    })
}
