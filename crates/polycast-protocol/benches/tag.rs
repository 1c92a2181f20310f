//! What a keyed tag costs per datagram, against its rivals: docs/decisions/0006-keyed-tag.md has the table.
//!
//! A datagram is a header of 24 bytes before the tag and a payload behind it: 1440 bytes fill an Ethernet frame, 68
//! are a short message, 2016 fill one of InfiniBand. At 1 Gb/s a full one is on the wire for 12 µs.

use std::hash::Hasher;
use std::hint::black_box;

use aes_gcm::{AeadInOut, Aes128Gcm};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyInit, KeyIvInit, StreamCipher};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use highway::{HighwayHash, HighwayHasher};
use poly1305::Poly1305;
use poly1305::universal_hash::UniversalHash;
use polycast_protocol::{KEY_BYTES, Key};
use siphasher::sip::{SipHasher13, SipHasher24};

const HEADER_BYTES: usize = 24;
const PAYLOADS: [usize; 3] = [68, 1440, 2016];
const SHORT_KEY: [u8; 16] = [7; 16];
const LONG_KEY: [u8; 32] = [7; 32];

type Parts<'a> = [&'a [u8]; 2];

fn sip(mut hasher: impl Hasher, parts: Parts<'_>) -> u64 {
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

fn highway(parts: Parts<'_>) -> u64 {
    let mut hasher = HighwayHasher::new(highway::Key([7; 4]));
    parts.iter().for_each(|part| hasher.append(part));
    hasher.finalize64()
}

fn blake3(parts: Parts<'_>) -> u8 {
    let mut hasher = blake3::Hasher::new_keyed(&LONG_KEY);
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize().as_bytes()[0]
}

/// Its interface takes one piece; a real one would have to put the parts together first.
fn gmac(cipher: &Aes128Gcm, datagram: &[u8]) -> u8 {
    let nothing: &mut [u8] = &mut [];
    cipher.encrypt_inout_detached(&[1; 12].into(), datagram, nothing.into()).expect("short enough")[0]
}

/// A key for each datagram, from its nonce.
fn poly1305(parts: Parts<'_>) -> u8 {
    let mut once = [0; 32];
    ChaCha20::new(&LONG_KEY.into(), &[1; 12].into()).apply_keystream(&mut once);
    let mut hash = Poly1305::new(&once.into());
    parts.iter().for_each(|part| hash.update_padded(part));
    hash.finalize()[0]
}

fn tags(criterion: &mut Criterion) {
    for payload_bytes in PAYLOADS {
        let datagram: Vec<u8> = (0..HEADER_BYTES + payload_bytes).map(|index| index as u8).collect();
        let parts: Parts<'_> = datagram.split_at(HEADER_BYTES).into();
        let key = Key::from_bytes([7; KEY_BYTES]);
        let cipher = Aes128Gcm::new(&SHORT_KEY.into());
        let mut group = criterion.benchmark_group(format!("tag of {} bytes", datagram.len()));
        group.throughput(Throughput::Bytes(datagram.len() as u64));
        group.bench_function("polyval + aes", |b| b.iter(|| key.tag(black_box(parts))));
        group.bench_function("gmac", |b| b.iter(|| gmac(&cipher, black_box(&datagram))));
        group.bench_function("siphash-1-3", |b| {
            b.iter(|| sip(SipHasher13::new_with_key(&SHORT_KEY), black_box(parts)));
        });
        group.bench_function("siphash-2-4", |b| {
            b.iter(|| sip(SipHasher24::new_with_key(&SHORT_KEY), black_box(parts)));
        });
        group.bench_function("highwayhash", |b| b.iter(|| highway(black_box(parts))));
        group.bench_function("chacha20 + poly1305", |b| b.iter(|| poly1305(black_box(parts))));
        group.bench_function("blake3", |b| b.iter(|| blake3(black_box(parts))));
        group.finish();
    }
}

criterion_group!(benches, tags);
criterion_main!(benches);
