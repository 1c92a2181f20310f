//! Text for `nft -f`: what links lose, and what switches do not forward.
//!
//! ```text
//!   host (e0) ══════ p0 ┤ sw0 ├ p1 ══════ (e0) host
//!             ─────▶ ×                 a packet is lost where it comes off a link: at a port of the switch …
//!                        ×  ×    ─────▶ ×                                          … or at the other host
//!                     blocked: between ports
//! ```
//!
//! A rule sees what the kernel handles as one. A row of 44 datagrams that was sent by one system call (`UDP_SEGMENT`), or
//! 64 KiB of TCP, is one packet here, and would be lost as one. So hosts of a lab with loss cut them where they leave
//! (`gso_max_segs 1`, see [`crate::batch::host_links`]), and nothing puts them together again before it has passed all rules.

use std::fmt::Write;

use crate::batch::HOST_INTERFACE;
use crate::plan::Plan;

/// Whether a lab needs `nft`.
pub(crate) fn are_needed(plan: &Plan) -> bool {
    plan.loss_per_million > 0 || plan.hosts.iter().any(|host| host.blocks_multicast)
}

/// The script for a host: what it loses of what arrives. `None` if nothing is to be lost.
pub(crate) fn of_host(plan: &Plan) -> Option<String> {
    loss(plan, &[HOST_INTERFACE.to_owned()])
}

/// The script for the switches; `None` if they lose nothing and forward everything.
pub(crate) fn of_fabric(plan: &Plan) -> Option<String> {
    let hosts = (0..plan.hosts.len()).map(|host| format!("p{host}"));
    let uplinks = (0..plan.switches.len()).filter(|switch| plan.switches[*switch].uplink.is_some());
    let ports: Vec<String> =
        hosts.chain(uplinks.flat_map(|switch| [format!("u{switch}"), format!("d{switch}")])).collect();
    let script = loss(plan, &ports).unwrap_or_default() + &blocked(plan).unwrap_or_default();
    (!script.is_empty()).then_some(script)
}

/// Chains of their own, because one takes 256 devices at most; `nft list ruleset` then counts by port.
fn loss(plan: &Plan, interfaces: &[String]) -> Option<String> {
    if plan.loss_per_million == 0 {
        return None;
    }
    let lost = plan.loss_per_million;
    let mut text = String::from("table netdev polycast {\n");
    for name in interfaces {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  chain {name} {{\n    type filter hook ingress device \"{name}\" priority 0;\n    \
             numgen random mod 1000000 < {lost} counter drop;\n  }}"
        );
    }
    Some(text + "}\n")
}

/// UDP only: membership reports, neighbour discovery and the like still pass, as they do where a switch filters.
fn blocked(plan: &Plan) -> Option<String> {
    let ports = plan.hosts.iter().enumerate().filter(|(_, host)| host.blocks_multicast);
    let ports: Vec<String> = ports.map(|(index, _)| format!("\"p{index}\"")).collect();
    if ports.is_empty() {
        return None;
    }
    let ports = ports.join(", ");
    let mut text = String::from(
        "table bridge polycast {\n  chain blocked {\n    type filter hook forward priority 0;\n",
    );
    for side in ["iifname", "oifname"] {
        for group in ["ip daddr 224.0.0.0/4", "ip6 daddr ff00::/8"] {
            let _ = writeln!(text, "    {side} {{ {ports} }} {group} meta l4proto udp counter drop;");
        }
    }
    Some(text + "  }\n}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    fn plan() -> Plan {
        let text = "SwitchName=top Switches=leaf Nodes=a\nSwitchName=leaf Nodes=b,c\n";
        Plan::from_topology(&Topology::parse(text, "t").unwrap(), "20mbit".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_lab_without_faults_has_no_rules() {
        assert!(!are_needed(&plan()));
        assert_eq!((of_host(&plan()), of_fabric(&plan())), (None, None));
    }

    #[test]
    fn every_link_loses_in_both_directions() {
        let lossy = Plan { loss_per_million: 10_000, ..plan() };
        let ends = of_host(&lossy).unwrap() + &of_fabric(&lossy).unwrap();
        let devices: Vec<_> =
            ends.split("device \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(devices, ["e0", "p0", "p1", "p2", "u1", "d1"]);
        assert_eq!(ends.matches("mod 1000000 < 10000 counter drop").count(), devices.len());
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
        assert!(are_needed(&plan) && of_host(&plan).is_none());
    }
}
