//! The page for people.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use polycast_core::topology::hostlist;
use polycast_core::units::quantity::rate;

use super::finding::{Finding, Level};
use super::report::{HostReport, Pair, ProbeReport, Report, Said};
use crate::terminal::{Paint, hanging, paragraph, table, width};

/// Pairs that are listed where a square of all pairs is too wide; `--json` has all.
const MAX_PAIRS_LISTED: usize = 20;

/// The colour of a level.
fn style(level: Level) -> Style {
    match level {
        Level::Ok => AnsiColor::Green.on_default(),
        Level::Note => AnsiColor::Cyan.on_default(),
        Level::Warning => AnsiColor::Yellow.on_default(),
        Level::Problem => AnsiColor::Red.on_default().bold(),
    }
}

impl Report {
    /// Hosts, findings, loss, verdict.
    pub fn text(&self, paint: Paint) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        writeln!(out, "{}\n", hosts_table(&self.hosts, paint))?;
        let mut findings: Vec<&Said> = self.findings.iter().collect();
        findings.sort_by_key(|said| said.finding.topic);
        for said in findings {
            self.write_finding(&mut out, said, paint)?;
        }
        if let Some(probe) = &self.probe {
            writeln!(out, "\n{}", probe.text(paint))?;
        }
        if !self.rates.is_empty() {
            writeln!(out, "\n{}", rates_table(&self.hosts, paint))?;
        }
        writeln!(out, "\n{}", self.verdict(paint))?;
        Ok(out)
    }

    fn write_finding(&self, out: &mut String, said: &Said, paint: Paint) -> std::fmt::Result {
        let Finding { topic, level, found, remedy } = &said.finding;
        let word = match level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Problem => "problem",
        };
        let first = format!("{word:<7}  {:<12}  ", topic.name());
        let text = hanging(&first, &" ".repeat(first.len()), &format!("{}{found}", self.about(&said.hosts)));
        // Painted after the lines were broken: colours have no width.
        writeln!(out, "{}{}", paint.set(style(*level), &text[..word.len()]), &text[word.len()..])?;
        match remedy {
            Some(remedy) => writeln!(out, "{}", hanging(&format!("{:>25}", "-> "), &" ".repeat(25), remedy)),
            None => Ok(()),
        }
    }

    /// The hosts of a finding, as the beginning of a sentence; nothing if it is about all of them.
    fn about(&self, hosts: &[String]) -> String {
        match hosts {
            [] => String::new(),
            _ if hosts.len() == self.hosts.len() => String::new(),
            _ => format!("{}: ", hostlist(&hosts.iter().map(String::as_str).collect::<Vec<_>>())),
        }
    }

    fn verdict(&self, paint: Paint) -> String {
        let problems = self.findings.iter().filter(|said| said.finding.level == Level::Problem).count();
        match (self.multicast_would_be_used, self.hosts.len()) {
            (true, 1) => paint.set(style(Level::Ok), "Nothing on this host keeps polycast from multicast."),
            (true, _) => paint.set(style(Level::Ok), "polycast would use multicast."),
            (false, _) => {
                let problems = if problems == 1 { "the problem" } else { "the problems" };
                let verdict =
                    format!("polycast would not use multicast: see {problems} above. Trees would serve.");
                paint.set(style(Level::Problem), &paragraph(&verdict))
            }
        }
    }
}

/// The table of the rates at which each host sends and receives.
fn rates_table(hosts: &[HostReport], paint: Paint) -> String {
    let in_words = |bits: Option<u64>| bits.map_or("-".to_owned(), rate);
    let row = |host: &HostReport| {
        let rates = [host.sends_bits_per_second, host.receives_bits_per_second].map(in_words);
        [vec![host.name.clone()], rates.to_vec()].concat()
    };
    let title = paint.set(Style::new().bold(), "rate of a short blast to and from another host");
    let text = table(["HOST", "SENDS", "RECEIVES"], hosts.iter().map(row).collect(), 1);
    format!("{title}\n{}", text.trim_end())
}

