//! Text for `ip -batch` and `tc -batch` (that for `nft` is in [`crate::rules`]): a plan, written as input for the system's own tools.
//!
//! Names in the space between the hosts (the *fabric*, the keeper's own network namespace) are counted, because a
//! name of a topology file may have 64 characters and an interface only 15:
//!
//! ```text
//!   host 3 (e0) ═══ p3 ┤ sw1 ├ u1 ═══ d1 ┤ sw0 ├ p0 ═══ (e0) host 0
//!                        bridge            bridge
//! ```

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::Path;

use crate::plan::{PREFIX_BITS, Plan, QUERIER_ADDRESS, link_local};
use polycast_core::units::{Nanos, Rate};

/// The interface of every host.
pub(crate) const HOST_INTERFACE: &str = "e0";

/// The switch's end of the link to a host.
pub(crate) fn port_of(host: usize) -> String {
    format!("p{host}")
}

/// The time that a full queue takes to drain. It is the shortest retransmission time-out of TCP: a
/// queue that is longer would make TCP send again what is only waiting.
const QUEUE_TIME: Nanos = Nanos::from_micros(200_000);

/// Bounds of a queue: that of a small and of a usual switch, per port.
const QUEUE_BYTES: (u64, u64) = (64 << 10, 1 << 20);

/// Bytes that may wait in front of a link; more are dropped.
fn queue_bytes(rate: Rate, burst_bytes: u32) -> u64 {
    rate.bytes_in(QUEUE_TIME).clamp(QUEUE_BYTES.0, QUEUE_BYTES.1).max(u64::from(burst_bytes))
}

/// `ip` lines that make switches and links. `namespace_of` gives the file of a host's network namespace.
pub(crate) fn fabric_links(
    plan: &Plan,
    has_ipv6: bool,
    namespace_of: impl Fn(usize) -> std::path::PathBuf,
) -> String {
    let mut text = String::from("link set dev lo up\n");
    for (index, switch) in plan.switches.iter().enumerate() {
        // One querier, at the root: without one, snooping switches forget who wants a group.
        let querier = u8::from(switch.uplink.is_none());
        // Versions in which every member reports: in the older ones a member is silent when it hears another's report, and
        // switches flood reports until they know the querier, so that most ports would never be known to have a member.
        let mld = if has_ipv6 { " mcast_mld_version 2" } else { "" };
        line(
            &mut text,
            format_args!(
                "link add name sw{index} type bridge stp_state 0 mcast_snooping 1 mcast_querier {querier} \
                 mcast_query_use_ifaddr 1 mcast_igmp_version 3{mld}"
            ),
        );
        line(&mut text, format_args!("link set dev sw{index} addrgenmode none"));
        if switch.uplink.is_none() {
            line(&mut text, format_args!("address add {QUERIER_ADDRESS}/{PREFIX_BITS} dev sw{index}"));
            if has_ipv6 {
                add_link_local(&mut text, QUERIER_ADDRESS, &format!("sw{index}"));
            }
        }
        line(&mut text, format_args!("link set dev sw{index} up"));
    }
    for (index, switch) in plan.switches.iter().enumerate() {
        if let Some(up) = switch.uplink {
            line(&mut text, format_args!("link add name u{index} type veth peer name d{index}"));
            port(&mut text, &format!("u{index}"), index);
            port(&mut text, &format!("d{index}"), up.switch);
        }
    }
    for (index, host) in plan.hosts.iter().enumerate() {
        let namespace = namespace_of(index);
        line(
            &mut text,
            format_args!(
                "link add name {} type veth peer name {HOST_INTERFACE} netns {}",
                port_of(index),
                namespace.display()
            ),
        );
        port(&mut text, &port_of(index), host.switch);
    }
    text
}

/// Joins an interface to a switch. Ports have no IPv6 address of their own: nobody talks to them.
fn port(text: &mut String, name: &str, switch: usize) {
    line(text, format_args!("link set dev {name} addrgenmode none"));
    line(text, format_args!("link set dev {name} master sw{switch} up"));
}

