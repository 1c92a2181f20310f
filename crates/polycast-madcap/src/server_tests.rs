use proptest::prelude::*;

use super::*;
use polycast_net::Family;

const HOUR: Duration = Duration::from_secs(3_600);

fn server(pool: &str) -> Server {
    Server::new("10.0.0.1".parse().unwrap(), pool.parse().unwrap(), HOUR).unwrap()
}

fn message(kind: Kind, id: &[u8]) -> Message {
    Message { lease: LeaseId::new(id), ..Message::new(kind, Family::V4, 7) }
}

/// The reply, and what happened.
fn ask(server: &mut Server, seconds: u64, request: &Message) -> (Message, Event) {
    let (reply, event) = server.handle(Duration::from_secs(seconds), &request.encode());
    (Message::decode(&reply.expect("an answer")).unwrap(), event)
}

fn address(server: &mut Server, seconds: u64, id: &[u8]) -> Option<String> {
    ask(server, seconds, &message(Kind::Request, id)).0.address.map(|a| a.to_string())
}

#[test]
fn every_address_of_the_pool_is_given_once_and_then_none() {
    let mut server = server("239.192.0.0/30");
    let given: Vec<_> = (0..4).map(|id| address(&mut server, 0, &[id]).unwrap()).collect();
    assert_eq!(given, ["239.192.0.0", "239.192.0.1", "239.192.0.2", "239.192.0.3"]);
    let (reply, event) = ask(&mut server, 0, &message(Kind::Request, &[9]));
    assert_eq!((reply.kind, reply.error), (Kind::Nak, Some(NakCode::NotCompleted)));
    assert_eq!(event, Event::Refused(NakCode::NotCompleted));
}

#[test]
fn a_request_that_comes_twice_gets_the_same_address() {
    let mut server = server("239.192.0.0/24");
    let first = address(&mut server, 0, b"a");
    assert_eq!(address(&mut server, 1, b"a"), first);
    assert_ne!(address(&mut server, 1, b"b"), first);
    assert_eq!(server.leases(), 2);
}

#[test]
fn a_lease_ends_unless_it_is_renewed() {
    let mut server = server("239.192.0.0/31");
    let (reply, _) = ask(&mut server, 0, &message(Kind::Request, b"renewed"));
    assert_eq!(reply.lease_seconds, Some(3_600));
    address(&mut server, 0, b"forgotten");
    let (reply, event) = ask(&mut server, 3_599, &message(Kind::Renew, b"renewed"));
    assert_eq!(reply.kind, Kind::Ack);
    assert!(matches!(event, Event::Renewed { lease: HOUR, .. }), "{event:?}");
    assert_eq!(address(&mut server, 3_599, b"new"), None);
    assert_eq!(address(&mut server, 3_600, b"new").as_deref(), Some("239.192.0.1"));
    let (reply, _) = ask(&mut server, 3_600, &message(Kind::Renew, b"forgotten"));
    assert_eq!(reply.error, Some(NakCode::UnknownLease));
}

#[test]
fn a_released_address_is_free_but_not_given_at_once() {
    let mut server = server("239.192.0.0/30");
    assert_eq!(address(&mut server, 0, b"a").unwrap(), "239.192.0.0");
    let (reply, event) = ask(&mut server, 1, &message(Kind::Release, b"a"));
    assert_eq!(reply.kind, Kind::Ack);
    assert_eq!(event, Event::Released { address: "239.192.0.0".parse().unwrap() });
    let later: Vec<_> = (0..4).map(|id| address(&mut server, 2, &[id]).unwrap()).collect();
    assert_eq!(later, ["239.192.0.1", "239.192.0.2", "239.192.0.3", "239.192.0.0"]);
    let (reply, _) = ask(&mut server, 3, &message(Kind::Release, b"a"));
    assert_eq!(reply.error, Some(NakCode::UnknownLease));
}

#[test]
fn a_client_gets_the_lease_time_it_wishes_up_to_the_limit() {
    let mut server = server("239.192.0.0/24");
    for (id, wish, got) in
        [(1, 60, 60), (2, 3_600, 3_600), (3, 3_601, 3_600), (4, u32::MAX, 3_600), (5, 0, 1)]
    {
        let request = Message { lease_seconds: Some(wish), ..message(Kind::Request, &[id]) };
        assert_eq!(ask(&mut server, 0, &request).0.lease_seconds, Some(got));
    }
}

