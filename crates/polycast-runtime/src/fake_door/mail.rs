use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::c_int;

use super::MISUSED;
use super::random::Random;

/// Sender, receiver, tag: on each of these, messages stay in order.
type Way = (u32, u32, c_int);

/// Of all messages, as MPI does not care for the name in polycast.h.
type RequestId = u64;

struct Letter {
    data: Vec<u8>,
    /// To be told when it is received.
    sender: Option<RequestId>,
}

enum Request {
    Send {
        is_done: bool,
    },
    /// The address, since a pointer does not go from thread to thread.
    Receive {
        way: Way,
        place: usize,
        bytes: usize,
    },
}

struct Started {
    slot: u32,
    request: Request,
}

/// What a call of poll reports: a slot and the bytes that came.
pub type Done = (u32, usize);

/// All messages of a private communicator.
#[derive(Default)]
pub struct Mail {
    on_the_way: HashMap<Way, VecDeque<Letter>>,
    /// By rank, then in the order in which they were started.
    started: HashMap<u32, BTreeMap<RequestId, Started>>,
    next_id: RequestId,
}

impl Mail {
    fn start(&mut self, rank: u32, slot: u32, request: Request) -> Result<RequestId, c_int> {
        let mine = self.started.entry(rank).or_default();
        if mine.values().any(|other| other.slot == slot) {
            return Err(MISUSED);
        }
        self.next_id += 1;
        mine.insert(self.next_id, Started { slot, request });
        Ok(self.next_id)
    }

    /// `is_eager`: it is done before anybody receives it.
    pub fn send(&mut self, way: Way, slot: u32, data: Vec<u8>, is_eager: bool) -> Result<(), c_int> {
        let id = self.start(way.0, slot, Request::Send { is_done: is_eager })?;
        self.on_the_way.entry(way).or_default().push_back(Letter { data, sender: (!is_eager).then_some(id) });
        Ok(())
    }

    /// Two receives into the same bytes are against the rules.
    pub fn receive(&mut self, way: Way, slot: u32, place: usize, bytes: usize) -> Result<(), c_int> {
        let overlaps = |other: &Started| match other.request {
            Request::Receive { place: at, bytes: long, .. } => place < at + long && at < place + bytes,
            Request::Send { .. } => false,
        };
        if self.started.get(&way.1).is_some_and(|mine| mine.values().any(overlaps)) {
            return Err(MISUSED);
        }
        self.start(way.1, slot, Request::Receive { way, place, bytes }).map(|_| ())
    }

    /// What has completed by now, as far as chance lets this rank see it.
    ///
    /// # Safety
    /// The buffers of the receives that this rank has started must be valid.
    pub unsafe fn poll(&mut self, rank: u32, random: &mut Random) -> Result<Vec<Done>, c_int> {
        let mut mine = self.started.remove(&rank).unwrap_or_default();
        let mut closed = HashSet::new();
        let mut done = Vec::new();
        let mut is_too_long = false;
        mine.retain(|_, Started { slot, request }| match *request {
            Request::Send { is_done } => {
                let is_seen = is_done && !random.one_in(4);
                done.extend(is_seen.then_some((*slot, 0)));
                !is_seen
            }
            Request::Receive { way, place, bytes } => {
                // Who is not served now holds up those behind it.
                let is_held = closed.contains(&way) || random.one_in(4);
                let letter = self.on_the_way.get_mut(&way).filter(|_| !is_held).and_then(VecDeque::pop_front);
                let Some(Letter { data, sender }) = letter else {
                    closed.insert(way);
                    return true;
                };
                is_too_long |= data.len() > bytes;
                let length = data.len().min(bytes);
                // SAFETY: the caller's promise.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        data.as_ptr(),
                        std::ptr::with_exposed_provenance_mut::<u8>(place),
                        length,
                    )
                };
                if let Some(sent) = sender.and_then(|id| self.started.get_mut(&way.0)?.get_mut(&id)) {
                    sent.request = Request::Send { is_done: true };
                }
                done.push((*slot, length));
                false
            }
        });
        self.started.insert(rank, mine);
        random.shuffle(&mut done);
        if is_too_long { Err(MISUSED) } else { Ok(done) }
    }

    /// Receives are cancelled, sends left to MPI.
    pub fn abandon(&mut self, rank: u32) {
        self.started.remove(&rank);
    }

    /// The receives for which MPI may still write into memory of this rank: from whom, and with what tag.
    pub fn outstanding_receives(&self, rank: u32) -> Vec<(u32, c_int)> {
        let from = |started: &Started| match started.request {
            Request::Receive { way: (peer, _, tag), .. } => Some((peer, tag)),
            Request::Send { .. } => None,
        };
        self.started.get(&rank).map_or_else(Vec::new, |mine| mine.values().filter_map(from).collect())
    }
}
