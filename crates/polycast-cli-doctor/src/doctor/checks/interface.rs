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
    let all = match all {
        Ok(all) => all,
        Err(error) => {
            let found = format!("the interfaces cannot be listed: {error}");
            let remedy = "is this process confined by seccomp? it needs getifaddrs";
            return (None, vec![Finding::problem(Topic::Interface, found, remedy)]);
        }
    };
    let parsed = choice.map(str::parse::<InterfaceChoice>).transpose();
    let chosen = match parsed {
        Ok(parsed) => parsed.unwrap_or_default().choose(&all, family).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match chosen {
        Ok(interface) => {
            let findings = describe(system, &interface);
            (Some(interface), findings)
        }
        Err(error) => (
            None,
            vec![Finding::of_error(Topic::Interface, &error).with_remedy(remedy(&all, choice, family))],
        ),
    }
}

/// Another choice where there is one; else what the interface lacks that was meant.
fn remedy(all: &[Interface], choice: Option<&str>, family: Family) -> String {
    let automatic = InterfaceChoice::default();
    let is_usable =
        |interface: &&Interface| automatic.choose(std::slice::from_ref(interface), family).is_ok();
    let usable: Vec<&str> = all.iter().filter(is_usable).map(|interface| interface.name.as_str()).collect();
    let named = choice.map(|choice| choice.trim_start_matches('='));
    let meant = all.iter().find(|interface| Some(interface.name.as_str()) == named);
    match (meant, usable.as_slice()) {
        (None, [first, ..]) => {
            format!(
                "usable here: {}; choose one (export {NET}=={first}), or leave the choice out",
                usable.join(", ")
            )
        }
        (Some(meant), [first, ..]) => {
            let other = usable.join(", ");
            format!(
                "{}; or choose one that is usable: {other} (export {NET}=={first})",
                remedy_for(meant, family)
            )
        }
        (meant, []) => match meant.or_else(|| all.iter().find(|candidate| !candidate.is_loopback)) {
            Some(candidate) => remedy_for(candidate, family),
            None => "give this host a network: in a container, start it with --network host".into(),
        },
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

fn describe(system: &System, interface: &Interface) -> Vec<Finding> {
    let name = &interface.name;
    let mut findings =
        vec![Finding::ok(Topic::Interface, format!("{name} is chosen; it is up and takes multicast"))];
    if interface.is_loopback {
        let found = format!("{name} reaches no other host");
        findings.push(Finding::warning(
            Topic::Interface,
            found,
            format!("export {NET}==eth0, with the name of a network interface"),
        ));
    }
    if system.exists(&format!("/sys/class/net/{name}/wireless")) {
        let found = format!(
            "{name} is wireless: access points send multicast slowly and without repeating what is lost"
        );
        findings.push(Finding::warning(
            Topic::Interface,
            found,
            format!("use a cable: export {NET}==eth0, with the name of a wired interface"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    fn ethernet(name: &str) -> Interface {
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
    fn without_an_interface_the_first_that_could_be_is_to_be_cured() {
        let (_root, system) = fake::system(&[]);
        let down = Interface { is_up: false, ..ethernet("e0") };
        let (chosen, findings) = choose(&system, Ok(vec![down]), None, Family::V4);
        assert!(chosen.is_none() && findings[0].level == Level::Problem);
        assert!(findings[0].found.contains("e0"), "{:?}", findings[0]);
        assert!(findings[0].remedy.as_deref().unwrap().starts_with("ip link set dev e0 up"));
        let (_, findings) = choose(&system, Ok(vec![]), None, Family::V4);
        assert!(findings[0].remedy.as_deref().unwrap().contains("--network host"));
    }

    #[test]
    fn a_name_that_is_none_gets_those_that_are() {
        let (_root, system) = fake::system(&[]);
        let all = || Ok(vec![ethernet("e0"), Interface { is_up: false, ..ethernet("e1") }, ethernet("e2")]);
        let remedy = |choice| {
            let (chosen, findings) = choose(&system, all(), Some(choice), Family::V4);
            assert!(chosen.is_none());
            findings[0].remedy.clone().unwrap()
        };
        assert_eq!(
            remedy("nope0"),
            "usable here: e0, e2; choose one (export POLYCAST_NET==e0), or leave the choice out"
        );
        assert!(remedy("=e1").starts_with("ip link set dev e1 up"), "{}", remedy("=e1"));
        assert!(remedy("=e1").ends_with("usable: e0, e2 (export POLYCAST_NET==e0)"), "{}", remedy("=e1"));
    }

    #[test]
    fn wireless_is_seen() {
        let (_root, system) = fake::system(&[("sys/class/net/w0/wireless/link", "0")]);
        let levels: Vec<Level> =
            describe(&system, &ethernet("w0")).iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Warning]);
    }
}
