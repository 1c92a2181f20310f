//! A segment of those that are under way at the same time: an endpoint of the multicast protocol
//! with its message.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use polycast_copy::{Frame, PackedSegments, Segments, TAG_BYTES, Tag};
use polycast_core::units::Nanos;
use polycast_protocol::wire::Header;
use polycast_protocol::{
    Acted, ControlChannel, Data, Delivery, Endpoint, Form, Membership, Mismatch, Multicast, Peer,
};

use super::neighbour::Neighbour;
use super::store::{Block, Store};

/// The neighbours' indices in arrays that hold something for each of the two.
pub const PREDECESSOR: usize = 0;
pub const SUCCESSOR: usize = 1;

/// A ring does not work: a neighbour is gone or has other segments, a block is not the source's, nobody hears anything any more.
#[derive(Clone, Copy, Debug)]
pub struct Broken;

impl From<Mismatch> for Broken {
    fn from(_: Mismatch) -> Broken {
        Broken
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Broken {
        Broken
    }
}

/// A segment under way, with its endpoint of the multicast protocol.
pub struct Lane {
    endpoint: Endpoint,
    /// The segment; when it is complete the store has a part in it, and nobody writes any more.
    memory: Arc<Vec<u8>>,
    spare: Spare,
    is_source: bool,
    pub segment: Option<u64>,
    /// Messages of the neighbours that have not been used.
    inbox: [VecDeque<Vec<u8>>; 2],
    /// The bytes that the node had multicast when all of this segment had been multicast. The
    /// segment has left this host when no more than the bytes sent since are in its queues.
    through_at: Option<u64>,
}

/// Memory of segments before: used again when the store has let go of it.
#[derive(Default)]
struct Spare(VecDeque<Arc<Vec<u8>>>);

impl Spare {
    fn take(&mut self, bytes: usize) -> Arc<Vec<u8>> {
        // Compressed segments have a length each: what is of another one would stay for ever.
        self.0.retain(|spare| spare.len() == bytes);
        // Zeroed memory is had from the system faster than this crate, compiled for size, fills it.
        match self.0.front().is_some_and(|spare| Arc::strong_count(spare) == 1) {
            true => self.0.pop_front().unwrap_or_default(),
            false => Arc::new(vec![0; bytes]),
        }
    }

    fn give_back(&mut self, memory: Arc<Vec<u8>>) {
        self.0.push_back(memory);
    }
}

struct Channel<'a> {
    neighbours: &'a mut [Neighbour; 2],
    inbox: &'a mut [VecDeque<Vec<u8>>; 2],
}

impl ControlChannel for Channel<'_> {
    type Error = Broken;

    fn has_capacity(&self) -> bool {
        self.neighbours.iter().all(Neighbour::has_room)
    }

    fn send(&mut self, to: Peer, message: &mut Vec<u8>) -> Result<(), Broken> {
        let to = if to == Peer::Predecessor { PREDECESSOR } else { SUCCESSOR };
        self.neighbours[to].say(Frame::Message(message));
        // In a packet of its own: a loss probe that travels with the message before it gets lost with it.
        Ok(self.neighbours[to].flush()?)
    }

    fn receive(&mut self, mut take: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>) -> Result<bool, Broken> {
        let mut is_any = false;
        for inbox in self.inbox.iter_mut() {
            while let Some(message) = inbox.front() {
                if take(message)? == Delivery::Early {
                    break;
                }
                inbox.pop_front();
                is_any = true;
            }
        }
        Ok(is_any)
    }
}

impl Lane {
    pub fn new(membership: Membership) -> Lane {
        Lane {
            is_source: membership.node == 0,
            endpoint: Endpoint::new(membership),
            memory: Arc::default(),
            spare: Spare::default(),
            segment: None,
            inbox: Default::default(),
            through_at: None,
        }
    }

