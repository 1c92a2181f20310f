//! The segments of a stream whose blocks travel compressed. The length of such a segment is known
//! to the source alone, until it says so.
//!
//! ```text
//!   segment 0   lengths of 1 to 8                                          it has no blocks
//!   segment s   length of s + 8 │ lengths of its blocks │ their tags │ blocks, each packed or as it is
//! ```
//!
//! Who begins segment s + 8 has finished s on the same lane, and so knows how much memory it needs: never more than the blocks have bytes.

use std::ops::Range;

use super::{SEGMENTS_UNDER_WAY, Segments};
use crate::key::{TAG_BYTES, Tag};

const LENGTH_BYTES: usize = 4;

/// The segments of a stream whose blocks travel compressed; see the module.
#[derive(Clone, Copy, Debug)]
pub struct PackedSegments(Segments);

/// The contents of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Segments with their lengths.
    pub told: Vec<(u64, usize)>,
    /// Blocks with their tags, and where their bytes are in the segment.
    pub blocks: Vec<(u64, Tag, Range<usize>)>,
}

impl PackedSegments {
    /// The blocks of `segments`, packed.
    pub fn new(segments: Segments) -> PackedSegments {
        PackedSegments(segments)
    }

    /// Counts the segments, the first one without blocks included.
    pub fn count(&self) -> u64 {
        match self.0.count() {
            0 => 0,
            count => count + 1,
        }
    }

    /// The blocks of a segment: none for the first one, and none behind the last.
    pub fn blocks(&self, segment: u64) -> Range<u64> {
        segment
            .checked_sub(1)
            .map_or(self.0.first_block..self.0.first_block, |segment| self.0.blocks(segment))
    }

    /// The segments whose lengths stand in this one.
    pub fn told_by(&self, segment: u64) -> Range<u64> {
        let first = if segment == 0 { 1 } else { segment + SEGMENTS_UNDER_WAY };
        let count = self.count();
        first.min(count)..(segment + SEGMENTS_UNDER_WAY + 1).min(count)
    }

    fn head_bytes(&self, segment: u64) -> usize {
        let (told, blocks) = (self.told_by(segment), self.blocks(segment));
        let blocks = (blocks.end - blocks.start) as usize;
        (told.end - told.start) as usize * LENGTH_BYTES + blocks * (LENGTH_BYTES + TAG_BYTES)
    }

    /// The length in bytes of the first segment, which nobody says.
    pub fn first_bytes(&self) -> usize {
        self.head_bytes(0)
    }

    /// The length in bytes of a segment whose blocks travel as `blocks` bytes.
    pub fn bytes(&self, segment: u64, blocks: usize) -> usize {
        self.head_bytes(segment) + blocks
    }

    /// The lengths in bytes that a segment may have.
    fn possible_bytes(&self, segment: u64) -> std::ops::RangeInclusive<usize> {
        let (blocks, stream) = (self.blocks(segment), self.0.stream);
        let head = self.head_bytes(segment);
        let contents = stream.range(blocks.end).start - stream.range(blocks.start).start;
        head + (blocks.end - blocks.start) as usize..=head + contents as usize
    }

    /// A segment as it travels; `told` and `blocks` as [`PackedSegments::told_by`] and [`PackedSegments::blocks`] say.
    pub fn encode<'a>(
        &self,
        segment: u64,
        told: &[usize],
        blocks: impl Iterator<Item = (Tag, &'a [u8])> + Clone,
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes(segment, blocks.clone().map(|(_, it)| it.len()).sum()));
        let lengths = told.iter().copied().chain(blocks.clone().map(|(_, block)| block.len()));
        lengths.for_each(|length| bytes.extend((length as u32).to_le_bytes()));
        blocks.clone().for_each(|(tag, _)| bytes.extend(tag.as_bytes()));
        blocks.for_each(|(_, block)| bytes.extend(block));
        bytes
    }

    /// Reads a segment; `None` if it contradicts itself or the stream.
    pub fn decode(&self, segment: u64, bytes: &[u8]) -> Option<Packed> {
        let (told_by, numbers, stream) = (self.told_by(segment), self.blocks(segment), self.0.stream);
        let (head, _) = bytes.split_at_checked(self.head_bytes(segment))?;
        let (lengths, tags) = head.split_at(head.len() - (numbers.end - numbers.start) as usize * TAG_BYTES);
        let mut lengths =
            lengths.as_chunks::<LENGTH_BYTES>().0.iter().map(|it| u32::from_le_bytes(*it) as usize);
        let mut told = Vec::new();
        for other in told_by {
            let length = lengths.next()?;
            self.possible_bytes(other).contains(&length).then_some(())?;
            told.push((other, length));
        }
        let (mut at, mut blocks) = (head.len(), Vec::new());
        for ((block, length), tag) in numbers.zip(lengths).zip(tags.as_chunks::<TAG_BYTES>().0) {
            let whole = stream.range(block);
            (1..=whole.end - whole.start).contains(&(length as u64)).then_some(())?;
            blocks.push((block, Tag::from_bytes(*tag), at..at + length));
            at += length;
        }
        (at == bytes.len()).then_some(Packed { told, blocks })
    }
}