fn hosts_table(hosts: &[HostReport], paint: Paint) -> String {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let row = |host: &HostReport| {
        let interface = host.facts.interface.as_ref();
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            host.name.clone(),
            if host.facts.kernel.is_empty() { "-".to_owned() } else { host.facts.kernel.clone() },
            or_dash(interface.map(|interface| interface.name.clone())),
            or_dash(interface.and_then(|interface| Some(interface.address?.to_string()))),
            or_dash(interface.map(|interface| interface.mtu_bytes.to_string())),
            or_dash(interface.and_then(|interface| interface.bits_per_second).map(rate)),
            or_dash(host.socket.map(|socket| format!("{} KiB", (socket.receive_bytes / 2) >> 10))),
            or_dash(host.socket.map(|socket| yes_no(socket.can_segment))),
            or_dash(host.socket.map(|socket| yes_no(socket.can_coalesce))),
        ]
    };
    let header = ["HOST", "KERNEL", "INTERFACE", "ADDRESS", "MTU", "LINK", "BUFFER", "GSO", "GRO"];
    let text = table(header, hosts.iter().map(row).collect(), 4);
    // Painted after the columns were laid out.
    let (heading, rows) = text.split_once('\n').unwrap_or_default();
    format!("{}\n{}", paint.set(Style::new().bold(), heading), rows.trim_end())
}

impl ProbeReport {
    fn text(&self, paint: Paint) -> String {
        let datagrams = self.pairs.iter().map(|pair| pair.sent).max().unwrap_or(0);
        let title =
            paint.set(Style::new().bold(), &format!("loss in percent, {datagrams} datagrams from each host"));
        let square = self.square();
        let fits = square.lines().all(|line| line.chars().count() <= width());
        format!("{title}\n{}", if fits { square } else { self.list() })
    }

    /// A row for each sender, a column for each receiver.
    fn square(&self) -> String {
        let heading = std::iter::once("FROM \\ TO".to_owned()).chain(self.names.iter().cloned());
        let row = |(from, name): (usize, &String)| {
            let cell = |to: usize| match self.matrix.loss_percent(from, to) {
                _ if from == to => "·".to_owned(),
                None => "not sent".to_owned(),
                Some(percent) => percent_text(percent),
            };
            std::iter::once(name.clone()).chain((0..self.names.len()).map(cell)).collect()
        };
        table(heading, self.names.iter().enumerate().map(row).collect(), 1).trim_end().to_owned()
    }

    /// The worst pairs: a square of many hosts fits no screen.
    fn list(&self) -> String {
        let mut lossy: Vec<&Pair> = self.pairs.iter().filter(|pair| pair.lost_percent > 0.0).collect();
        lossy.sort_by(|one, other| other.lost_percent.total_cmp(&one.lost_percent));
        let line =
            |pair: &&Pair| format!("  {} to {}: {}", pair.from, pair.to, percent_text(pair.lost_percent));
        let mut lines: Vec<String> = lossy.iter().take(MAX_PAIRS_LISTED).map(line).collect();
        let better = self.pairs.len() - lines.len();
        let most = lossy.get(MAX_PAIRS_LISTED).map_or(0.0, |pair| pair.lost_percent);
        lines.push(format!("  all other {better} pairs: {} at most", percent_text(most)));
        lines.join("\n")
    }
}

fn percent_text(percent: f64) -> String {
    if percent == percent.round() { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

#[cfg(test)]
mod tests {
    use polycast_net::Family;

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
        let text = report.text(Paint::Plain).unwrap();
        assert!(text.contains("warning  buffers       a,c: small\n"), "{text}");
        assert!(
            text.contains("-> sysctl\n") && text.contains("would not use multicast: see the problem above"),
            "{text}"
        );
        report.add(&["b"], Finding::warning(Topic::Buffers, "small", "sysctl"));
        assert!(
            report.text(Paint::Plain).unwrap().contains("buffers       small"),
            "all hosts are not listed"
        );
    }

    #[test]
    fn loss_is_a_square_for_few_hosts_and_a_list_for_many() {
        let names = |hosts: usize| -> Vec<String> { (0..hosts).map(|host| format!("h{host}")).collect() };
        let few = ProbeReport::new(&names(3), &all_but(3, &[(0, 2)])).text(Paint::Plain);
        let row: Vec<&str> = few.lines().nth(2).unwrap().split_ascii_whitespace().collect();
        assert_eq!(row, ["h0", "·", "0", "100"], "{few}");
        let many = ProbeReport::new(&names(17), &all_but(17, &[(0, 2)])).text(Paint::Plain);
        assert!(many.ends_with("\n  h0 to h2: 100\n  all other 271 pairs: 0 at most"), "{many}");
        let deaf: Vec<(usize, usize)> = (0..30).filter(|from| *from != 5).map(|from| (from, 5)).collect();
        let bad = ProbeReport::new(&names(30), &all_but(30, &deaf)).text(Paint::Plain);
        assert!(bad.lines().count() == 22 && bad.ends_with("all other 850 pairs: 100 at most"), "{bad}");
    }
}
