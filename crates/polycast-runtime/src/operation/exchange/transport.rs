//! What an exchange's messages, local work and shared memory act on.

use std::ffi::c_int;

use polycast_core::collective;
use polycast_core::executor::{
    self, Completed, Content, Message, MessageId, MessagePart, Share, Shared as Went,
};
use polycast_core::schedule::{Action, Direction, Kind, LaneIndex, Nodes, Slice};

use super::adopted::Adopted;
use super::sharing::{Place, SharedLanes};
use crate::abi::MpiError;
use crate::call::{Activity, Buffers, Failure, OperationKey};
use crate::fault::{self, Point};
use crate::messages::{Done, Messages, Purpose, Route};
use crate::multicast::Deaf;
use crate::node_memory::NodeMemory;

/// Bytes of an announcement, in front of what travels with it: [`MARK`], and the total.
pub(super) const ANNOUNCEMENT_BYTES: usize = 16;

/// Beginning of an announcement. A first message that begins otherwise is all the data of its call,
/// and says the total by its length: it goes from the program's buffer, without a copy. Data that
/// begins like this is announced.
pub(crate) const MARK: [u8; 8] = *b"polycast";

/// Most memories of first messages that are kept.
pub(super) const MAX_SPARE: usize = 64;

/// The buffers and messages of one call.
pub(super) struct Ends {
    pub(super) key: OperationKey,
    pub(super) tag: c_int,
    pub(super) buffers: Buffers,
    pub(super) scratch: Vec<u8>,
    pub(super) scratch_place: *mut u8,
    /// The longest first message of a lane.
    pub(super) most_first_bytes: usize,
    /// Bytes of the output that are there to be published, from the beginning on.
    pub(super) available: u64,
    /// Size in bytes that this rank calls with; beside it, the first other size that another rank
    /// calls with.
    pub(super) total: u64,
    pub(super) told: Option<u64>,
    /// Bytes that have come through memory, from the beginning on, if one stream brings all.
    pub(super) came: u64,
    /// First messages that have come, with their lengths, and were not asked for yet.
    pub(super) firsts: Vec<(LaneIndex, Vec<u8>, usize)>,
    /// Data of first messages that has a place and is not there yet: others are sent it first.
    pub(super) late: Vec<Late>,
    /// Memory from which late data is sent, until the call has ended.
    pub(super) sent_from: Vec<Vec<u8>>,
    pub(super) shared: SharedLanes,
    /// Memory for a call of another size than this rank's, if it goes on as one of that size.
    pub(super) adopted: Option<Adopted>,
}

impl Ends {
    fn hear(&mut self, total: u64) {
        if total != self.total {
            self.told.get_or_insert(total);
        }
    }
}

/// Data that still stands in the memory of its first message, from `at` on.
pub(super) struct Late {
    to: Slice,
    pub(super) memory: Vec<u8>,
    at: usize,
    is_sent: bool,
}

impl Late {
    /// Address of a slice's bytes in this memory, if all of them are here.
    fn source(&mut self, slice: &Slice) -> Option<*const u8> {
        let Slice { buffer, bytes } = &self.to;
        let is_of_it =
            *buffer == slice.buffer && bytes.start <= slice.bytes.start && slice.bytes.end <= bytes.end;
        is_of_it.then(|| {
            self.is_sent = true;
            self.memory[self.at + (slice.bytes.start - bytes.start) as usize..].as_ptr()
        })
    }
}

/// The part of what operations share that a transport uses.
pub(super) struct TransportShare<'a> {
    pub(super) messages: &'a mut Messages,
    pub(super) spare: &'a mut Vec<Vec<u8>>,
    /// Word on deaf nodes, which travels with the announcements on a node.
    pub(super) deaf: Option<&'a mut Deaf>,
    pub(super) memory: Option<&'a mut NodeMemory>,
    pub(super) nodes: &'a Nodes,
    pub(super) activity: &'a mut Activity,
}

/// Starts the messages of one call, and does its local work.
pub(super) struct Transport<'a> {
    /// The call as this rank has made it.
    pub(super) of: collective::Call,
    pub(super) ends: &'a mut Ends,
    pub(super) rest: TransportShare<'a>,
}

