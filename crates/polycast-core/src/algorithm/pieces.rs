//! The data cut into blocks, and the blocks into pieces, the smallest units that travel.

use std::num::NonZeroU64;
use std::ops::Range;

/// `bytes` cut into blocks whose sizes differ by at most one byte, larger ones first, and each block into pieces of
/// one segment (its last piece may be shorter). Pieces are numbered through from the first byte to the last, so a
/// range of them is a range of bytes. Nothing is empty except blocks: a block without bytes has no pieces.
///
/// ```text
///   blocks  │      0      │      1      │     2     │      22 bytes in 3 blocks, segment 3
///   pieces  │0 1 2│3 4 5│6│7 …              … │    │      block 0 = pieces 0..3
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    /// Bytes of each block but the first `larger_blocks`.
    smaller_block: u64,
    /// Bytes of each of the first `larger_blocks`; equal to `smaller_block` if there are none of these.
    larger_block: u64,
    larger_blocks: u64,
    pieces_per_smaller_block: u64,
    pieces_per_larger_block: u64,
    /// The bytes of the largest piece.
    segment: NonZeroU64,
    /// True if no segment size was asked for: nothing needs to be cut.
    whole: bool,
    blocks: u32,
}

impl Pieces {
    /// Cuts `bytes` into `blocks` (at least 1) blocks, and those into pieces of at most `segment` bytes.
    pub fn new(bytes: u64, blocks: u32, segment: Option<NonZeroU64>) -> Self {
        let smaller_block = bytes / u64::from(blocks);
        let larger_blocks = bytes % u64::from(blocks);
        let larger_block = smaller_block + u64::from(larger_blocks > 0);
        let whole = segment.is_none();
        let segment = segment.unwrap_or(NonZeroU64::MAX);
        Pieces {
            smaller_block,
            larger_block,
            larger_blocks,
            pieces_per_smaller_block: smaller_block.div_ceil(segment.get()),
            pieces_per_larger_block: larger_block.div_ceil(segment.get()),
            segment,
            whole,
            blocks,
        }
    }

    /// The pieces of consecutive blocks.
    pub fn of_blocks(&self, blocks: Range<u32>) -> Range<u64> {
        self.before_block(blocks.start)..self.before_block(blocks.end)
    }

    /// All pieces.
    pub fn all(&self) -> Range<u64> {
        self.of_blocks(0..self.blocks)
    }

    /// The number of pieces that a message may hold without exceeding the segment size.
    pub fn per_message(&self) -> u64 {
        if self.whole { u64::MAX } else { (self.segment.get() / self.larger_block.max(1)).max(1) }
    }

    /// True if nothing was asked to be cut: one message may take everything that goes the same way.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The bytes of consecutive pieces (at least one).
    pub fn bytes(&self, pieces: Range<u64>) -> Range<u64> {
        self.piece(pieces.start).start..self.piece(pieces.end - 1).end
    }

    fn before_block(&self, block: u32) -> u64 {
        let block = u64::from(block);
        let larger = block.min(self.larger_blocks);
        larger * self.pieces_per_larger_block + (block - larger) * self.pieces_per_smaller_block
    }

    fn piece(&self, piece: u64) -> Range<u64> {
        let in_larger_blocks = self.larger_blocks * self.pieces_per_larger_block;
        let (area_start, block_bytes, pieces_per_block, piece) = if piece < in_larger_blocks {
            (0, self.larger_block, self.pieces_per_larger_block, piece)
        } else {
            let area_start = self.larger_blocks * self.larger_block;
            (area_start, self.smaller_block, self.pieces_per_smaller_block, piece - in_larger_blocks)
        };
        let block_start = area_start + piece / pieces_per_block * block_bytes;
        let start = piece % pieces_per_block * self.segment.get();
        let end = start.saturating_add(self.segment.get()).min(block_bytes);
        block_start + start..block_start + end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(bytes: u64, blocks: u32, segment: u64) -> Pieces {
        Pieces::new(bytes, blocks, NonZeroU64::new(segment))
    }

    #[test]
    fn as_drawn() {
        let pieces = cut(22, 3, 3);
        assert_eq!(pieces.of_blocks(0..1), 0..3);
        assert_eq!(pieces.of_blocks(1..3), 3..9);
        let bytes: Vec<_> = pieces.all().map(|p| pieces.bytes(p..p + 1)).collect();
        assert_eq!(bytes, [0..3, 3..6, 6..8, 8..11, 11..14, 14..15, 15..18, 18..21, 21..22]);
    }

    #[test]
    fn without_a_segment_size_a_piece_is_a_block() {
        let pieces = cut(10, 4, 0);
        let bytes: Vec<_> = pieces.all().map(|p| pieces.bytes(p..p + 1)).collect();
        assert_eq!(bytes, [0..3, 3..6, 6..8, 8..10]);
        assert_eq!(pieces.per_message(), u64::MAX);
    }

    #[test]
    fn a_segment_that_holds_several_blocks_says_so() {
        assert_eq!(cut(100, 10, 35).per_message(), 3);
        assert_eq!(cut(101, 10, 10).per_message(), 1);
        assert_eq!(cut(0, 10, 7).per_message(), 7);
    }

    proptest! {
        #[test]
        fn pieces_cover_every_byte_once_and_respect_the_segment_size(
            bytes in prop_oneof![0u64..200, Just(u64::MAX), any::<u64>()],
            blocks in 1u32..50,
            segment in prop_oneof![0u64..40, (u64::MAX >> 3)..u64::MAX],
        ) {
            prop_assume!(segment == 0 || bytes / segment < 400);
            let pieces = cut(bytes, blocks, segment);
            let mut end = 0;
            for piece in pieces.all() {
                let range = pieces.bytes(piece..piece + 1);
                prop_assert!(range.start == end && range.end > end);
                prop_assert!(segment == 0 || range.end - range.start <= segment);
                end = range.end;
            }
            prop_assert_eq!(end, bytes);
            let mut next = 0;
            for block in 0..blocks {
                let of_block = pieces.of_blocks(block..block + 1);
                prop_assert_eq!(of_block.start, next);
                next = of_block.end;
            }
            prop_assert_eq!(next, pieces.all().end);
        }
    }
}
