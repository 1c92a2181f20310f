//! The course of an examination: every host by itself, then all together.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use polycast_net::{Family, Group};

use super::checks::mtu;
use super::crew::Crew;
use super::finding::{Finding, Topic};
use super::message::{Answer, InterfaceFacts, Question};
use super::probe::diagnosis::{self, About};
use super::probe::matrix::Matrix;
use super::rates::{self, Rates, Way};
use super::report::{HostReport, ProbeReport, Report, WayReport};
use crate::fleet::Fleet;

/// The user's choices for an examination.
pub struct Request {
    /// IPv4 or IPv6.
    pub family: Family,
    /// POLYCAST_NET, or the option in its place.
    pub interface: Option<String>,
    /// Datagrams that each host sends.
    pub datagrams: u32,
    /// The time for which rounds go on after the probe; 0 for none.
    pub watch: Duration,
}

/// The pause after joining: switches take some time to learn of a new member.
const JOIN_PAUSE: Duration = Duration::from_millis(300);
/// The pause after sending, after which a datagram has either arrived or is taken for lost.
const ARRIVAL_PAUSE: Duration = Duration::from_millis(200);
/// The pause between rounds while watching.
const WATCH_PAUSE: Duration = Duration::from_secs(1);
const WATCH_DATAGRAMS: u32 = 8;
/// The size of small datagrams, which fit any MTU.
const SMALL_BYTES: usize = 256;
/// The most hosts that are measured once more, against the fastest one.
const MAX_SUSPECTS: usize = 32;
/// The number of failed blasts after which no more are tried: a filter is in the way, and each
/// further one would cost a second.
const MAX_FAILURES: usize = 4;
/// The most groups that are tried if a port is taken on some host.
const MAX_GROUPS: usize = 3;

/// Examines the hosts. `progress` is told what is going on.
pub fn examine(
    fleet: &Fleet,
    request: &Request,
    progress: &dyn Fn(String),
) -> Result<Report, getrandom::Error> {
    let mut session = Session::start(fleet, request, progress);
    session.look();
    if session.join()? {
        session.compare();
        session.probe();
        session.measure()?;
        session.listen_for_queries();
    }
    Ok(session.report)
}

/// The measurement of rates among the hosts that take blasts.
struct Blasts {
    /// For each member its host, and the address of that host's interface.
    members: Vec<(usize, IpAddr)>,
    ports: Vec<Option<u16>>,
    run: u64,
    rates: Rates,
    failures: usize,
}

struct Session<'a> {
    request: &'a Request,
    progress: &'a dyn Fn(String),
    is_emulated: bool,
    crew: Crew<'a>,
    report: Report,
    round: u32,
}

