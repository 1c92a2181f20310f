//! The loopback interface: no privileges and no other host needed, so these run everywhere.

use std::time::{Duration, Instant};

use polycast_net::{Family, Group, Interface, InterfaceChoice, Socket, SocketOptions};

fn lo() -> Interface {
    let choice: InterfaceChoice = "=lo".parse().unwrap();
    choice.choose(&Interface::all().unwrap(), Family::V4).unwrap()
}

/// A group of this process alone: tests of two checkouts may run at once.
fn group(number: u64) -> Group {
    let mut state = u64::from(std::process::id()) << 8 | number;
    Group::random(Family::V4, &mut || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    })
}

/// What came until there are so many bytes; that much in vain only if some are lost.
fn receive_until(socket: &mut Socket, bytes: usize) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut got = Vec::new();
    while got.len() < bytes && Instant::now() < deadline {
        socket.receive(|datagram| got.extend_from_slice(datagram)).unwrap();
    }
    got
}

#[test]
fn datagrams_of_every_size_come_back() {
    for (segment, coalesce) in [(true, true), (false, false)] {
        let options = SocketOptions { segment, coalesce, ..SocketOptions::default() };
        let mut socket = Socket::open(&lo(), group(1), &options).unwrap();
        let most = socket.most_datagram_bytes();
        // The MTU of lo has room for more than UDP can carry.
        assert!(most <= 65_507);
        for (datagram_bytes, count) in [(1, 5), (1_472, 44 * 1_472), (most, most), (most, 2 * most)] {
            let row: Vec<u8> = (0..count).map(|i| (i % 251) as u8).collect();
            assert_eq!(socket.send(&row, datagram_bytes).unwrap(), count);
            assert!(receive_until(&mut socket, count) == row, "{datagram_bytes} {count} {options:?}");
        }
        assert_eq!(socket.receive(|_| panic!("nothing is left")).unwrap(), 0);
    }
}

#[test]
fn for_ipv6_it_is_not_chosen() {
    let choice: InterfaceChoice = "=lo".parse().unwrap();
    let error = choice.choose(&Interface::all().unwrap(), Family::V6).unwrap_err().to_string();
    assert!(error.contains("lo (no link-local IPv6 address)"), "{error}");
}

#[test]
fn what_is_no_group_or_has_no_address_is_refused_with_the_reason() {
    let open = |interface: &Interface, address: &str| {
        let group = Group { address: address.parse().unwrap(), port: 5_000 };
        Socket::open(interface, group, &SocketOptions::default()).unwrap_err().to_string()
    };
    assert!(open(&lo(), "10.0.0.1").contains("not a multicast address"));
    let bare = Interface { ipv6: None, ..lo() };
    assert!(open(&bare, "ff12::1").contains("no IPv6 address"));
    let narrow = Interface { mtu_bytes: 28, ..lo() };
    assert!(open(&narrow, "239.192.1.1").contains("no room for data"));
    let gone = Interface { index: 0x7fff_fff0, ..lo() };
    assert!(open(&gone, "239.192.1.1").contains("on lo: "));
}

#[test]
fn a_buffer_beyond_the_limit_is_reported_as_granted() {
    let options = SocketOptions { receive_bytes: 1 << 30, coalesce: false, ..SocketOptions::default() };
    let socket = Socket::open(&lo(), group(2), &options).unwrap();
    let limit: usize =
        std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    let granted = socket.granted_receive_bytes();
    // The kernel counts twice what was asked for; the privileged get more than the limit.
    assert!(granted == 2 * limit || granted > 1 << 30, "{granted} of {limit}");
}

#[test]
fn strangers_can_be_kept_out_by_the_kernel() {
    let options = SocketOptions { segment: false, coalesce: false, ..SocketOptions::default() };
    let mut socket = Socket::open(&lo(), group(77), &options).unwrap();
    socket.keep_only(*b"ours", 2).unwrap();
    for datagram in [&b"a theirs"[..], b"b", b"", b"c ours", b"d our", b"e ours, too"] {
        if !datagram.is_empty() {
            socket.send(datagram, datagram.len()).unwrap();
        }
    }
    assert_eq!(receive_until(&mut socket, 17), b"c ourse ours, too");
    assert_eq!(socket.dropped_by_kernel(), 3);
}
