//! polycast's own format, which says all that a [`Topology`] holds.
//!
//! ```text
//! { "format": "polycast-topology", "version": 1,
//!   "switches": [ { "name": "core" },
//!                 { "name": "leaf0", "parent": "core", "uplink": { "bits_per_second": 10000000000, "latency_ns": 500 } } ],
//!   "hosts": [ { "name": "dev0", "switch": "leaf0", "link": { "bits_per_second": 1000000000 } } ],
//!   "notes": [ "…" ] }
//! ```

use serde::Serialize;
use serde::de::IgnoredAny;

use super::draft::Draft;
use super::node::{self, Node};
use super::{Link, Reading, Topology, TopologyError, Written};
use crate::units::{Nanos, Rate};

const FORMAT: &str = "polycast-topology";
const VERSION: u64 = 1;
const LLDP: &str =
    "this is what lldpcli prints on one host; give those of all hosts to `polycast topology from-lldp`";

/// Reads the text of a file; `file` is the name that problems show.
pub(super) fn read(text: &str, file: &str, reading: Reading) -> Result<Topology, TopologyError> {
    // JSON's own reader says best what is wrong with its commas and brackets.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(TopologyError::mistake(file, error.line(), format!("expected JSON: {error}")));
    }
    let root = node::read(text).map_err(|(line, problem)| TopologyError::mistake(file, line, problem))?;
    let mut draft = Draft::new(file);
    if root.has_key("lldp") {
        return Err(TopologyError::mistake(file, root.line, LLDP));
    }
    let known = ["format", "version", "switches", "hosts", "notes"];
    if let Some([format, version, switches, hosts, notes]) = root.fields(&mut draft, "a topology", known) {
        check_version(&mut draft, &root, format, version);
        add_switches(&mut draft, switches);
        add_hosts(&mut draft, hosts);
        for note in notes.map_or(&[][..], |notes| notes.items(&mut draft, "notes")) {
            let note = note.text(&mut draft, "a note").map(str::to_owned);
            draft.notes.extend(note);
        }
    }
    draft.finish(reading)
}

fn check_version(draft: &mut Draft, root: &Node, format: Option<&Node>, version: Option<&Node>) {
    let expected = format!("expected \"format\": \"{FORMAT}\" and \"version\": {VERSION}");
    let Some((format, version)) = format.zip(version) else {
        return draft.mistake(root.line, expected);
    };
    if format.text(draft, "the format").is_some_and(|format| format != FORMAT) {
        draft.mistake(format.line, expected);
    } else if let Some(found) = version.number(draft, "the version").filter(|&version| version != VERSION) {
        draft.mistake(version.line, format!("{expected}, found version {found}"));
    }
}

fn add_switches(draft: &mut Draft, switches: Option<&Node>) {
    let mut with_parent = Vec::new();
    for node in switches.map_or(&[][..], |switches| switches.items(draft, "switches")) {
        let Some([name, parent, uplink]) = node.fields(draft, "a switch", ["name", "parent", "uplink"])
        else {
            continue;
        };
        let Some(name) = name_of(draft, node, name, "switch") else { continue };
        let link = read_link(draft, uplink);
        match (draft.add_switch(node.line, name), parent, uplink) {
            (Some(switch), Some(parent), _) => with_parent.push((switch, parent, link)),
            (_, None, Some(uplink)) => {
                draft.mistake(uplink.line, format!("switch {name} has an uplink but no parent"));
            }
            _ => {}
        }
    }
    // A switch may be described before the one above it.
    for (switch, parent, link) in with_parent {
        if let Some(above) = known_switch(draft, parent) {
            draft.add_link(parent.line, above, switch, link);
        }
    }
}

fn add_hosts(draft: &mut Draft, hosts: Option<&Node>) {
    for node in hosts.map_or(&[][..], |hosts| hosts.items(draft, "hosts")) {
        let Some([name, switch, link]) = node.fields(draft, "a host", ["name", "switch", "link"]) else {
            continue;
        };
        let Some(name) = name_of(draft, node, name, "host") else { continue };
        let link = read_link(draft, link);
        match switch {
            Some(switch) => {
                if let Some(switch) = known_switch(draft, switch) {
                    draft.add_host(node.line, name, switch, link);
                }
            }
            None => draft.mistake(node.line, format!("expected host {name} to have a \"switch\"")),
        }
    }
}

fn name_of<'a>(draft: &mut Draft, node: &Node, name: Option<&'a Node>, what: &str) -> Option<&'a str> {
    if name.is_none() {
        draft.mistake(node.line, format!("expected a {what} to have a \"name\""));
    }
    name?.text(draft, "a name")
}

fn known_switch(draft: &mut Draft, name: &Node) -> Option<usize> {
    let text = name.text(draft, "the name of a switch")?;
    let known = draft.switch(text);
    if known.is_none() {
        draft.mistake(name.line, format!("no switch is named {text:?}"));
    }
    known
}

fn read_link(draft: &mut Draft, link: Option<&Node>) -> Link {
    let known = ["bits_per_second", "latency_ns"];
    let Some([rate, latency]) = link.and_then(|link| link.fields(draft, "a link", known)) else {
        return Link::default();
    };
    let bits = rate.and_then(|rate| Some((rate.line, rate.number(draft, "bits_per_second")?)));
    let rate = bits.and_then(|(line, bits)| {
        let rate = Rate::from_bits_per_second(bits);
        if rate.is_none() {
            let (least, most) = (Rate::MIN.bits_per_second(), Rate::MAX.bits_per_second());
            draft.mistake(line, format!("expected bits_per_second from {least} to {most}, found {bits}"));
        }
        rate
    });
    Link { rate, latency: latency.and_then(|latency| latency.number(draft, "latency_ns")).map(Nanos) }
}

