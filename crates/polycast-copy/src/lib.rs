//! The part of `polycast cp` that touches no file, socket or clock: the same files on many nodes.
//!
//! ```text
//!   files ─scan─▶ manifest ─▶ layout       which bytes of the stream are which bytes of which file
//!                               │
//!                    stream: manifest, then contents, cut into blocks of one size
//!                               │          key: a tag for every block, a proof for every connection
//!                               ▼
//!        source ──▶ node ──▶ node ──▶ …    wire: what a connection carries; pack: blocks that travel compressed
//!                    fleet: who takes blocks from whom; slow and dead nodes are gone around
//!
//!        source ══▶ all nodes          by multicast: segments, the messages of `polycast-protocol`
//!        source ◀─▶ node ◀─▶ node …    frames: its messages; and up a tree who has what
//! ```
//!
//! A node holds a prefix of the stream. It asks another one for the blocks behind that, and gives what it has to whoever
//! asks; so going around a node, catching up and going on after an interruption are the same: another one is asked.
#![forbid(unsafe_code)]

mod bytes;
mod fleet;
mod frame;
mod key;
mod layout;
mod manifest;
mod name;
mod pack;
mod segment;
mod sum;
mod wire;

pub use fleet::{Fleet, Order, Ring, SOURCE, Standing, Trouble, best_fanout};
pub use frame::{BadFrame, Frame, MAX_FRAME_BYTES, Reached};
pub use key::{Digest, KEY_BYTES, Key, TAG_BYTES, Tag};
pub use layout::{Layout, Part, Piece, Stream};
pub use manifest::{Entry, Extent, Kind, MAX_ENTRIES, Manifest, ManifestError, Moment};
pub use name::{MAX_NAME_BYTES, Name};
pub use pack::{BadPack, pack, unpack};
pub use segment::{
    Packed, PackedSegments, SEGMENTS_UNDER_WAY, SEGMENTS_UNREAD, Segments, place_above, places_below,
};
pub use sum::sum;
pub use wire::{
    BLOCK_HEADER_BYTES, BlockHeader, CONFIRMATION, GREETING_BYTES, Greeting, MAX_BLOCK_BYTES,
    MIN_BLOCK_BYTES, NONCE_BYTES, PROOF_BYTES, Purpose, REQUEST_BYTES, Request, of_place_in_ring,
    place_in_ring,
};

/// Reads any bytes as a block that travels compressed and as segments of such blocks, and panics if
/// what comes out breaks a rule; for fuzzers.
pub fn check_any_packed_bytes(bytes: &[u8]) {
    pack::check_any_bytes(bytes);
    segment::check_any_packed_bytes(bytes);
}

/// Reads any bytes as a manifest, a block's header, a frame and a request, and panics if what comes
/// out breaks a rule; for fuzzers.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        let written = manifest.encode();
        assert_eq!(Manifest::decode(&written).as_ref(), Ok(&manifest));
        let layout = Layout::new(&manifest, written.len() as u64);
        let stream = layout.stream(MIN_BLOCK_BYTES);
        for block in (0..stream.blocks()).take(64) {
            let range = stream.range(block);
            let pieces = layout.parts(range.clone()).map(|part| part.bytes()).sum::<u64>();
            assert_eq!(pieces, range.end - range.start);
        }
    }
    if let Some(header) = bytes.first_chunk().and_then(BlockHeader::decode) {
        assert!(header.bytes <= MAX_BLOCK_BYTES);
        assert_eq!(Some(&header.encode()), bytes.first_chunk());
    }
    if let Ok(Some((frame, taken))) = Frame::decode(bytes) {
        let mut written = Vec::new();
        frame.encode(&mut written);
        assert_eq!(written, bytes[..taken]);
    }
    // A fuzzer does not find proofs: nobody without the key is served.
    let greeting = Greeting { nonce: [1; NONCE_BYTES] };
    let asked = bytes
        .first_chunk()
        .and_then(|bytes| Request::decode(bytes, &greeting, &Key::from_bytes([7; KEY_BYTES])));
    assert_eq!(asked, None);
}
