//! Text for `ip -batch`, `tc -batch` and `nft -f`: a plan, said in the words of the system's own tools.
//!
//! Names in the space between the hosts (the *fabric*, the keeper's own network namespace) are counted, because a
//! name of a topology file may have 64 characters and an interface only 15:
//!
//! ```text
//!   host 3 (e0) ═══ p3 ┤ sw1 ├ u1 ═══ d1 ┤ sw0 ├ p0 ═══ (e0) host 0
//!                        bridge            bridge
//! ```

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::plan::{PREFIX_BITS, Plan, QUERIER_ADDRESS};
use crate::quantity::Rate;

/// The interface of every host.
pub(crate) const HOST_INTERFACE: &str = "e0";

/// How long a full queue takes to drain. It is the shortest retransmission time-out of TCP: a queue that is longer would
/// make TCP send again what is only waiting.
const QUEUE_TIME: Duration = Duration::from_millis(200);

/// Bounds of a queue: that of a small and of a usual switch, per port.
const QUEUE_BYTES: (u64, u64) = (64 << 10, 1 << 20);

/// Bytes that may wait in front of a link; more are dropped.
fn queue_bytes(rate: Rate, burst_bytes: u32) -> u64 {
    rate.bytes_in(QUEUE_TIME).clamp(QUEUE_BYTES.0, QUEUE_BYTES.1).max(u64::from(burst_bytes))
}

/// `ip` lines that make switches and links. `namespace_of` gives the file of a host's network namespace.
pub(crate) fn fabric_links(plan: &Plan, namespace_of: impl Fn(usize) -> std::path::PathBuf) -> String {
    let mut text = String::from("link set dev lo up\n");
    for (index, switch) in plan.switches.iter().enumerate() {
        // One querier, at the root: without one, snooping switches forget who wants a group.
        let querier = u8::from(switch.uplink.is_none());
        line(
            &mut text,
            format_args!(
                "link add name sw{index} type bridge stp_state 0 mcast_snooping 1 mcast_querier {querier} mcast_query_use_ifaddr 1"
            ),
        );
        line(&mut text, format_args!("link set dev sw{index} addrgenmode none"));
        if switch.uplink.is_none() {
            line(&mut text, format_args!("address add {QUERIER_ADDRESS}/{PREFIX_BITS} dev sw{index}"));
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
                "link add name p{index} type veth peer name {HOST_INTERFACE} netns {}",
                namespace.display()
            ),
        );
        port(&mut text, &format!("p{index}"), host.switch);
    }
    text
}

/// Joins an interface to a switch. Ports have no IPv6 address of their own: nobody talks to them.
fn port(text: &mut String, name: &str, switch: usize) {
    line(text, format_args!("link set dev {name} addrgenmode none"));
    line(text, format_args!("link set dev {name} master sw{switch} up"));
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
        rate(&mut text, &format!("p{index}"), host.rate_bits_per_second, plan.burst_bytes);
    }
    text
}

/// `ip` lines inside of a host.
pub(crate) fn host_links(plan: &Plan, host: usize) -> String {
    let address = plan.hosts[host].address;
    let mut text = String::from("link set dev lo up\n");
    line(&mut text, format_args!("link set dev {HOST_INTERFACE} addrgenmode none"));
    line(&mut text, format_args!("address add {address}/{PREFIX_BITS} broadcast + dev {HOST_INTERFACE}"));
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

/// An `nft` script inside of a host that loses arriving packets; `None` if nothing is to be lost.
pub(crate) fn host_loss(plan: &Plan) -> Option<String> {
    (plan.loss_per_million > 0).then(|| {
        let lost = plan.loss_per_million;
        format!(
            "table inet polycast {{\n  chain loss {{\n    type filter hook input priority 0;\n    \
             iifname \"{HOST_INTERFACE}\" numgen random mod 1000000 < {lost} counter drop;\n  }}\n}}\n"
        )
    })
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
    line(
        text,
        format_args!("qdisc add dev {interface} root tbf rate {bits}bit burst {burst_bytes}b limit {limit}b"),
    );
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    fn two_switches() -> Plan {
        let text = "SwitchName=top Switches=leaf Nodes=a LinkSpeed=100\nSwitchName=leaf Nodes=b,c\n";
        Plan::from_topology(&Topology::parse(text, "t").unwrap(), "20mbit".parse().unwrap()).unwrap()
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
        let text = fabric_links(&two_switches(), |host| format!("/ns/{host}").into());
        assert_eq!(text.matches("mcast_querier 1").count(), 1);
        assert!(text.contains("sw0 type bridge stp_state 0 mcast_snooping 1 mcast_querier 1"), "{text}");
        assert!(text.contains("link add name p2 type veth peer name e0 netns /ns/2\n"), "{text}");
        assert!(
            text.contains("link set dev u1 master sw1 up\n")
                && text.contains("link set dev d1 master sw0 up\n")
        );
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
    fn loss_is_written_only_when_there_is_some() {
        let mut plan = two_switches();
        assert_eq!(host_loss(&plan), None);
        plan.loss_per_million = 10_000;
        assert!(host_loss(&plan).unwrap().contains("mod 1000000 < 10000"));
    }

    #[test]
    fn the_agent_survives_a_quote_in_the_path() {
        assert!(
            agent_script(Path::new("/it's/polycast"), Path::new("/x"))
                .contains(r"exec '/it'\''s/polycast' lab agent '/x'")
        );
    }
}
