//! A worker on one host: examines it, sends, and counts what it hears, until its standard input ends.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use polycast_cli_console::settings::variable;
use polycast_core::variables::MULTICAST;
use polycast_net::{Family, Group, Interface, Socket, SocketOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::blast;
use super::checks::{self, buffers, interface, offload, querier::QuerierWatch, reverse_path, surroundings};
use super::finding::{Finding, Topic};
use super::message::{Answer, HostFacts, InterfaceFacts, Question, SocketFacts};
use super::probe::datagram::{self, HEADER_BYTES, Header};
use super::probe::tally::{MAX_DATAGRAMS, Tally};
use super::system::System;

/// The longest question; more is not from a doctor.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Datagrams in one system call, and the time until the next: 200 of them, 9 Mb/s, suit every network and every buffer.
/// This is about whether datagrams arrive, not about how fast.
const ROW_DATAGRAMS: usize = 8;
const ROW_PAUSE: Duration = Duration::from_millis(10);

/// The most system calls in a row that read datagrams.
const MAX_READS: usize = 64;

/// The longest time that a full send queue may hold up one row of datagrams.
const SEND_LIMIT: Duration = Duration::from_secs(2);

/// Serves a doctor.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("polycast doctor-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut agent = Agent::default();
    let mut pending = Vec::new();
    let mut chunk = [0; 4096];
    say(&Answer::Hello { version: env!("CARGO_PKG_VERSION").to_owned() })?;
    loop {
        agent.wait()?;
        agent.listen()?;
        if !is_readable(io::stdin().as_fd())? {
            continue;
        }
        let bytes = rustix::io::read(io::stdin(), &mut chunk)?;
        if bytes == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..bytes]);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            say(&agent.answer(&line))?;
        }
        if pending.len() > MAX_LINE_BYTES {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "expected questions of a polycast doctor, a line each",
            ));
        }
    }
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn is_readable(descriptor: std::os::fd::BorrowedFd<'_>) -> io::Result<bool> {
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    Ok(poll(&mut descriptors, Some(&Timespec::default()))? > 0)
}

/// The state of a worker: what earlier questions of the doctor have set up.
#[derive(Default)]
struct Agent {
    interface: Option<(Interface, Family)>,
    probe: Option<Probe>,
    queries: Option<QuerierWatch>,
    target: Option<blast::Target>,
}

/// A member of the probe's group.
struct Probe {
    socket: Socket,
    tally: Tally,
    run: u64,
}

