//! The journal of how far a copy was written, for the run that goes on with it, and of what each
//! block was: what is damaged since is not taken for the block, by this node or by those that it
//! gives it to.
//!
//! ```text
//!   journal   "256 65536": so many blocks of so many bytes are written
//!   sums      8 bytes for each block, one after the other
//! ```
//!
//! Sums are there before the journal counts their blocks. They say nothing of who wrote them: whoever may write into the folder could change both,
//! and is found out by the digest in the end.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use polycast_copy::{Stream, sum};
use rustix::fs::OFlags;

const SUM_BYTES: usize = 8;
/// The number of blocks between two entries of the journal.
const BLOCKS_PER_ENTRY: u64 = 128;

/// The notes of an earlier run: its whole blocks, and a sum of each.
pub struct Noted {
    sums: Vec<u8>,
    blocks: u64,
}

impl Noted {
    /// The number of blocks that were written.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// True if these are the bytes of this block that were written.
    pub fn is(&self, block: u64, bytes: &[u8]) -> bool {
        let at = block as usize * SUM_BYTES;
        self.sums.get(at..at + SUM_BYTES) == Some(&sum(bytes).to_le_bytes()[..])
    }
}

/// The journal of a copy, written as blocks are.
pub struct Journal {
    folder: PathBuf,
    stream: Stream,
    sums: File,
    /// The sums of the blocks before `next` that are not in the file yet.
    unsaved: Vec<u8>,
    next: u64,
}

impl Journal {
    /// Opens the journal to go on behind so many blocks.
    pub fn open(folder: &Path, stream: Stream, blocks: u64) -> io::Result<Journal> {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let sums = options.open(folder.join("sums"))?;
        Ok(Journal { folder: folder.to_owned(), stream, sums, unsaved: Vec::new(), next: blocks })
    }

    /// The next block is written.
    pub fn wrote(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsaved.extend_from_slice(&sum(bytes).to_le_bytes());
        self.next += 1;
        if self.next.is_multiple_of(BLOCKS_PER_ENTRY) { self.save() } else { Ok(()) }
    }

    /// Notes what is written. Never over the entry before: whoever is killed in the middle would leave none.
    pub fn save(&mut self) -> io::Result<()> {
        let at = self.next * SUM_BYTES as u64 - self.unsaved.len() as u64;
        self.sums.write_all_at(&self.unsaved, at)?;
        self.unsaved.clear();
        let entry = format!("{} {}\n", self.next, self.stream.block_bytes);
        polycast_system::replace(&self.folder.join("journal"), 0o600, entry.as_bytes())
    }

    /// Reads the notes of an earlier run in this folder; `None` if they are of another stream, or
    /// of a version that noted less.
    pub fn read(folder: &Path, stream: &Stream) -> Option<Noted> {
        let words = fs::read_to_string(folder.join("journal")).ok()?;
        let (blocks, block_bytes) = words.trim().split_once(' ')?;
        let fits = block_bytes.parse() == Ok(stream.block_bytes);
        let blocks: u64 = blocks.parse().ok().filter(|blocks| fits && *blocks <= stream.blocks())?;
        let mut sums = vec![0; blocks as usize * SUM_BYTES];
        File::open(folder.join("sums")).ok()?.read_exact_at(&mut sums, 0).ok()?;
        Some(Noted { sums, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream { bytes: 4_096 * 1_000, manifest_bytes: 3, block_bytes: 4_096 };

    fn write(folder: &Path, from: u64, blocks: u64) -> Journal {
        let mut journal = Journal::open(folder, STREAM, from).unwrap();
        (from..from + blocks).for_each(|block| journal.wrote(&block.to_le_bytes()).unwrap());
        journal
    }

    #[test]
    fn what_is_damaged_is_none_of_the_blocks() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 0, 3).save().unwrap();
        // Goes on, and is killed behind an entry.
        write(folder.path(), 3, BLOCKS_PER_ENTRY);
        let noted = Journal::read(folder.path(), &STREAM).unwrap();
        assert_eq!(noted.blocks(), BLOCKS_PER_ENTRY);
        for block in 0..BLOCKS_PER_ENTRY {
            assert!(noted.is(block, &block.to_le_bytes()));
            assert!(!noted.is(block, &(block ^ 1 << 40).to_le_bytes()) && !noted.is(block, &[]));
        }
        assert!(!noted.is(BLOCKS_PER_ENTRY, &BLOCKS_PER_ENTRY.to_le_bytes()), "it is not noted");
    }

    #[test]
    fn who_is_killed_between_two_entries_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 0, 1).save().unwrap();
        let kept = folder.path().join("kept");
        fs::hard_link(folder.path().join("journal"), &kept).unwrap();
        write(folder.path(), 1, 1).save().unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "1 4096\n");
        assert_eq!(Journal::read(folder.path(), &STREAM).unwrap().blocks(), 2);
    }

    #[test]
    fn without_all_sums_nothing_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 0, 3).save().unwrap();
        assert!(Journal::read(folder.path(), &Stream { block_bytes: 8_192, ..STREAM }).is_none());
        File::options().write(true).open(folder.path().join("sums")).unwrap().set_len(23).unwrap();
        assert!(Journal::read(folder.path(), &STREAM).is_none());
        fs::remove_file(folder.path().join("sums")).unwrap();
        assert!(Journal::read(folder.path(), &STREAM).is_none(), "as older versions left it");
    }
}
