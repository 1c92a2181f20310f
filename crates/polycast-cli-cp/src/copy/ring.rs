//! A ring as one of its nodes has it: segments under way, and both neighbours.

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use polycast_copy::{Frame, PackedSegments, Reached, SEGMENTS_UNDER_WAY, SEGMENTS_UNREAD, Segments, Stream};
use polycast_core::units::Nanos;
use polycast_protocol::message;
use polycast_protocol::wire::{Header, Kind, seal};
use polycast_protocol::{Acted, Key, Membership};
use rustix::event::PollFlags;

use super::backing::BlockReader;
use super::group::{Member, Side};
use super::lane::{Broken, Lane, PREDECESSOR, SUCCESSOR};
use super::message::Seat;
use super::neighbour::Neighbour;
use super::packing::Packing;
use super::serve::fetch_to_send;
use super::tally::{REST_OF_CONFIRMATION, Tally};

/// The time after which a source looks again whether what it has sent has left its host, and a node
/// whether there is room in its store.
const LOOK: Nanos = Nanos::from_micros(1_000);
/// Headers of a datagram on the wire: Ethernet's with its gap, IP's, UDP's.
const WIRE_BYTES: usize = 66;

/// The terms that hold for all rings of a copy.
pub struct RingTerms {
    pub job: u32,
    pub key: Key,
    pub limit: Option<u64>,
    /// True if blocks travel compressed.
    pub packs: bool,
}

/// A ring as one of its nodes has it: segments under way, and both neighbours.
pub struct Ring {
    seat: Seat,
    segments: Segments,
    /// The packing, where blocks travel compressed; the segments are other ones then.
    packing: Option<Packing>,
    limit: Option<u64>,
    lanes: Vec<Lane>,
    neighbours: [Neighbour; 2],
    /// The numbers of segments that have begun here, come no more by multicast, are in the store,
    /// and are over here.
    begun: u64,
    read: u64,
    stored: u64,
    over: u64,
    tally: Tally,
    /// The job's number and key in the datagrams that say what is over.
    job: u32,
    key: Key,
    /// The bytes that were multicast so far, and the time at which the link is free again.
    sent: u64,
    free_at: Nanos,
    unsent: Vec<u8>,
    unsent_from: usize,
    datagram_bytes: usize,
    buffer: Vec<u8>,
    waits_for_room: bool,
}

impl Ring {
    pub fn new(seat: Seat, terms: RingTerms, stream: Stream) -> Ring {
        let lane = |lane: u64| {
            Lane::new(Membership {
                job: terms.job,
                communicator: seat.number * SEGMENTS_UNDER_WAY as u32 + lane as u32,
                key: terms.key.clone(),
                node: seat.place,
                nodes: seat.nodes,
                payload_bytes: seat.payload_bytes,
                batch_datagrams: seat.batch_datagrams,
                bits_per_second: None,
                first_operation: 1,
            })
        };
        let segments = Segments::new(stream, seat.first_block);
        Ring {
            lanes: (0..SEGMENTS_UNDER_WAY).map(lane).collect(),
            segments,
            packing: terms.packs.then(|| Packing::new(PackedSegments::new(segments))),
            limit: [seat.bits_per_second, terms.limit].into_iter().flatten().min(),
            tally: Tally::new(seat.place, seat.nodes),
            seat,
            neighbours: Default::default(),
            begun: 0,
            read: 0,
            stored: 0,
            over: 0,
            job: terms.job,
            key: terms.key,
            sent: 0,
            free_at: Nanos(0),
            unsent: Vec::new(),
            unsent_from: 0,
            datagram_bytes: 0,
            buffer: Vec::new(),
            waits_for_room: false,
        }
    }

    pub fn number(&self) -> u32 {
        self.seat.number
    }

    pub fn connected(&mut self, side: Side, stream: TcpStream) -> io::Result<()> {
        match side {
            Side::Predecessor => self.neighbours[PREDECESSOR].connected(stream, 0),
            Side::Successor => self.neighbours[SUCCESSOR].connected(stream, REST_OF_CONFIRMATION),
            Side::Above => self.tally.connected_above(stream),
            Side::Below(place) => self.tally.connected_below(place, stream),
        }
    }

    fn count(&self) -> u64 {
        self.packing.as_ref().map_or(self.segments.count(), |packing| packing.segments.count())
    }

    fn is_source(&self) -> bool {
        self.seat.place == 0
    }

    fn lane_of(&self, communicator: u32) -> Option<usize> {
        let first = self.seat.number * SEGMENTS_UNDER_WAY as u32;
        let lane = communicator.checked_sub(first)? as usize;
        (lane < self.lanes.len()).then_some(lane)
    }

