use proptest::prelude::*;

use super::*;
use crate::check_any_bytes;

fn kinds() -> impl Strategy<Value = Kind> {
    (1_u8..=8).prop_map(|code| kind_of(code).unwrap())
}

fn address(family: Family) -> BoxedStrategy<IpAddr> {
    match family {
        Family::V4 => any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()).boxed(),
        Family::V6 => any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()).boxed(),
    }
}

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![Just(Family::V4), Just(Family::V6)].prop_flat_map(|family| {
        let server = prop_oneof![address(Family::V4), address(Family::V6)];
        let lease = prop::collection::vec(any::<u8>(), 1..=LeaseId::MAX_BYTES);
        let numbers = (any::<u32>(), any::<Option<u32>>(), any::<Option<u16>>(), any::<Option<u16>>());
        let addresses =
            (prop::option::of(server), prop::option::of(address(family)), prop::option::of(address(family)));
        (kinds(), numbers, addresses, prop::option::of(lease)).prop_map(
            move |(kind, (xid, lease_seconds, addresses_wanted, error), (server, scope, address), lease)| {
                Message {
                    kind,
                    family,
                    xid,
                    lease_seconds,
                    server,
                    lease: lease.and_then(|bytes| LeaseId::new(&bytes)),
                    scope,
                    addresses_wanted,
                    address,
                    error: error.map(NakCode::from_code),
                }
            },
        )
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(message in messages()) {
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn every_truncation_is_noticed(message in messages(), cut: prop::sample::Index) {
        let bytes = message.encode();
        let shorter = &bytes[..cut.index(bytes.len())];
        prop_assert_eq!(Message::decode(shorter), Err(DecodeError::CutOff));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_any_bytes(&bytes);
    }

    #[test]
    fn damaged_messages_are_decoded_or_refused(
        message in messages(),
        at: prop::sample::Index,
        value: u8,
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = message.encode();
        let at = at.index(bytes.len());
        bytes[at] = value;
        bytes.extend(tail);
        check_any_bytes(&bytes);
    }
}

/// Written by hand from the figures of RFC 2730.
#[test]
fn a_request_is_laid_out_as_the_standard_says() {
    let request = Message {
        lease_seconds: Some(3_600),
        lease: LeaseId::new(b"id"),
        scope: Some("239.192.0.0".parse().unwrap()),
        ..Message::new(Kind::Request, Family::V4, 0x0102_0304)
    };
    #[rustfmt::skip]
    let expected = [
        0, 3, 0, 1, 1, 2, 3, 4,
        0, 1, 0, 4, 0, 0, 14, 16,
        0, 3, 0, 2, b'i', b'd',
        0, 4, 0, 4, 239, 192, 0, 0,
        0, 0, 0, 0,
    ];
    assert_eq!(request.encode(), expected);
}

#[test]
fn an_ack_with_several_ranges_and_unknown_options_is_understood() {
    #[rustfmt::skip]
    let bytes = [
        0, 5, 0, 1, 0, 0, 0, 9,
        0, 2, 0, 6, 0, 1, 10, 0, 0, 1,              // server
        0, 99, 0, 3, 1, 2, 3,                       // unknown
        0, 10, 0, 12, 239, 192, 0, 1, 0, 0,         // a range without addresses,
        239, 192, 0, 7, 0, 4,                       // and one with four
        0, 0, 0, 0,
        42,                                         // behind the end
    ];
    let message = Message::decode(&bytes).unwrap();
    assert_eq!(message.server, Some("10.0.0.1".parse().unwrap()));
    assert_eq!(message.address, Some("239.192.0.7".parse().unwrap()));
}

#[test]
fn what_is_wrong_is_named() {
    let with_option = |option: &[u8]| [&[0, 5, 0, 1, 0, 0, 0, 0], option, &[0, 0, 0, 0]].concat();
    for (bytes, error) in [
        (vec![1, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], DecodeError::Version(1)),
        (vec![0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], DecodeError::Kind(9)),
        (vec![0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0], DecodeError::Family(3)),
        (vec![0, 5, 0, 1, 0, 0, 0, 0], DecodeError::CutOff),
        (with_option(&[0, 1, 0, 3, 0, 0, 0]), DecodeError::OptionLength { code: 1, bytes: 3 }),
        (with_option(&[0, 3, 0, 0]), DecodeError::OptionLength { code: 3, bytes: 0 }),
        (with_option(&[0, 10, 0, 5, 0, 0, 0, 0, 0]), DecodeError::OptionLength { code: 10, bytes: 5 }),
        (with_option(&[0, 1, 255, 255]), DecodeError::CutOff),
    ] {
        assert_eq!(Message::decode(&bytes), Err(error), "{bytes:?}");
    }
    let longest = [vec![0, 3, 0, 32], vec![7; 32]].concat();
    assert!(Message::decode(&with_option(&longest)).unwrap().lease.is_some());
    let longer = [vec![0, 3, 0, 33], vec![7; 33]].concat();
    assert_eq!(Message::decode(&with_option(&longer)), Err(DecodeError::OptionLength { code: 3, bytes: 33 }));
}
