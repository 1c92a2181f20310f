//! The sentences about a topology that was found.

use super::infer::{Agreement, Inferred};
use polycast_core::topology::{Link, Topology};
use polycast_core::units::Rate;

use super::flows::Flows;

/// Payload of a full frame with the longest usual headers, and the frame: flows are measured in payload, links have rates
/// of frames.
const PAYLOAD_OF_FRAME: f64 = 1448.0 / 1514.0;

/// The blind spots of measurements of this kind, whatever they find.
const BLIND_SPOTS: [&str; 4] = [
    "cannot be seen: links that carry two flows as fast as one",
    "cannot be seen: a switch with a single host of this job, which looks like that host's own link",
    "cannot be seen: how many switches stand in a row where nothing branches off",
    "rates are those of the flows that were measured: a link between switches is no slower, and may be faster if hosts were \
     the limit",
];

/// The topology of hosts with these names, with the rates that were seen and notes on what it rests on.
pub fn topology(inferred: &Inferred, hosts: &[String], flows: &Flows, when: &str) -> Topology {
    let link = |payload: f64| Link { rate: line_rate(payload), latency: None };
    let own: Vec<_> =
        (0..hosts.len()).map(|host| (hosts[host].clone(), link(flows.most_of_host(host)))).collect();
    let mut notes = vec![format!(
        "found by measurement on {when}: {} hosts, {} answers, each of two flows at the same time",
        hosts.len(),
        inferred.answers
    )];
    let mut uplinks = Vec::new();
    for (switch, (evidence, witness)) in inferred.evidence.iter().zip(&inferred.witness).enumerate() {
        let Some(quartet) = *witness else {
            uplinks.push(Link::default());
            continue;
        };
        let (together, alone) = flows.rates_of(quartet);
        uplinks.push(link(together));
        let [[a, b], [c, d]] = [quartet.near, quartet.far].map(|pair| pair.map(|host| &hosts[host]));
        notes.push(format!(
            "link above s{switch}: {} of {} answers ({:.0} %); {a} to {c} and {b} to {d} carry {} together, {} one after \
             the other",
            evidence.yes,
            evidence.yes + evidence.no,
            evidence.confidence() * 100.0,
            megabits(together),
            megabits(alone),
        ));
    }
    notes.extend(BLIND_SPOTS.map(str::to_owned));
    Topology { notes, ..inferred.topology(&own, &uplinks) }
}

/// The rate of a link that carries this rate of payload, to two digits: flows of a sixth of a second say no more.
fn line_rate(payload_bits_per_second: f64) -> Option<Rate> {
    let bits = payload_bits_per_second / PAYLOAD_OF_FRAME;
    let unit = 10f64.powi((bits.max(1.0).log10().floor() as i32 - 1).max(0));
    Rate::from_bits_per_second(((bits / unit).round() * unit) as u64)
}

fn megabits(bits_per_second: f64) -> String {
    format!("{:.1} Mb/s", bits_per_second / 1e6)
}

/// A sentence on how many pairs of hosts are grouped rightly, with the first of the wrong pairs.
pub fn comparison(found: &Topology, truth: &Topology) -> String {
    const SHOWN: usize = 8;
    let Agreement { pairs, wrong } = Agreement::between(found, truth);
    let right = pairs - wrong.len();
    let mut text = format!("{right} of {pairs} pairs of hosts are together or apart as in truth");
    if !wrong.is_empty() {
        let shown: Vec<String> = wrong.iter().take(SHOWN).map(|(a, b)| format!("{a} and {b}")).collect();
        let more = if wrong.len() > SHOWN { ", …" } else { "" };
        text += &format!("; wrong: {}{more}", shown.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_frames() {
        let rate = |payload| line_rate(payload).unwrap().to_string();
        assert_eq!(rate(19.13e6), "20mbit");
        assert_eq!(rate(941.0e6), "980mbit");
        assert_eq!(line_rate(0.0), None);
    }

    #[test]
    fn a_comparison_names_the_pairs() {
        let flat = Topology::flat(["a", "b", "c"].map(str::to_owned));
        let mut split = flat.clone();
        split.switches.push(polycast_core::topology::Switch {
            name: "t".into(),
            parent: Some(0),
            uplink: Link::default(),
        });
        split.hosts[2].switch = 1;
        assert_eq!(
            comparison(&split, &flat),
            "1 of 3 pairs of hosts are together or apart as in truth; wrong: a and c, b and c"
        );
        assert!(comparison(&flat, &flat).starts_with("3 of 3"));
    }
}
