//! A network of datagrams in memory: what comes through, how often, when, and to whom is decided by a seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polycast_core::protocol::KEY_BYTES;
use polycast_net::verbs::VerbsPort;
use polycast_net::{Carrier, Group, Interface};

use super::allocations::outside;
use super::flood::Flood;
use super::random::Random;
use super::stage::Stage;
use crate::reason::Reason;

/// No descriptor of the kernel is that large.
const FIRST_DESCRIPTOR: RawFd = 1 << 30;
/// No rank has this number.
const STRANGER: u32 = u32::MAX;
const LATENCY_NANOS: u64 = 20_000;
/// Datagrams of one call of receive.
const MAX_BATCH: usize = 8;
/// What a datagram takes of a receive buffer beside its bytes.
pub const OVERHEAD_BYTES: usize = 700;

/// What the network does to datagrams.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Of 1000, for each receiver.
    pub lost: u64,
    pub doubled: u64,
    pub damaged: u64,
    /// They come this much later at the most, so that they overtake each other.
    pub latest: Duration,
    /// The rank hears nothing then.
    pub deaf: Option<(u32, Range<Duration>)>,
    /// Nobody hears anything then.
    pub blocked: Range<Duration>,
    /// Switches forget members that have not been heard of for so long.
    pub forgotten_after: Duration,
    /// The switches do not hear when this rank becomes a member, only when it says so again.
    pub lost_report: Option<u32>,
    /// Of 1000 calls of send: the socket has no room.
    pub full: u64,
    /// Of 1000 calls of send: the kernel gives an error.
    pub failing: u64,
    /// The first groups that are tried belong to somebody else.
    pub taken_groups: u32,
    /// This rank cannot open a socket.
    pub no_socket: Option<u32>,
    /// This rank has no interface.
    pub no_interface: Option<u32>,
    pub receive_buffer_bytes: usize,
    pub mtu_bytes: u32,
    /// Ranks below this one have a port of InfiniBand or RoCE.
    pub ranks_with_verbs: u32,
    /// What is sent over it does not arrive.
    pub is_verbs_silent: bool,
    /// A stranger sends something again with each datagram: one of these, or what was sent in this job before.
    pub replayed: Option<Vec<Arc<[u8]>>>,
    pub flood: Option<Flood>,
}

impl Weather {
    /// Nothing happens.
    pub const FINE: Weather = Weather {
        lost: 0,
        doubled: 0,
        damaged: 0,
        latest: Duration::ZERO,
        deaf: None,
        blocked: Duration::ZERO..Duration::ZERO,
        forgotten_after: Duration::MAX,
        lost_report: None,
        full: 0,
        failing: 0,
        taken_groups: 0,
        no_socket: None,
        no_interface: None,
        receive_buffer_bytes: 1 << 20,
        mtu_bytes: 1500,
        ranks_with_verbs: 0,
        is_verbs_silent: false,
        replayed: None,
        flood: None,
    };
}

pub struct Member {
    rank: u32,
    /// By the time when they are there, and their number.
    pub inbox: BTreeMap<(u64, u64), Arc<[u8]>>,
    pub bytes: usize,
    pub dropped: u64,
    /// When the last of a flood has come.
    pub flooded: u64,
    /// The kernel has been asked to drop strangers' datagrams, and does.
    pub is_filtering: bool,
    /// When the switches heard of it.
    reported: Option<u64>,
}

struct State {
    members: HashMap<Group, BTreeMap<u32, Member>>,
    /// The socket behind each descriptor.
    opened: HashMap<RawFd, (Group, u32)>,
    random: Random,
    number: u64,
    groups_tried: u32,
    sockets: RawFd,
    /// By each rank.
    sent: BTreeMap<u32, u64>,
    /// Groups over verbs.
    over_verbs: BTreeSet<u16>,
    /// What a stranger has recorded.
    recorded: Vec<Arc<[u8]>>,
    /// Random bytes that are as many as keys have.
    keys: Vec<[u8; KEY_BYTES]>,
}

/// See the module.
pub struct Network {
    stage: Arc<Stage>,
    weather: Weather,
    state: Mutex<State>,
}