/// Adds the link-local address without duplicate address detection, before the end of which (1 to 2
/// s) an address cannot be used; all addresses of a lab are known.
fn add_link_local(text: &mut String, address: Ipv4Addr, interface: &str) {
    line(text, format_args!("address add {}/64 dev {interface} nodad", link_local(address)));
}

/// `tc` lines for the ends of links that are in the fabric: toward each host, and both ways between switches.
pub(crate) fn fabric_rates(plan: &Plan) -> String {
    let mut text = String::new();
    for (index, switch) in plan.switches.iter().enumerate() {
        if let Some(up) = switch.uplink {
            rate(&mut text, &format!("u{index}"), up.rate_bits_per_second, plan.burst_bytes);
            rate(&mut text, &format!("d{index}"), up.rate_bits_per_second, plan.burst_bytes);
        }
    }
    for (index, host) in plan.hosts.iter().enumerate() {
        rate(&mut text, &port_of(index), host.rate_bits_per_second, plan.burst_bytes);
    }
    text
}

/// `ip` lines inside of a host.
pub(crate) fn host_links(plan: &Plan, host: usize, has_ipv6: bool) -> String {
    let address = plan.hosts[host].address;
    let mut text = String::from("link set dev lo up\n");
    line(&mut text, format_args!("link set dev {HOST_INTERFACE} addrgenmode none"));
    line(&mut text, format_args!("address add {address}/{PREFIX_BITS} broadcast + dev {HOST_INTERFACE}"));
    if has_ipv6 {
        add_link_local(&mut text, address, HOST_INTERFACE);
    }
    if plan.loss_per_million > 0 {
        // Rows of datagrams and long TCP segments are cut where they leave the host, so that packets are lost, and not
        // rows of them: see `rules`.
        line(&mut text, format_args!("link set dev {HOST_INTERFACE} gso_max_segs 1"));
    }
    line(&mut text, format_args!("link set dev {HOST_INTERFACE} up"));
    // Multicast without a chosen interface, as most programs send it, must find a way out.
    line(&mut text, format_args!("route add 224.0.0.0/4 dev {HOST_INTERFACE}"));
    text
}

/// `tc` lines inside of a host.
pub(crate) fn host_rates(plan: &Plan, host: usize) -> String {
    let mut text = String::new();
    rate(&mut text, HOST_INTERFACE, plan.hosts[host].rate_bits_per_second, plan.burst_bytes);
    text
}

/// The hosts file of all hosts.
pub(crate) fn hosts_file(plan: &Plan) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for host in &plan.hosts {
        line(&mut text, format_args!("{} {}", host.address, host.name));
    }
    text
}

/// A program that stands in for ssh: `AGENT [options] HOST command…`. Launchers want it to be one word.
pub(crate) fn agent_script(tool: &Path, directory: &Path) -> String {
    let quote = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    format!("#!/bin/sh\nexec {} lab agent {} \"$@\"\n", quote(tool), quote(directory))
}

fn rate(text: &mut String, interface: &str, rate: Rate, burst_bytes: u32) {
    let bits = rate.bits_per_second();
    let limit = queue_bytes(rate, burst_bytes);
    let burst = with_headers(burst_bytes);
    line(
        text,
        format_args!("qdisc add dev {interface} root tbf rate {bits}bit burst {burst}b limit {limit}b"),
    );
}

/// A token bucket for this many bytes of payload and the headers of all frames but the first.
///
/// The kernel sends up to 64 KiB of TCP, or a row of 44 datagrams, as one packet and counts the headers of all frames in
/// it: 45 × 1514 bytes. A bucket of exactly 64 KiB would cut every such packet into its frames, and the machine would do
/// tens of times the work.
fn with_headers(burst_bytes: u32) -> u32 {
    let frames = burst_bytes / SEGMENT_BYTES;
    burst_bytes + frames.saturating_sub(1) * HEADER_BYTES
}