#[derive(Serialize)]
struct File<'a> {
    format: &'static str,
    version: u64,
    switches: Vec<WrittenSwitch<'a>>,
    hosts: Vec<WrittenHost<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct WrittenSwitch<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "WrittenLink::is_unknown")]
    uplink: WrittenLink,
}

#[derive(Serialize)]
struct WrittenHost<'a> {
    name: &'a str,
    switch: &'a str,
    #[serde(skip_serializing_if = "WrittenLink::is_unknown")]
    link: WrittenLink,
}

#[derive(Default, Serialize)]
struct WrittenLink {
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<u64>,
}

impl WrittenLink {
    fn new(link: Link) -> WrittenLink {
        WrittenLink {
            bits_per_second: link.rate.map(Rate::bits_per_second),
            latency_ns: link.latency.map(|latency| latency.0),
        }
    }

    fn is_unknown(&self) -> bool {
        self.bits_per_second.is_none() && self.latency_ns.is_none()
    }
}

/// Writes all that the topology holds.
pub(super) fn write(topology: &Topology) -> Written {
    let name = |switch: usize| topology.switches[switch].name.as_str();
    let switches = topology.switches.iter().map(|switch| WrittenSwitch {
        name: &switch.name,
        parent: switch.parent.map(name),
        uplink: switch.parent.map_or(WrittenLink::default(), |_| WrittenLink::new(switch.uplink)),
    });
    let hosts = topology.hosts.iter().map(|host| WrittenHost {
        name: &host.name,
        switch: name(host.switch),
        link: WrittenLink::new(host.link),
    });
    let file = File {
        format: FORMAT,
        version: VERSION,
        switches: switches.collect(),
        hosts: hosts.collect(),
        notes: &topology.notes,
    };
    let text = serde_json::to_string_pretty(&file).expect("strings and numbers can be written as JSON");
    Written { text: text + "\n", lost: Vec::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::any_topology;
    use super::*;

    fn parse(text: &str) -> Result<Topology, TopologyError> {
        read(text, "t", Reading::default())
    }

    const SMALL: &str = r#"{ "format": "polycast-topology", "version": 1,
"switches": [ { "name": "leaf", "parent": "core",
                "uplink": { "bits_per_second": 10000000000, "latency_ns": 500 } },
              { "name": "core" } ],
"hosts": [ { "name": "a", "switch": "leaf",
             "link": { "bits_per_second": 1000000000 } } ] }"#;

    #[test]
    fn a_small_file() {
        let topology = parse(SMALL).unwrap();
        assert_eq!(topology.switches[0].parent, Some(1));
        assert_eq!(topology.switches[0].uplink.latency, Some(Nanos(500)));
        assert_eq!(topology.hosts[0].link.rate.unwrap().to_string(), "1gbit");
        assert_eq!(parse(&SMALL.replace('\n', "\n\t")), Ok(topology));
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        for (from, to, line, words) in [
            ("polycast-topology", "other", 1, "\"polycast-topology\""),
            ("\"version\": 1", "\"version\": 2", 1, "found version 2"),
            ("\"version\": 1", "\"version\": true", 1, "whole number"),
            ("\"parent\": \"core\"", "\"parent\": \"roof\"", 2, "no switch is named \"roof\""),
            ("500", "0.5", 3, "whole number"),
            ("latency_ns", "latency_us", 3, "\"latency_us\""),
            ("10000000000", "1", 3, "from 8000 to 1000000000000"),
            ("\"core\" }", "\"core\", \"uplink\": {} }", 4, "no parent"),
            ("\"core\" }", "\"leaf\" }", 4, "already, in line 2"),
            ("\"core\" }", "\"co/re\" }", 4, "letters"),
            ("\"name\": \"core\"", "", 4, "\"name\""),
            ("\"core\" }", "\"core\" }, { \"name\": \"more\" }", 4, "nothing joins more with core"),
            ("\"switch\": \"leaf\"", "\"switch\": [\"leaf\"]", 5, "a list"),
            ("\"switch\": \"leaf\",", "", 5, "\"switch\""),
            ("\"hosts\": [", "\"hosts\": [],\n\"hosts\": [", 6, "twice"),
            ("1000000000 } } ] }", "1000000000 } ] }", 6, "expected JSON"),
            ("\"format\"", "\"lldp\"", 1, "from-lldp"),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let problems = parse(&SMALL.replacen(from, to, 1)).unwrap_err().problems;
            let expected = |p: &super::super::Problem| p.line == line && p.text.contains(words);
            assert!(problems.iter().any(expected), "{to}: {problems:?}");
        }
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let text = SMALL
            .replace("10000000000", "1")
            .replace("\"core\" }", "\"co/re\" }")
            .replace("\"a\"", "7, \"x\": 1");
        let lines: Vec<_> = parse(&text).unwrap_err().problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(topology in any_topology()) {
            prop_assert_eq!(parse(&write(&topology).text), Ok(topology));
        }

        #[test]
        fn no_text_makes_the_reader_panic(
            text in "\\{?(\"(name|switches|hosts|parent|switch|link|uplink|a)\"|[\\[\\]{}:,0-9 \n]){0,40}",
        ) {
            let _ = parse(&text);
        }
    }
}
