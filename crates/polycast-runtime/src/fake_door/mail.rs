use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::c_int;

use super::MISUSED;
use super::random::Random;
use crate::abi::{ANY_PEER, Completion};

/// What MPI matches messages by on the private communicator of all ranks: the sender, the receiver, the tag, which may be another
/// communicator's later. On each of these, messages stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    pub from: u32,
    pub to: u32,
    pub tag: c_int,
}

/// One process's part of a communicator of the program: slots are counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    pub process: u32,
    pub communicator: usize,
}

/// Memory of a rank, as a number, since a pointer does not go from thread to thread.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub address: usize,
    pub bytes: usize,
}

impl Place {
    /// # Safety
    /// The memory is there, and nobody writes it.
    pub unsafe fn read(self) -> Vec<u8> {
        let mut data = vec![0; self.bytes];
        let from = std::ptr::with_exposed_provenance::<u8>(self.address);
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), self.bytes) };
        data
    }

    /// # Safety
    /// The memory is there, and nobody else uses it.
    unsafe fn write(self, data: &[u8]) {
        let place = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len().min(self.bytes)) };
    }
}

enum Content {
    /// MPI has its own copy, and the sender is through with it.
    Copied(Vec<u8>),
    /// It is read where it is when it is received; the sender is told then.
    InPlace(Place, u32),
}

struct Letter {
    sender: Part,
    /// It has not arrived before.
    arrives: u64,
    content: Content,
}

enum Request {
    Send,
    Receive {
        way: Way,
        place: Place,
    },
    /// To be reported, with the bytes of a receive.
    Done {
        bytes: usize,
        is_too_long: bool,
    },
}

/// All messages of private communicators.
#[derive(Default)]
pub struct Mail {
    on_the_way: BTreeMap<Way, VecDeque<Letter>>,
    /// How many there are to each process.
    letters: HashMap<u32, usize>,
    /// In the order in which they were started.
    started: BTreeMap<Part, Vec<(u32, Request)>>,
    /// From whom to whom nothing arrives before.
    stalled: HashMap<(u32, u32), u64>,
    /// In nanoseconds.
    pub now: u64,
    /// How long the next message is on its way.
    pub takes: u64,
    /// What no MPI may see.
    pub wrong: Option<String>,
}

impl Mail {
    fn start(&mut self, part: Part, slot: u32, request: Request) -> Result<(), c_int> {
        let mine = self.started.entry(part).or_default();
        if mine.iter().any(|(other, _)| *other == slot) {
            return Err(MISUSED);
        }
        mine.push((slot, request));
        Ok(())
    }

    /// `is_eager`: it is done before anybody receives it.
    ///
    /// # Safety
    /// The bytes are there and stay as they are until poll has reported the slot, or cancel.
    pub unsafe fn send(
        &mut self,
        part: Part,
        way: Way,
        slot: u32,
        place: Place,
        is_eager: bool,
    ) -> Result<(), c_int> {
        let request = if is_eager { Request::Done { bytes: 0, is_too_long: false } } else { Request::Send };
        self.start(part, slot, request)?;
        let content = match is_eager {
            // SAFETY: the caller's promise.
            true => Content::Copied(unsafe { place.read() }),
            false => Content::InPlace(place, slot),
        };
        let stalled = self.stalled.get(&(way.from, way.to)).copied().unwrap_or(0);
        let arrives = stalled.max(self.now + self.takes);
        *self.letters.entry(way.to).or_default() += 1;
        self.on_the_way.entry(way).or_default().push_back(Letter { sender: part, arrives, content });
        Ok(())
    }

    /// Some are on their way to it.
    pub fn has_letters(&self, process: u32) -> bool {
        self.letters.get(&process).is_some_and(|count| *count > 0)
    }

    /// What is sent there from now on arrives so much later, and then all at once.
    pub fn stall(&mut self, from: u32, to: u32, nanos: u64) {
        let until = self.stalled.entry((from, to)).or_default();
        *until = (*until).max(self.now) + nanos;
    }

    /// Two receives into the same bytes are against the rules.
    pub fn receive(&mut self, part: Part, way: Way, slot: u32, place: Place) -> Result<(), c_int> {
        let overlaps = |other: &Request| match other {
            Request::Receive { place: Place { address, bytes }, .. } => {
                *address < place.address + place.bytes && place.address < address + bytes
            }
            Request::Send | Request::Done { .. } => false,
        };
        if self.started.get(&part).is_some_and(|mine| mine.iter().any(|(_, other)| overlaps(other))) {
            return Err(MISUSED);
        }
        self.start(part, slot, Request::Receive { way, place })
    }

    /// MPI works in a process, as it does in each of its calls: messages meet receives, as far as chance lets them.
    ///
    /// # Safety
    /// The memory of all that was started is still there.
    pub unsafe fn progress(&mut self, process: u32, random: &mut Random) {
        let parts = Part { process, communicator: 0 }..=Part { process, communicator: usize::MAX };
        let parts: Vec<Part> = self.started.range(parts).map(|(part, _)| *part).collect();
        for part in parts {
            let mut mine = self.started.remove(&part).unwrap_or_default();
            let mut closed = BTreeSet::new();
            for (_, request) in &mut mine {
                let Request::Receive { way, place } = *request else { continue };
                // Who is not served now holds up those behind it.
                let is_held = closed.contains(&way) || random.one_in(4);
                let now = self.now;
                let met = self.met(way, random).filter(|_| !is_held);
                let letters = met.and_then(|met| self.on_the_way.get_mut(&met));
                let is_there = |letters: &&mut VecDeque<Letter>| {
                    letters.front().is_some_and(|letter| letter.arrives <= now)
                };
                let letter = letters.filter(is_there).and_then(VecDeque::pop_front);
                let Some(letter) = letter else {
                    closed.insert(way);
                    continue;
                };
                *self.letters.entry(process).or_default() -= 1;
                // SAFETY: handed on from the caller.
                let data = unsafe { self.taken(letter, part) };
                // SAFETY: the caller's promise.
                unsafe { place.write(&data) };
                let bytes = data.len().min(place.bytes);
                *request = Request::Done { bytes, is_too_long: data.len() > bytes };
            }
            self.started.insert(part, mine);
        }
    }

