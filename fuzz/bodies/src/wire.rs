//! What comes from a network: datagrams, messages of other ranks, packets of a MADCAP server or client.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use polycast_madcap::{Event, Server};
use polycast_protocol::message::{self, Body};
use polycast_protocol::wire::{HEADER_BYTES, Reject, open, seal};
use polycast_protocol::{KEY_BYTES, Key, Run, read_done, read_request};

/// The job and key under which the datagrams of the corpus are sealed.
pub(crate) const JOB: u32 = 0x6a6f_6231;
const TAG_AT: usize = 24;

pub(crate) fn key() -> Key {
    Key::from_bytes([0x5a; KEY_BYTES])
}

/// A datagram: whatever is accepted is what a holder of the key would have written, byte for byte.
///
/// A fuzzer does not find tags, so the bytes are tried a second time with the right one put in.
pub fn datagram(bytes: &[u8]) {
    let key = key();
    accepted_is_sealed(bytes, &key);
    if bytes.len() < HEADER_BYTES {
        assert_eq!(open(bytes, JOB, &key), Err(Reject::Short));
        return;
    }
    let mut tagged = bytes.to_vec();
    tagged[4..8].copy_from_slice(&JOB.to_le_bytes());
    let tag = key.tag([&tagged[..TAG_AT], &tagged[HEADER_BYTES..]]);
    tagged[TAG_AT..HEADER_BYTES].copy_from_slice(&tag.to_le_bytes());
    accepted_is_sealed(&tagged, &key);
    assert!(!matches!(open(&tagged, JOB, &key), Err(Reject::Forged | Reject::Foreign | Reject::Short)));
    assert_eq!(open(&tagged, JOB + 1, &key), Err(Reject::Foreign));
    tagged[TAG_AT] ^= 1;
    assert_eq!(open(&tagged, JOB, &key), Err(Reject::Forged));
}

fn accepted_is_sealed(datagram: &[u8], key: &Key) {
    if let Ok((header, payload)) = open(datagram, JOB, key) {
        payload_is_read(payload);
        let mut sealed = Vec::new();
        seal(&header, payload, key, &mut sealed);
        assert_eq!(sealed, datagram);
    }
}

/// Of a request or a done.
fn payload_is_read(payload: &[u8]) {
    if let Some(runs) = read_request(payload) {
        let again = runs.iter().flat_map(|run| [run.first, run.count]).flat_map(u32::to_le_bytes);
        assert!(again.eq(payload.iter().copied()));
    }
    assert!(read_done(payload).is_none_or(|sent| sent.to_le_bytes() == payload));
}

/// A message between ranks: what is decoded has no more runs than it has bytes for, and is decoded again from how it is
/// written.
pub fn message(bytes: &[u8]) {
    let Some((header, body)) = message::decode(bytes) else { return };
    let mut again = Vec::new();
    match body {
        Body::Fragments(runs, payload) => {
            assert!(runs.iter().count() * 8 + payload.len() <= bytes.len());
            return;
        }
        Body::Request(runs) => {
            let runs: Vec<Run> = runs.iter().collect();
            assert!(runs.len() * 8 <= bytes.len());
            message::encode_request(&header, &runs, &mut again);
        }
        Body::End => message::encode_end(&header, &mut again),
        Body::LossProbe => message::encode_loss_probe(&header, &mut again),
        Body::Deaf => message::encode_deaf(&header, &mut again),
        Body::Failed => message::encode_failed(&header, &mut again),
        Body::Done => message::encode_done(&header, &mut again),
        Body::Bye => message::encode_bye(&header, &mut again),
        Body::Arrived(report) => message::encode_arrived(&header, &report, &mut again),
    }
    assert_eq!(message::decode(&again), Some((header, body)));
}

/// A server that gets the packet twice, and once more when all leases have ended: its leases stay within its pool.
pub(crate) fn madcap_server(packet: &[u8]) {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let pool = "239.192.0.0/30".parse().expect("a scope");
    let mut server = Server::new(address, pool, Duration::from_secs(60)).expect("a server");
    for seconds in [0, 1, 1000] {
        let (reply, event) = server.handle(Duration::from_secs(seconds), packet);
        assert!(server.leases() <= 1, "one client, one lease");
        let is_silent = matches!(event, Event::Undecodable(_) | Event::NotForUs);
        assert!(reply.is_none() || !is_silent, "{event:?} is answered");
        if let Some(reply) = reply {
            polycast_madcap::check_any_bytes(&reply);
            assert_eq!(
                server.handle(Duration::from_secs(seconds), &reply).0,
                None,
                "answers are not answered"
            );
        }
    }
}
