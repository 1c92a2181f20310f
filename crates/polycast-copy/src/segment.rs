//! The stream as messages of the multicast: a few blocks each, in front of which their tags stand.

mod packed;

use std::ops::Range;

pub(crate) use packed::check_any_bytes as check_any_packed_bytes;
pub use packed::{Packed, PackedSegments};

use crate::key::TAG_BYTES;
use crate::layout::Stream;

/// Segments by which the source may be ahead of the node that finishes last. A node whose repairs
/// take long then holds nobody up for a while.
pub const SEGMENTS_UNDER_WAY: u64 = 8;
/// Segments by which the source may be ahead of the node that reads slowest. Receivers' buffers of
/// 4 MiB have room for them.
pub const SEGMENTS_UNREAD: u64 = 4;
/// Nodes that report to one node of the tree.
const FAN_IN: u32 = 16;
/// Bytes of a segment, unless a block is longer.
const SEGMENT_BYTES: u64 = 1 << 20;

/// The places right below a place in the tree by which all of a ring tell the source how many
/// segments are over. The source has place 0.
pub fn places_below(place: u32, nodes: u32) -> Range<u32> {
    let at = |place: u32| place.saturating_mul(FAN_IN).saturating_add(1).min(nodes);
    at(place)..at(place.saturating_add(1))
}

/// The place above one that is not the source's.
pub fn place_above(place: u32) -> u32 {
    place.saturating_sub(1) / FAN_IN
}

/// The segments of a stream behind what all have.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    stream: Stream,
    first_block: u64,
    blocks_each: u64,
}

impl Segments {
    /// The segments of `stream` from block `first_block` on.
    pub fn new(stream: Stream, first_block: u64) -> Segments {
        let blocks_each = (SEGMENT_BYTES / u64::from(stream.block_bytes)).max(1);
        Segments { stream, first_block: first_block.min(stream.blocks()), blocks_each }
    }

    /// Counts the segments.
    pub fn count(&self) -> u64 {
        (self.stream.blocks() - self.first_block).div_ceil(self.blocks_each)
    }

    /// The blocks of a segment: at least one, and none for a segment behind the last.
    pub fn blocks(&self, segment: u64) -> Range<u64> {
        let at = |segment: u64| (self.first_block + segment * self.blocks_each).min(self.stream.blocks());
        at(segment)..at(segment + 1)
    }

    /// Blocks by which the source may be ahead of the node that reads slowest.
    pub fn blocks_unread(&self) -> u64 {
        self.blocks_each * SEGMENTS_UNREAD
    }

    /// The length of a segment in bytes, tags included.
    pub fn bytes(&self, segment: u64) -> usize {
        let blocks = self.blocks(segment);
        let contents = self.stream.range(blocks.end).start - self.stream.range(blocks.start).start;
        contents as usize + (blocks.end - blocks.start) as usize * TAG_BYTES
    }

    /// The blocks of a segment, each with the places of its tag and of its bytes in the segment.
    pub fn places(&self, segment: u64) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> + use<> {
        let (blocks, stream) = (self.blocks(segment), self.stream);
        let tags = (blocks.end - blocks.start) as usize * TAG_BYTES;
        let (first, begin) = (blocks.start, stream.range(blocks.start).start);
        blocks.map(move |block| {
            let tag = (block - first) as usize * TAG_BYTES;
            let bytes = stream.range(block);
            let at = |byte: u64| tags + (byte - begin) as usize;
            (block, tag..tag + TAG_BYTES, at(bytes.start)..at(bytes.end))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_place_is_below_one() {
        for nodes in [2, 16, 17, 18, 300] {
            let mut above = vec![None; nodes as usize];
            for place in 0..nodes {
                for below in places_below(place, nodes) {
                    assert_eq!(above[below as usize].replace(place), None);
                    assert_eq!(place_above(below), place);
                }
            }
            assert_eq!(above.iter().filter(|above| above.is_none()).count(), 1, "the source");
            assert!(
                above.iter().flatten().zip(1..).all(|(above, below)| *above < below),
                "it leads to the source"
            );
        }
    }

    proptest! {
        #[test]
        fn every_block_is_in_one_segment_and_has_its_place(
            bytes in 1u64..9_000_000,
            block_bytes in prop::sample::select(vec![4_096u32, 65_536, 1 << 20, 3 << 20]),
            first in 0u64..2_000,
        ) {
            let stream = Stream { bytes, manifest_bytes: 1, block_bytes };
            let segments = Segments::new(stream, first);
            let mut next = first.min(stream.blocks());
            for segment in 0..segments.count() {
                let (mut tags, mut contents) = (0, None);
                for (block, tag, range) in segments.places(segment) {
                    prop_assert_eq!(block, next);
                    prop_assert_eq!((tag.start, tag.len()), (tags, TAG_BYTES));
                    prop_assert_eq!(range.start, contents.unwrap_or(range.start));
                    prop_assert_eq!(range.len() as u64, stream.range(block).end - stream.range(block).start);
                    (next, tags, contents) = (next + 1, tag.end, Some(range.end));
                }
                prop_assert_eq!(contents, Some(segments.bytes(segment)));
                prop_assert_eq!(segments.places(segment).next().unwrap().2.start, tags);
            }
            prop_assert_eq!(next, stream.blocks());
            prop_assert!(segments.blocks(segments.count()).is_empty());
        }
    }
}
