//! The fixed memory of one rank: a ring of events, and small tables. Recording takes no lock and no memory, and the file can be written from a
//! signal handler.
//!
//! # Invariants
//! 1. The memory is there from the beginning; nothing allocates later.
//! 2. A place of the ring belongs to the event with its number until the ring comes round. A writer that is overtaken, or a reader
//!    meanwhile, may leave or see words of two events, which the reader of the file takes for what they say: no word is out of bounds.
//! 3. A table's entry is complete before its count says that it is there.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{EVENT_WORDS, Event};
use crate::layout::{
    COMMUNICATOR_WORDS, Checksum, Clock, END_MAGIC, Ending, HEADER_WORDS, MAGIC, MAX_COMMUNICATORS,
    MAX_NAMES, NAME_WORDS, NOT_NAMED, VERSION, at, text_words,
};

/// The number of events that are kept, the last ones. They take 2 MiB.
pub const EVENTS: usize = 1 << 16;

/// Words that are written at a time.
const CHUNK_WORDS: usize = 512;

/// The identity of a rank, for the header of its file.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The size of MPI_COMM_WORLD.
    pub ranks: u32,
    /// The job's number, equal on all its ranks and on no other job's; 0: not known.
    pub job: u64,
    /// The clock's number, equal on ranks whose clock is one.
    pub clock: u64,
    /// The process's number in the system.
    pub process: u32,
    /// The time at which recording began, on CLOCK_MONOTONIC, in nanoseconds.
    pub began_ns: u64,
    /// The time at which recording began, in nanoseconds since 1970.
    pub began_1970_ns: u64,
    /// The host's name.
    pub host: &'a str,
    /// The program's.
    pub program: &'a str,
    /// polycast's version.
    pub polycast: &'a str,
    /// The MPI and its version; empty: not known.
    pub mpi: &'a str,
    /// The program with its arguments; empty: not known.
    pub command: &'a str,
}

/// The recorder of a rank; see the module.
pub struct Recorder {
    header: [AtomicU64; HEADER_WORDS],
    names: Box<[[AtomicU64; NAME_WORDS]]>,
    communicators: Box<[[AtomicU64; COMMUNICATOR_WORDS]]>,
    events: Box<[[AtomicU64; EVENT_WORDS]]>,
    recorded: AtomicU64,
    named: AtomicU64,
    met: AtomicU64,
}

fn zeros<const N: usize>(count: usize) -> Box<[[AtomicU64; N]]> {
    let place = || std::array::from_fn(|_| AtomicU64::new(0));
    std::iter::repeat_with(place).take(count).collect()
}

fn store(place: &[AtomicU64], words: &[u64]) {
    for (place, word) in place.iter().zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
}

/// Writes a text to its words of the header.
fn place<const N: usize>(words: &mut [u64; HEADER_WORDS], first: usize, text: &str) {
    words[first..][..N].copy_from_slice(&text_words::<N>(text));
}

impl Recorder {
    /// A recorder with room for so many events, at least one.
    pub fn new(about: &About<'_>, events: usize) -> Recorder {
        let About { rank, ranks, job, clock, process, began_ns, began_1970_ns, .. } = *about;
        let recorder = Recorder {
            header: std::array::from_fn(|_| AtomicU64::new(0)),
            names: zeros(MAX_NAMES),
            communicators: zeros(MAX_COMMUNICATORS),
            events: zeros(events.max(1)),
            recorded: AtomicU64::new(0),
            named: AtomicU64::new(0),
            met: AtomicU64::new(0),
        };
        let mut words = [0; HEADER_WORDS];
        words[at::MAGIC] = MAGIC;
        words[at::VERSION] = VERSION;
        (words[at::RANK], words[at::RANKS]) = (rank.into(), ranks.into());
        (words[at::JOB], words[at::CLOCK], words[at::PROCESS]) = (job, clock, process.into());
        (words[at::BEGAN], words[at::BEGAN_1970]) = (began_ns, began_1970_ns);
        place::<{ at::HOST_WORDS }>(&mut words, at::HOST, about.host);
        place::<{ at::PROGRAM_WORDS }>(&mut words, at::PROGRAM, about.program);
        place::<{ at::POLYCAST_WORDS }>(&mut words, at::POLYCAST, about.polycast);
        place::<{ at::MPI_WORDS }>(&mut words, at::MPI, about.mpi);
        place::<{ at::COMMAND_WORDS }>(&mut words, at::COMMAND, about.command);
        store(&recorder.header, &words);
        recorder
    }