impl Network {
    pub fn new(stage: Arc<Stage>, weather: Weather, seed: u64) -> Network {
        let state = State {
            members: HashMap::new(),
            opened: HashMap::new(),
            random: Random::new(seed ^ 0x6e65_7477_6f72_6b00),
            number: 0,
            groups_tried: 0,
            sockets: 0,
            sent: BTreeMap::new(),
            over_verbs: BTreeSet::new(),
            recorded: weather.replayed.clone().unwrap_or_default(),
            keys: Vec::new(),
        };
        Network { stage, weather, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn random(&self, bytes: &mut [u8]) {
        let State { random, keys, .. } = &mut *self.lock();
        bytes.fill_with(|| random.below(256) as u8);
        if let Ok(key) = (&*bytes).try_into() {
            outside(|| keys.push(key));
        }
    }

    pub fn interfaces(&self, rank: u32) -> Vec<Interface> {
        let interface = Interface {
            name: "fake0".to_owned(),
            index: 2,
            ipv4: Some(Ipv4Addr::from_bits(0x0a00_0001 + rank)),
            ipv6: None,
            mtu_bytes: self.weather.mtu_bytes,
            bits_per_second: Some(1_000_000_000),
            is_up: true,
            can_multicast: true,
            is_loopback: false,
            has_default_route: true,
        };
        if self.weather.no_interface == Some(rank) { Vec::new() } else { vec![interface] }
    }

    pub fn verbs_port(&self, rank: u32) -> Option<VerbsPort> {
        (rank < self.weather.ranks_with_verbs).then(|| VerbsPort {
            device: "fake_0".to_owned(),
            port: 1,
            most_datagram_bytes: 2048,
            bits_per_second: Some(10_000_000_000),
            is_ethernet: true,
            is_active: true,
            partition: 0xffff,
        })
    }

    /// How many groups were joined over verbs.
    pub fn groups_over_verbs(&self) -> usize {
        self.lock().over_verbs.len()
    }

    pub fn open(
        self: &Arc<Network>,
        rank: u32,
        group: Group,
        is_verbs: bool,
    ) -> Result<Box<dyn Carrier>, Reason> {
        if self.weather.no_socket == Some(rank) && !is_verbs {
            return Err(Reason::Socket);
        }
        let mut state = self.lock();
        if state.groups_tried < self.weather.taken_groups {
            state.groups_tried += 1;
            return Err(Reason::Conflict);
        }
        if is_verbs {
            state.over_verbs.insert(group.port);
        }
        state.sockets += 1;
        let descriptor = FIRST_DESCRIPTOR + state.sockets;
        let flooded = self.stage.nanos();
        let reported = (self.weather.lost_report != Some(rank)).then_some(flooded);
        let (inbox, is_filtering) = (BTreeMap::new(), false);
        let member = Member { rank, inbox, bytes: 0, dropped: 0, flooded, is_filtering, reported };
        let members = state.members.entry(group).or_default();
        if members.insert(rank, member).is_some() {
            return Err(Reason::Conflict);
        }
        state.opened.insert(descriptor, (group, rank));
        Ok(Box::new(FakeSocket { network: self.clone(), rank, group, descriptor }))
    }

    /// When a datagram will be there for one of these sockets; `None`: no more are on their way.
    pub fn next_for(&self, sockets: &[RawFd]) -> Option<u64> {
        let state = self.lock();
        let mine = sockets.iter().filter_map(|descriptor| {
            let (group, rank) = state.opened.get(descriptor)?;
            state.members.get(group)?.get(rank)
        });
        let next = |member: &Member| {
            let there = member.inbox.keys().next().map(|(at, _)| *at);
            there.into_iter().chain(member.next_of(self.weather.flood.as_ref())).min()
        };
        mine.filter_map(next).min()
    }

    /// Sockets that are open.
    pub fn memberships(&self) -> usize {
        self.lock().members.values().map(BTreeMap::len).sum()
    }

    /// What a stranger has recorded, and the keys that were drawn.
    pub fn recorded(&self) -> (Vec<Arc<[u8]>>, Vec<[u8; KEY_BYTES]>) {
        let state = self.lock();
        (state.recorded.clone(), state.keys.clone())
    }

    /// Datagrams that were sent by each rank that has sent some.
    pub fn sent(&self) -> BTreeMap<u32, u64> {
        self.lock().sent.clone()
    }
}

struct FakeSocket {
    network: Arc<Network>,
    rank: u32,
    group: Group,
    descriptor: RawFd,
}

impl State {
    fn deliver(
        &mut self,
        weather: &Weather,
        now: u64,
        from: u32,
        group: Group,
        datagram: &[u8],
    ) -> Vec<(u32, u64)> {
        if weather.is_verbs_silent && self.over_verbs.contains(&group.port) {
            return Vec::new();
        }
        let State { members, random, number, .. } = self;
        let datagram: Arc<[u8]> = datagram.into();
        let mut arrivals = Vec::new();
        for member in members.get_mut(&group).into_iter().flat_map(BTreeMap::values_mut) {
            let is_deaf = weather.deaf.as_ref().is_some_and(|(rank, when)| {
                *rank == member.rank && when.contains(&Duration::from_nanos(now))
            });
            let is_blocked = weather.blocked.contains(&Duration::from_nanos(now));
            let is_known = member
                .reported
                .is_some_and(|reported| Duration::from_nanos(now - reported) < weather.forgotten_after);
            if let Some(flood) = &weather.flood {
                member.flood(flood, weather.receive_buffer_bytes, now, number);
            }
            if member.rank == from || is_deaf || is_blocked || !is_known || random.below(1000) < weather.lost
            {
                continue;
            }
            let copies = 1 + u64::from(random.below(1000) < weather.doubled);
            for _ in 0..copies {
                let mut copy = datagram.clone();
                if random.below(1000) < weather.damaged {
                    let mut bytes = copy.to_vec();
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                    copy = bytes.into();
                }
                let bytes = copy.len() + OVERHEAD_BYTES;
                if member.bytes + bytes > weather.receive_buffer_bytes {
                    member.dropped += 1;
                    continue;
                }
                let late = random.below(weather.latest.as_nanos() as u64 + 1);
                let at = now + LATENCY_NANOS + late;
                *number += 1;
                member.bytes += bytes;
                member.inbox.insert((at, *number), copy);
                arrivals.push((member.rank, at));
            }
        }
        arrivals
    }
}

impl Carrier for FakeSocket {
    fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        outside(|| self.send_all(datagrams, datagram_bytes))
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let batch = outside(|| self.batch());
        batch.iter().for_each(|datagram| each(datagram));
        Ok(batch.len())
    }

    fn renew_membership(&mut self) -> io::Result<()> {
        let now = self.network.stage.nanos();
        let mut state = self.network.lock();
        let member = state.members.get_mut(&self.group).and_then(|members| members.get_mut(&self.rank));
        member.map(|member| member.reported = Some(now)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Only strangers of a flood are dropped.
    fn keep_only(&mut self, _: [u8; 4], _: u32) -> bool {
        let mut state = self.network.lock();
        let member = state.members.get_mut(&self.group).and_then(|members| members.get_mut(&self.rank));
        let does = self.network.weather.flood.as_ref().is_some_and(|flood| flood.is_filtered);
        member.is_some_and(|member| std::mem::replace(&mut member.is_filtering, does) || does)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: a number that the kernel is never asked for: nobody but the stand-in of the machine gets it.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }

    fn most_datagram_bytes(&self) -> usize {
        self.network.weather.mtu_bytes as usize - 28
    }

    /// What is sent is at once on its way.
    fn queued_bytes(&self) -> usize {
        0
    }

    fn receive_buffer_bytes(&self) -> usize {
        self.network.weather.receive_buffer_bytes
    }

    fn dropped(&self) -> u64 {
        let state = self.network.lock();
        let members = state.members.get(&self.group);
        members.and_then(|members| members.get(&self.rank)).map_or(0, |member| member.dropped)
    }
}

impl FakeSocket {
    fn send_all(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        let Network { stage, weather, .. } = &*self.network;
        stage.turn(self.rank);
        let now = stage.nanos();
        let mut state = self.network.lock();
        if state.random.below(1000) < weather.full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if state.random.below(1000) < weather.failing {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        let all = datagrams.len().div_ceil(datagram_bytes);
        // The kernel may take some only.
        let taken = if state.random.below(1000) < weather.full { all.div_ceil(2) } else { all };
        let mut arrivals = Vec::new();
        for datagram in datagrams.chunks(datagram_bytes).take(taken) {
            arrivals.extend(state.deliver(weather, now, self.rank, self.group, datagram));
            *state.sent.entry(self.rank).or_default() += 1;
            if weather.replayed.is_some() {
                state.recorded.push(datagram.into());
                let count = state.recorded.len() as u64;
                let again = state.random.below(count) as usize;
                let again = state.recorded[again].clone();
                arrivals.extend(state.deliver(weather, now, STRANGER, self.group, &again));
            }
        }
        drop(state);
        stage.datagrams_at(&arrivals);
        stage.trace(self.rank, format_args!("{taken} datagrams of {datagram_bytes} bytes sent"));
        stage.moves();
        Ok(datagrams.len().min(taken * datagram_bytes))
    }

    /// What is there by now.
    fn batch(&mut self) -> Vec<Arc<[u8]>> {
        let Network { stage, weather, state } = &*self.network;
        stage.turn(self.rank);
        // Who is stuck is to be told so, and must not read for ever.
        let (now, flood) = (stage.nanos(), weather.flood.as_ref().filter(|_| !stage.is_stuck()));
        let mut batch = Vec::new();
        {
            let state = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
            let members = state.members.get_mut(&self.group);
            let Some(member) = members.and_then(|members| members.get_mut(&self.rank)) else { return batch };
            if let Some(flood) = flood {
                member.flood(flood, weather.receive_buffer_bytes, now, &mut state.number);
            }
            while let Some(first) = member.inbox.first_entry()
                && first.key().0 <= now
                && batch.len() < MAX_BATCH
            {
                let datagram = first.remove();
                member.bytes -= datagram.len() + OVERHEAD_BYTES;
                batch.push(datagram);
            }
        }
        let strangers = batch.iter().filter(|datagram| ***datagram == Flood::DATAGRAM).count();
        stage.spend(strangers as u64 * Flood::NANOS);
        // Strangers bring nobody any further.
        if batch.len() > strangers {
            stage.trace(self.rank, format_args!("{} datagrams received", batch.len()));
            stage.moves();
        }
        batch
    }
}

impl Drop for FakeSocket {
    fn drop(&mut self) {
        let mut state = self.network.lock();
        state.opened.remove(&self.descriptor);
        if let Some(members) = state.members.get_mut(&self.group) {
            members.remove(&self.rank);
            if members.is_empty() {
                state.members.remove(&self.group);
            }
        }
    }
}
