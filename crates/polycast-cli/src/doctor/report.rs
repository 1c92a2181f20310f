//! What is said at the end, to people and to programs.

use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use polycast_net::Family;
use serde::Serialize;

use super::colour::Palette;
use super::finding::{Finding, Level};
use super::message::{HostFacts, SocketFacts};
use super::probe::matrix::Matrix;

/// Up to so many hosts, loss is shown as a square.
const SQUARE_HOSTS_MOST: usize = 16;

/// Everything that was found.
#[derive(Serialize)]
pub struct Report {
    /// The verdict; a problem is what speaks against it.
    pub multicast_would_be_used: bool,
    family: &'static str,
    /// The group of the probe.
    pub group: Option<String>,
    /// In the order in which they were named.
    pub hosts: Vec<HostReport>,
    findings: Vec<Said>,
    /// Absent if there was nobody to send to.
    pub probe: Option<ProbeReport>,
}

/// A host.
#[derive(Serialize)]
pub struct HostReport {
    /// As it was named.
    pub name: String,
    /// Kernel and interface.
    #[serde(flatten)]
    pub facts: HostFacts,
    /// Absent if it has none.
    pub socket: Option<SocketFacts>,
    /// Datagrams of others on the probe's group and port.
    pub foreign: u64,
    /// Datagrams that its kernel dropped because the receive buffer was full.
    pub dropped: u64,
}

/// A finding, and whom it is about.
#[derive(Serialize)]
struct Said {
    /// Empty if it is about the network.
    hosts: Vec<String>,
    #[serde(flatten)]
    finding: Finding,
}

/// The round with full-size datagrams.
#[derive(Serialize)]
pub struct ProbeReport {
    pairs: Vec<Pair>,
    #[serde(skip)]
    names: Vec<String>,
    #[serde(skip)]
    matrix: Matrix,
}

#[derive(Serialize)]
struct Pair {
    from: String,
    to: String,
    sent: u32,
    received: u32,
    lost_percent: f64,
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
    /// Nothing has been found.
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
        }
    }

    /// Adds a finding; hosts of which the same is said are put together.
    pub fn add<S: ToString>(&mut self, hosts: &[S], finding: Finding) {
        self.multicast_would_be_used &= finding.level < Level::Problem;
        let hosts = hosts.iter().map(ToString::to_string);
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

    /// The page for people.
    pub fn text(&self, palette: Palette) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        writeln!(out, "{}\n", hosts_table(&self.hosts, palette))?;
        let mut findings: Vec<&Said> = self.findings.iter().collect();
        findings.sort_by_key(|said| said.finding.topic);
        for said in findings {
            self.write_finding(&mut out, said, palette)?;
        }
        if let Some(probe) = &self.probe {
            writeln!(out, "\n{}", probe.text(palette))?;
        }
        writeln!(out, "\n{}", self.verdict(palette))?;
        Ok(out)
    }

    fn write_finding(&self, out: &mut String, said: &Said, palette: Palette) -> std::fmt::Result {
        let Finding { topic, level, found, remedy } = &said.finding;
        let word = match level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Problem => "problem",
        };
        // Padded before it is painted: colours have no width.
        let word = palette.paint(*level, &format!("{word:<7}"));
        writeln!(out, "{word}  {:<12}  {}{found}", topic.name(), self.about(&said.hosts))?;
        match remedy {
            Some(remedy) => writeln!(out, "{:>25}{remedy}", "-> "),
            None => Ok(()),
        }
    }

    /// The hosts of a finding, as the beginning of a sentence; nothing if it is about all of them.
    fn about(&self, hosts: &[String]) -> String {
        match hosts {
            [] => String::new(),
            _ if hosts.len() == self.hosts.len() => String::new(),
            _ => format!("{}: ", hosts.join(", ")),
        }
    }

    fn verdict(&self, palette: Palette) -> String {
        let problems = self.findings.iter().filter(|said| said.finding.level == Level::Problem).count();
        match (self.multicast_would_be_used, self.hosts.len()) {
            (true, 1) => palette.paint(Level::Ok, "Nothing on this host keeps polycast from multicast."),
            (true, _) => palette.paint(Level::Ok, "polycast would use multicast."),
            (false, _) => {
                let problems = if problems == 1 { "the problem" } else { "the problems" };
                palette.paint(
                    Level::Problem,
                    &format!("polycast would not use multicast: see {problems} above. Trees would serve."),
                )
            }
        }
    }
}

fn hosts_table(hosts: &[HostReport], palette: Palette) -> String {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(
        ["HOST", "INTERFACE", "ADDRESS", "MTU", "LINK", "BUFFER", "GSO", "GRO", "KERNEL"]
            .map(|word| palette.heading(word)),
    );
    for host in hosts {
        let interface = host.facts.interface.as_ref();
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            host.name.clone(),
            or_dash(interface.map(|interface| interface.name.clone())),
            or_dash(interface.and_then(|interface| Some(interface.address?.to_string()))),
            or_dash(interface.map(|interface| interface.mtu_bytes.to_string())),
            or_dash(interface.and_then(|interface| interface.bits_per_second).map(rate)),
            or_dash(host.socket.map(|socket| format!("{} KiB", socket.receive_bytes / 2 >> 10))),
            or_dash(host.socket.map(|socket| yes_no(socket.can_segment))),
            or_dash(host.socket.map(|socket| yes_no(socket.can_coalesce))),
            if host.facts.kernel.is_empty() { "-".to_owned() } else { host.facts.kernel.clone() },
        ]);
    }
    trimmed(&table)
}

