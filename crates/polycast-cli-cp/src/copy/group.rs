//! A node's part in a multicast: a thread that has the group's socket, and one ring after the other.
//!
//! ```text
//!   segments   0   1   2   3   4   5   6   7 │ 8   9 …    eight lanes: segment s is begun on lane s mod 8 when s - 8 is over on this node
//!   up a tree ◀── so many are over on this node and on all below it: the source is no further ahead than eight; and so many have been
//!                 read: it is no further ahead than four, for which receive buffers have room
//! ```

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{Purpose, place_in_ring};
use polycast_core::units::Nanos;
use polycast_net::{Hops, Interface, InterfaceChoice, Socket, SocketOptions};
use polycast_protocol::Key;
use polycast_protocol::wire::{Header, Kind, open, seal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::agent::say;
use super::backing::Backing;
use super::contact::{Caller, introduce};
use super::lane::Broken;
use super::message::{Event, Joined, Seat};
use super::ring::{Ring, RingTerms};
use super::store::Store;

/// The source's datagrams of full size: so many at once, again after a while, as long as it is not known who hears them, and after a
/// longer while when there were so many. Switches learn of members meanwhile; reports of those get lost, too.
const PROBE_COPIES: usize = 2;
const PROBE_AGAIN: (Nanos, Nanos) = (Nanos::from_micros(20_000), Nanos::from_micros(200_000));
const FAST_PROBES: usize = 10;
/// Receivers that have read datagrams let more come: waking for each takes longer than reading it.
const NAP: Duration = Duration::from_millis(1);
/// The buffer size below which there is no such nap: on fast links smaller buffers are full by
/// then.
const NAP_BUFFER_BYTES: usize = 1 << 20;
/// The most system calls in a row that read datagrams.
const MAX_READS: usize = 64;
/// The most links that are kept of a ring that has not begun here.
const MAX_EARLY_LINKS: usize = 64;

/// A word to the member's thread.
pub enum Word {
    /// Send multicast datagrams of so many bytes, so that other nodes hear them.
    Probe(usize),
    /// Be in this ring from now on.
    Sit(Seat),
    /// Be in no ring, and not in the group: then what it multicasts no longer comes over the link
    /// that others bring blocks on.
    Leave,
    /// Take a connection to a neighbour in the ring of this number.
    Link(Side, u64, TcpStream),
    /// The connection for the ring of this number cannot be had.
    Failed(u64),
}

/// The neighbour at the other end of a link of the ring or of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Predecessor,
    Successor,
    Above,
    /// The node below this one in the tree that has this place.
    Below(u32),
}

/// A handle by which other threads send [`Word`]s to the member's thread.
#[derive(Clone)]
pub struct Handle {
    words: Sender<Word>,
    waker: Arc<UnixStream>,
}

impl Handle {
    pub fn say(&self, word: Word) {
        if self.words.send(word).is_ok() {
            let _ = (&*self.waker).write(&[1]);
        }
    }
}

/// The means of a node to become a member of a group.
pub struct Candidate {
    pub node: u32,
    pub store: Arc<Store>,
    pub backing: Arc<OnceLock<Backing>>,
    /// The handle of the member's thread; set when the node is a member.
    pub group: Arc<OnceLock<Handle>>,
    pub hops: Hops,
    pub bits_per_second: Option<u64>,
    pub stop: Arc<AtomicBool>,
}

impl Candidate {
    /// Joins a group by the interface that `net` says; `None` if that cannot be done.
    pub fn join(&self, (address, port): (IpAddr, u16), net: &str) -> Option<Joined> {
        let group = polycast_net::Group { address, port };
        let choice: InterfaceChoice =
            if net.is_empty() { InterfaceChoice::default() } else { net.parse().ok()? };
        let interface = choice.choose(&Interface::all().ok()?, group.family()).ok()?;
        let options = SocketOptions { hops: self.hops.get(), ..SocketOptions::default() };
        let socket = Socket::open(&interface, group, &options).ok()?;
        let joined = Joined {
            datagram_bytes: socket.most_datagram_bytes() as u32,
            buffer_bytes: socket.granted_receive_bytes() as u64,
            bits_per_second: interface.bits_per_second,
        };
        let member = Member {
            node: self.node,
            socket,
            store: Arc::clone(&self.store),
            backing: Arc::clone(&self.backing),
            bits_per_second: self.bits_per_second,
            stop: Arc::clone(&self.stop),
        };
        self.group.set(member.start().ok()?).ok()?;
        Some(joined)
    }
}

