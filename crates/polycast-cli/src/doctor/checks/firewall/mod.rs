//! Packet filters that would drop the datagrams, where this user may read them.

mod iptables;
mod nft;
mod packet;
mod ruleset;

use polycast_net::Family;

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::{Listing, System};

use packet::{Direction, Packet};
use ruleset::{Fate, Ruleset};

/// Walks the rules as a datagram would, coming and going.
pub fn check(system: &System, interface: &str, family: Family) -> Vec<Finding> {
    let (rulesets, mut findings) = readable(system, family);
    let packet = |direction| Packet { interface, family, direction };
    for ruleset in &rulesets {
        for direction in [Direction::In, Direction::Out] {
            let packet = packet(direction);
            findings.extend(ruleset.fates(&packet).iter().filter_map(|fate| describe(fate, &packet)));
        }
    }
    if findings.is_empty() {
        let found = if rulesets.iter().all(Ruleset::is_empty) {
            "no filter is set"
        } else {
            "no rule stands in the way"
        };
        findings.push(Finding::ok(Topic::Firewall, found));
    }
    findings
}

/// The rules that this user may read, and what is unknown about the others.
fn readable(system: &System, family: Family) -> (Vec<Ruleset>, Vec<Finding>) {
    let mut rulesets = Vec::new();
    let mut findings = Vec::new();
    match system.list("nft", &["-j", "list", "ruleset"]) {
        Listing::Text(text) => match nft::parse(&text) {
            Ok(ruleset) => rulesets.push(ruleset),
            Err(error) => findings.push(unknown(&format!("nft's answer is not understood ({error})"))),
        },
        // Without nft and without the kernel's part of it there are no such rules.
        Listing::Missing if !system.exists("/proc/sys/net/netfilter") => {}
        Listing::Missing => {
            findings.push(unknown("nft is not installed").with_remedy("apt-get install nftables"))
        }
        Listing::Refused(reason) => findings.push(unknown(&reason)),
    }
    let (names, program) = match family {
        Family::V4 => ("/proc/net/ip_tables_names", "iptables-legacy-save"),
        Family::V6 => ("/proc/net/ip6_tables_names", "ip6tables-legacy-save"),
    };
    // The file exists where the old filter is loaded; rules of iptables-nft are among those of nft.
    if system.read(names).is_some_and(|names| names.lines().any(|name| name == "filter")) {
        match system.list(program, &["-t", "filter"]) {
            Listing::Text(text) => rulesets.push(iptables::parse(&text)),
            Listing::Missing => findings.push(unknown(&format!("{program} is not installed"))),
            Listing::Refused(reason) => findings.push(unknown(&reason)),
        }
    }
    (rulesets, findings)
}

fn unknown(reason: &str) -> Finding {
    Finding::note(Topic::Firewall, format!("unknown, the rules cannot be read: {reason}"))
        .with_remedy("sudo polycast doctor; the probe tells whether datagrams pass")
}

fn describe(fate: &Fate, packet: &Packet<'_>) -> Option<Finding> {
    let (verb, dropper) = match fate {
        Fate::Passes => return None,
        Fate::Dropped(dropper) => ("drops", dropper),
        Fate::MayBeDropped(dropper) => ("may drop", dropper),
    };
    let what = match packet.direction {
        Direction::In => "multicast that arrives",
        Direction::Out => "multicast that is sent",
    };
    let found = format!("{} {verb} {what}: {}", dropper.place, dropper.rule);
    Some(Finding::warning(Topic::Firewall, found, dropper.remedy(packet)))
}

#[cfg(test)]
mod tests;