    /// Ways with letters for a receive; from anybody several.
    fn are_there(&self, wanted: Way) -> Vec<Way> {
        let is_there =
            |letters: &VecDeque<Letter>| letters.front().is_some_and(|letter| letter.arrives <= self.now);
        if wanted.from != ANY_PEER {
            let is_there = self.on_the_way.get(&wanted).is_some_and(is_there);
            return if is_there { vec![wanted] } else { Vec::new() };
        }
        let ways = self.on_the_way.iter().filter(|(_, letters)| is_there(letters)).map(|(way, _)| *way);
        ways.filter(|way| (way.to, way.tag) == (wanted.to, wanted.tag)).collect()
    }

    /// The way of the letter that a receive meets.
    fn met(&self, wanted: Way, random: &mut Random) -> Option<Way> {
        if wanted.from != ANY_PEER {
            return self.on_the_way.contains_key(&wanted).then_some(wanted);
        }
        let ways = self.are_there(wanted);
        (!ways.is_empty()).then(|| random.one_of(&ways))
    }

    /// All messages for which there are receives have met them.
    ///
    /// # Safety
    /// As for [`Mail::progress`], for all processes.
    pub unsafe fn end(&mut self, random: &mut Random) {
        self.now = u64::MAX;
        let is_met = |mail: &Mail, (_, request): &(u32, Request)| match request {
            Request::Receive { way, .. } => !mail.are_there(*way).is_empty(),
            _ => false,
        };
        let parts: Vec<Part> = self.started.keys().copied().collect();
        for part in parts {
            while self.started[&part].iter().any(|request| is_met(self, request)) {
                // SAFETY: handed on from the caller.
                unsafe { self.progress(part.process, random) };
            }
        }
    }

    /// # Safety
    /// As for [`Mail::progress`].
    unsafe fn taken(&mut self, Letter { sender, content, .. }: Letter, receiver: Part) -> Vec<u8> {
        if sender.communicator != receiver.communicator {
            self.wrong = Some(format!("a message of {sender:?} has met a receive of {receiver:?}"));
        }
        match content {
            Content::Copied(data) => data,
            Content::InPlace(place, sent) => {
                let theirs = self.started.get_mut(&sender).into_iter().flatten();
                let request = theirs.filter(|(slot, _)| *slot == sent).map(|(_, request)| request).next();
                if let Some(request) = request {
                    *request = Request::Done { bytes: 0, is_too_long: false };
                }
                // SAFETY: the caller's promise; what is cancelled is copied first.
                unsafe { place.read() }
            }
        }
    }

    /// What has completed by now, as far as chance lets this rank see it.
    pub fn done(&mut self, part: Part, random: &mut Random) -> Vec<Completion> {
        let mut done = Vec::new();
        self.started.entry(part).or_default().retain(|(slot, request)| match *request {
            Request::Done { bytes, is_too_long } if !random.one_in(4) => {
                let error = if is_too_long { MISUSED } else { 0 };
                done.push(Completion { slot: *slot, error, bytes });
                false
            }
            _ => true,
        });
        random.shuffle(&mut done);
        done
    }

    /// Receives are cancelled, sends left to MPI.
    ///
    /// # Safety
    /// The memory of the sends is still there.
    pub unsafe fn cancel(&mut self, part: Part, slots: &[u32]) {
        let way = |to, tag| Way { from: part.process, to, tag };
        let ways = self.on_the_way.range_mut(way(0, c_int::MIN)..=way(u32::MAX, c_int::MAX));
        for letter in ways.flat_map(|(_, letters)| letters).filter(|letter| letter.sender == part) {
            match letter.content {
                Content::InPlace(place, slot) if slots.contains(&slot) => {
                    // SAFETY: the caller's promise.
                    letter.content = Content::Copied(unsafe { place.read() });
                }
                _ => {}
            }
        }
        self.started.entry(part).or_default().retain(|(slot, _)| !slots.contains(slot));
    }

    /// The receives for which MPI may still write into memory of this rank: from whom, and with what tag.
    pub fn outstanding_receives(&self, part: Part) -> Vec<(u32, c_int)> {
        let from = |(_, request): &(u32, Request)| match request {
            Request::Receive { way, .. } => Some((way.from, way.tag)),
            Request::Send | Request::Done { .. } => None,
        };
        self.started.get(&part).map_or_else(Vec::new, |mine| mine.iter().filter_map(from).collect())
    }

    /// Messages that nobody has received, of which the sender was this communicator: how many per tag.
    pub fn unreceived(&self, communicator: usize) -> BTreeMap<c_int, usize> {
        let mut count = BTreeMap::new();
        for (way, letters) in &self.on_the_way {
            let letters = letters.iter().filter(|letter| letter.sender.communicator == communicator).count();
            if letters > 0 {
                *count.entry(way.tag).or_default() += letters;
            }
        }
        count
    }
}