/// The state of a member's thread before any ring.
pub struct Member {
    pub node: u32,
    pub socket: Socket,
    pub store: Arc<Store>,
    pub backing: Arc<OnceLock<Backing>>,
    pub bits_per_second: Option<u64>,
    pub stop: Arc<AtomicBool>,
}

/// The source's probe: datagrams that are still to be sent, so that it is known who hears them.
struct Probe {
    payload_bytes: usize,
    sent: usize,
    at: Nanos,
}

struct Group {
    member: Member,
    key: Key,
    job: u32,
    words: Receiver<Word>,
    sleeper: UnixStream,
    own: Handle,
    began: Instant,
    ring: Option<Ring>,
    early: Vec<(Side, u64, TcpStream)>,
    probe: Option<Probe>,
    has_heard: bool,
    has_left: bool,
}

impl Member {
    /// Starts the thread.
    pub fn start(self) -> std::io::Result<Handle> {
        let (waker, sleeper) = UnixStream::pair()?;
        sleeper.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let (words, received) = channel();
        let own = Handle { words, waker: Arc::new(waker) };
        let (key, job) = self.store.key.for_multicast();
        let mut group = Group {
            member: self,
            key: Key::from_bytes(key),
            job,
            words: received,
            sleeper,
            own: own.clone(),
            began: Instant::now(),
            ring: None,
            early: Vec::new(),
            probe: None,
            has_heard: false,
            has_left: false,
        };
        thread::spawn(move || {
            while !group.has_left && !group.member.stop.load(Ordering::Relaxed) {
                group.turn();
            }
        });
        Ok(own)
    }
}

impl Group {
    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn turn(&mut self) {
        while let Ok(word) = self.words.try_recv() {
            self.obey(word);
        }
        self.send_probe();
        let datagrams = self.receive();
        let mut is_busy = false;
        if let Some(ring) = &mut self.ring {
            let now = Nanos(self.began.elapsed().as_nanos() as u64);
            match ring.advance(now, &mut self.member) {
                Ok(busy) => is_busy = busy,
                Err(Broken) => self.give_up(),
            }
        }
        if is_busy {
            return;
        }
        let may_nap = self.member.node != 0 && self.member.socket.granted_receive_bytes() >= NAP_BUFFER_BYTES;
        if datagrams > 0 && may_nap {
            thread::sleep(NAP);
        } else {
            self.wait();
        }
    }

    fn give_up(&mut self) {
        if let Some(ring) = self.ring.take() {
            say(&Event::RingFailed(ring.number()));
        }
    }

    fn obey(&mut self, word: Word) {
        match word {
            Word::Probe(payload_bytes) => {
                self.probe = Some(Probe { payload_bytes, sent: 0, at: self.now() });
            }
            Word::Leave => (self.ring, self.has_left) = (None, true),
            Word::Link(side, number, stream) => {
                self.early.push((side, number, stream));
                if self.early.len() > MAX_EARLY_LINKS {
                    self.early.remove(0);
                }
                self.use_links();
            }
            Word::Failed(number) => {
                if self.ring.as_ref().is_some_and(|ring| u64::from(ring.number()) == number) {
                    self.give_up();
                }
            }
            Word::Sit(seat) => {
                self.probe = None;
                let number = u64::from(seat.number);
                let before = (Side::Predecessor, Purpose::Ring, number, seat.addresses.clone());
                let block = place_in_ring(seat.place, seat.number);
                let above = (Side::Above, Purpose::Below, block, seat.above.clone());
                for (side, purpose, block, addresses) in
                    [before, above].into_iter().filter(|_| seat.place > 0)
                {
                    let (node, key) = (self.member.node, self.member.store.key.clone());
                    let (caller, own) = (Caller { node, purpose, block, key }, self.own.clone());
                    thread::spawn(move || {
                        match introduce(&caller, &addresses) {
                            Ok(stream) => own.say(Word::Link(side, number, stream)),
                            // It goes on saying by multicast how far it is.
                            Err(_) if side == Side::Above => {}
                            Err(_) => own.say(Word::Failed(number)),
                        }
                    });
                }
                let terms = RingTerms {
                    job: self.job,
                    key: self.key.clone(),
                    limit: self.member.bits_per_second,
                    packs: self.member.store.packs,
                };
                self.ring = Some(Ring::new(seat, terms, self.member.store.stream));
                self.use_links();
            }
        }
    }