impl Transport<'_> {
    /// Address at which the bytes of a slice are read. They are there, or were received.
    fn source(&mut self, slice: &Slice) -> *const u8 {
        if let Some(source) = self.ends.late.iter_mut().find_map(|late| late.source(slice)) {
            return source;
        }
        self.settle();
        self.place(slice)
    }

    /// Address at which the bytes of a slice stand, or are written.
    fn place(&self, slice: &Slice) -> *mut u8 {
        self.ends.buffers.address(slice, self.ends.scratch_place)
    }

    fn memory(&mut self, bytes: usize) -> Vec<u8> {
        let most_first_bytes = self.ends.most_first_bytes;
        match bytes > most_first_bytes {
            true => vec![0; bytes],
            false => self.rest.spare.pop().unwrap_or_else(|| vec![0; most_first_bytes]),
        }
    }

    fn give_back(&mut self, memory: Vec<u8>) {
        if self.rest.spare.len() < MAX_SPARE && memory.len() == self.ends.most_first_bytes {
            self.rest.spare.push(memory);
        }
    }

    /// Copies received data to where it belongs.
    pub(super) fn settle(&mut self) {
        while let Some(Late { to, memory, at, is_sent }) = self.ends.late.pop() {
            let data = &memory[at..][..to.length() as usize];
            // SAFETY: the range is inside the buffer (see `Operations::start`), which is not this memory.
            unsafe { copy(data.as_ptr(), self.place(&to), data.len()) };
            match is_sent {
                true => self.ends.sent_from.push(memory),
                false => self.give_back(memory),
            }
        }
    }

    /// Takes back the memory of a call that has ended, and so have its messages.
    pub(super) fn end(&mut self) {
        while let Some(memory) = self.ends.sent_from.pop() {
            self.give_back(memory);
        }
    }

    fn send(&mut self, purpose: Purpose, to: Route, content: &Content) -> Result<(), MpiError> {
        let (source, bytes) = match content {
            Content::First { total, data } => {
                let (length, source) = (data.length() as usize, self.source(data));
                // SAFETY: the range is inside the buffer (see `Operations::start`), and its bytes are there.
                let bytes = unsafe { view(source, length) };
                if self.rest.deaf.is_none() && *total == data.length() && !bytes.starts_with(&MARK) {
                    // SAFETY: the same; nobody writes them before this is done.
                    return unsafe { self.rest.messages.send_from(purpose, to, source, length) };
                }
                let mut first = self.memory(ANNOUNCEMENT_BYTES + length);
                let total = self.rest.deaf.as_ref().map_or(*total, |deaf| deaf.beside(*total));
                first[..MARK.len()].copy_from_slice(&MARK);
                first[MARK.len()..ANNOUNCEMENT_BYTES].copy_from_slice(&total.to_le_bytes());
                first[ANNOUNCEMENT_BYTES..][..length].copy_from_slice(bytes);
                return self.rest.messages.send(purpose, to, first, ANNOUNCEMENT_BYTES + length);
            }
            Content::Data(data) => (self.source(data), data.length() as usize),
            Content::Scrap(_) => (std::ptr::null(), 0),
        };
        // SAFETY: the bytes are inside the buffer (see `Operations::start`), where nobody writes them before this is done.
        unsafe { self.rest.messages.send_from(purpose, to, source, bytes) }
    }

    fn receive(&mut self, purpose: Purpose, from: Route, content: &Content) -> Result<(), MpiError> {
        let bytes = match content {
            Content::First { .. } => self.ends.most_first_bytes,
            Content::Scrap(most) => *most as usize,
            Content::Data(data) => {
                let place = self.place(data);
                // SAFETY: the place is inside the buffer (see `Operations::start`), where nobody reads or writes before this is done.
                return unsafe {
                    self.rest.messages.receive_into(purpose, from, place, data.length() as usize)
                };
            }
        };
        let memory = self.memory(bytes);
        self.rest.messages.receive(purpose, from, memory, bytes)
    }

    /// Takes a completed message, and the memory that it had of its own.
    pub(super) fn take(&mut self, done: Done<MessageId>) -> Result<Completed, Failure> {
        let Done { purpose: id, is_receive, outcome, memory } = done;
        let bytes = outcome?;
        let mut completed = Completed { id, is_receive, total: 0, received_bytes: bytes as u64 };
        if !is_receive {
            completed.received_bytes = 0;
            self.give_back(memory);
        } else if id.part == MessagePart::First {
            let first = memory.get(..bytes).ok_or(Failure::Internal)?;
            match announced(first) {
                Some(total) => {
                    completed.total = self.rest.deaf.as_mut().map_or(total, |deaf| deaf.learn(total));
                    completed.received_bytes -= ANNOUNCEMENT_BYTES as u64;
                }
                None => completed.total = bytes as u64,
            }
            self.ends.hear(completed.total);
            self.ends.firsts.push((id.lane, memory, bytes));
        } else {
            self.give_back(memory);
        }
        Ok(completed)
    }
}

