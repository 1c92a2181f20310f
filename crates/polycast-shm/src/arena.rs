//! The memory of a node: one segment for all its processes, in which each communicator has a place.
//!
//! ```text
//!   front   what it is; whether somebody was refused; pages in use; blocks whose memory is there; numbers in use; pages in use
//!   pages   ▒▒▒▒ ▒▒ ░░░░░░ ▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░…      runs of them, one for each communicator; 64 are a block
//! ```
//! Who leads a communicator on its node takes a [`Slot`] for it: a number, and pages in one of two [`Shape`]s. The memory of a block is taken from the
//! kernel when something of it is first needed, and given back when nothing of it is, but for the first ones.
//!
//! # Invariants
//! 1. A number, and a page, belong to one slot at a time ([`Places`]).
//! 2. Nobody writes in a page whose memory is not there: a slot is handed out when the memory of its blocks is, and a block's memory is given
//!    back by one who has taken all of its pages.
//! 3. What is in a slot's memory when it is handed out are zeros.

use std::ops::Range;

use crate::pages::{Places, WORD};
use crate::raw::{Raw, Shape};
use crate::segment::{OWN_WORDS, Offer, PAGE, Segment, SegmentError, most_bytes};
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};

/// The most numbers of slots on a node.
pub const MAX_SLOTS: usize = 12 << 10;
const MAX_BLOCKS: usize = 2048;
/// The part of all pages, above which communicators get the small shape.
const CROWDED_PART: usize = 8;
const BLOCK_BYTES: usize = WORD * PAGE;
/// Blocks whose memory stays when nothing is there any more: programs make communicators again and again.
const KEPT_BLOCKS: usize = 32;

// The words in front of the pages.
const REFUSED: usize = OWN_WORDS;
const PAGES_IN_USE: usize = OWN_WORDS + 1;
const BLOCKS: Range<usize> = 64..64 + MAX_BLOCKS / WORD;
const NUMBERS: Range<usize> = 128..128 + MAX_SLOTS / WORD;
const PAGES_AT: usize = 512;
const FRONT_BYTES: usize = (PAGES_AT + MAX_BLOCKS) * size_of::<AtomicU64>();

/// A communicator's place in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The number, which no other slot has.
    pub number: u32,
    page: u32,
    is_small: bool,
}

impl Slot {
    const IS_THERE: u64 = 1 << 63;
    const IS_SMALL: u64 = 1 << 62;

    /// The slot as a number for others, never 0.
    pub fn to_word(self) -> u64 {
        let small = if self.is_small { Slot::IS_SMALL } else { 0 };
        Slot::IS_THERE | small | u64::from(self.number) << 32 | u64::from(self.page)
    }

    /// Undoes [`Slot::to_word`].
    pub fn from_word(word: u64) -> Option<Slot> {
        let (number, page) = ((word >> 32) as u32 & 0xffff, word as u32);
        (word & Slot::IS_THERE != 0).then_some(Slot { number, page, is_small: word & Slot::IS_SMALL != 0 })
    }

    fn shape(self, ranks: u32) -> Shape {
        if self.is_small { Shape::small(ranks) } else { Shape::new(ranks) }
    }

    fn pages(self, ranks: u32) -> Range<usize> {
        let first = self.page as usize;
        first..first + self.shape(ranks).bytes().div_ceil(PAGE)
    }
}

/// The memory of a node, as one of its processes sees it.
#[derive(Debug)]
pub struct Arena {
    segment: Segment,
}

impl Arena {
    /// The most bytes of an arena.
    pub const MAX_BYTES: usize = FRONT_BYTES + MAX_BLOCKS * BLOCK_BYTES;

    /// Makes an arena of about so many bytes at most, a block at least. It has the memory of its front.
    pub fn create(most: usize, name: u64) -> Result<(Arena, Offer), SegmentError> {
        let most = most.min(most_bytes());
        let blocks = most.saturating_sub(FRONT_BYTES) / BLOCK_BYTES;
        if blocks == 0 {
            return Err(SegmentError::Other("no room"));
        }
        let bytes = FRONT_BYTES + blocks.min(MAX_BLOCKS) * BLOCK_BYTES;
        let (segment, offer) = Segment::create(bytes, name)?;
        segment.take(0..FRONT_BYTES)?;
        Ok((Arena { segment }, offer))
    }

    /// Opens the arena that was offered.
    pub fn open(offer: Offer) -> Result<Arena, SegmentError> {
        Ok(Arena { segment: Segment::open(offer, Arena::MAX_BYTES)? })
    }

    /// The segment, by which tests see what is written.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The flag that is not 0 once some process could not read another's memory.
    pub fn has_refused(&self) -> &AtomicU64 {
        self.segment.word(REFUSED)
    }