    fn lane(&mut self, segment: u64) -> &mut Lane {
        &mut self.lanes[(segment % SEGMENTS_UNDER_WAY) as usize]
    }

    pub fn take_datagram(&mut self, header: &Header, payload: &[u8], now: Nanos) -> Result<(), Broken> {
        if header.kind == Kind::Arrived && header.communicator == tallies(self.seat.number) {
            Reached::from_bytes(payload)
                .into_iter()
                .for_each(|reached| self.tally.heard(header.fragment, reached));
        }
        match self.lane_of(header.communicator) {
            Some(lane) => self.lanes[lane].take_datagram(header, payload, now),
            None => Ok(()),
        }
    }

    /// Does what can be done; true if there may be more at once.
    pub fn advance(&mut self, now: Nanos, member: &mut Member) -> Result<bool, Broken> {
        self.read()?;
        self.begin(now, member)?;
        for lane in &mut self.lanes {
            lane.use_messages(now, &mut self.neighbours)?;
            if lane.knows_of_deaf() {
                return Err(Broken);
            }
        }
        self.settle(now, member)?;
        self.tell(now, member);
        let is_busy = self.send(now, member)?;
        for neighbour in &mut self.neighbours {
            neighbour.flush()?;
        }
        self.tally.flush()?;
        Ok(is_busy)
    }

    fn read(&mut self) -> Result<(), Broken> {
        for side in [PREDECESSOR, SUCCESSOR] {
            let mut messages = Vec::new();
            self.neighbours[side].read(|frame| {
                if let Frame::Message(bytes) = frame {
                    messages.push(bytes.to_owned());
                }
            })?;
            for bytes in messages {
                let lane = message::decode(&bytes).and_then(|(header, _)| self.lane_of(header.communicator));
                if let Some(lane) = lane {
                    self.lanes[lane].take_message(side, bytes);
                }
            }
            if self.neighbours[side].is_gone && self.over < self.count() {
                return Err(Broken);
            }
        }
        self.tally.read(self.over, self.count())
    }

    /// Begins the segments that may begin: at the source when those before them have gone, and all
    /// others are ready for them.
    fn begin(&mut self, now: Nanos, member: &Member) -> Result<(), Broken> {
        while self.begun < self.count() && self.begun < self.over + SEGMENTS_UNDER_WAY {
            let (segment, segments) = (self.begun, self.segments);
            let is_source = self.is_source();
            if is_source {
                let is_through = segment == 0 || self.lane(segment - 1).is_through();
                // Of segments that travel compressed nobody knows the length before the first is there.
                let knows = u64::from(self.packing.is_some() && segment > 0);
                let are_ready = self.tally.below().is_some_and(|Reached { over, read }| {
                    over >= knows
                        && segment < over.saturating_add(SEGMENTS_UNDER_WAY)
                        && segment < read.saturating_add(SEGMENTS_UNREAD)
                });
                if !is_through || !are_ready {
                    break;
                }
            }
            match &mut self.packing {
                None => {
                    let bytes = segments.bytes(segment);
                    self.lane(segment).begin(segment, bytes, now, |memory| match is_source {
                        true => fill(&segments, segment, memory, member),
                        false => Ok(()),
                    })?;
                }
                Some(packing) if is_source => {
                    let packed = packing.write(segment, member)?;
                    self.lane(segment).begin(segment, packed.len(), now, |memory| {
                        memory.copy_from_slice(&packed);
                        Ok(())
                    })?;
                }
                Some(packing) => {
                    let Some(bytes) = packing.bytes(segment) else { break };
                    self.lane(segment).begin(segment, bytes, now, |_| Ok(()))?;
                }
            }
            self.begun += 1;
            // What neighbours have said of it already.
            let lane = &mut self.lanes[(segment % SEGMENTS_UNDER_WAY) as usize];
            lane.use_messages(now, &mut self.neighbours)?;
        }
        Ok(())
    }

    /// Moves complete segments into the store, in their order, and ends those that nobody needs any
    /// more.
    fn settle(&mut self, now: Nanos, member: &Member) -> Result<(), Broken> {
        self.waits_for_room = false;
        while self.stored < self.begun && self.lane(self.stored).is_complete() {
            let segment = self.stored;
            if !self.is_source() {
                let (segments, packed) =
                    (self.segments, self.packing.as_ref().map(|packing| packing.segments));
                let blocks = packed.map_or_else(|| segments.blocks(segment), |packed| packed.blocks(segment));
                if !member.store.has_room_up_to(blocks.end) {
                    self.waits_for_room = true;
                    break;
                }
                let (store, stop) = (&member.store, &member.stop);
                match &mut self.packing {
                    None => self.lane(segment).store(&segments, segment, store, stop)?,
                    Some(packing) => {
                        let lane = &self.lanes[(segment % SEGMENTS_UNDER_WAY) as usize];
                        packing.told(&lane.store_packed(&packing.segments, segment, store, stop)?);
                    }
                }
            }
            self.stored += 1;
        }
        while self.over < self.stored {
            let over = self.over;
            let lane = self.lane(over);
            if !lane.is_finished() {
                break;
            }
            lane.end();
            self.over += 1;
        }
        self.begin(now, member)
    }

