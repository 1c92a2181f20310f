//! Sockets between two emulated hosts: what arrives, what does not, and what the kernel says.

#[allow(dead_code, reason = "each user of these helpers uses some of them")]
mod support;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{getsockopt, sockopt};
use polycast_net::{Family, Group, SocketOptions};
use support::{PATIENCE, cable, collect, in_namespace, pair, send_all};

/// Long enough for what should not come.
const SILENCE: Duration = Duration::from_millis(200);

/// SplitMix64: the tests need the same groups and bytes every time.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn group(family: Family) -> Group {
    Group::random(family, &mut numbers(7))
}

fn bytes(count: usize) -> Vec<u8> {
    let mut next = numbers(11);
    (0..count).map(|_| next() as u8).collect()
}

fn offloads() -> impl Iterator<Item = SocketOptions> {
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .map(|(segment, coalesce)| SocketOptions { segment, coalesce, ..SocketOptions::default() })
}

#[test]
fn a_row_of_datagrams_arrives_whole_and_in_order_with_and_without_offloads() {
    in_namespace("a_row_of_datagrams_arrives_whole_and_in_order_with_and_without_offloads", || {
        let (left, right) = pair();
        for family in [Family::V4, Family::V6] {
            for options in offloads() {
                let mut from = left.open("e0", group(family), &options);
                let mut to = right.open("e0", group(family), &options);
                assert_eq!((from.can_segment(), to.can_coalesce()), (options.segment, options.coalesce));
                let most = from.most_datagram_bytes();
                assert_eq!(most, 1500 - family.header_bytes());
                // One, some, as many as one call takes, one more; the last shorter or full; small ones.
                for (datagram_bytes, count) in [
                    (1, 1),
                    (most, 1),
                    (most, 7 * most + 5),
                    (most, 44 * most),
                    (most, 45 * most + 1),
                    (100, 6_400),
                ] {
                    let row = bytes(count);
                    send_all(&mut from, &row, datagram_bytes);
                    let expected: Vec<&[u8]> = row.chunks(datagram_bytes).collect();
                    let got = collect(&mut to, expected.len(), PATIENCE);
                    assert!(
                        got == expected,
                        "{family} {options:?} {datagram_bytes} {count}: {} came",
                        got.len()
                    );
                }
                assert_eq!((to.dropped_by_kernel(), to.refused()), (0, 0));
                assert!(collect(&mut from, 1, Duration::ZERO).is_empty(), "own datagrams came back");
            }
        }
    });
}

#[test]
fn megabytes_arrive_without_loss_while_windows_respect_the_granted_buffer() {
    in_namespace("megabytes_arrive_without_loss_while_windows_respect_the_granted_buffer", || {
        let (left, right) = pair();
        let options = SocketOptions::default();
        for family in [Family::V4, Family::V6] {
            let mut from = left.open("e0", group(family), &options);
            let mut to = right.open("e0", group(family), &options);
            let most = from.most_datagram_bytes();
            let message = bytes(8 << 20);
            let mut got = Vec::new();
            // The kernel counts more than the payload: a small datagram's buffer is four times as large as its payload at worst.
            for window in message.chunks(to.granted_receive_bytes() / 4 / most * most) {
                send_all(&mut from, window, most);
                got.extend(collect(&mut to, window.len().div_ceil(most), PATIENCE).concat());
            }
            assert!(got == message, "{family}: {} of {} bytes", got.len(), message.len());
            assert_eq!(to.dropped_by_kernel(), 0);
        }
    });
}

#[test]
fn own_datagrams_come_back_only_if_asked_for() {
    in_namespace("own_datagrams_come_back_only_if_asked_for", || {
        let (left, _right) = pair();
        for family in [Family::V4, Family::V6] {
            for loop_back in [false, true] {
                let options = SocketOptions { loop_back, ..SocketOptions::default() };
                let mut socket = left.open("e0", group(family), &options);
                send_all(&mut socket, b"echo", 4);
                let got = collect(&mut socket, 1, if loop_back { PATIENCE } else { SILENCE });
                assert_eq!(got.len(), usize::from(loop_back), "{family}");
            }
        }
    });
}