impl Agent {
    /// Sleeps until a question, a datagram or a query arrives.
    fn wait(&self) -> io::Result<()> {
        let stdin = io::stdin();
        let mut descriptors = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        let others = [
            self.probe.as_ref().map(|probe| probe.socket.as_fd()),
            self.queries.as_ref().and_then(QuerierWatch::descriptor),
        ];
        descriptors
            .extend(others.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut descriptors, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has arrived.
    fn listen(&mut self) -> io::Result<()> {
        if let Some(queries) = &mut self.queries {
            queries.listen();
        }
        self.probe.as_mut().map_or(Ok(()), Probe::listen)
    }

    fn answer(&mut self, line: &[u8]) -> Answer {
        let question = match serde_json::from_slice(line) {
            Ok(question) => question,
            Err(error) => {
                return Answer::Failed(format!("expected a question of a polycast doctor: {error}"));
            }
        };
        match question {
            Question::Examine { ipv6, interface, emulated } => {
                self.examine(if ipv6 { Family::V6 } else { Family::V4 }, interface.as_deref(), emulated)
            }
            Question::Open { address, port, run, loop_back } => {
                self.open(Group { address, port }, run, loop_back)
            }
            Question::Compare { peers } => self.compare(&peers),
            Question::Send { sender, round, datagrams, datagram_bytes } => self
                .with_probe(|probe| probe.send(sender, round, datagrams.min(MAX_DATAGRAMS), datagram_bytes)),
            Question::Count { round } => self.with_probe(|probe| probe.count(round)),
            Question::Listen { run } => self.listen_for_blasts(run),
            Question::Blast { to, port, run } => {
                let index = self.interface.as_ref().map_or(0, |(interface, _)| interface.index);
                match blast::send(to, port, index, run) {
                    Ok(()) => Answer::Blasted,
                    Err(error) => Answer::NotMeasured(error.to_string()),
                }
            }
            Question::Received => {
                Answer::Came { bits_per_second: self.target.as_ref().and_then(blast::Target::rate) }
            }
            Question::Queries => {
                let findings = self.queries.as_ref().map(|queries| queries.findings(&System::here()));
                Answer::Findings(findings.unwrap_or_default())
            }
        }
    }

    fn examine(&mut self, family: Family, choice: Option<&str>, emulated: bool) -> Answer {
        let system = System::here();
        let (chosen, mut findings) = interface::choose(&system, Interface::all(), choice, family);
        if !emulated {
            findings.extend(surroundings::check(&system));
        }
        if let Some(interface) = &chosen {
            findings.extend(checks::of_host(&system, interface, family));
            self.queries = Some(QuerierWatch::begin(&interface.name, family));
        }
        let wanted = variable(MULTICAST);
        let interfaces = Interface::all().unwrap_or_default();
        findings.extend(checks::verbs::check(&interfaces, wanted.as_deref()));
        let facts = chosen.as_ref().map(|interface| InterfaceFacts {
            name: interface.name.clone(),
            address: interface.address(family),
            mtu_bytes: interface.mtu_bytes,
            bits_per_second: interface.bits_per_second,
        });
        self.interface = chosen.map(|interface| (interface, family));
        Answer::Examined { host: HostFacts { kernel: kernel(&system), interface: facts }, findings }
    }

    fn listen_for_blasts(&mut self, run: u64) -> Answer {
        let chosen = self.interface.as_ref();
        let Some((address, index)) =
            chosen.and_then(|(interface, family)| Some((interface.address(*family)?, interface.index)))
        else {
            return Answer::NotMeasured("its interface has no address".to_owned());
        };
        match blast::Target::listen(address, index, run) {
            Ok(target) => {
                let port = target.port;
                self.target = Some(target);
                Answer::Listens { port }
            }
            Err(error) => Answer::NotMeasured(error.to_string()),
        }
    }

    fn open(&mut self, group: Group, run: u64, loop_back: bool) -> Answer {
        let Some((interface, _)) = &self.interface else {
            return Answer::Failed("expected an interface to be chosen first".into());
        };
        let options = SocketOptions { loop_back, ..SocketOptions::default() };
        let socket = match Socket::open(interface, group, &options) {
            Ok(socket) => socket,
            Err(error) => {
                let conflict = error.is_conflict();
                return Answer::NotOpened { conflict, finding: Finding::of_error(Topic::Socket, &error) };
            }
        };
        let facts = SocketFacts {
            datagram_bytes: socket.most_datagram_bytes(),
            receive_bytes: socket.granted_receive_bytes(),
            can_segment: socket.can_segment(),
            can_coalesce: socket.can_coalesce(),
        };
        let system = System::here();
        let findings = [buffers::check(&system, &facts), offload::check(&facts, &kernel(&system))].concat();
        self.probe = Some(Probe { socket, tally: Tally::new(run, 0), run });
        Answer::Opened { socket: facts, findings }
    }

    fn compare(&self, peers: &[std::net::IpAddr]) -> Answer {
        let own = self
            .interface
            .as_ref()
            .and_then(|(interface, family)| Some((interface, interface.address(*family)?)));
        Answer::Findings(own.map_or(Vec::new(), |(interface, own)| {
            reverse_path::compare(&System::here(), &interface.name, own, peers)
        }))
    }

    fn with_probe(&mut self, answer: impl FnOnce(&mut Probe) -> io::Result<Answer>) -> Answer {
        match self.probe.as_mut().map(answer) {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Answer::Failed(error.to_string()),
            None => Answer::Failed("expected a group to be joined first".into()),
        }
    }
}

fn kernel(system: &System) -> String {
    system.read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())
}

impl Probe {
    /// Takes datagrams that have arrived, in up to [`MAX_READS`] system calls. The limit keeps a
    /// flood of datagrams from holding up the answers to the doctor's questions.
    fn listen(&mut self) -> io::Result<()> {
        for _ in 0..MAX_READS {
            let tally = &mut self.tally;
            match self.socket.receive(|datagram| tally.take(datagram)) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a series, a row at a time. What the kernel refuses is told, not retried: that is what the probe is for.
    fn send(&mut self, sender: u32, round: u32, datagrams: u32, datagram_bytes: usize) -> io::Result<Answer> {
        self.tally.begin(round);
        let most = self.socket.most_datagram_bytes();
        let datagram_bytes = datagram_bytes.clamp(HEADER_BYTES, most.max(HEADER_BYTES));
        let mut sent = 0;
        let mut row = Vec::with_capacity(ROW_DATAGRAMS * datagram_bytes);
        let mut error = None;
        while sent < datagrams && error.is_none() {
            let in_row = (datagrams - sent).min(ROW_DATAGRAMS as u32);
            row.resize(in_row as usize * datagram_bytes, 0);
            for (place, datagram) in row.chunks_exact_mut(datagram_bytes).enumerate() {
                let header = Header { run: self.run, round, sender, sequence: sent + place as u32 };
                datagram::encode(header, datagram);
            }
            let (taken, failure) = self.send_row(&row, datagram_bytes);
            sent += (taken / datagram_bytes) as u32;
            error = failure;
            thread::sleep(ROW_PAUSE);
            self.listen()?;
        }
        Ok(Answer::Sent { datagrams: sent, error: error.map(|error| error.to_string()) })
    }

    /// Sends a row of datagrams; returns the bytes that the kernel took, and the error that kept it
    /// from taking all.
    fn send_row(&mut self, row: &[u8], datagram_bytes: usize) -> (usize, Option<io::Error>) {
        let began = Instant::now();
        let mut taken = 0;
        while taken < row.len() {
            match self.socket.send(&row[taken..], datagram_bytes) {
                Ok(bytes) => taken += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock && began.elapsed() < SEND_LIMIT => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return (taken, Some(error)),
            }
        }
        (taken, None)
    }

    fn count(&mut self, round: u32) -> io::Result<Answer> {
        self.listen()?;
        self.tally.begin(round);
        Ok(Answer::Counted {
            heard: self.tally.heard(),
            foreign: self.tally.foreign(),
            dropped: self.socket.dropped_by_kernel(),
        })
    }
}
