//! A node's knowledge of segments whose blocks travel compressed: the lengths of the next ones, and
//! at the source their blocks.

use std::collections::VecDeque;
use std::sync::Arc;

use polycast_copy::{PackedSegments, SEGMENTS_UNDER_WAY, Tag};

use super::backing::BlockReader;
use super::group::Member;
use super::lane::Broken;
use super::serve::fetch_to_send;
use super::store::Block;

const LANES: usize = SEGMENTS_UNDER_WAY as usize;

/// The lengths of the next segments, and at the source their blocks, where blocks travel
/// compressed.
pub struct Packing {
    pub segments: PackedSegments,
    /// The length in bytes of the next segment on each lane; 0 if it has not been told.
    next_bytes: [usize; LANES],
    /// The source's blocks of segments whose lengths it has told, and which have not begun.
    read: VecDeque<Vec<(Tag, Arc<Block>)>>,
}

impl Packing {
    pub fn new(segments: PackedSegments) -> Packing {
        let mut next_bytes = [0; LANES];
        next_bytes[0] = segments.first_bytes();
        Packing { segments, next_bytes, read: VecDeque::new() }
    }

    /// The length in bytes of a segment that is the next one on its lane; `None` while that is
    /// unknown.
    pub fn bytes(&self, segment: u64) -> Option<usize> {
        Some(self.next_bytes[segment as usize % LANES]).filter(|bytes| *bytes > 0)
    }

    /// Notes the lengths of segments to come, each with its number, that a segment here has told.
    pub fn told(&mut self, told: &[(u64, usize)]) {
        for (segment, bytes) in told {
            self.next_bytes[*segment as usize % LANES] = *bytes;
        }
    }

    /// A segment as the source sends it; they come in their order. Reads on until it knows the lengths that stand in it.
    pub fn write(&mut self, segment: u64, member: &Member) -> Result<Vec<u8>, Broken> {
        let mut told = Vec::new();
        for later in self.segments.told_by(segment) {
            let blocks = self.read_blocks(later, member)?;
            let bytes = blocks.iter().map(|(_, block)| block.as_sent().len()).sum();
            told.push(self.segments.bytes(later, bytes));
            self.read.push_back(blocks);
        }
        let blocks = if segment == 0 { Vec::new() } else { self.read.pop_front().ok_or(Broken)? };
        Ok(self.segments.encode(segment, &told, blocks.iter().map(|(tag, block)| (*tag, block.as_sent()))))
    }

    fn read_blocks(&self, segment: u64, member: &Member) -> Result<Vec<(Tag, Arc<Block>)>, Broken> {
        let blocks = self.segments.blocks(segment);
        member.store.want(blocks.end);
        let mut reader: Option<BlockReader<'_>> = None;
        let mut read = Vec::new();
        for block in blocks {
            read.push(fetch_to_send(block, member, &mut reader)?);
        }
        Ok(read)
    }
}
