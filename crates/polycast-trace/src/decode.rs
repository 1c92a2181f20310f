//! A file as a rank has written it.

use thiserror::Error;

use crate::event::{EVENT_WORDS, Event};
use crate::layout::{
    COMMUNICATOR_WORDS, Checksum, Clock, END_MAGIC, END_WORDS, Ending, HEADER_WORDS, MAGIC,
    MAX_COMMUNICATORS, MAX_NAMES, NAME_WORDS, VERSION, at, text_of,
};

/// The record of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// The size of MPI_COMM_WORLD.
    pub ranks: u32,
    /// Tells jobs apart; 0 where the ranks did not all record.
    pub job: u64,
    /// The number of the clock, which is equal on ranks with one clock.
    pub clock: u64,
    /// The process's number in the system.
    pub process: u64,
    /// The time at which recording began, on the rank's own clock, in nanoseconds.
    pub began_ns: u64,
    /// The time at which recording ended, on the rank's own clock, in nanoseconds.
    pub ended_ns: u64,
    /// The time at which recording began, in nanoseconds since 1970.
    pub began_1970_ns: u64,
    /// The reason why the file was written.
    pub ending: Ending,
    /// The number of events that were recorded; where the file has fewer, the first ones are not in
    /// it.
    pub recorded: u64,
    /// The number of communicators that the rank met.
    pub met: u64,
    /// The comparisons with rank 0's clock when recording began and ended; made by one rank of
    /// those that have a clock together.
    pub clocks: [Option<Clock>; 2],
    /// The host.
    pub host: String,
    /// The program.
    pub program: String,
    /// polycast's version.
    pub polycast: String,
    /// The MPI and its version; empty where it is not known.
    pub mpi: String,
    /// The program with its arguments, which may be cut; empty where they are not known.
    pub command: String,
    /// The names that events refer to by their index.
    pub names: Vec<String>,
    /// The communicators that events refer to by their index.
    pub communicators: Vec<Communicator>,
    /// The events in the order in which they were recorded.
    pub events: Vec<Event>,
}

/// A communicator as one of its ranks sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// The name of the group of its ranks in MPI_COMM_WORLD.
    pub group: u64,
    /// The number of the communicator among those of these ranks, from 0.
    pub ordinal: u32,
    /// Ranks.
    pub size: u32,
    /// The recording rank's number in the communicator.
    pub rank: u32,
    /// The rank in MPI_COMM_WORLD of the communicator's rank 0.
    pub first_world_rank: u32,
}

/// The defect of a file.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The file does not begin as a trace does.
    #[error("no trace of polycast")]
    Foreign,
    /// The file has another version.
    #[error("a trace of version {0}, expected version {VERSION}: read it with the polycast that wrote it")]
    Version(u64),
    /// The file's end is missing, or there is more behind it.
    #[error("{found} bytes, expected {expected}: it was cut off, or is still being written")]
    Length {
        /// The bytes of the file.
        found: usize,
        /// The bytes that the header says.
        expected: u64,
    },
    /// The file's bytes are not those that were written.
    #[error("damaged: its checksum is wrong")]
    Checksum,
    /// A value that no rank writes.
    #[error("damaged: {0}")]
    Value(&'static str),
}

