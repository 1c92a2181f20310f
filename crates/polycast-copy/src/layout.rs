use std::ops::Range;

use crate::manifest::{Kind, Manifest};

/// The stream: the manifest and behind it all contents, cut into blocks of one size; the last may
/// be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The length of manifest and contents together.
    pub bytes: u64,
    /// The length of the manifest.
    pub manifest_bytes: u64,
    /// The length of a block; at least 1.
    pub block_bytes: u32,
}

impl Stream {
    /// Counts the blocks.
    pub fn blocks(&self) -> u64 {
        self.bytes.div_ceil(self.block_bytes.into())
    }

    /// The bytes of a block.
    pub fn range(&self, block: u64) -> Range<u64> {
        let at = |block: u64| block.saturating_mul(self.block_bytes.into()).min(self.bytes);
        at(block)..at(block + 1)
    }

    /// Counts the blocks that are whole in the first `bytes` bytes of the stream.
    pub fn blocks_in(&self, bytes: u64) -> u64 {
        if bytes >= self.bytes { self.blocks() } else { bytes / u64::from(self.block_bytes) }
    }
}

/// An extent of a file and its place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The place in the stream where the extent begins, bytes.
    pub at: u64,
    /// The extent's length.
    pub bytes: u64,
    /// The file's entry in the manifest.
    pub entry: u32,
    /// The place in the file where the extent begins, bytes.
    pub file_at: u64,
}

/// A part of the stream that lies in the manifest or in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of the manifest.
    Manifest {
        /// The place in the manifest where the bytes begin.
        at: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Bytes of a file.
    File {
        /// The entry of the manifest.
        entry: u32,
        /// The place in the file where the bytes begin.
        at: u64,
        /// The number of bytes.
        bytes: u64,
    },
}

impl Part {
    /// The number of bytes in the part.
    pub fn bytes(&self) -> u64 {
        match self {
            Part::Manifest { bytes, .. } | Part::File { bytes, .. } => *bytes,
        }
    }
}

/// The places of the files' contents in the stream.
#[derive(Clone, Debug)]
pub struct Layout {
    manifest_bytes: u64,
    bytes: u64,
    pieces: Vec<Piece>,
}

impl Layout {
    /// The layout of a copy whose encoded manifest takes `manifest_bytes` bytes.
    pub fn new(manifest: &Manifest, manifest_bytes: u64) -> Layout {
        let mut at = manifest_bytes;
        let mut pieces = Vec::new();
        for (entry, described) in manifest.entries().iter().enumerate() {
            let Kind::File { extents, .. } = &described.kind else { continue };
            for extent in extents {
                pieces.push(Piece { at, bytes: extent.bytes, entry: entry as u32, file_at: extent.at });
                at += extent.bytes;
            }
        }
        Layout { manifest_bytes, bytes: at, pieces }
    }

    /// The stream of this layout, cut into blocks of `block_bytes` bytes.
    pub fn stream(&self, block_bytes: u32) -> Stream {
        Stream { bytes: self.bytes, manifest_bytes: self.manifest_bytes, block_bytes }
    }

    /// The parts that a range of the stream is made of, in order.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Part> + '_ {
        let manifest = range.start..range.end.min(self.manifest_bytes);
        let manifest = (!manifest.is_empty())
            .then(|| Part::Manifest { at: manifest.start, bytes: manifest.end - manifest.start });
        let first = self.pieces.partition_point(|piece| piece.at + piece.bytes <= range.start);
        let end = range.end;
        let files = self.pieces[first..].iter().take_while(move |piece| piece.at < end).map(move |piece| {
            let from = piece.at.max(range.start);
            let to = (piece.at + piece.bytes).min(end);
            Part::File { entry: piece.entry, at: piece.file_at + (from - piece.at), bytes: to - from }
        });
        manifest.into_iter().chain(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Entry, Extent, Moment};
    use crate::name::Name;
    use proptest::prelude::*;

    fn manifest(files: &[Vec<(u64, u64)>]) -> Manifest {
        let mut manifest = Manifest::default();
        for (number, extents) in files.iter().enumerate() {
            let mut end = 0;
            let extents: Vec<Extent> = extents
                .iter()
                .map(|(hole, bytes)| {
                    let at = end + hole;
                    end = at + bytes;
                    Extent { at, bytes: *bytes }
                })
                .collect();
            let name = Name::new(number.to_string().as_bytes()).unwrap();
            let modified = Moment::default();
            let kind = Kind::File { bytes: end + 1, extents };
            manifest.add(Entry { parent: None, name, mode: 0, modified, kind }).unwrap();
        }
        manifest
    }

    #[test]
    fn blocks_cover_the_stream() {
        let stream = Stream { bytes: 10, manifest_bytes: 3, block_bytes: 4 };
        assert_eq!(stream.blocks(), 3);
        assert_eq!([0, 1, 2, 3].map(|block| stream.range(block)), [0..4, 4..8, 8..10, 10..10]);
        assert_eq!([0, 3, 4, 9, 10, 11].map(|bytes| stream.blocks_in(bytes)), [0, 0, 1, 2, 3, 3]);
    }

    proptest! {
        #[test]
        fn every_byte_has_one_place(
            files in prop::collection::vec(prop::collection::vec((1u64..9, 1u64..40), 0..4), 0..6),
            manifest_bytes in 1u64..30,
            block_bytes in 1u32..50,
        ) {
            let manifest = manifest(&files);
            let layout = Layout::new(&manifest, manifest_bytes);
            let stream = layout.stream(block_bytes);
            let by_block: Vec<Part> = (0..stream.blocks()).flat_map(|b| layout.parts(stream.range(b))).collect();
            let whole: Vec<Part> = layout.parts(0..stream.bytes).collect();
            // The same bytes, one by one, however it is cut.
            let bytes = |parts: &[Part]| {
                parts.iter().flat_map(|part| match *part {
                    Part::Manifest { at, bytes } => (at..at + bytes).map(|at| (u32::MAX, at)).collect::<Vec<_>>(),
                    Part::File { entry, at, bytes } => (at..at + bytes).map(|at| (entry, at)).collect(),
                }).collect::<Vec<_>>()
            };
            prop_assert_eq!(bytes(&by_block), bytes(&whole));
            let mut expected: Vec<(u32, u64)> = (0..manifest_bytes).map(|at| (u32::MAX, at)).collect();
            for (entry, described) in manifest.entries().iter().enumerate() {
                if let Kind::File { extents, .. } = &described.kind {
                    expected.extend(extents.iter().flat_map(|e| (e.at..e.at + e.bytes).map(|at| (entry as u32, at))));
                }
            }
            prop_assert_eq!(bytes(&whole), expected);
        }
    }
}
