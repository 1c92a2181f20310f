//! The report on everything that was found, as `--json` has it; [`super::page`] shows it to people.

use polycast_net::Family;
use serde::Serialize;

use super::finding::{Finding, Level, Topic};
use super::message::{HostFacts, SocketFacts};
use super::probe::matrix::Matrix;

/// Everything that was found.
#[derive(Serialize)]
pub struct Report {
    /// The verdict; a problem is what speaks against it.
    pub multicast_would_be_used: bool,
    family: &'static str,
    /// The group of the probe.
    pub group: Option<String>,
    /// The hosts, in the order in which they were named.
    pub hosts: Vec<HostReport>,
    pub(super) findings: Vec<Said>,
    /// The probe; absent if there was nobody to send to.
    pub probe: Option<ProbeReport>,
    /// The rates of the blasts from one host to another.
    pub rates: Vec<WayReport>,
}

/// The rate from one host to another.
#[derive(Serialize)]
pub struct WayReport {
    /// The name of the sending host.
    pub from: String,
    /// The name of the receiving host.
    pub to: String,
    /// The rate of the fastest blast.
    pub bits_per_second: u64,
}

/// A host.
#[derive(Serialize)]
pub struct HostReport {
    /// The host's name as the user gave it.
    pub name: String,
    /// Kernel and interface.
    #[serde(flatten)]
    pub facts: HostFacts,
    /// The socket of the probe; absent if the host has none.
    pub socket: Option<SocketFacts>,
    /// Datagrams of others on the probe's group and port.
    pub foreign: u64,
    /// Datagrams that its kernel dropped because the receive buffer was full.
    pub dropped: u64,
    /// The fastest rate of a blast from this host to another one; absent if none was measured.
    pub sends_bits_per_second: Option<u64>,
    /// The fastest rate of a blast from another host to this one; absent if none was measured.
    pub receives_bits_per_second: Option<u64>,
}

/// A finding, and whom it is about.
#[derive(Serialize)]
pub(super) struct Said {
    /// The hosts that the finding is about; empty if it is about the network.
    pub hosts: Vec<String>,
    #[serde(flatten)]
    pub finding: Finding,
}

/// The round with full-size datagrams.
#[derive(Serialize)]
pub struct ProbeReport {
    pub(super) pairs: Vec<Pair>,
    #[serde(skip)]
    pub(super) names: Vec<String>,
    #[serde(skip)]
    pub(super) matrix: Matrix,
}

/// The datagrams that one host heard of another.
#[derive(Serialize)]
pub(super) struct Pair {
    pub from: String,
    pub to: String,
    pub sent: u32,
    received: u32,
    pub lost_percent: f64,
    duplicates: u32,
    reordered: u32,
}

impl HostReport {
    /// A host of which nothing is known yet.
    pub fn unknown(name: &str) -> HostReport {
        HostReport {
            name: name.to_owned(),
            facts: HostFacts::default(),
            socket: None,
            foreign: 0,
            dropped: 0,
            sends_bits_per_second: None,
            receives_bits_per_second: None,
        }
    }
}

impl ProbeReport {
    /// Names and counts of the members.
    pub fn new(names: &[String], matrix: &Matrix) -> ProbeReport {
        let pair = |(from, to): (usize, usize)| {
            let heard = matrix.heard(from, to);
            Pair {
                from: names[from].clone(),
                to: names[to].clone(),
                sent: matrix.sent(from),
                received: heard.datagrams,
                lost_percent: matrix.loss_percent(from, to).unwrap_or(0.0),
                duplicates: heard.duplicates,
                reordered: heard.late,
            }
        };
        ProbeReport {
            pairs: matrix.pairs().map(pair).collect(),
            names: names.to_vec(),
            matrix: matrix.clone(),
        }
    }
}

impl Report {
    /// A report on these hosts without any findings.
    pub fn new(family: Family, hosts: Vec<HostReport>) -> Report {
        let family = match family {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        };
        Report {
            multicast_would_be_used: true,
            family,
            group: None,
            hosts,
            findings: Vec::new(),
            probe: None,
            rates: Vec::new(),
        }
    }

    /// Adds a finding; hosts of which the same is said are put together. What is noted of the filters of a host becomes a
    /// warning when the probe has shown that something keeps datagrams from it.
    pub fn add<S: ToString>(&mut self, hosts: &[S], finding: Finding) {
        self.multicast_would_be_used &= finding.level < Level::Problem;
        let hosts = hosts.iter().map(ToString::to_string);
        if finding.topic == Topic::Probe && finding.level == Level::Problem {
            let hosts: Vec<String> = hosts.clone().collect();
            let is_suspect = |said: &&mut Said| {
                (said.finding.topic, said.finding.level) == (Topic::Firewall, Level::Note)
                    && said.hosts.iter().any(|host| hosts.contains(host))
            };
            for said in self.findings.iter_mut().filter(is_suspect) {
                said.finding.level = Level::Warning;
            }
        }
        match self.findings.iter_mut().find(|said| said.finding == finding && !said.hosts.is_empty()) {
            Some(said) => {
                for host in hosts {
                    if !said.hosts.contains(&host) {
                        said.hosts.push(host);
                    }
                }
            }
            None => self.findings.push(Said { hosts: hosts.collect(), finding }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::probe::matrix::all_but;

    #[test]
    fn a_filter_is_suspected_where_nothing_arrives() {
        let mut report = Report::new(Family::V4, ["h0", "h1"].map(HostReport::unknown).into());
        let filter = |rule: &str| Finding::note(Topic::Firewall, rule);
        report.add(&["h0"], filter("policy drop"));
        report.add(&["h1"], filter("udp drop"));
        report.add(&["h1"], Finding::note(Topic::Mtu, "9000"));
        report.add(&["h0", "h1"], Finding::note(Topic::Probe, "0.1 % are lost"));
        report.add(&["h1"], Finding::problem(Topic::Probe, "hears nobody", ""));
        let levels: Vec<Level> = report.findings.iter().map(|said| said.finding.level).collect();
        assert_eq!(levels, [Level::Note, Level::Warning, Level::Note, Level::Note, Level::Problem]);
    }

    #[test]
    fn programs_get_the_verdict_and_every_pair() {
        let hosts = ["h0", "h1"].map(HostReport::unknown).into();
        let mut report = Report::new(Family::V4, hosts);
        report.add(&["h0"], Finding::ok(Topic::Mtu, "1500"));
        report.probe = Some(ProbeReport::new(&["h0".into(), "h1".into()], &all_but(2, &[(1, 0)])));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["multicast_would_be_used"], true);
        assert_eq!(json["findings"][0]["topic"], "mtu");
        assert_eq!(json["findings"][0]["hosts"][0], "h0");
        assert_eq!(json["probe"]["pairs"][1]["lost_percent"], 100.0);
    }
}
