//! One MTU on all hosts: a larger datagram leaves without an error and never arrives.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::message::InterfaceFacts;

/// Compares the interfaces of all hosts.
pub fn compare(hosts: &[(&str, &InterfaceFacts)]) -> Option<Finding> {
    let least = hosts.iter().map(|(_, interface)| interface.mtu_bytes).min()?;
    let most = hosts.iter().map(|(_, interface)| interface.mtu_bytes).max()?;
    if least == most {
        let which = if hosts.len() == 1 { "" } else { " on all hosts" };
        let jumbo =
            if least <= 1500 { "" } else { "; every switch on the way must carry frames of that size" };
        return Some(Finding::ok(Topic::Mtu, format!("{least} bytes{which}{jumbo}")));
    }
    let of = |mtu: u32| -> Vec<&str> {
        hosts.iter().filter(|(_, interface)| interface.mtu_bytes == mtu).map(|(host, _)| *host).collect()
    };
    let mut values: Vec<u32> = hosts.iter().map(|(_, interface)| interface.mtu_bytes).collect();
    values.sort_unstable();
    values.dedup();
    let groups: Vec<String> = values.iter().map(|mtu| format!("{mtu} on {}", of(*mtu).join(", "))).collect();
    let found = format!(
        "the hosts differ: {} bytes; what is sent at the larger size never arrives at the others, so polycast takes the smallest",
        groups.join("; ")
    );
    let larger: Vec<String> = hosts
        .iter()
        .filter(|(_, interface)| interface.mtu_bytes > least)
        .map(|(host, interface)| format!("on {host}: ip link set dev {} mtu {least}", interface.name))
        .collect();
    Some(Finding::warning(Topic::Mtu, found, larger.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn interface(mtu_bytes: u32) -> InterfaceFacts {
        InterfaceFacts { name: "e0".into(), address: None, mtu_bytes, bits_per_second: None }
    }

    #[test]
    fn different_sizes_are_told_host_by_host() {
        let (small, large) = (interface(1500), interface(9000));
        let finding = compare(&[("a", &large), ("b", &small), ("c", &large)]).unwrap();
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.found.contains("1500 on b; 9000 on a, c"), "{}", finding.found);
        assert_eq!(
            finding.remedy.unwrap(),
            "on a: ip link set dev e0 mtu 1500; on c: ip link set dev e0 mtu 1500"
        );
        assert_eq!(compare(&[("a", &small), ("b", &small)]).unwrap().level, Level::Ok);
        assert_eq!(compare(&[]), None);
    }
}