/// Packets that a host has sent to groups: counted for IPv4, and reports of memberships for IPv6.
fn reports(host: &support::Host, family: Family) -> u64 {
    host.run(move || match family {
        Family::V4 => {
            let text = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
            let lines: Vec<Vec<&str>> = text
                .lines()
                .filter(|line| line.starts_with("IpExt:"))
                .map(|line| line.split_whitespace().collect())
                .collect();
            let at = lines[0].iter().position(|name| *name == "OutMcastPkts").unwrap();
            lines[1][at].parse().unwrap()
        }
        Family::V6 => {
            let text = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
            let line = text.lines().find(|line| line.starts_with("Icmp6OutMLDv2Reports")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        }
    })
}

#[test]
fn a_renewed_membership_is_reported_again_and_still_brings_datagrams() {
    in_namespace("a_renewed_membership_is_reported_again_and_still_brings_datagrams", || {
        let (left, right) = pair();
        for family in [Family::V4, Family::V6] {
            let options = SocketOptions::default();
            let mut from = left.open("e0", group(family), &options);
            let mut to = right.open("e0", group(family), &options);
            // The kernel says twice that it has joined, within a second each.
            std::thread::sleep(Duration::from_millis(2500));
            let before = reports(&right, family);
            to.renew_membership().unwrap();
            let deadline = Instant::now() + PATIENCE;
            while reports(&right, family) == before {
                assert!(Instant::now() < deadline, "{family}: not reported");
                std::thread::sleep(Duration::from_millis(10));
            }
            send_all(&mut from, b"still there", 11);
            assert_eq!(collect(&mut to, 1, PATIENCE), [b"still there"], "{family}");
        }
    });
}

#[test]
fn a_group_and_port_is_had_once_per_host() {
    in_namespace("a_group_and_port_is_had_once_per_host", || {
        let (left, _right) = pair();
        for family in [Family::V4, Family::V6] {
            let options = SocketOptions::default();
            let group = group(family);
            let first = left.open("e0", group, &options);
            let error = left.try_open("e0", group, &options).unwrap_err();
            assert!(error.is_conflict(), "{error}");
            assert!(error.to_string().contains("take another"), "{error}");
            let other_port = Group { port: group.port + 1, ..group };
            left.open("e0", other_port, &options);
            drop(first);
            left.open("e0", group, &options);
        }
    });
}

#[test]
fn other_groups_and_other_interfaces_are_not_heard() {
    in_namespace("other_groups_and_other_interfaces_are_not_heard", || {
        let (left, right) = pair();
        cable(&left, &right, "e1", 2);
        let options = SocketOptions::default();
        for family in [Family::V4, Family::V6] {
            let ours = group(family);
            let other = Group { port: ours.port, ..Group::random(family, &mut numbers(8)) };
            let mut to = right.open("e0", ours, &options);
            // Other members on the receiving host make its kernel accept both there.
            let _members = [
                right.open("e1", Group { port: ours.port + 1, ..ours }, &options),
                right.open("e0", Group { port: ours.port + 1, ..other }, &options),
            ];
            let mut elsewhere = left.open("e1", ours, &options);
            let mut another = left.open("e0", other, &options);
            send_all(&mut elsewhere, b"wrong interface", 64);
            send_all(&mut another, b"wrong group", 64);
            assert_eq!(collect(&mut to, 1, SILENCE), Vec::<Vec<u8>>::new(), "{family}");
            assert_eq!(to.refused(), 0, "the kernel itself keeps them away");
            drop(elsewhere);
            let mut from = left.open("e0", ours, &options);
            send_all(&mut from, b"right", 64);
            assert_eq!(collect(&mut to, 1, PATIENCE), [b"right"], "{family}");
        }
    });
}

#[test]
fn datagrams_that_cannot_be_sent_are_refused_by_size() {
    in_namespace("datagrams_that_cannot_be_sent_are_refused_by_size", || {
        let (left, _right) = pair();
        let mut socket = left.open("e0", group(Family::V4), &SocketOptions::default());
        let most = socket.most_datagram_bytes();
        let row = bytes(4 * most);
        assert_eq!(socket.send(&row, most).unwrap(), row.len());
        assert_eq!(socket.send(&[], most).unwrap(), 0);
        // A single one that is shorter than its size allows.
        assert_eq!(socket.send(b"short", 9_000).unwrap(), 5);
        for wrong in [0, most + 1] {
            let error = socket.send(&row, wrong).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
    });
}

#[test]
fn what_overflows_the_receive_buffer_is_counted() {
    in_namespace("what_overflows_the_receive_buffer_is_counted", || {
        let (left, right) = pair();
        let small = SocketOptions { receive_bytes: 32 << 10, coalesce: false, ..SocketOptions::default() };
        let mut from = left.open("e0", group(Family::V4), &SocketOptions::default());
        let mut to = right.open("e0", group(Family::V4), &small);
        assert_eq!(to.granted_receive_bytes(), 64 << 10);
        let most = from.most_datagram_bytes();
        let sent = 440;
        send_all(&mut from, &bytes(sent * most), most);
        let mut got = collect(&mut to, sent, SILENCE).len();
        // All have come or were dropped, even if the kernel was long about it.
        let until = Instant::now() + PATIENCE;
        while to.dropped_by_kernel() + (got as u64) < sent as u64 && Instant::now() < until {
            got += collect(&mut to, 1, SILENCE).len();
        }
        assert!(got > 0 && got < sent, "{got}");
        assert_eq!(to.dropped_by_kernel(), (sent - got) as u64);
    });
}

#[test]
fn a_full_send_buffer_makes_the_sender_wait_and_loses_nothing() {
    in_namespace("a_full_send_buffer_makes_the_sender_wait_and_loses_nothing", || {
        let (left, right) = pair();
        let limit = |what: &str, rate: &str| {
            left.tool("tc", &format!("qdisc {what} dev e0 root tbf rate {rate} burst 32kb limit 1mb"));
        };
        limit("add", "100mbit");
        for options in offloads() {
            let mut from = left.open("e0", group(Family::V4), &options);
            let mut to = right.open("e0", group(Family::V4), &options);
            let most = from.most_datagram_bytes();
            let row = bytes(1_000 * most + 17);
            // Nearly closed, so that nothing gets free while this process waits for its turn.
            limit("change", "32kbit");
            let taken = from.send(&row, most).unwrap();
            assert!(taken > 0 && taken < row.len() && taken.is_multiple_of(most), "{taken} of {}", row.len());
            assert!(from.queued_bytes() > 100_000, "{} of {taken} bytes wait", from.queued_bytes());
            let full = from.send(&row[taken..], most).unwrap_err();
            assert_eq!(full.kind(), io::ErrorKind::WouldBlock, "has to wait");
            limit("change", "100mbit");
            send_all(&mut from, &row[taken..], most);
            let got = collect(&mut to, 1_001, PATIENCE).concat();
            assert!(got == row, "{options:?}: {} of {} bytes", got.len(), row.len());
            assert_eq!(from.queued_bytes(), 0, "all has left");
        }
    });
}

#[test]
fn an_ipv6_address_that_is_still_tentative_is_waited_for() {
    in_namespace("an_ipv6_address_that_is_still_tentative_is_waited_for", || {
        let (left, _right) = pair();
        let mut from = left.open("e0", group(Family::V6), &SocketOptions::default());
        assert_eq!(from.send(b"first", 64).unwrap(), 5);
    });
}

#[test]
fn an_interface_that_goes_down_is_an_error_not_a_panic() {
    in_namespace("an_interface_that_goes_down_is_an_error_not_a_panic", || {
        let (left, _right) = pair();
        let sockets =
            [Family::V4, Family::V6].map(|family| left.open("e0", group(family), &SocketOptions::default()));
        left.ip("link set e0 down");
        for mut socket in sockets {
            let error = socket.send(b"x", 1).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
        }
    });
}

#[test]
fn a_socket_is_private() {
    in_namespace("a_socket_is_private", || {
        let (left, _right) = pair();
        let socket = left.open("e0", group(Family::V4), &SocketOptions::default());
        let descriptor = FdFlag::from_bits_truncate(fcntl(socket.as_fd(), FcntlArg::F_GETFD).unwrap());
        assert!(descriptor.contains(FdFlag::FD_CLOEXEC));
        let file = OFlag::from_bits_truncate(fcntl(socket.as_fd(), FcntlArg::F_GETFL).unwrap());
        assert!(file.contains(OFlag::O_NONBLOCK));
        assert!(!getsockopt(&socket, sockopt::ReuseAddr).unwrap());
        assert!(socket.as_fd().as_raw_fd() > 2);
    });
}

/// IPsec and some tunnels refuse segmented sends with EIO. Here a system call filter of this thread does, for sendmsg alone, which is what
/// segmented sends go through.
#[test]
fn an_interface_that_refuses_segments_gets_datagrams_one_by_one() {
    in_namespace("an_interface_that_refuses_segments_gets_datagrams_one_by_one", || {
        let (left, right) = pair();
        let options = SocketOptions::default();
        let mut from = left.open("e0", group(Family::V4), &options);
        let mut to = right.open("e0", group(Family::V4), &options);
        let most = from.most_datagram_bytes();
        let row = bytes(100 * most + 3);
        support::refuse(nix::libc::SYS_sendmsg, nix::libc::EIO);
        assert!(from.can_segment());
        send_all(&mut from, &row, most);
        assert!(!from.can_segment());
        assert!(collect(&mut to, 101, PATIENCE).concat() == row);
    });
}