    fn blocks(&self) -> usize {
        (self.segment.bytes() - FRONT_BYTES) / BLOCK_BYTES
    }

    fn pages(&self) -> Places<'_> {
        Places(self.segment.words(PAGES_AT..PAGES_AT + self.blocks()))
    }

    fn numbers(&self) -> Places<'_> {
        Places(self.segment.words(NUMBERS))
    }

    /// True if a good part of the pages is in use: further communicators then get little, and nothing
    /// is kept for later ones.
    pub fn is_crowded(&self) -> bool {
        // Relaxed: whoever takes some finds out.
        self.segment.word(PAGES_IN_USE).load(Relaxed) as usize >= self.blocks() * WORD / CROWDED_PART
    }

    /// The memory of blocks, from byte to byte.
    fn bytes_of(blocks: Range<usize>) -> Range<usize> {
        FRONT_BYTES + blocks.start * BLOCK_BYTES..FRONT_BYTES + blocks.end * BLOCK_BYTES
    }

    /// Takes a slot, of a number below `numbers`, for so many ranks; `None`: there is no room, or no memory.
    pub fn take(&self, ranks: u32, numbers: usize) -> Option<Slot> {
        let number = self.numbers().take(1)?.start;
        let slot = (number < numbers).then(|| self.take_pages(ranks, number as u32)).flatten();
        if slot.is_none() {
            self.numbers().give_back(number..number + 1);
        }
        slot
    }

    fn take_pages(&self, ranks: u32, number: u32) -> Option<Slot> {
        let kinds: &[bool] = if self.is_crowded() { &[true] } else { &[false, true] };
        kinds.iter().find_map(|&is_small| {
            let shape = Slot { number, page: 0, is_small }.shape(ranks);
            let pages = self.pages().take(shape.bytes().div_ceil(PAGE))?;
            let slot = Slot { number, page: pages.start as u32, is_small };
            self.segment.word(PAGES_IN_USE).fetch_add(pages.len() as u64, Relaxed);
            if self.take_memory(&pages).is_err() {
                self.give_back_pages(pages);
                return None;
            }
            let first = self.segment.at(FRONT_BYTES + pages.start * PAGE);
            // SAFETY: these pages are this slot's (invariant 1), which nobody else knows yet.
            unsafe { first.write_bytes(0, pages.len() * PAGE) };
            Some(slot)
        })
    }

    /// Takes the memory of blocks that have none yet. Two may do so at a time.
    fn take_memory(&self, pages: &Range<usize>) -> Result<(), SegmentError> {
        for block in pages.start / WORD..pages.end.div_ceil(WORD) {
            let there = self.segment.word(BLOCKS.start + block / WORD);
            // Acquire: with the release of who has taken it.
            if there.load(Acquire) >> (block % WORD) & 1 == 0 {
                self.segment.take(Arena::bytes_of(block..block + 1))?;
                there.fetch_or(1 << (block % WORD), AcqRel);
            }
        }
        Ok(())
    }

    /// Gives a slot of so many ranks back, in which nobody has anything any more.
    pub fn give_back(&self, slot: Slot, ranks: u32) {
        self.give_back_pages(slot.pages(ranks));
        self.numbers().give_back(slot.number as usize..slot.number as usize + 1);
    }

    fn give_back_pages(&self, pages: Range<usize>) {
        self.segment.word(PAGES_IN_USE).fetch_sub(pages.len() as u64, Relaxed);
        let empty = self.pages().give_back(pages);
        for block in empty.start.max(KEPT_BLOCKS)..empty.end {
            // Who has taken all of its pages is alone there (invariant 2).
            if self.pages().take_word(block) {
                self.segment.word(BLOCKS.start + block / WORD).fetch_and(!(1 << (block % WORD)), AcqRel);
                self.segment.give_back(Arena::bytes_of(block..block + 1));
                self.pages().clear(block, u64::MAX);
            }
        }
    }

    /// The memory of a slot that some process has taken for so many ranks; `None` if there is no such place.
    ///
    /// # Safety
    /// It is used no longer than this arena is there, and not after the slot was given back.
    pub unsafe fn memory(&self, slot: Slot, ranks: u32) -> Option<Raw> {
        let pages = slot.pages(ranks);
        (pages.end <= self.blocks() * WORD).then(|| {
            let first = self.segment.at(FRONT_BYTES + pages.start * PAGE);
            // SAFETY: it is in the mapping, at a page; the slot's alone (invariant 1), zeros at first (3).
            unsafe { Raw::new(first, slot.shape(ranks)) }
        })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
