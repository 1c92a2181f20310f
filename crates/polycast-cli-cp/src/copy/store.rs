//! The blocks that a node has: the last ones in memory, all of them on disk.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use polycast_copy::{Digest, Key, Stream, Tag, pack, unpack};

/// Bytes of blocks that are kept in memory: twice what is under way in a multicast. Who is further behind gets what is on disk, which
/// the system has in memory, too; and a page that is used for the first time costs as much as copying it.
const WINDOW_BYTES: u64 = 16 << 20;

/// The time between two looks, by a thread that waits, at whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A part of what came together, which is not copied for it.
struct SharedBytes {
    memory: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl SharedBytes {
    fn whole(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes { range: 0..bytes.len(), memory: Arc::new(bytes) }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

/// A block in memory.
pub struct Block {
    pub tag: Tag,
    contents: SharedBytes,
    /// The block's contents compressed, if the block travels so.
    packed: Option<SharedBytes>,
}

impl Block {
    /// Checks what came for the block of this number and full length against its tag; `None` if it
    /// is something else. Bytes that are fewer than the full length are compressed.
    pub fn received(
        key: &Key,
        (number, bytes): (u64, usize),
        tag: Option<Tag>,
        memory: Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Option<Block> {
        let came = SharedBytes { memory, range };
        let block = match came.range.len() < bytes {
            true => {
                let contents = SharedBytes::whole(unpack(key, number, came.bytes(), bytes).ok()?);
                Block { tag: tag?, contents, packed: Some(came) }
            }
            false => Block { tag: tag?, contents: came, packed: None },
        };
        (key.tag(number, block.bytes()) == block.tag).then_some(block)
    }

    pub fn bytes(&self) -> &[u8] {
        self.contents.bytes()
    }

    /// The bytes that travel: compressed ones if there are.
    pub fn as_sent(&self) -> &[u8] {
        self.packed.as_ref().unwrap_or(&self.contents).bytes()
    }
}

/// The place at which a block is.
pub enum Found {
    Memory(Arc<Block>),
    /// The block is on disk; this is the tag that it had when it came.
    Disk(Tag),
}

struct State {
    /// The tags of all blocks that are there, from the first.
    tags: Vec<Tag>,
    digest: Digest,
    /// The last blocks.
    recent: VecDeque<Arc<Block>>,
    /// The number of blocks on disk.
    written: u64,
    /// No block is taken that is further than the window behind this one: what is written, or wanted.
    limit: u64,
}

fn wait<'a>(changed: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    changed.wait_timeout(state, LOOK).map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state)
}

/// A prefix of the stream.
pub struct Store {
    pub stream: Stream,
    pub key: Key,
    /// True if blocks travel compressed where that makes them shorter.
    pub packs: bool,
    window: u64,
    state: Mutex<State>,
    /// More blocks are there, can be taken, and all are written: each wakes only who waits for it.
    came: Condvar,
    has_room: Condvar,
    is_written: Condvar,
}

impl Store {
    /// A store in which no block is yet.
    pub fn new(stream: Stream, key: Key, packs: bool) -> Store {
        let window = (WINDOW_BYTES / u64::from(stream.block_bytes)).max(4);
        let state = State {
            tags: Vec::new(),
            digest: Digest::default(),
            recent: VecDeque::new(),
            written: 0,
            limit: 0,
        };
        Store {
            stream,
            key,
            packs,
            window,
            state: Mutex::new(state),
            came: Condvar::new(),
            has_room: Condvar::new(),
            is_written: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of blocks that are there, and of those on disk.
    pub fn have_and_written(&self) -> (u64, u64) {
        let state = self.state();
        (state.tags.len() as u64, state.written)
    }

    /// Waits for so long, less if all blocks are on disk by then that were not before.
    pub fn rest(&self, time: Duration) {
        let (blocks, state) = (self.stream.blocks(), self.state());
        if state.written < blocks {
            let _ = self.is_written.wait_timeout_while(state, time, |state| state.written < blocks);
        } else {
            drop(state);
            thread::sleep(time);
        }
    }

    /// The BLAKE3 digest of the blocks that are there.
    pub fn digest(&self) -> String {
        self.state().digest.text()
    }

    /// A block of an earlier run, which is on disk.
    pub fn add_written(&self, tag: Tag) {
        let mut state = self.state();
        state.digest.add(&tag);
        state.tags.push(tag);
        state.written += 1;
        state.limit += 1;
    }

    /// A block that was read here.
    pub fn block(&self, number: u64, tag: Tag, bytes: Vec<u8>) -> Block {
        let packed = if self.packs { pack(&self.key, number, &bytes) } else { None };
        Block { tag, contents: SharedBytes::whole(bytes), packed: packed.map(SharedBytes::whole) }
    }

    /// Blocks that came together, this one the first; waits while too many are not written. False if it was to stop, or one is not the
    /// next any more.
    pub fn push_all(&self, first: u64, blocks: impl IntoIterator<Item = Block>, stop: &AtomicBool) -> bool {
        let mut state = self.state();
        for (block, it) in (first..).zip(blocks) {
            while state.tags.len() as u64 >= state.limit + self.window {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                self.came.notify_all();
                state = wait(&self.has_room, state);
            }
            if stop.load(Ordering::Relaxed) || state.tags.len() as u64 != block {
                return false;
            }
            state.digest.add(&it.tag);
            state.tags.push(it.tag);
            state.recent.push_back(Arc::new(it));
            while state.recent.len() as u64 > self.window {
                state.recent.pop_front();
            }
        }
        drop(state);
        self.came.notify_all();
        true
    }

    /// True if the blocks before this one can be taken at once.
    pub fn has_room_up_to(&self, end: u64) -> bool {
        end <= self.state().limit + self.window
    }

    /// Blocks up to this one are wanted of the source, or have a place although they are not on disk.
    pub fn want(&self, block: u64) {
        let mut state = self.state();
        if block > state.limit {
            state.limit = block;
            drop(state);
            self.has_room.notify_all();
        }
    }

    /// Waits for a block; `None` if it was to stop.
    pub fn get(&self, block: u64, stop: &AtomicBool) -> Option<Found> {
        let mut state = self.state();
        loop {
            let first = (state.tags.len() - state.recent.len()) as u64;
            if block < first {
                return Some(Found::Disk(state.tags[block as usize]));
            }
            if let Some(found) = state.recent.get((block - first) as usize) {
                return Some(Found::Memory(Arc::clone(found)));
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            state = wait(&self.came, state);
        }
    }

    /// The next block that is not on disk.
    pub fn next_unwritten(&self, stop: &AtomicBool) -> Option<(u64, Arc<Block>)> {
        let next = self.state().written;
        match self.get(next, stop)? {
            Found::Memory(block) => Some((next, block)),
            Found::Disk(_) => None,
        }
    }

    /// Notes that one more block is on disk.
    pub fn wrote(&self) {
        let mut state = self.state();
        state.written += 1;
        state.limit = state.limit.max(state.written);
        let is_all = state.written >= self.stream.blocks();
        drop(state);
        self.has_room.notify_all();
        if is_all {
            self.is_written.notify_all();
        }
    }
}