impl<'a> Session<'a> {
    fn start(fleet: &'a Fleet, request: &'a Request, progress: &'a dyn Fn(String)) -> Session<'a> {
        progress("starting workers".to_owned());
        let crew = Crew::start(fleet);
        let hosts = crew.names().iter().map(|name| HostReport::unknown(name)).collect();
        Session {
            request,
            progress,
            is_emulated: fleet.is_emulated(),
            crew,
            report: Report::new(request.family, hosts),
            round: 0,
        }
    }

    /// Asks some hosts at once. A host that does not answer is left out from here on.
    fn ask(&mut self, hosts: &[usize], question: impl Fn(usize) -> Question) -> Vec<(usize, Answer)> {
        let answers = self.crew.ask(hosts, question);
        self.note_troubles();
        answers
    }

    fn note_troubles(&mut self) {
        for (host, finding) in self.crew.troubles() {
            self.add(host, vec![finding]);
        }
    }

    fn add(&mut self, host: usize, findings: Vec<Finding>) {
        for finding in findings {
            self.report.add(&[&self.crew.names()[host]], finding);
        }
    }

    /// Every host by itself, then what must be the same on all.
    fn look(&mut self) {
        self.note_troubles();
        (self.progress)("examining the hosts".to_owned());
        let emulated = self.is_emulated;
        let request = self.request;
        let question = |_| Question::Examine {
            ipv6: request.family == Family::V6,
            interface: request.interface.clone(),
            emulated,
        };
        for (host, answer) in self.ask(&self.crew.present(), question) {
            if let Answer::Examined { host: facts, findings } = answer {
                self.report.hosts[host].facts = facts;
                self.add(host, findings);
            }
        }
        let interfaces: Vec<(&str, &InterfaceFacts)> = self
            .report
            .hosts
            .iter()
            .filter_map(|host| Some((host.name.as_str(), host.facts.interface.as_ref()?)))
            .collect();
        if let Some(finding) = mtu::compare(&interfaces) {
            let names: Vec<String> = interfaces.iter().map(|(name, _)| (*name).to_owned()).collect();
            self.report.add(&names.iter().collect::<Vec<_>>(), finding);
        }
        // Without an interface there is nothing to probe.
        for host in self.crew.present() {
            if self.report.hosts[host].facts.interface.is_none() {
                self.crew.dismiss(host);
            }
        }
    }

    /// Makes every host a member of one random group; false if there is nobody left to probe.
    fn join(&mut self) -> Result<bool, getrandom::Error> {
        for attempt in 1..=MAX_GROUPS {
            let present = self.crew.present();
            let run = getrandom::u64()?;
            // A group is no secret, and this source of its bits cannot fail any more.
            let mut bits = fastrand::Rng::with_seed(getrandom::u64()?);
            let group = Group::random(self.request.family, &mut || bits.u64(..));
            let loop_back = present.len() == 1;
            let answers = self.ask(&present, |_| Question::Open {
                address: group.address,
                port: group.port,
                run,
                loop_back,
            });
            let is_taken =
                answers.iter().any(|(_, answer)| matches!(answer, Answer::NotOpened { conflict: true, .. }));
            if is_taken && attempt < MAX_GROUPS {
                continue;
            }
            self.report.group = Some(group.to_string());
            for (host, answer) in answers {
                self.note_opened(host, answer);
            }
            break;
        }
        thread::sleep(JOIN_PAUSE);
        Ok(!self.crew.present().is_empty())
    }

    fn note_opened(&mut self, host: usize, answer: Answer) {
        match answer {
            Answer::Opened { socket, findings } => {
                self.report.hosts[host].socket = Some(socket);
                self.add(host, findings);
            }
            Answer::NotOpened { finding, .. } => {
                self.crew.dismiss(host);
                self.add(host, vec![finding]);
            }
            _ => {}
        }
    }

    /// Shows every host the addresses of the others.
    fn compare(&mut self) {
        let present = self.crew.present();
        let address = |host: &usize| self.report.hosts[*host].facts.interface.as_ref()?.address;
        let addresses: Vec<(usize, IpAddr)> =
            present.iter().filter_map(|host| Some((*host, address(host)?))).collect();
        let answers = self.ask(&present, |host| Question::Compare {
            peers: addresses
                .iter()
                .filter(|(other, _)| *other != host)
                .map(|(_, address)| *address)
                .collect(),
        });
        for (host, answer) in answers {
            if let Answer::Findings(findings) = answer {
                self.add(host, findings);
            }
        }
    }

    fn probe(&mut self) {
        let present = self.crew.present();
        let members: Vec<String> = present.iter().map(|host| self.crew.names()[*host].clone()).collect();
        let full_bytes = self.agreed_bytes(&present);
        let full = self.send_and_count(&present, self.request.datagrams, full_bytes);
        if let [only] = present[..] {
            let finding = diagnosis::alone(&full, self.crew.names().len());
            self.add(only, finding);
            self.wait();
            return;
        }
        let small = (!full.silent_pairs().is_empty())
            .then(|| self.send_and_count(&present, self.request.datagrams, SMALL_BYTES));
        for about in diagnosis::diagnose(&members, &full, small.as_ref()) {
            self.add_about(&members, about);
        }
        if !self.request.watch.is_zero() {
            self.watch(&present, &members, &full, full_bytes);
        }
        self.report.probe = Some(ProbeReport::new(&members, &full));
    }

    /// The size of the datagrams that a job would agree on: the largest that every member's
    /// interface takes.
    fn agreed_bytes(&self, members: &[usize]) -> usize {
        let sockets = members.iter().filter_map(|host| self.report.hosts[*host].socket);
        sockets.map(|socket| socket.datagram_bytes).min().unwrap_or(SMALL_BYTES)
    }

    fn add_about(&mut self, members: &[String], (hosts, finding): About) {
        let hosts: Vec<&String> = hosts.iter().map(|host| &members[*host]).collect();
        self.report.add(&hosts, finding);
    }

    /// Runs a round: each member sends in turn, then all members are asked what they heard.
    fn send_and_count(&mut self, members: &[usize], datagrams: u32, datagram_bytes: usize) -> Matrix {
        self.round += 1;
        let round = self.round;
        let mut matrix = Matrix::new(members.len());
        for (place, &host) in members.iter().enumerate() {
            (self.progress)(format!(
                "round {round}: {} sends, {} of {}",
                self.crew.names()[host],
                place + 1,
                members.len()
            ));
            let send = |_| Question::Send { sender: place as u32, round, datagrams, datagram_bytes };
            for (host, answer) in self.ask(&[host], send) {
                if let Answer::Sent { datagrams, error } = answer {
                    matrix.set_sent(place, datagrams);
                    self.add(
                        host,
                        error.map(|error| diagnosis::refused(&error, datagram_bytes)).into_iter().collect(),
                    );
                }
            }
        }
        thread::sleep(ARRIVAL_PAUSE);
        for (host, answer) in self.ask(members, |_| Question::Count { round }) {
            let Some(place) = members.iter().position(|member| *member == host) else { continue };
            if let Answer::Counted { heard, foreign, dropped } = answer {
                matrix.set_heard(place, &heard);
                self.report.hosts[host].foreign = foreign;
                self.report.hosts[host].dropped = dropped;
            }
        }
        matrix
    }

    /// Blasts between neighbours, then between those that seem slow and the fastest one.
    fn measure(&mut self) -> Result<(), getrandom::Error> {
        let address = |host: &usize| self.report.hosts[*host].facts.interface.as_ref()?.address;
        let members: Vec<(usize, IpAddr)> =
            self.crew.present().into_iter().filter_map(|host| Some((host, address(&host)?))).collect();
        if members.len() < 2 {
            return Ok(());
        }
        let run = getrandom::u64()?;
        let hosts: Vec<usize> = members.iter().map(|(host, _)| *host).collect();
        let mut ports = vec![None; members.len()];
        for (host, answer) in self.ask(&hosts, |_| Question::Listen { run }) {
            let place = hosts.iter().position(|member| *member == host);
            if let (Some(place), Answer::Listens { port }) = (place, answer) {
                ports[place] = Some(port);
            }
        }
        let mut blasts = Blasts { members, ports, run, rates: Rates::new(hosts.len()), failures: 0 };
        let steps = rates::ring(hosts.len());
        for (step, ways) in steps.iter().enumerate() {
            (self.progress)(format!("measuring rates: step {} of {}", step + 1, steps.len()));
            self.blast(&mut blasts, ways);
        }
        for slow in blasts.rates.slow().into_iter().take(MAX_SUSPECTS) {
            if let Some(fastest) = blasts.rates.fastest().filter(|fastest| *fastest != slow) {
                self.blast(&mut blasts, &[(slow, fastest)]);
                self.blast(&mut blasts, &[(fastest, slow)]);
            }
        }
        self.note_rates(&blasts);
        Ok(())
    }

    /// Measures a step of ways at the same time; no member may take part in two of them.
    fn blast(&mut self, blasts: &mut Blasts, ways: &[Way]) {
        if blasts.failures >= MAX_FAILURES {
            return;
        }
        let host = |member: usize| blasts.members[member].0;
        let possible: Vec<Way> = ways.iter().filter(|(_, to)| blasts.ports[*to].is_some()).copied().collect();
        let senders: Vec<usize> = possible.iter().map(|(from, _)| host(*from)).collect();
        let sent = self.ask(&senders, |sender| {
            let to = possible.iter().find(|(from, _)| host(*from) == sender).map_or(0, |(_, to)| *to);
            let port = blasts.ports[to].unwrap_or_default();
            Question::Blast { to: blasts.members[to].1, port, run: blasts.run }
        });
        for (sender, answer) in sent {
            let Some((from, to)) = possible.iter().find(|(from, _)| host(*from) == sender) else { continue };
            let receiver = host(*to);
            let came = match answer {
                Answer::Blasted => self.ask(&[receiver], |_| Question::Received),
                _ => Vec::new(),
            };
            match came[..] {
                [(_, Answer::Came { bits_per_second: Some(rate) })] => blasts.rates.add((*from, *to), rate),
                _ => blasts.failures += 1,
            }
        }
    }

    fn note_rates(&mut self, blasts: &Blasts) {
        let host = |member: usize| blasts.members[member].0;
        let interfaces: Vec<String> = self
            .report
            .hosts
            .iter()
            .map(|host| {
                host.facts.interface.as_ref().map_or(String::new(), |interface| interface.name.clone())
            })
            .collect();
        for member in 0..blasts.members.len() {
            let report = &mut self.report.hosts[host(member)];
            report.sends_bits_per_second = blasts.rates.sends(member);
            report.receives_bits_per_second = blasts.rates.receives(member);
        }
        let name = |member: usize| self.crew.names()[host(member)].clone();
        let way =
            |((from, to), bits_per_second)| WayReport { from: name(from), to: name(to), bits_per_second };
        self.report.rates = blasts.rates.ways().map(way).collect();
        for (members, finding) in blasts.rates.findings(|member| interfaces[host(member)].clone()) {
            let names: Vec<String> = members.into_iter().map(name).collect();
            self.report.add(&names, finding);
        }
        if blasts.failures > 0 {
            let found =
                "how fast some hosts send to each other could not be measured: TCP did not come through";
            self.report.add::<String>(&[], Finding::note(Topic::Rate, found));
        }
    }

    /// Waits for the time of watching, in which the host hears queries.
    fn wait(&self) {
        let began = Instant::now();
        while began.elapsed() < self.request.watch {
            thread::sleep(WATCH_PAUSE.min(self.request.watch.saturating_sub(began.elapsed())));
            self.show_watch(began);
        }
    }

    fn show_watch(&self, began: Instant) {
        let (seconds, of) = (began.elapsed().as_secs(), self.request.watch.as_secs());
        (self.progress)(format!("watching: {seconds} of {of} s"));
    }

    /// Sends rounds of a few datagrams until the time is over or a member was forgotten.
    fn watch(&mut self, present: &[usize], members: &[String], first: &Matrix, bytes: usize) {
        let began = Instant::now();
        let mut before = first.clone();
        while began.elapsed() < self.request.watch {
            thread::sleep(WATCH_PAUSE.min(self.request.watch.saturating_sub(began.elapsed())));
            let now = self.send_and_count(present, WATCH_DATAGRAMS, bytes);
            self.show_watch(began);
            let seconds = began.elapsed().as_secs();
            if let Some(about) = diagnosis::forgotten(members, first, [&before, &now], seconds) {
                self.add_about(members, about);
                return;
            }
            before = now;
        }
        let found = format!(
            "watched for {} s: whoever heard at the beginning heard until the end",
            began.elapsed().as_secs()
        );
        self.report.add::<String>(&[], Finding::ok(Topic::Probe, found));
    }

    fn listen_for_queries(&mut self) {
        for (host, answer) in self.ask(&self.crew.present(), |_| Question::Queries) {
            if let Answer::Findings(findings) = answer {
                self.add(host, findings);
            }
        }
    }
}