impl executor::Transport for Transport<'_> {
    type Error = Failure;

    fn start(&mut self, message: &Message) -> Result<(), Failure> {
        fault::point(Point::Message);
        let purpose = Purpose::Step { operation: self.ends.key, id: message.id };
        let route = Route { peer: message.peer, tag: self.ends.tag + c_int::from(message.channel) };
        match message.direction {
            Direction::Receive => self.receive(purpose, route, &message.content)?,
            Direction::Send => self.send(purpose, route, &message.content)?,
        }
        Ok(())
    }

    fn keep(&mut self, lane: LaneIndex, to: Option<Slice>) {
        let Some(at) = self.ends.firsts.iter().position(|(of, ..)| *of == lane) else { return };
        let (_, memory, bytes) = self.ends.firsts.swap_remove(at);
        match to {
            // What is announced stands at the end.
            Some(to) => {
                let at = bytes - to.length() as usize;
                self.ends.late.push(Late { to, memory, at, is_sent: false });
            }
            None => self.give_back(memory),
        }
    }

    fn adopt(&mut self, total: u64, scratch_bytes: u64) -> bool {
        self.ends.told.get_or_insert(total);
        let of = self.of;
        let Some(mut adopted) = Adopted::new(&of, (self.ends.total, total), self.ends.buffers) else {
            return false;
        };
        let mut scratch = Vec::new();
        if scratch.try_reserve_exact(scratch_bytes as usize).is_err() {
            return false;
        }
        scratch.resize(scratch_bytes as usize, 0);
        self.ends.scratch = scratch;
        self.ends.scratch_place = self.ends.scratch.as_mut_ptr();
        (self.ends.total, self.ends.buffers) = (total, adopted.buffers());
        self.ends.adopted = Some(adopted);
        self.ends.shared.adopt();
        true
    }

    fn work(&mut self, action: &Action) -> Result<(), Failure> {
        let (Some(from), Some(to)) = (action.source(), action.target()) else {
            return Err(Failure::Internal);
        };
        self.settle();
        let (source, place, bytes) = (self.source(from), self.place(to), to.length() as usize);
        if let Action::Copy { .. } = action {
            // SAFETY: both are inside their buffers (see `Operations::start`) and do not overlap, the source is there, and nobody else uses
            // the place now: what the checker of schedules proves.
            unsafe { copy(source, place, bytes) };
            return Ok(());
        }
        // SAFETY: the caller's promise, which is about calls that combine; for the slices as above.
        let code = unsafe {
            let reduction = self.ends.buffers.reduction.as_ref().ok_or(Failure::Internal)?;
            reduction.combine(source, place, bytes)
        };
        if code == 0 { Ok(()) } else { Err(Failure::Mpi(MpiError(code))) }
    }

    fn share(&mut self, lane: LaneIndex, kind: &Kind, what: Share<'_>) -> Result<Went, Failure> {
        self.settle();
        let place = match what {
            Share::Publish { from, is_spoiled: false } if from.bytes.end > self.ends.available => {
                return Ok(Went::Waits);
            }
            Share::Publish { from, .. } => {
                Place { address: self.source(from).cast_mut(), bytes: from.length() }
            }
            Share::Fetch { to, .. } => Place { address: self.place(to), bytes: to.length() },
            _ => Place { address: std::ptr::null_mut(), bytes: 0 },
        };
        let fetched_to = if let Share::Fetch { to, .. } = &what { Some(to.bytes.end) } else { None };
        let TransportShare { memory, nodes, activity, deaf, .. } = &mut self.rest;
        let memory = memory.as_mut().ok_or(Failure::Internal)?;
        if let (Some(deaf), Share::Publish { .. }, Kind::Publish { channel, .. }) = (&deaf, &what, kind) {
            self.ends.shared.retell(lane, *channel, memory, |total| deaf.beside(total));
        }
        // SAFETY: the place is inside its buffer (see `Operations::start`); what is published is there, and nobody else uses where it goes.
        let mut went = unsafe { self.ends.shared.share((lane, kind), what, place, memory, nodes.local()) }?;
        if let (Some(end), Went::Done) = (fetched_to, went) {
            self.ends.came = end;
        }
        if let (Some(deaf), Went::Heard(total)) = (deaf, &mut went) {
            *total = deaf.learn(*total);
        }
        if let Went::Heard(total) = went {
            self.ends.hear(total);
        }
        if matches!(went, Went::Moved | Went::Done) {
            **activity = Activity::Datagrams.max(**activity);
        }
        Ok(went)
    }
}

/// The total that stands in front of a first message's data, if there is one.
fn announced(first: &[u8]) -> Option<u64> {
    first.strip_prefix(&MARK)?.first_chunk().map(|total| u64::from_le_bytes(*total))
}

/// The bytes of a buffer. No bytes at no address are allowed, too.
///
/// # Safety
/// If there are bytes, `source` is readable for as many, and nobody writes them while they are looked at.
unsafe fn view<'a>(source: *const u8, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(source, bytes) }
}

/// Copies bytes. No bytes from no address are allowed, too.
///
/// # Safety
/// If there are bytes, `source` is readable and `place` writable for as many, and they do not overlap.
unsafe fn copy(source: *const u8, place: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(source, place, bytes) };
    }
}
