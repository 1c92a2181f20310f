//! Where what stands in a file: words of 64 bits, the lowest byte first. docs/trace.md is the description.

/// The version of the format. A reader refuses any other.
pub const VERSION: u64 = 1;

/// The index of a name or communicator that has no place in its table, because the table was full.
pub const NOT_NAMED: u16 = u16::MAX;

/// The first word of a file, and the last: `pcast-tr`, `tr-end\0\0`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"pcast-tr");
pub const END_MAGIC: u64 = u64::from_le_bytes(*b"tr-end\0\0");

pub const HEADER_WORDS: usize = 64;
/// Checksum, magic.
pub const END_WORDS: usize = 2;
/// A name's bytes; the rest is zeros.
pub const NAME_WORDS: usize = 16;
pub const COMMUNICATOR_WORDS: usize = 4;

/// The most names and communicators in a rank's file: the first ones.
pub const MAX_NAMES: usize = 512;
pub const MAX_COMMUNICATORS: usize = 1024;

/// Words of the header.
pub mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const RANK: usize = 2;
    pub const RANKS: usize = 3;
    pub const JOB: usize = 4;
    pub const CLOCK: usize = 5;
    pub const PROCESS: usize = 6;
    pub const BEGAN: usize = 7;
    pub const BEGAN_1970: usize = 8;
    pub const ENDED: usize = 9;
    pub const ENDING: usize = 10;
    /// Events that were recorded, and those that stand in the file.
    pub const RECORDED: usize = 11;
    pub const EVENTS: usize = 12;
    pub const COMMUNICATORS: usize = 13;
    pub const NAMES: usize = 14;
    /// Communicators that there were.
    pub const MET: usize = 15;
    /// Three words each.
    pub const FIRST_CLOCK: usize = 16;
    pub const LAST_CLOCK: usize = 19;
    pub const HOST: usize = 24;
    pub const HOST_WORDS: usize = 8;
    pub const PROGRAM: usize = 32;
    pub const PROGRAM_WORDS: usize = 8;
    pub const POLYCAST: usize = 40;
    pub const POLYCAST_WORDS: usize = 4;
    /// Zeros in files of before 0.3.
    pub const MPI: usize = 44;
    pub const MPI_WORDS: usize = 4;
    pub const COMMAND: usize = 48;
    pub const COMMAND_WORDS: usize = 16;
}

/// The reason why a rank wrote its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program called `MPI_Finalize`.
    Finalized = 1,
    /// The process ended without that.
    Exited = 2,
    /// The process got SIGTERM.
    Terminated = 3,
}

impl Ending {
    pub(crate) fn of(number: u64) -> Option<Ending> {
        [Ending::Finalized, Ending::Exited, Ending::Terminated].into_iter().find(|one| *one as u64 == number)
    }
}

/// A comparison of clocks: when the own clock showed `local_ns`, that of rank 0 was `offset_ns`
/// ahead, with an error of `error_ns` at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_MONOTONIC of the rank, in nanoseconds; never 0.
    pub local_ns: u64,
    /// The nanoseconds to add to get rank 0's time.
    pub offset_ns: i64,
    /// The largest error in nanoseconds: half of the fastest exchange.
    pub error_ns: u64,
}

impl Clock {
    pub(crate) fn words(clock: Option<Clock>) -> [u64; 3] {
        clock.map_or([0; 3], |clock| [clock.local_ns, clock.offset_ns as u64, clock.error_ns])
    }

    pub(crate) fn from_words([local_ns, offset_ns, error_ns]: [u64; 3]) -> Option<Clock> {
        (local_ns != 0).then_some(Clock { local_ns, offset_ns: offset_ns as i64, error_ns })
    }
}

/// The checksum of a file, word by word: FNV-1a with words in place of bytes.
#[derive(Clone, Copy)]
pub struct Checksum(pub u64);

impl Checksum {
    pub const NEW: Checksum = Checksum(0xcbf2_9ce4_8422_2325);

    #[inline]
    pub fn word(self, word: u64) -> Checksum {
        // The shift lets high bits reach low ones, which the product alone does not.
        let mixed = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        Checksum(mixed ^ mixed >> 29)
    }
}

/// The mark in the place of the rest of a text.
const CUT: &str = "…";

/// Writes a text into `N` words. A longer text is cut, with a mark, and not within a character.
pub fn text_words<const N: usize>(text: &str) -> [u64; N] {
    let is_cut = text.len() > N * 8;
    let most = if is_cut { N * 8 - CUT.len() } else { text.len() };
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let mut words = [0; N];
    let cut = if is_cut { CUT } else { "" };
    for (index, byte) in text[..end].bytes().chain(cut.bytes()).enumerate() {
        words[index / 8] |= u64::from(byte) << (index % 8 * 8);
    }
    words
}

/// Returns the text in such words, as far as they hold one.
pub fn text_of(words: &[u64]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
