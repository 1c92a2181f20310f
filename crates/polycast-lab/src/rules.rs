//! Text for `nft -f`: what links lose, and what switches do not forward.
//!
//! ```text
//!             prerouting  forward  postrouting
//!   host (e0) ═════▶ p0 ──┤ sw0 ├──▶ p1 ═════▶ (e0) host          lost on the way to the switch: before it forwards
//!                    ×       ×       ×                            lost on any other link: after it has forwarded
//!                            blocked
//! ```
//!
//! A rule sees what the kernel handles as one. A row of 44 datagrams that was sent by one system call (`UDP_SEGMENT`), or
//! 64 KiB of TCP, is one packet here, and would be lost as one. So hosts of a lab with loss cut them where they leave
//! ([`crate::batch::host_links`]). What arrives is put together again ([`crate::offload`]), behind all rules.

use std::fmt::Write;

use crate::batch::port_of;
use crate::plan::Plan;

/// Whether a lab needs `nft`.
pub(crate) fn are_needed(plan: &Plan) -> bool {
    plan.loss_per_million > 0 || plan.hosts.iter().any(|host| host.blocks_multicast)
}

/// The script for the network namespace of the switches; `None` if they lose nothing and forward everything.
pub(crate) fn of_fabric(plan: &Plan) -> Option<String> {
    let chains = loss(plan).unwrap_or_default() + &blocked(plan).unwrap_or_default();
    (!chains.is_empty()).then(|| format!("table bridge polycast {{\n{chains}}}\n"))
}

/// The rules by which each link loses once in each direction: what comes from a host when it enters
/// a switch, everything when it leaves one.
fn loss(plan: &Plan) -> Option<String> {
    let lost = plan.loss_per_million;
    let at = |hook: &str, ports: &str| {
        format!(
            "  chain {hook} {{\n    type filter hook {hook} priority 0;\n    \
             {ports}numgen random mod 1000000 < {lost} counter drop;\n  }}\n"
        )
    };
    (lost > 0).then(|| at("prerouting", "iifname \"p*\" ") + &at("postrouting", ""))
}

/// The rules that keep UDP multicast from and to hosts. Membership reports, neighbour discovery and
/// the like still pass, as they do where a switch filters.
fn blocked(plan: &Plan) -> Option<String> {
    let ports = plan.hosts.iter().enumerate().filter(|(_, host)| host.blocks_multicast);
    let ports: Vec<String> = ports.map(|(index, _)| format!("\"{}\"", port_of(index))).collect();
    if ports.is_empty() {
        return None;
    }
    let ports = ports.join(", ");
    let mut text = String::from("  chain blocked {\n    type filter hook forward priority 0;\n");
    for side in ["iifname", "oifname"] {
        for group in ["ip daddr 224.0.0.0/4", "ip6 daddr ff00::/8"] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "    {side} {{ {ports} }} {group} meta l4proto udp counter drop;");
        }
    }
    Some(text + "  }\n")
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::{Reading, Topology};

    use super::*;

    fn plan() -> Plan {
        let text = "SwitchName=top Switches=leaf Nodes=a\nSwitchName=leaf Nodes=b,c\n";
        Plan::from_topology(
            &Topology::parse(text, "t", Reading::default()).unwrap(),
            "20mbit".parse().unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn a_lab_without_faults_has_no_rules() {
        assert!(!are_needed(&plan()));
        assert_eq!(of_fabric(&plan()), None);
    }

    #[test]
    fn packets_are_lost_on_both_sides_of_a_switch() {
        let lossy = Plan { loss_per_million: 10_000, ..plan() };
        let script = of_fabric(&lossy).unwrap();
        let drop = "numgen random mod 1000000 < 10000 counter drop;";
        assert!(
            script.contains(&format!("hook prerouting priority 0;\n    iifname \"p*\" {drop}")),
            "{script}"
        );
        assert!(script.contains(&format!("hook postrouting priority 0;\n    {drop}")), "{script}");
        assert!(are_needed(&lossy));
    }

    #[test]
    fn a_port_is_blocked_from_both_sides_in_both_families() {
        let mut plan = plan();
        plan.block_multicast("c").unwrap();
        let script = of_fabric(&plan).unwrap();
        for side in ["iifname", "oifname"] {
            for group in ["ip daddr 224.0.0.0/4", "ip6 daddr ff00::/8"] {
                assert!(
                    script.contains(&format!("{side} {{ \"p2\" }} {group} meta l4proto udp")),
                    "{script}"
                );
            }
        }
        assert!(are_needed(&plan));
    }
}