#[test]
fn what_the_pool_does_not_have_is_refused() {
    let mut server = server("239.192.7.0/24");
    let request = message(Kind::Request, b"a");
    let with_scope = |scope: &str| Message { scope: Some(scope.parse().unwrap()), ..request };
    for (wrong, code) in [
        (with_scope("239.255.0.0"), NakCode::Invalid),
        (Message { family: Family::V6, ..request }, NakCode::Invalid),
        (Message { lease: None, ..request }, NakCode::Invalid),
        (Message { addresses_wanted: Some(2), ..request }, NakCode::NotCompleted),
        (message(Kind::GetInfo, b"a"), NakCode::UnsupportedFeature),
    ] {
        assert_eq!(ask(&mut server, 0, &wrong).0.error, Some(code), "{wrong:?}");
    }
    assert_eq!(server.leases(), 0);
    for scope in ["239.192.0.0", "239.192.7.0"] {
        assert_eq!(ask(&mut server, 0, &with_scope(scope)).0.kind, Kind::Ack);
    }
}

#[test]
fn what_is_not_for_the_server_gets_no_answer() {
    let mut server = server("239.192.0.0/24");
    let elsewhere = Message { server: Some("10.0.0.2".parse().unwrap()), ..message(Kind::Request, b"a") };
    for silent in [elsewhere, message(Kind::Ack, b"a"), message(Kind::Nak, b"a"), message(Kind::Offer, b"a")]
    {
        assert_eq!(server.handle(HOUR, &silent.encode()), (None, Event::NotForUs));
    }
    assert_eq!(server.handle(HOUR, b"hello"), (None, Event::Undecodable(DecodeError::CutOff)));
    assert_eq!(server.leases(), 0);
}

#[test]
fn whoever_looks_for_a_server_gets_an_offer_and_nothing_is_reserved() {
    let mut server = server("239.192.0.0/32");
    let (reply, event) = ask(&mut server, 0, &message(Kind::Discover, b"a"));
    assert_eq!((reply.kind, reply.lease_seconds, event), (Kind::Offer, Some(3_600), Event::Offered));
    assert!(address(&mut server, 0, b"b").is_some());
    assert_eq!(ask(&mut server, 0, &message(Kind::Discover, b"a")).0.kind, Kind::Nak);
}

#[test]
fn settings_beyond_the_limits_are_refused() {
    let of =
        |pool: &str, lease| Server::new("10.0.0.1".parse().unwrap(), pool.parse().unwrap(), lease).map(drop);
    let month = 30 * 24 * HOUR;
    assert_eq!(of("239.192.0.0/16", month), Ok(()));
    assert_eq!(of("239.192.0.0/15", HOUR), Err(ServerError::Pool(131_072)));
    assert_eq!(of("239.192.0.0/24", Duration::ZERO), Err(ServerError::Lease(Duration::ZERO)));
    assert!(of("239.192.0.0/24", month + Duration::from_secs(1)).is_err());
}

proptest! {
    /// Invariants 1 to 3, whatever clients do and however time passes.
    #[test]
    fn the_invariants_hold(steps in prop::collection::vec((1_u8..=8, 0_u8..12, 0_u64..2_000, 0_u32..4_000), 0..200)) {
        let mut server = server("239.192.0.0/29");
        let mut now = 0;
        for (kind, id, pause, wish) in steps {
            now += pause;
            let mut packet = Message { lease_seconds: Some(wish), ..message(Kind::Request, &[id]) }.encode();
            packet[1] = kind;
            server.handle(Duration::from_secs(now), &packet);
            let offsets: HashSet<u32> = server.leases.values().map(|held| held.offset).collect();
            prop_assert_eq!(offsets.len(), server.leases.len());
            prop_assert_eq!(&offsets, &server.taken);
            let ends: BTreeSet<_> = server.leases.iter().map(|(id, held)| (held.end, *id)).collect();
            prop_assert_eq!(&ends, &server.ends);
            prop_assert!(server.leases.len() <= 8);
            prop_assert!(server.ends.iter().all(|(end, _)| *end > Duration::from_secs(now)));
        }
    }
}