/// For fuzzers: any bytes as each of the segments of a short stream.
pub(crate) fn check_any_bytes(bytes: &[u8]) {
    // Two blocks in each, so that the heads are short.
    let block_bytes = 512 << 10;
    let stream = crate::Stream { bytes: 9 * u64::from(block_bytes) + 1, manifest_bytes: 1, block_bytes };
    let segments = PackedSegments(Segments::new(stream, 1));
    for segment in 0..=segments.count() {
        let Some(read) = segments.decode(segment, bytes) else { continue };
        assert!(
            read.blocks
                .iter()
                .all(|(.., range)| range.end <= bytes.len() && range.len() <= block_bytes as usize)
        );
        assert!(read.told.iter().all(|(_, bytes)| *bytes <= 2 * block_bytes as usize + 200));
        let told: Vec<usize> = read.told.iter().map(|(_, bytes)| *bytes).collect();
        let blocks = read.blocks.iter().map(|(_, tag, range)| (*tag, &bytes[range.clone()]));
        assert_eq!(segments.encode(segment, &told, blocks), bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Stream;

    proptest! {
        /// A source and a node that knows nothing but the stream, with blocks of any lengths.
        #[test]
        fn who_reads_one_segment_after_the_other_always_knows_the_next(
            bytes in 1u64..60_000,
            block_bytes in 1u32..9_000,
            first_block in 0u64..20,
            blocks_each in 1u64..5,
            seed: u64,
        ) {
            let stream = Stream { bytes, manifest_bytes: 1, block_bytes };
            let first_block = first_block.min(stream.blocks());
            let segments = PackedSegments(Segments { stream, first_block, blocks_each });
            let length = |block: u64| {
                let range = stream.range(block);
                (seed.wrapping_mul(block + 1) >> 7) % (range.end - range.start) + 1
            };
            let sent = |block: u64| (Tag::from_bytes([block as u8; TAG_BYTES]), vec![block as u8; length(block) as usize]);
            let of = |segment: u64| segments.blocks(segment).map(sent).collect::<Vec<_>>();
            let bytes_of = |segment: u64| segments.bytes(segment, of(segment).iter().map(|(_, bytes)| bytes.len()).sum());
            let mut known = vec![(0, segments.first_bytes())];
            let mut next = first_block;
            for segment in 0..segments.count() {
                let told: Vec<usize> = segments.told_by(segment).map(bytes_of).collect();
                let blocks = of(segment);
                let bytes = segments.encode(segment, &told, blocks.iter().map(|(tag, bytes)| (*tag, &bytes[..])));
                prop_assert_eq!(bytes.len(), bytes_of(segment));
                prop_assert!(known.contains(&(segment, bytes.len())), "segment {} was not told of", segment);
                let read = segments.decode(segment, &bytes).unwrap();
                for ((block, tag, range), (sent_tag, sent)) in read.blocks.iter().zip(&blocks) {
                    prop_assert_eq!((*block, tag, &bytes[range.clone()]), (next, sent_tag, &sent[..]));
                    next += 1;
                }
                prop_assert_eq!(read.blocks.len(), blocks.len());
                // Before segment s + 8 begins no more is known than s has told.
                prop_assert!(read.told.iter().all(|(other, _)| *other > segment && *other <= segment + SEGMENTS_UNDER_WAY));
                known.extend(read.told);
            }
            prop_assert_eq!(next, stream.blocks());
            prop_assert_eq!(segments.count() == 0, first_block == stream.blocks());
        }
    }

    #[test]
    fn lengths_have_limits() {
        let stream = Stream { bytes: 9 * 4_096 + 1, manifest_bytes: 1, block_bytes: 4_096 };
        let segments = PackedSegments(Segments { stream, first_block: 0, blocks_each: 2 });
        assert_eq!(segments.count(), 6);
        let head = 2 * (4 + TAG_BYTES);
        // Segment 0 tells of 1 to 5, which tell of none; the last of them has two blocks, one of a byte.
        for (first, is_good) in
            [(head + 1, false), (head + 2, true), (head + 8_192, true), (head + 8_193, false)]
        {
            let others = [head + 9; 4];
            let told: Vec<usize> = [first].into_iter().chain(others).collect();
            let bytes = segments.encode(0, &told, std::iter::empty());
            assert_eq!(segments.decode(0, &bytes).is_some(), is_good, "{first}");
        }
        for (lengths, is_good) in
            [([1, 1], true), ([4_096, 4_096], true), ([0, 1], false), ([1, 4_097], false)]
        {
            let blocks = lengths.map(|length| vec![7; length]);
            let blocks = blocks.iter().map(|block| (Tag::from_bytes([3; TAG_BYTES]), &block[..]));
            let bytes = segments.encode(2, &[], blocks);
            assert_eq!(segments.decode(2, &bytes).is_some(), is_good, "{lengths:?}");
            for length in 0..bytes.len() {
                assert_eq!(segments.decode(2, &bytes[..length]), None);
            }
        }
    }
}
