//! The interface that polycast would use.

use std::io;

use polycast_net::{Family, Interface, InterfaceChoice};

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

use super::settings::NET;

/// The interface that a job would choose, and what is to be said about it.
pub fn choose(
    system: &System,
    all: io::Result<Vec<Interface>>,
    choice: Option<&str>,
    family: Family,
) -> (Option<Interface>, Vec<Finding>) {
    let problem = |found: String, remedy: String| {
        let finding = Finding::problem(Topic::Interface, found, remedy);
        (None, vec![finding])
    };
    let all = match all {
        Ok(all) => all,
        Err(error) => {
            let found = format!("the interfaces cannot be listed: {error}");
            return problem(found, "is this process confined by seccomp? it needs getifaddrs".into());
        }
    };
    let parsed = choice.map(str::parse::<InterfaceChoice>).transpose();
    let chosen = match parsed {
        Ok(parsed) => parsed.unwrap_or_default().choose(&all, family).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match chosen {
        Ok(interface) => {
            let findings = describe(system, &interface, family);
            (Some(interface), findings)
        }
        Err(error) => {
            let names: Vec<String> = all.iter().map(describe_candidate).collect();
            let found = format!("no interface can be used: {error}; there are {}", names.join(", "));
            let remedy = match all.iter().find(|candidate| !candidate.is_loopback) {
                Some(candidate) => remedy_for(candidate, family),
                None => "give this host a network: in a container, start it with --network host".into(),
            };
            problem(found, remedy)
        }
    }
}

/// `eth0 (down, no multicast)`.
fn describe_candidate(interface: &Interface) -> String {
    let mut faults = Vec::new();
    if interface.is_loopback {
        faults.push("loopback");
    }
    if !interface.is_up {
        faults.push("down or without carrier");
    }
    if !interface.can_multicast {
        faults.push("no multicast");
    }
    if interface.ipv4.is_none() {
        faults.push("no IPv4 address");
    }
    if interface.ipv6.is_none() {
        faults.push("no IPv6 link-local address");
    }
    if faults.is_empty() {
        interface.name.clone()
    } else {
        format!("{} ({})", interface.name, faults.join(", "))
    }
}

/// The first thing that keeps an interface from being used.
fn remedy_for(interface: &Interface, family: Family) -> String {
    let name = &interface.name;
    match family {
        _ if !interface.is_up => {
            format!("ip link set dev {name} up; if it is, check the cable and the switch port")
        }
        _ if !interface.can_multicast => format!("ip link set dev {name} multicast on"),
        Family::V4 if interface.ipv4.is_none() => format!("ip address add ADDRESS/PREFIX dev {name}"),
        Family::V6 if interface.ipv6.is_none() => {
            format!("sysctl -w net.ipv6.conf.{name}.disable_ipv6=0; ip link set dev {name} addrgenmode eui64")
        }
        _ => format!("choose one: export {NET}=={name}"),
    }
}

fn describe(system: &System, interface: &Interface, family: Family) -> Vec<Finding> {
    let name = &interface.name;
    if !interface.is_up || !interface.can_multicast {
        let found = format!("{} is chosen", describe_candidate(interface));
        return vec![Finding::problem(Topic::Interface, found, remedy_for(interface, family))];
    }
    let mut findings =
        vec![Finding::ok(Topic::Interface, format!("{name} is chosen; it is up and takes multicast"))];
    if interface.is_loopback {
        let found = format!("{name} reaches no other host");
        findings.push(Finding::warning(
            Topic::Interface,
            found,
            format!("export {NET}== with a network interface"),
        ));
    }
    if system.exists(&format!("/sys/class/net/{name}/wireless")) {
        let found = format!(
            "{name} is wireless: access points send multicast slowly and without repeating what is lost"
        );
        findings.push(Finding::warning(
            Topic::Interface,
            found,
            format!("use a cable, or export {NET}== with another one"),
        ));
    }
    findings
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    pub fn ethernet(name: &str) -> Interface {
        Interface {
            name: name.into(),
            index: 2,
            ipv4: Some([10, 0, 0, 1].into()),
            ipv6: None,
            mtu_bytes: 1500,
            bits_per_second: None,
            is_up: true,
            can_multicast: true,
            is_loopback: false,
            has_default_route: true,
        }
    }

    #[test]
    fn the_first_fault_gets_its_remedy() {
        let remedy = |interface: Interface| remedy_for(&interface, Family::V4);
        let e0 = ethernet("e0");
        assert!(remedy(Interface { is_up: false, ..e0.clone() }).starts_with("ip link set dev e0 up"));
        assert_eq!(
            remedy(Interface { can_multicast: false, ..e0.clone() }),
            "ip link set dev e0 multicast on"
        );
        assert_eq!(remedy(Interface { ipv4: None, ..e0.clone() }), "ip address add ADDRESS/PREFIX dev e0");
        assert!(remedy_for(&e0, Family::V6).contains("disable_ipv6=0"));
    }

    #[test]
    fn without_an_interface_all_are_named_with_their_faults() {
        let (_root, system) = fake::system(&[]);
        let down = Interface { is_up: false, ..ethernet("e0") };
        let (chosen, findings) = choose(&system, Ok(vec![down]), None, Family::V4);
        assert!(chosen.is_none());
        assert_eq!(findings[0].level, Level::Problem);
        assert!(
            findings[0].found.contains("e0 (down or without carrier, no IPv6 link-local address)"),
            "{:?}",
            findings[0]
        );
    }

    #[test]
    fn wireless_is_seen() {
        let (_root, system) = fake::system(&[("sys/class/net/w0/wireless/link", "0")]);
        let levels: Vec<Level> =
            describe(&system, &ethernet("w0"), Family::V4).iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Warning]);
    }
}