/// Payload of a full frame with the longest usual headers, TCP with time stamps, and the bytes of these.
const SEGMENT_BYTES: u32 = 1_448;
const HEADER_BYTES: u32 = 66;

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::{Reading, Topology};

    use super::*;

    fn two_switches() -> Plan {
        let text = "SwitchName=top Switches=leaf Nodes=a LinkSpeed=100\nSwitchName=leaf Nodes=b,c\n";
        Plan::from_topology(
            &Topology::parse(text, "t", Reading::default()).unwrap(),
            "20mbit".parse().unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn every_link_has_a_rate_at_both_ends() {
        let plan = two_switches();
        let rates = fabric_rates(&plan);
        let fabric: Vec<_> = rates.lines().map(|line| line.split(' ').collect::<Vec<_>>()).collect();
        let seen: Vec<_> = fabric.iter().map(|words| (words[3], words[7])).collect();
        let expected = [
            ("u1", "100000000bit"),
            ("d1", "100000000bit"),
            ("p0", "100000000bit"),
            ("p1", "20000000bit"),
            ("p2", "20000000bit"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            host_rates(&plan, 1),
            "qdisc add dev e0 root tbf rate 20000000bit burst 1600b limit 500000b\n"
        );
    }

    #[test]
    fn the_root_switch_alone_asks_for_multicast_members() {
        let text = fabric_links(&two_switches(), true, |host| format!("/ns/{host}").into());
        assert_eq!(text.matches("mcast_querier 1").count(), 1);
        assert_eq!(text.matches("mcast_igmp_version 3 mcast_mld_version 2").count(), 2);
        assert!(
            text.contains("address add fe80::a4d:fffe/64 dev sw0 nodad\n"),
            "IPv6 needs a querier, too: {text}"
        );
        assert!(text.contains("sw0 type bridge stp_state 0 mcast_snooping 1 mcast_querier 1"), "{text}");
        assert!(text.contains("link add name p2 type veth peer name e0 netns /ns/2\n"), "{text}");
        assert!(
            text.contains("link set dev u1 master sw1 up\n")
                && text.contains("link set dev d1 master sw0 up\n")
        );
    }

    #[test]
    fn ipv6_is_left_out_where_the_kernel_has_none() {
        let plan = two_switches();
        assert!(host_links(&plan, 0, true).contains("address add fe80::a4d:1/64 dev e0 nodad\n"));
        let without = fabric_links(&plan, false, |_| "/ns".into()) + &host_links(&plan, 0, false);
        assert!(!without.contains("fe80"), "{without}");
    }

    #[test]
    fn links_that_lose_packets_carry_single_ones() {
        let mut plan = two_switches();
        assert!(!host_links(&plan, 0, true).contains("gso_max_segs"));
        plan.loss_per_million = 1;
        assert!(host_links(&plan, 0, true).contains("link set dev e0 gso_max_segs 1\nlink set dev e0 up\n"));
    }

    #[test]
    fn a_bucket_of_64_kib_holds_what_is_sent_as_one_packet() {
        // 1448 bytes of TCP in a frame, 1472 of UDP over IPv4, 1452 over IPv6; 64 KiB with the first headers at most.
        for payload in [1_448, 1_472, 1_452_u32] {
            let frames = (65_535 - 40_u32).div_ceil(payload);
            assert!(with_headers(64 << 10) >= 65_535 + frames * 62, "{payload}");
        }
        assert_eq!((with_headers(1_600), with_headers(1_514), with_headers(4 << 10)), (1_600, 1_514, 4_162));
    }

    #[test]
    fn queues_are_bounded_and_hold_a_bucket() {
        for (rate, burst, bytes) in [
            ("1mbit", 1_600, 64 << 10),
            ("20mbit", 1_600, 500_000),
            ("1gbit", 1_600, 1 << 20),
            ("1mbit", 128 << 10, 128 << 10),
        ] {
            assert_eq!(queue_bytes(rate.parse().unwrap(), burst), bytes, "{rate}");
        }
    }

    #[test]
    fn the_agent_survives_a_quote_in_the_path() {
        assert!(
            agent_script(Path::new("/it's/polycast"), Path::new("/x"))
                .contains(r"exec '/it'\''s/polycast' lab agent '/x'")
        );
    }
}