    /// Records a comparison of clocks, made when the job began or when it ends.
    pub fn clock(&self, clock: Clock, is_at_end: bool) {
        let first = if is_at_end { at::LAST_CLOCK } else { at::FIRST_CLOCK };
        store(&self.header[first..], &Clock::words(Some(clock)));
    }

    /// Records an event.
    #[inline]
    pub fn record(&self, event: Event) {
        // Relaxed: who reads the ring while others write may see parts of events (invariant 2).
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        let place = &self.events[(number % self.events.len() as u64) as usize];
        for (place, word) in place.iter().zip(event.words()) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Returns the index of a name, which is added if it was not there. To be called by one thread
    /// at a time.
    pub fn name(&self, text: &str) -> u16 {
        let words = text_words::<NAME_WORDS>(text);
        let known = self.named.load(Ordering::Relaxed) as usize;
        let is_it = |place: &[AtomicU64; NAME_WORDS]| {
            place.iter().zip(words).all(|(place, word)| place.load(Ordering::Relaxed) == word)
        };
        if let Some(index) = self.names[..known].iter().position(is_it) {
            return index as u16;
        }
        let Some(place) = self.names.get(known) else { return NOT_NAMED };
        store(place, &words);
        // Pairs with the load in `write`.
        self.named.store(known as u64 + 1, Ordering::Release);
        known as u16
    }

    /// Adds a communicator and returns its index. Of its ranks `group` names those in
    /// MPI_COMM_WORLD, `ordinal` counts communicators of these ranks from 0, `size` is their
    /// number, and `rank` is this rank's number there. To be called by one thread at a time.
    pub fn communicator(&self, group: u64, ordinal: u32, size: u32, rank: u32, first_world_rank: u32) -> u16 {
        let met = self.met.load(Ordering::Relaxed);
        let Some(place) = self.communicators.get(met as usize) else {
            self.met.store(met + 1, Ordering::Release);
            return NOT_NAMED;
        };
        let ends = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        store(place, &[group, ends(ordinal, size), ends(rank, first_world_rank), 0]);
        // Pairs with the load in `write`.
        self.met.store(met + 1, Ordering::Release);
        met as u16
    }

    /// Writes the file, part by part, as it is now, to `sink`, which says whether it took a part;
    /// true if all was taken. No memory is allocated and no lock taken, so a signal handler may
    /// call this.
    pub fn write(&self, ending: Ending, ended_ns: u64, sink: impl FnMut(&[u8]) -> bool) -> bool {
        let recorded = self.recorded.load(Ordering::Relaxed);
        let capacity = self.events.len() as u64;
        let kept = recorded.min(capacity);
        let names = self.named.load(Ordering::Acquire).min(MAX_NAMES as u64);
        let met = self.met.load(Ordering::Acquire);
        let communicators = met.min(MAX_COMMUNICATORS as u64);
        let mut out =
            Out { sink, chunk: [0; CHUNK_WORDS * 8], filled: 0, sum: Checksum::NEW, is_taken: true };
        for (index, word) in self.header.iter().enumerate() {
            out.word(match index {
                at::ENDED => ended_ns,
                at::ENDING => ending as u64,
                at::RECORDED => recorded,
                at::EVENTS => kept,
                at::COMMUNICATORS => communicators,
                at::NAMES => names,
                at::MET => met,
                _ => word.load(Ordering::Relaxed),
            });
        }
        out.all(&self.names[..names as usize]);
        out.all(&self.communicators[..communicators as usize]);
        // The oldest first.
        let oldest = if recorded > capacity { (recorded % capacity) as usize } else { 0 };
        out.all(&self.events[oldest..kept as usize]);
        out.all(&self.events[..oldest]);
        let Checksum(sum) = out.sum;
        out.word(sum);
        out.word(END_MAGIC);
        out.flush();
        out.is_taken
    }
}

struct Out<S> {
    sink: S,
    chunk: [u8; CHUNK_WORDS * 8],
    filled: usize,
    sum: Checksum,
    is_taken: bool,
}

impl<S: FnMut(&[u8]) -> bool> Out<S> {
    fn word(&mut self, word: u64) {
        self.sum = self.sum.word(word);
        self.chunk[self.filled..][..8].copy_from_slice(&word.to_le_bytes());
        self.filled += 8;
        if self.filled == self.chunk.len() {
            self.flush();
        }
    }

    fn all<const N: usize>(&mut self, places: &[[AtomicU64; N]]) {
        places.iter().flatten().for_each(|place| self.word(place.load(Ordering::Relaxed)));
    }

    fn flush(&mut self) {
        self.is_taken = self.is_taken && (self.filled == 0 || (self.sink)(&self.chunk[..self.filled]));
        self.filled = 0;
    }
}
