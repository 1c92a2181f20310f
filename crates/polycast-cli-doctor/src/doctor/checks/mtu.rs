//! One MTU on all hosts: a larger datagram leaves without an error and never arrives.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::message::InterfaceFacts;

/// Compares the interfaces of all hosts.
pub fn compare(hosts: &[(&str, &InterfaceFacts)]) -> Option<Finding> {
    let mut values: Vec<u32> = hosts.iter().map(|(_, interface)| interface.mtu_bytes).collect();
    values.sort_unstable();
    values.dedup();
    let least = *values.first()?;
    if values.len() == 1 {
        let jumbo =
            if least <= 1500 { "" } else { "; every switch on the way must carry frames of that size" };
        return Some(Finding::ok(Topic::Mtu, format!("{least} bytes{jumbo}")));
    }
    let having = |mtu: u32| -> Vec<&str> {
        hosts.iter().filter(|(_, interface)| interface.mtu_bytes == mtu).map(|(host, _)| *host).collect()
    };
    let groups: Vec<String> =
        values.iter().map(|mtu| format!("{mtu} bytes on {}", having(*mtu).join(", "))).collect();
    let found = format!(
        "the hosts differ: {}. What is sent at a larger size never arrives at the others, so polycast takes the smallest",
        groups.join("; ")
    );
    // What most hosts have is what the network was meant for; of two halves, the smaller size is safe.
    let usual = values.iter().copied().rev().max_by_key(|mtu| having(*mtu).len()).unwrap_or(least);
    let others: Vec<String> = hosts
        .iter()
        .filter(|(_, interface)| interface.mtu_bytes != usual)
        .map(|(host, interface)| format!("on {host}: ip link set dev {} mtu {usual}", interface.name))
        .collect();
    Some(Finding::warning(Topic::Mtu, found, others.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn interface(mtu_bytes: u32) -> InterfaceFacts {
        InterfaceFacts { name: "e0".into(), address: None, mtu_bytes, bits_per_second: None }
    }

    #[test]
    fn the_minority_is_to_be_changed() {
        let (small, large) = (interface(1500), interface(9000));
        let finding = compare(&[("a", &large), ("b", &small), ("c", &large)]).unwrap();
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.found.contains("1500 bytes on b; 9000 bytes on a, c"), "{}", finding.found);
        assert_eq!(finding.remedy.unwrap(), "on b: ip link set dev e0 mtu 9000");
        let halves = compare(&[("a", &large), ("b", &small)]).unwrap();
        assert_eq!(halves.remedy.unwrap(), "on a: ip link set dev e0 mtu 1500");
    }

    #[test]
    fn one_size_is_good() {
        let interface = interface(1500);
        assert_eq!(
            compare(&[("a", &interface), ("b", &interface)]).unwrap(),
            Finding::ok(Topic::Mtu, "1500 bytes")
        );
        assert_eq!(compare(&[]), None);
    }
}