fn rate(bits_per_second: u64) -> String {
    match bits_per_second {
        gigabits @ 1_000_000_000.. => format!("{} Gb/s", gigabits as f64 / 1e9),
        megabits => format!("{} Mb/s", megabits / 1_000_000),
    }
}

impl ProbeReport {
    fn text(&self, palette: Palette) -> String {
        let datagrams = self.pairs.iter().map(|pair| pair.sent).max().unwrap_or(0);
        let title = palette.heading(&format!("loss in percent, {datagrams} datagrams from each host"));
        let table = if self.names.len() <= SQUARE_HOSTS_MOST { self.square() } else { self.list() };
        format!("{title}\n{table}")
    }

    /// A row for each sender, a column for each receiver.
    fn square(&self) -> String {
        let mut table = Table::new();
        let heading = std::iter::once("FROM \\ TO".to_owned()).chain(self.names.iter().cloned());
        table.load_style(NOTHING).set_header(heading);
        for (from, name) in self.names.iter().enumerate() {
            let cell = |to: usize| match self.matrix.loss_percent(from, to) {
                _ if from == to => "·".to_owned(),
                None => "not sent".to_owned(),
                Some(percent) => percent_text(percent),
            };
            table.add_row(std::iter::once(name.clone()).chain((0..self.names.len()).map(cell)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        trimmed(&table)
    }

    /// Only the pairs that lost something: a square of many hosts fits no screen.
    fn list(&self) -> String {
        let lossy: Vec<String> = self
            .pairs
            .iter()
            .filter(|pair| pair.lost_percent > 0.0)
            .map(|pair| format!("  {} to {}: {}", pair.from, pair.to, percent_text(pair.lost_percent)))
            .collect();
        if lossy.is_empty() {
            format!("  0 between all {} pairs", self.pairs.len())
        } else {
            lossy.join("\n")
        }
    }
}

fn percent_text(percent: f64) -> String {
    if percent == percent.round() { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

/// Tables are padded to their right edge.
fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Topic;
    use crate::doctor::probe::matrix::all_but;

    fn report(hosts: &[&str]) -> Report {
        Report::new(Family::V4, hosts.iter().map(|name| HostReport::unknown(name)).collect())
    }

    #[test]
    fn hosts_with_the_same_finding_are_put_together() {
        let mut report = report(&["a", "b", "c"]);
        for host in ["a", "c", "a"] {
            report.add(&[host], Finding::warning(Topic::Buffers, "small", "sysctl"));
        }
        assert!(report.multicast_would_be_used);
        report.add(&["b"], Finding::problem(Topic::Socket, "none", "more"));
        assert!(!report.multicast_would_be_used);
        let text = report.text(Palette::PLAIN).unwrap();
        assert!(text.contains("warning  buffers       a, c: small\n"), "{text}");
        assert!(
            text.contains("-> sysctl\n") && text.contains("would not use multicast: see the problem above"),
            "{text}"
        );
        report.add(&["b"], Finding::warning(Topic::Buffers, "small", "sysctl"));
        assert!(
            report.text(Palette::PLAIN).unwrap().contains("buffers       small"),
            "all hosts are not listed"
        );
    }

    #[test]
    fn loss_is_a_square_for_few_hosts_and_a_list_for_many() {
        let names = |hosts: usize| -> Vec<String> { (0..hosts).map(|host| format!("h{host}")).collect() };
        let few = ProbeReport::new(&names(3), &all_but(3, &[(0, 2)])).text(Palette::PLAIN);
        let row: Vec<&str> = few.lines().nth(2).unwrap().split_ascii_whitespace().collect();
        assert_eq!(row, ["h0", "·", "0", "100"], "{few}");
        let many = ProbeReport::new(&names(17), &all_but(17, &[(0, 2)])).text(Palette::PLAIN);
        assert!(many.ends_with("\n  h0 to h2: 100"), "{many}");
        let good = ProbeReport::new(&names(17), &all_but(17, &[])).text(Palette::PLAIN);
        assert!(good.ends_with("0 between all 272 pairs"), "{good}");
    }

    #[test]
    fn programs_get_the_verdict_and_every_pair() {
        let mut report = report(&["h0", "h1"]);
        report.add(&["h0"], Finding::ok(Topic::Mtu, "1500"));
        report.probe = Some(ProbeReport::new(&["h0".into(), "h1".into()], &all_but(2, &[(1, 0)])));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["multicast_would_be_used"], true);
        assert_eq!(json["findings"][0]["topic"], "mtu");
        assert_eq!(json["findings"][0]["hosts"][0], "h0");
        assert_eq!(json["probe"]["pairs"][1]["lost_percent"], 100.0);
    }
}
