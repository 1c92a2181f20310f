use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

/// A usable interface; the tests take away or add what they are about.
fn interface(index: u32, name: &str) -> Interface {
    Interface {
        name: name.to_owned(),
        index,
        ipv4: Some(Ipv4Addr::new(10, 0, 0, index as u8)),
        ipv6: Some(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, index as u16)),
        mtu_bytes: 1500,
        bits_per_second: None,
        is_up: true,
        can_multicast: true,
        is_loopback: false,
        has_default_route: false,
    }
}

fn host() -> Vec<Interface> {
    vec![
        Interface { can_multicast: false, is_loopback: true, ..interface(1, "lo") },
        interface(2, "docker0"),
        interface(3, "eth0"),
        Interface { bits_per_second: Some(100_000_000_000), ..interface(4, "eth1") },
        interface(5, "ib0"),
    ]
}

fn chosen(choice: &str, among: &[Interface]) -> Result<String, String> {
    let choice: InterfaceChoice = choice.parse().unwrap();
    choice.choose(among, Family::V4).map(|i| i.name).map_err(|e| e.to_string())
}

#[test]
fn nccl_syntax_says_which_interfaces() {
    for (choice, expected) in [
        ("", "eth1"),
        ("eth", "eth1"),
        ("eth0", "eth0"),
        ("ib,eth", "ib0"),
        ("nothing,eth0", "eth0"),
        ("=ib0", "ib0"),
        ("=eth0,eth1", "eth0"),
        ("= eth1 , eth0", "eth1"),
        ("^eth", "ib0"),
        ("^eth,ib", "docker0"),
        ("^=eth1", "eth0"),
        ("docker", "docker0"),
        ("=lo", "lo"),
        ("lo", "lo"),
    ] {
        assert_eq!(chosen(choice, &host()).as_deref(), Ok(expected), "{choice}");
    }
}

#[test]
fn automatic_takes_the_default_route_then_speed_then_the_lowest_index() {
    let mut among = host();
    assert_eq!(chosen("", &among).unwrap(), "eth1");
    among[4].has_default_route = true;
    assert_eq!(chosen("", &among).unwrap(), "ib0");
    among[1].has_default_route = true;
    assert_eq!(chosen("", &among).unwrap(), "ib0", "a container's bridge comes last even so");
    among[3].bits_per_second = None;
    among[4].has_default_route = false;
    assert_eq!(chosen("", &among).unwrap(), "eth0");
}

#[test]
fn bridges_of_containers_are_taken_if_nothing_else_is_there() {
    assert_eq!(chosen("", &host()[..2]).unwrap(), "docker0");
}

#[test]
fn an_error_lists_what_was_found() {
    let among = [
        Interface { can_multicast: false, is_loopback: true, ..interface(1, "lo") },
        Interface { is_up: false, ..interface(2, "eth0") },
        Interface { ipv4: None, ..interface(3, "eth1") },
        Interface { can_multicast: false, ..interface(4, "eth2") },
        interface(5, "ib0"),
    ];
    assert_eq!(
        chosen("^ib", &among).unwrap_err(),
        "no interface for IPv4 multicast (choice: ^ib); found lo (loopback), eth0 (down or without carrier), eth1 (no IPv4 \
         address), eth2 (cannot multicast), ib0 (not among those allowed); name another with POLYCAST_NET=NAME, or see \
         `ip -br address`"
    );
    assert!(chosen("", &[]).unwrap_err().contains("found none at all"));
}

#[test]
fn the_family_decides_which_address_is_needed() {
    let only_v6 = [Interface { ipv4: None, ..interface(2, "eth0") }];
    let automatic = InterfaceChoice::default();
    assert!(automatic.choose(&only_v6, Family::V4).is_err());
    assert_eq!(automatic.choose(&only_v6, Family::V6).unwrap().name, "eth0");
}

#[test]
fn words_that_are_no_names_are_refused() {
    for (text, found) in [
        ("eth0,,eth1", "a name is missing"),
        ("^", "a name is missing"),
        ("=", "a name is missing"),
        ("=^eth0", "`^` inside a name"),
        ("eth0 eth1", "` ` inside a name"),
        ("averyveryverylongname", "longer than a name can be"),
    ] {
        let error = text.parse::<InterfaceChoice>().unwrap_err().to_string();
        assert!(error.contains(found) && error.contains("expected"), "{error}");
    }
}

#[test]
fn a_choice_is_shown_as_it_was_given() {
    for text in ["eth", "=eth0,ib0", "^docker,br-", "^=eth0"] {
        assert_eq!(text.parse::<InterfaceChoice>().unwrap().to_string(), text);
    }
    assert_eq!(InterfaceChoice::default().to_string(), "automatic");
}

/// Where the MPI's own connections begin, their hosts are joined; that comes behind the user's words and before all that is guessed.
#[test]
fn the_interface_of_other_connections_is_taken() {
    let mut among = host();
    among[2].has_default_route = true;
    let chosen = |choice: &str, family, local: &[&str]| {
        let local: Vec<IpAddr> = local.iter().map(|address| address.parse().unwrap()).collect();
        let choice: InterfaceChoice = choice.parse().unwrap();
        choice.choose_beside(&among, family, &local).unwrap().name
    };
    let of = |choice, local: &[&str]| chosen(choice, Family::V4, local);
    assert_eq!(of("", &[]), "eth0", "the default route");
    assert_eq!(of("", &["10.0.0.5"]), "ib0");
    assert_eq!(of("", &["10.0.0.5", "10.0.0.4"]), "ib0", "the earlier the better");
    assert_eq!(of("", &["10.0.0.4", "10.0.0.5"]), "eth1");
    assert_eq!(of("", &["10.0.0.2"]), "docker0", "even a bridge, if the job uses it");
    assert_eq!(of("", &["192.168.1.1", "10.0.0.5"]), "ib0", "an address of no interface says nothing");
    assert_eq!(of("", &["192.168.1.1"]), "eth0");
    assert_eq!(of("", &["10.0.0.1", "10.0.0.5"]), "ib0", "loopback serves tests only");
    assert_eq!(of("eth", &["10.0.0.5", "10.0.0.4"]), "eth1", "the user's word comes first");
    assert_eq!(of("eth0,ib0", &["10.0.0.5"]), "eth0", "and its place in the list");
    assert_eq!(of("^ib", &["10.0.0.5"]), "eth0");
    // A connection over IPv4 tells where IPv6 multicast should go, and the other way round.
    assert_eq!(chosen("", Family::V6, &["10.0.0.5"]), "ib0");
    assert_eq!(chosen("", Family::V4, &["fe80::5"]), "ib0");
}

#[test]
fn all_that_are_usable_stand_in_the_order_of_choice() {
    let names = |choice: &str, local: &[IpAddr]| {
        let choice: InterfaceChoice = choice.parse().unwrap();
        let usable = choice.usable_beside(&host(), Family::V4, local);
        usable.into_iter().map(|interface| interface.name).collect::<Vec<_>>()
    };
    assert_eq!(names("", &[]), ["eth1", "eth0", "ib0", "docker0"]);
    assert_eq!(names("", &["10.0.0.5".parse().unwrap()]), ["ib0", "eth1", "eth0", "docker0"]);
    assert_eq!(names("^eth", &[]), ["ib0", "docker0"]);
    assert_eq!(names("=none", &[]), [""; 0]);
}