    fn use_links(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        let number = u64::from(ring.number());
        let mut outcome = Ok(());
        // What is of a ring before is dropped.
        self.early.retain(|(_, of, _)| *of >= number);
        for (side, _, stream) in self.early.extract_if(.., |(_, of, _)| *of == number) {
            outcome = ring.connected(side, stream).and(outcome);
        }
        if outcome.is_err() {
            self.give_up();
        }
    }

    fn send_probe(&mut self) {
        let now = self.now();
        let Some(probe) = self.probe.as_mut().filter(|probe| probe.at <= now) else { return };
        let (soon, late) = PROBE_AGAIN;
        probe.at = now + if probe.sent < FAST_PROBES { soon } else { late };
        probe.sent += 1;
        let header =
            Header { kind: Kind::Probe, flags: 0, job: self.job, communicator: 0, operation: 0, fragment: 0 };
        let (mut datagrams, payload) = (Vec::new(), vec![0; probe.payload_bytes]);
        (0..PROBE_COPIES).for_each(|_| seal(&header, &payload, &self.key, &mut datagrams));
        // What cannot be sent nobody hears, and the next time may be better.
        let _ = self.member.socket.send(&datagrams, datagrams.len() / PROBE_COPIES);
    }

    fn receive(&mut self) -> usize {
        let now = self.now();
        let Group { member, key, job, ring, has_heard, .. } = self;
        let (mut broken, mut heard) = (Ok(()), false);
        let mut each = |datagram: &[u8]| {
            let Ok((header, payload)) = open(datagram, *job, key) else { return };
            heard |= header.kind == Kind::Probe;
            if let Some(ring) = ring {
                broken = ring.take_datagram(&header, payload, now).and(broken);
            }
        };
        let mut all = 0;
        for _ in 0..MAX_READS {
            // A socket that fails brings nothing; the ring brings everything.
            match member.socket.receive(&mut each) {
                Ok(0) | Err(_) => break,
                Ok(count) => all += count,
            }
        }
        if heard && !std::mem::replace(has_heard, true) {
            say(&Event::Heard);
        }
        if broken.is_err() {
            self.give_up();
        }
        all
    }

    fn wait(&mut self) {
        let now = self.now();
        let ring = self.ring.as_ref();
        let deadline = ring.and_then(|ring| ring.deadline(now));
        let probe = self.probe.as_ref().map(|probe| probe.at);
        let until =
            [deadline, probe].into_iter().flatten().min().unwrap_or(now + Nanos::from_micros(100_000));
        let left = Timespec {
            tv_sec: (until - now).0 as i64 / 1_000_000_000,
            tv_nsec: (until - now).0 as i64 % 1_000_000_000,
        };
        let out = if ring.is_some_and(Ring::has_unsent) { PollFlags::OUT } else { PollFlags::empty() };
        let socket = self.member.socket.as_fd();
        let mut watched = vec![
            PollFd::from_borrowed_fd(socket, PollFlags::IN | out),
            PollFd::new(&self.sleeper, PollFlags::IN),
        ];
        let links = ring.into_iter().flat_map(Ring::events);
        watched.extend(links.map(|(link, events)| PollFd::from_borrowed_fd(link, events)));
        let _ = poll(&mut watched, Some(&left));
        let mut woken = [0; 64];
        let _ = self.sleeper.read(&mut woken);
    }
}