    fn data(memory: &mut Arc<Vec<u8>>, is_source: bool) -> Data<'_> {
        if is_source || Arc::strong_count(memory) > 1 {
            return Data::Source(memory);
        }
        Data::Sink(Arc::get_mut(memory).map_or(&mut [][..], |memory| &mut memory[..]))
    }

    /// Begins a segment of so many bytes; at the source `fill` writes them.
    pub fn begin(
        &mut self,
        segment: u64,
        bytes: usize,
        now: Nanos,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.memory = self.spare.take(bytes);
        if let Some(memory) = Arc::get_mut(&mut self.memory) {
            fill(memory)?;
        }
        (self.segment, self.through_at) = (Some(segment), None);
        let mut data = Lane::data(&mut self.memory, self.is_source);
        Ok(self.endpoint.begin(Multicast::from(Form::Pull), 0, now, &mut data)?)
    }

    /// Ends the segment: it is over for this node, and its memory is free for another one.
    pub fn end(&mut self) {
        self.endpoint.end();
        self.segment = None;
        self.spare.give_back(std::mem::take(&mut self.memory));
    }

    pub fn is_complete(&self) -> bool {
        self.segment.is_some() && self.endpoint.is_complete()
    }

    /// True if no more of the segment is to come by multicast.
    pub fn is_read(&self) -> bool {
        self.is_complete() || self.endpoint.bytes_by_multicast().is_none()
    }

    pub fn is_finished(&self) -> bool {
        self.endpoint.is_finished()
    }

    /// True if multicast does not arrive any more somewhere.
    pub fn knows_of_deaf(&self) -> bool {
        self.endpoint.knows_of_deaf()
    }

    /// True if all of the segment has gone once, or if there is no segment.
    pub fn is_through(&self) -> bool {
        self.segment.is_none() || self.through_at.is_some()
    }

    pub fn take_datagram(&mut self, header: &Header, payload: &[u8], now: Nanos) -> Result<(), Broken> {
        let mut data = Lane::data(&mut self.memory, self.is_source);
        Ok(self.endpoint.on_datagram(header, payload, now, &mut data)?)
    }

    /// A neighbour's message: used now, or when its segment has begun.
    pub fn take_message(&mut self, from: usize, message: Vec<u8>) {
        self.inbox[from].push_back(message);
    }

    pub fn use_messages(&mut self, now: Nanos, neighbours: &mut [Neighbour; 2]) -> Result<bool, Broken> {
        let Lane { endpoint, memory, inbox, is_source, .. } = self;
        let mut data = Lane::data(memory, *is_source);
        endpoint.receive_messages(now, &mut data, &mut Channel { neighbours, inbox })
    }

    /// The next thing to do. `sent` and `queued`: bytes that went to all so far, and those that have not left this host.
    pub fn act(
        &mut self,
        now: Nanos,
        may_multicast: bool,
        (sent, queued): (u64, impl FnOnce() -> u64),
        buffer: &mut Vec<u8>,
        neighbours: &mut [Neighbour; 2],
    ) -> Result<Acted, Broken> {
        let Lane { endpoint, memory, inbox, is_source, through_at, .. } = self;
        let data = Lane::data(memory, *is_source);
        let has_departed =
            endpoint.awaits_departure() && through_at.is_some_and(|through| sent - through >= queued());
        let mut channel = Channel { neighbours, inbox };
        let acted = endpoint.act(now, may_multicast, has_departed, &data, buffer, &mut channel)?;
        if let Acted::Datagrams { .. } = acted
            && endpoint.has_multicast_all()
        {
            through_at.get_or_insert(sent + buffer.len() as u64);
        }
        Ok(acted)
    }

    pub fn deadline(&self, has_room: bool) -> Option<Nanos> {
        self.endpoint.deadline(has_room)
    }

    pub fn awaits_departure(&self) -> bool {
        self.endpoint.awaits_departure()
    }

    /// Puts the segment's blocks into the store, each when its tag is right.
    pub fn store(
        &self,
        segments: &Segments,
        segment: u64,
        store: &Store,
        stop: &AtomicBool,
    ) -> Result<(), Broken> {
        let tag =
            |at: Range<usize>| self.memory[at].first_chunk::<TAG_BYTES>().map(|tag| Tag::from_bytes(*tag));
        let places = segments.places(segment).map(|(block, tag_at, bytes)| (block, tag(tag_at), bytes));
        self.store_blocks(places, store, stop)
    }

    /// Puts a segment's blocks, which travelled compressed or as they are, into the store; returns
    /// the numbers and lengths of segments that are to come.
    pub fn store_packed(
        &self,
        segments: &PackedSegments,
        segment: u64,
        store: &Store,
        stop: &AtomicBool,
    ) -> Result<Vec<(u64, usize)>, Broken> {
        let packed = segments.decode(segment, &self.memory).ok_or(Broken)?;
        let places = packed.blocks.into_iter().map(|(block, tag, bytes)| (block, Some(tag), bytes));
        self.store_blocks(places, store, stop)?;
        Ok(packed.told)
    }

    fn store_blocks(
        &self,
        places: impl Iterator<Item = (u64, Option<Tag>, Range<usize>)>,
        store: &Store,
        stop: &AtomicBool,
    ) -> Result<(), Broken> {
        let have = store.have_and_written().0;
        let (mut first, mut blocks) = (None, Vec::new());
        // Some have more than others when a ring begins.
        for (block, tag, bytes) in places.skip_while(|(block, ..)| *block < have) {
            let range = store.stream.range(block);
            let known = (block, (range.end - range.start) as usize);
            let received = Block::received(&store.key, known, tag, Arc::clone(&self.memory), bytes);
            blocks.push(received.ok_or(Broken)?);
            first.get_or_insert(block);
        }
        if let Some(first) = first {
            store.push_all(first, blocks, stop);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    #[test]
    fn memory_is_used_again_and_does_not_grow_with_segments() {
        let mut spare = Spare::default();
        let store = spare.take(100);
        let first = store.as_ptr();
        spare.give_back(Arc::clone(&store));
        assert_ne!(spare.take(100).as_ptr(), first, "the store has it");
        drop(store);
        assert_eq!(spare.take(100).as_ptr(), first);
        for bytes in 1..1_000 {
            let memory = spare.take(bytes);
            spare.give_back(memory);
        }
        assert_eq!(spare.0.len(), 1);
    }

    #[test]
    fn messages_do_not_wait_for_those_behind_them() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut neighbours: [Neighbour; 2] = Default::default();
        neighbours[SUCCESSOR].connected(listener.accept().unwrap().0, 0).unwrap();
        let mut channel = Channel { neighbours: &mut neighbours, inbox: &mut Default::default() };
        for message in [[7; 24], [8; 24]] {
            channel.send(Peer::Successor, &mut message.to_vec()).unwrap();
            let mut frame = Vec::new();
            Frame::Message(&message).encode(&mut frame);
            let mut come = vec![0; frame.len()];
            other.read_exact(&mut come).unwrap();
            assert_eq!(come, frame);
        }
    }
}
