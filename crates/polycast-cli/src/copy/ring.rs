//! One ring as one of its nodes has it: segments under way, and both neighbours.

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use polycast_copy::{
    CONFIRMATION, Frame, PackedSegments, SEGMENTS_UNDER_WAY, Segments, Stream, places_below,
};
use polycast_core::units::Nanos;
use polycast_protocol::message;
use polycast_protocol::wire::Header;
use polycast_protocol::{Acted, Key, Membership};
use rustix::event::PollFlags;

use super::backing::BlockReader;
use super::group::{Member, Side};
use super::lane::{Broken, Lane, PREDECESSOR, SUCCESSOR};
use super::message::Seat;
use super::neighbour::Neighbour;
use super::packing::Packing;
use super::serve::fetch;

/// Said again after so long, a few times, so that one that got lost is noticed by what follows it.
const SAY_AGAIN: (Nanos, u32) = (Nanos::from_micros(4_000), 6);
/// How soon a source looks whether what it has sent has left its host, and how soon a node whether there is room in its store.
const LOOK: Nanos = Nanos::from_micros(1_000);
/// Headers of a datagram on the wire: Ethernet's with its gap, IP's, UDP's.
const WIRE_BYTES: usize = 66;

/// Behind the first byte, which whoever took the connection has read.
const REST_OF_CONFIRMATION: usize = CONFIRMATION.len() - 1;

/// What holds for all rings of a copy.
pub struct Terms {
    pub job: u32,
    pub key: Key,
    pub limit: Option<u64>,
    /// Blocks travel compressed.
    pub packs: bool,
}

/// See the module.
pub struct Ring {
    seat: Seat,
    segments: Segments,
    /// Where blocks travel compressed, and segments are others.
    packing: Option<Packing>,
    limit: Option<u64>,
    lanes: Vec<Lane>,
    neighbours: [Neighbour; 2],
    /// Segments that have begun here, are in the store, are over here.
    begun: u64,
    stored: u64,
    over: u64,
    /// Who is told what is over here and below, and those who tell it: each with what it has said.
    above: Neighbour,
    below: Vec<(Neighbour, Option<u64>)>,
    /// What was said above: how much, when again, how often still.
    said: (Option<u64>, Nanos, u32),
    /// Multicast so far; the link is free again at.
    sent: u64,
    free_at: Nanos,
    unsent: Vec<u8>,
    unsent_from: usize,
    datagram_bytes: usize,
    buffer: Vec<u8>,
    waits_for_room: bool,
}

impl Ring {
    pub fn new(seat: Seat, terms: Terms, stream: Stream) -> Ring {
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
            seat,
            neighbours: Default::default(),
            begun: 0,
            stored: 0,
            over: 0,
            above: Neighbour::default(),
            below: Vec::new(),
            said: (None, Nanos(0), 0),
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
            Side::Above => self.above.connected(stream, 0),
            Side::Below => {
                let mut one = Neighbour::default();
                one.connected(stream, REST_OF_CONFIRMATION)?;
                self.below.push((one, None));
                Ok(())
            }
        }
    }

    /// What is over on all below; `None`: not all have said anything yet.
    fn over_below(&self) -> Option<u64> {
        let all = places_below(self.seat.place, self.seat.nodes);
        match self.below.len() == all.len() {
            true => self.below.iter().try_fold(u64::MAX, |least, (_, said)| Some(least.min((*said)?))),
            false => None,
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
        self.acknowledge(now);
        let is_busy = self.send(now, member)?;
        for neighbour in self.neighbours.iter_mut().chain([&mut self.above]) {
            neighbour.flush()?;
        }
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
        // It says nothing, but it may go.
        self.above.read(|_| ())?;
        if self.above.is_gone && self.over < self.count() {
            return Err(Broken);
        }
        let count = self.count();
        for (one, said) in &mut self.below {
            one.read(|frame| {
                if let Frame::Acknowledged(segments) = frame {
                    *said = (*said).max(Some(segments));
                }
            })?;
            if one.is_gone && *said < Some(count) {
                return Err(Broken);
            }
        }
        Ok(())
    }

    /// Begins what may begin: at the source when those before it have gone, and all others are ready for it.
    fn begin(&mut self, now: Nanos, member: &Member) -> Result<(), Broken> {
        while self.begun < self.count() && self.begun < self.over + SEGMENTS_UNDER_WAY {
            let (segment, segments) = (self.begun, self.segments);
            let is_source = self.is_source();
            if is_source {
                let is_through = segment == 0 || self.lane(segment - 1).is_through();
                // Of segments that travel compressed nobody knows the length before the first is there.
                let knows = u64::from(self.packing.is_some() && segment > 0);
                let are_ready = self
                    .over_below()
                    .is_some_and(|over| over >= knows && segment < over + SEGMENTS_UNDER_WAY);
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

    /// What has come goes into the store, in its order; what nobody needs any more is over.
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

    /// Tells the one above how much is over here and below.
    fn acknowledge(&mut self, now: Nanos) {
        if self.is_source() {
            return;
        }
        let Some(all) = self.over_below().map(|below| below.min(self.over)) else { return };
        let (said, at, times) = self.said;
        let is_new = said != Some(all);
        if is_new || (now >= at && times > 0) {
            self.above.say(Frame::Acknowledged(all));
            let left = if is_new { SAY_AGAIN.1 } else { times - 1 };
            self.said = (Some(all), now + SAY_AGAIN.0, left);
        }
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

    /// When to look again though nothing has come.
    pub fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let active = || self.lanes.iter().filter(|lane| lane.segment.is_some());
        let lanes = active().filter_map(Lane::deadline);
        let is_sending = self.is_source() && active().any(|lane| !lane.is_through());
        let link = (is_sending && self.unsent.is_empty()).then_some(self.free_at);
        let again = (self.said.2 > 0).then_some(self.said.1);
        let look = (self.waits_for_room || active().any(Lane::awaits_departure)).then_some(now + LOOK);
        lanes.chain(link).chain(again).chain(look).min()
    }

    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let below = self.below.iter().map(|(one, _)| one);
        self.neighbours.iter().chain([&self.above]).chain(below).filter_map(Neighbour::events)
    }
}

/// A segment as the source sends it.
fn fill(segments: &Segments, segment: u64, memory: &mut [u8], member: &Member) -> Result<(), Broken> {
    member.store.want(segments.blocks(segment).end);
    let mut reader: Option<BlockReader<'_>> = None;
    for (block, tag_at, bytes_at) in segments.places(segment) {
        let found = member.store.get(block, &member.stop).ok_or(Broken)?;
        let (tag, found) = fetch(found, block, &member.store, &member.backing, &mut reader)?;
        memory[tag_at].copy_from_slice(tag.as_bytes());
        memory[bytes_at].copy_from_slice(found.bytes());
    }
    Ok(())
}