/// Reads a file. Takes no more memory than in proportion to its bytes.
pub fn decode(bytes: &[u8]) -> Result<Trace, DecodeError> {
    let (words, rest) = bytes.as_chunks::<8>();
    let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
    if word(at::MAGIC) != MAGIC {
        return Err(DecodeError::Foreign);
    }
    if word(at::VERSION) != VERSION {
        return Err(DecodeError::Version(word(at::VERSION)));
    }
    if words.len() < HEADER_WORDS {
        return Err(DecodeError::Length {
            found: bytes.len(),
            expected: (HEADER_WORDS + END_WORDS) as u64 * 8,
        });
    }
    let (events, communicators, names) = (word(at::EVENTS), word(at::COMMUNICATORS), word(at::NAMES));
    if communicators > MAX_COMMUNICATORS as u64 || names > MAX_NAMES as u64 {
        return Err(DecodeError::Value("its tables are longer than a rank's"));
    }
    let tables = names as usize * NAME_WORDS + communicators as usize * COMMUNICATOR_WORDS;
    let before_events = HEADER_WORDS + tables;
    let of_events = events.checked_mul(EVENT_WORDS as u64);
    let expected =
        of_events.and_then(|words| words.checked_add((before_events + END_WORDS) as u64)?.checked_mul(8));
    match expected {
        Some(expected) if expected == bytes.len() as u64 && rest.is_empty() => {}
        expected => {
            return Err(DecodeError::Length { found: bytes.len(), expected: expected.unwrap_or(u64::MAX) });
        }
    }
    let all: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (content, end) = all.split_at(all.len() - END_WORDS);
    let Checksum(sum) = content.iter().fold(Checksum::NEW, |sum, word| sum.word(*word));
    if end != [sum, END_MAGIC] {
        return Err(DecodeError::Checksum);
    }
    read(content, names as usize, communicators as usize)
}

/// Decodes a trace with as many names and communicators as given, for which there are enough words.
fn read(words: &[u64], names: usize, communicators: usize) -> Result<Trace, DecodeError> {
    let narrow = |index: usize, what| u32::try_from(words[index]).map_err(|_| DecodeError::Value(what));
    let (rank, ranks) = (narrow(at::RANK, "its rank")?, narrow(at::RANKS, "its number of ranks")?);
    if rank >= ranks {
        return Err(DecodeError::Value("its rank is none of the job's"));
    }
    let clock = |first: usize| Clock::from_words([words[first], words[first + 1], words[first + 2]]);
    let text = |first: usize, count: usize| text_of(&words[first..][..count]);
    let (of_names, rest) = words[HEADER_WORDS..].split_at(names * NAME_WORDS);
    let (of_communicators, of_events) = rest.split_at(communicators * COMMUNICATOR_WORDS);
    let (of_communicators, _) = of_communicators.as_chunks::<COMMUNICATOR_WORDS>();
    let (of_events, _) = of_events.as_chunks::<EVENT_WORDS>();
    // One that was being recorded when the file was written has no kind yet.
    let events = of_events.iter().filter_map(|words| Event::from_words(*words)).collect();
    let communicators: Vec<Communicator> =
        of_communicators.iter().map(|words| communicator(*words)).collect();
    if communicators.iter().any(|one| one.rank >= one.size) {
        return Err(DecodeError::Value("its rank is none of a communicator's"));
    }
    Ok(Trace {
        rank,
        ranks,
        job: words[at::JOB],
        clock: words[at::CLOCK],
        process: words[at::PROCESS],
        began_ns: words[at::BEGAN],
        ended_ns: words[at::ENDED],
        began_1970_ns: words[at::BEGAN_1970],
        ending: Ending::of(words[at::ENDING]).ok_or(DecodeError::Value("how it ended"))?,
        recorded: words[at::RECORDED],
        met: words[at::MET],
        clocks: [clock(at::FIRST_CLOCK), clock(at::LAST_CLOCK)],
        host: text(at::HOST, at::HOST_WORDS),
        program: text(at::PROGRAM, at::PROGRAM_WORDS),
        polycast: text(at::POLYCAST, at::POLYCAST_WORDS),
        mpi: text(at::MPI, at::MPI_WORDS),
        command: text(at::COMMAND, at::COMMAND_WORDS),
        names: of_names.chunks(NAME_WORDS).map(text_of).collect(),
        communicators,
        events,
    })
}

fn communicator([group, first, second, _]: [u64; COMMUNICATOR_WORDS]) -> Communicator {
    Communicator {
        group,
        ordinal: first as u32,
        size: (first >> 32) as u32,
        rank: second as u32,
        first_world_rank: (second >> 32) as u32,
    }
}
