//! What `lldpcli -f json0 show neighbors` prints on each host: the switches at the other ends of its links.
//!
//! ```text
//! { "lldp": [ { "interface": [
//!     { "name": "eth0",
//!       "chassis": [ { "id": [ { "type": "mac", "value": "00:1b:…" } ], "name": [ { "value": "leaf7" } ],
//!                      "capability": [ { "type": "Bridge", "enabled": true } ] } ],
//!       "port": [ { "auto-negotiation": [ { "current": [ { "value": "10GigBaseLR - …" } ] } ] } ] } ] } ] }
//! ```
//!
//! In json0, unlike json, everything is a list. A host sees its own switch and nothing above it.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::draft::Draft;
use super::{Link, MAX_NAME, Reading, Topology, TopologyError};
use crate::units::Rate;

const COMMAND: &str = "lldpcli -f json0 show neighbors";

/// The output of `lldpcli` on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours<'a> {
    /// The host.
    pub host: &'a str,
    /// The file, as the user named it.
    pub file: &'a str,
    /// The text of the file.
    pub text: &'a str,
}

#[derive(Deserialize)]
struct Output {
    lldp: Vec<Lldp>,
}

#[derive(Deserialize)]
struct Lldp {
    #[serde(default)]
    interface: Vec<Interface>,
}

#[derive(Deserialize)]
struct Interface {
    name: String,
    #[serde(default)]
    chassis: Vec<Chassis>,
    #[serde(default)]
    port: Vec<LldpPort>,
}

#[derive(Deserialize)]
struct Chassis {
    #[serde(default)]
    id: Vec<Valued>,
    #[serde(default)]
    name: Vec<Valued>,
    #[serde(default)]
    capability: Vec<Capability>,
}