    /// Tells the node above how far this one is, and the nodes below.
    fn tell(&mut self, now: Nanos, member: &mut Member) {
        self.read = self.read.max(self.over);
        while self.read < self.begun && self.lane(self.read).is_read() {
            self.read += 1;
        }
        let Some(all) = self.tally.tell(Reached { over: self.over, read: self.read }, now) else { return };
        let (job, communicator) = (self.job, tallies(self.seat.number));
        let (operation, fragment) = (0, self.seat.place);
        let header = Header { kind: Kind::Arrived, flags: 0, job, communicator, operation, fragment };
        let mut datagram = Vec::new();
        seal(&header, &all.to_bytes(), &self.key, &mut datagram);
        // It is said again.
        let _ = member.socket.send(&datagram, datagram.len());
    }

    fn send(&mut self, now: Nanos, member: &mut Member) -> Result<bool, Broken> {
        self.send_rest(member);
        let mut has_said = false;
        for at in self.over..self.begun {
            loop {
                let may_multicast = self.unsent.is_empty() && self.free_at <= now;
                let queued = || member.socket.queued_bytes() as u64;
                let lane = &mut self.lanes[(at % SEGMENTS_UNDER_WAY) as usize];
                let acted = lane.act(
                    now,
                    may_multicast,
                    (self.sent, queued),
                    &mut self.buffer,
                    &mut self.neighbours,
                )?;
                match acted {
                    Acted::Nothing => break,
                    Acted::Message => has_said = true,
                    Acted::Datagrams { datagram_bytes } => {
                        std::mem::swap(&mut self.buffer, &mut self.unsent);
                        self.datagram_bytes = datagram_bytes;
                        self.sent += self.unsent.len() as u64;
                        if let Some(limit) = self.limit {
                            let count = self.unsent.len().div_ceil(datagram_bytes);
                            let wire = self.unsent.len() + count * WIRE_BYTES;
                            self.free_at = self.free_at.max(now) + Nanos::on_link(wire, limit);
                        }
                        self.send_rest(member);
                        // What arrives meanwhile, a request for example, is looked at between batches.
                        return Ok(has_said || (self.unsent.is_empty() && self.free_at <= now));
                    }
                }
            }
        }
        // A word may have been the last of a segment.
        Ok(has_said)
    }

    /// Sends what the socket has room for.
    fn send_rest(&mut self, member: &mut Member) {
        if self.unsent.is_empty() {
            return;
        }
        match member.socket.send(&self.unsent[self.unsent_from..], self.datagram_bytes) {
            Ok(bytes) => self.unsent_from += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // The ring brings what they had.
            Err(_) => self.unsent_from = self.unsent.len(),
        }
        if self.unsent_from >= self.unsent.len() {
            self.unsent.clear();
            self.unsent_from = 0;
        }
    }

    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The time by which to look again though nothing has come.
    pub fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let active = || self.lanes.iter().filter(|lane| lane.segment.is_some());
        let has_room = self.unsent.is_empty();
        let lanes = active().filter_map(|lane| lane.deadline(has_room));
        let is_sending = self.is_source() && active().any(|lane| !lane.is_through());
        let link = (is_sending && has_room).then_some(self.free_at);
        let look = (self.waits_for_room || active().any(Lane::awaits_departure)).then_some(now + LOOK);
        lanes.chain(link).chain(self.tally.deadline()).chain(look).min()
    }

    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.neighbours.iter().filter_map(Neighbour::events).chain(self.tally.events())
    }
}

/// The communicator of a ring's datagrams that say how far a node is: none of its lanes has it.
fn tallies(ring: u32) -> u32 {
    u32::MAX - ring
}

/// A segment as the source sends it.
fn fill(segments: &Segments, segment: u64, memory: &mut [u8], member: &Member) -> Result<(), Broken> {
    member.store.want(segments.blocks(segment).end);
    let mut reader: Option<BlockReader<'_>> = None;
    for (block, tag_at, bytes_at) in segments.places(segment) {
        let (tag, found) = fetch_to_send(block, member, &mut reader)?;
        memory[tag_at].copy_from_slice(tag.as_bytes());
        memory[bytes_at].copy_from_slice(found.bytes());
    }
    Ok(())
}
