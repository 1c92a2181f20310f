//! The check of the settings about multicast in the environment.

use polycast_core::variables::{BROADCAST, MADCAP, MULTICAST_PROTOCOLS, SWITCH, is_off, is_on};
pub use polycast_core::variables::{MULTICAST, NET};
use polycast_net::{Family, InterfaceChoice};

use crate::doctor::finding::{Finding, Topic};

/// The family that POLYCAST_MULTICAST asks for; IPv4 where it says nothing else.
pub fn family(variable: impl Fn(&str) -> Option<String>) -> Family {
    match variable(MULTICAST) {
        Some(value) if value.eq_ignore_ascii_case("ipv6") => Family::V6,
        _ => Family::V4,
    }
}

/// Looks at the variables that decide whether a job would try multicast.
pub fn check(variable: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut findings = Vec::new();
    if let Some(value) = set(SWITCH).filter(|value| is_off(value)) {
        let found = format!("{SWITCH}={value}: polycast is switched off altogether");
        findings.push(Finding::problem(Topic::Settings, found, format!("unset {SWITCH}")));
    }
    match set(MULTICAST) {
        Some(value) if is_off(&value) => {
            let found = format!("{MULTICAST}={value}: multicast is switched off");
            findings.push(Finding::problem(Topic::Settings, found, format!("unset {MULTICAST}")));
        }
        Some(value)
            if !is_on(&value) && !MULTICAST_PROTOCOLS.contains(&value.to_ascii_lowercase().as_str()) =>
        {
            let found = format!(
                "{MULTICAST}={value}: expected on, off, verbs, ipv4, ipv4-global or ipv6; jobs leave multicast alone"
            );
            findings.push(Finding::problem(Topic::Settings, found, format!("export {MULTICAST}=ipv4")));
        }
        _ => {}
    }
    if let Some(value) = set(BROADCAST).filter(|value| !value.starts_with("multicast")) {
        let found = format!("{BROADCAST}={value}: this algorithm serves every broadcast, never multicast");
        findings.push(Finding::problem(Topic::Settings, found, format!("unset {BROADCAST}")));
    }
    if let Some(Err(error)) = set(NET).map(|value| value.parse::<InterfaceChoice>()) {
        let remedy = format!("export {NET}==eth0 with the name of the cluster's interface, or unset {NET}");
        findings.push(Finding::problem(Topic::Settings, format!("{NET}: {error}"), remedy));
    }
    if let Some(value) = set(MADCAP) {
        let found =
            format!("{MADCAP}={value}: jobs ask that server for groups; the probe takes a random one");
        findings.push(Finding::note(Topic::Settings, found));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Topic::Settings, "no variable keeps polycast from multicast"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn worst(variables: &[(&str, &str)]) -> Level {
        let findings = check(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        findings.iter().map(|finding| finding.level).max().unwrap()
    }

    #[test]
    fn what_switches_multicast_off_is_a_problem() {
        assert_eq!(worst(&[]), Level::Ok);
        assert_eq!(worst(&[("POLYCAST", "OFF")]), Level::Problem);
        assert_eq!(worst(&[("POLYCAST_MULTICAST", "off")]), Level::Problem);
        assert_eq!(worst(&[("POLYCAST_MULTICAST", "ipv6"), ("POLYCAST_NET", "=eth0")]), Level::Ok);
        assert_eq!(worst(&[("POLYCAST_MULTICAST", "ipx")]), Level::Problem);
        assert_eq!(worst(&[("POLYCAST_BCAST", "chain:segment=8KiB")]), Level::Problem);
        assert_eq!(worst(&[("POLYCAST_BCAST", "multicast-pull")]), Level::Ok);
        assert_eq!(worst(&[("POLYCAST_MADCAP", "10.0.0.1")]), Level::Note);
    }

    #[test]
    fn the_family_is_ipv4_unless_asked() {
        assert!(matches!(family(|_| None), Family::V4));
        assert!(matches!(family(|_| Some("IPv6".into())), Family::V6));
    }
}