#[derive(Deserialize)]
struct Valued {
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Capability {
    #[serde(rename = "type")]
    kind: String,
    enabled: bool,
}

#[derive(Deserialize)]
struct LldpPort {
    #[serde(rename = "auto-negotiation", default)]
    negotiation: Vec<Negotiation>,
}

#[derive(Deserialize)]
struct Negotiation {
    #[serde(default)]
    current: Vec<Valued>,
}

/// A switch that a host sees.
#[derive(Clone, Debug)]
struct Seen {
    interface: String,
    /// The id of the switch, or its name if it has none: tells it from other switches.
    identity: String,
    name: String,
    rate: Option<Rate>,
}

impl Topology {
    /// The leaf switches of a cluster, as its hosts see them; one switch joins them if there are several. Hosts that see no
    /// switch are left out with a note, and of several switches that a host sees, the one with the fastest link is taken.
    ///
    /// # Errors
    /// Texts that are not what the command prints; no host that sees a switch.
    pub fn from_lldp(hosts: &[Neighbours<'_>]) -> Result<Topology, TopologyError> {
        let mut draft = Draft::new("LLDP");
        draft.is_open_above = true;
        let mut problems = Vec::new();
        let mut chosen: Vec<(&str, Seen)> = Vec::new();
        for host in hosts {
            match switches(host) {
                Ok(seen) => chosen.extend(choose(&mut draft, host.host, seen).map(|seen| (host.host, seen))),
                Err(error) => problems.extend(error.problems),
            }
        }
        let names = names(&chosen);
        for (host, seen) in &chosen {
            let name = &names[&seen.identity];
            if let Some(switch) = draft.switch(name).or_else(|| draft.add_switch(0, name)) {
                draft.add_host(0, host, switch, Link { rate: seen.rate, latency: None });
            }
        }
        match problems.is_empty() {
            true => draft.finish(Reading { spanning_tree: true }),
            false => Err(TopologyError::new(problems)),
        }
    }
}

/// The switches that a host sees.
fn switches(host: &Neighbours<'_>) -> Result<Vec<Seen>, TopologyError> {
    let output: Output = serde_json::from_str(host.text).map_err(|error| {
        let problem = format!("expected what `{COMMAND}` prints: {error}");
        TopologyError::mistake(host.file, error.line(), problem)
    })?;
    let interfaces = output.lldp.into_iter().flat_map(|lldp| lldp.interface);
    Ok(interfaces.filter_map(seen).collect())
}

fn seen(interface: Interface) -> Option<Seen> {
    let chassis = interface.chassis.into_iter().next()?;
    let is_bridge = |capability: &Capability| capability.kind == "Bridge" && capability.enabled;
    // Some switches tell nothing of what they can do; what says that it is no bridge is another host.
    if !chassis.capability.is_empty() && !chassis.capability.iter().any(is_bridge) {
        return None;
    }
    let value =
        |values: Vec<Valued>| values.into_iter().map(|valued| valued.value).find(|value| !value.is_empty());
    let (id, name) = (value(chassis.id), value(chassis.name));
    let operational =
        interface.port.into_iter().flat_map(|port| port.negotiation).flat_map(|n| n.current).next();
    Some(Seen {
        interface: interface.name,
        identity: id.clone().or_else(|| name.clone())?,
        name: as_name(&name.or(id)?),
        rate: operational.and_then(|operational| rate_of_medium(&operational.value)),
    })
}

/// Letters that names may not have become hyphens: the id of a chassis is often an address such as `00:1b:21:…`.
fn as_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String =
        text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).chars().map(plain).collect();
    let name: String = name.chars().take(MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The rate in the name of a medium, such as `1000BaseTFD`, `10GigBaseLR`, `40GbaseCR4`, which a switch gives for its port.
fn rate_of_medium(medium: &str) -> Option<Rate> {
    let digits = medium.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = medium.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let scale = match () {
        () if unit.starts_with("base") => 1_000_000,
        () if unit.starts_with("gigbase") || unit.starts_with("gbase") => 1_000_000_000,
        () => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale).and_then(Rate::from_bits_per_second)
}

/// The switch with the fastest link, the first of several; a note names the others.
fn choose(draft: &mut Draft, host: &str, seen: Vec<Seen>) -> Option<Seen> {
    let Some(best) = seen.iter().rev().max_by_key(|seen| seen.rate).cloned() else {
        draft.notes.push(format!("host {host} sees no switch and is left out"));
        return None;
    };
    let others: BTreeMap<&str, &str> = seen
        .iter()
        .filter(|other| other.identity != best.identity)
        .map(|other| (other.interface.as_str(), other.name.as_str()))
        .collect();
    if !others.is_empty() {
        let others: Vec<String> =
            others.into_iter().map(|(interface, name)| format!("{name} ({interface})")).collect();
        let (name, interface) = (&best.name, &best.interface);
        let note =
            format!("host {host} is taken to be on {name} ({interface}), not on {}", others.join(", "));
        draft.notes.push(note);
    }
    Some(best)
}

/// A name for each identity; switches of equal names get their identities behind them.
fn names(chosen: &[(&str, Seen)]) -> HashMap<String, String> {
    let mut identities_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, seen) in chosen {
        let identities = identities_of.entry(&seen.name).or_default();
        if !identities.contains(&seen.identity.as_str()) {
            identities.push(&seen.identity);
        }
    }
    let mut names = HashMap::new();
    for (_, seen) in chosen {
        let is_unique = identities_of[seen.name.as_str()].len() == 1;
        let name = match is_unique {
            true => seen.name.clone(),
            false => as_name(&format!("{}-{}", seen.name, seen.identity)),
        };
        names.entry(seen.identity.clone()).or_insert(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An entry as lldpcli 1.0 writes it, shortened.
    fn interface(name: &str, chassis: &str, mac: &str, bridge: bool, medium: &str) -> String {
        format!(
            r#"{{ "name": "{name}", "via": "LLDP", "rid": "1", "age": "0 day, 00:06:36",
                 "chassis": [ {{ "id": [ {{ "type": "mac", "value": "{mac}" }} ], {chassis}
                   "capability": [ {{ "type": "Bridge", "enabled": {bridge} }}, {{ "type": "Router", "enabled": false }} ] }} ],
                 "port": [ {{ "id": [ {{ "type": "ifname", "value": "Ethernet1" }} ],
                   "auto-negotiation": [ {{ "supported": true, "enabled": true, "current": [ {{ "value": "{medium}" }} ] }} ] }} ] }}"#
        )
    }

    fn named(name: &str) -> String {
        format!(r#""name": [ {{ "value": "{name}" }} ], "#)
    }

    fn output(interfaces: &[String]) -> String {
        format!(r#"{{ "lldp": [ {{ "interface": [ {} ] }} ] }}"#, interfaces.join(","))
    }

    fn read(hosts: &[(&str, String)]) -> Result<Topology, TopologyError> {
        let hosts: Vec<_> =
            hosts.iter().map(|(host, text)| Neighbours { host, file: "h.json", text }).collect();
        Topology::from_lldp(&hosts)
    }

    #[test]
    fn leaf_switches_are_joined_by_one_that_nobody_sees() {
        let leaf = |name, mac, medium| output(&[interface("eth0", &named(name), mac, true, medium)]);
        let topology = read(&[
            ("a", leaf("leaf0", "00:00:00:00:00:01", "10GigBaseLR - R PHY over 1310 nm optics")),
            (
                "b",
                leaf(
                    "leaf0",
                    "00:00:00:00:00:01",
                    "1000BaseTFD - Four-pair Category 5 UTP, full duplex mode",
                ),
            ),
            ("c", leaf("leaf1", "00:00:00:00:00:02", "unknown")),
        ])
        .unwrap();
        let switches: Vec<_> =
            topology.switches.iter().map(|switch| (switch.name.as_str(), switch.parent)).collect();
        assert_eq!(switches, [("leaf0", Some(2)), ("leaf1", Some(2)), ("top", None)]);
        let rates: Vec<_> =
            topology.hosts.iter().map(|host| host.link.rate.map(|rate| rate.to_string())).collect();
        assert_eq!(rates, [Some("10gbit".to_owned()), Some("1gbit".to_owned()), None]);
        assert!(topology.notes[0].contains("joins leaf0, leaf1"));
    }

    #[test]
    fn the_fastest_link_to_a_switch_is_taken() {
        let interfaces = [
            interface("eno1", &named("management"), "00:00:00:00:00:09", true, "1000BaseTFD"),
            interface("ens1", &named("leaf0"), "00:00:00:00:00:01", true, "100GbaseCR10"),
            interface("ens2", &named("leaf0"), "00:00:00:00:00:01", true, "100GbaseCR10"),
            interface("veth0", &named("container"), "00:00:00:00:00:07", false, "10GigBaseX"),
        ];
        let topology = read(&[("a", output(&interfaces))]).unwrap();
        assert_eq!(topology.switches[0].name, "leaf0");
        assert_eq!(topology.notes, ["host a is taken to be on leaf0 (ens1), not on management (eno1)"]);
    }

    #[test]
    fn switches_without_name_or_with_the_same() {
        let unnamed = output(&[interface("eth0", "", "00:00:00:00:00:01", true, "")]);
        assert_eq!(read(&[("a", unnamed)]).unwrap().switches[0].name, "00-00-00-00-00-01");
        let same = |mac| output(&[interface("eth0", &named("switch"), mac, true, "")]);
        let topology = read(&[("a", same("00:01")), ("b", same("00:02")), ("c", same("00:01"))]).unwrap();
        let names: Vec<_> = topology.switches.iter().map(|switch| switch.name.as_str()).collect();
        assert_eq!(names, ["switch-00-01", "switch-00-02", "top"]);
    }

    #[test]
    fn a_host_without_switch_is_left_out() {
        let nothing = r#"{ "lldp": [ {} ] }"#.to_owned();
        let leaf = output(&[interface("eth0", &named("leaf0"), "00:01", true, "")]);
        let topology = read(&[("a", nothing.clone()), ("b", leaf)]).unwrap();
        assert_eq!(
            (topology.hosts.len(), topology.notes[0].as_str()),
            (1, "host a sees no switch and is left out")
        );
        assert!(read(&[("a", nothing)]).is_err());
    }

    #[test]
    fn other_outputs_are_refused_with_their_line() {
        let json = "{\n\"lldp\": {\n \"interface\": {} } }".to_owned();
        let problems = read(&[("a", json), ("b", "LLDP neighbors:".to_owned())]).unwrap_err().problems;
        assert_eq!(problems.len(), 2);
        assert!(problems.iter().all(|problem| problem.text.contains(COMMAND)));
    }

    #[test]
    fn rates_of_media() {
        for (medium, rate) in [
            ("10BaseTFD - UTP MAU", Some("10mbit")),
            ("100BaseTXFD", Some("100mbit")),
            ("10GigBaseCX4 - X", Some("10gbit")),
            ("40GbaseLR4", Some("40gbit")),
            ("unknown", None),
            ("", None),
            ("2p5GigT", None),
            ("99999999999999999999BaseT", None),
        ] {
            assert_eq!(rate_of_medium(medium).map(|rate| rate.to_string()).as_deref(), rate, "{medium}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            host in "[a/]{0,2}",
            text in "(\"(lldp|interface|name|chassis|id|value|port|type|enabled)\":|[\\[\\]{},]|\"[é:a]{0,3}\"|true){0,40}",
        ) {
            let _ = read(&[("a", text.clone()), ("b", output(&[interface(&host, "", &host, true, &host)]))]);
        }
    }
}
