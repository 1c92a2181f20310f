use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use polycast_core::topology::Locality;
use polycast_net::verbs::VerbsPort;
use polycast_net::{Carrier, Group, Interface};
use polycast_shm::{Arena, Offer, SegmentError, Slot};
use rustix::event::PollFd;

use super::allocations::outside;
use super::conditions::Refused;
use super::world::World;
use crate::machine::test::Machine;
use crate::reason::Reason;

/// The machine that a rank of a job runs on.
pub struct RankMachine {
    pub world: Arc<World>,
    pub rank: u32,
    pub variables: HashMap<&'static str, String>,
    /// How often it has read what others have.
    pub reads: Cell<u32>,
}

impl RankMachine {
    /// An error, if the kernel does not do this for this rank.
    fn refuse(&self, what: Refused) -> io::Result<()> {
        if cfg!(miri) {
            // It has no memfd, and reads no other process.
            return Err(io::ErrorKind::Unsupported.into());
        }
        let is_refused = self.world.conditions.refused.contains(&(self.rank, what));
        if is_refused { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl Machine for RankMachine {
    fn now(&self) -> Instant {
        self.world.stage.now()
    }

    fn monotonic_nanos(&self) -> u64 {
        // Never 0, as the machine's is not.
        self.world.stage.nanos() + 1
    }

    fn sleep(&self, time: Duration) {
        self.world.stage.wait(self.rank, Some(time), false);
    }

    fn give_way(&self) {
        self.world.stage.give_way(self.rank);
    }

    fn poll(&self, watched: &[PollFd<'_>], longest: Duration) -> usize {
        let World { stage, network, .. } = &*self.world;
        let sockets: Vec<RawFd> =
            outside(|| watched.iter().map(|watched| watched.as_fd().as_raw_fd()).collect());
        let end = stage.nanos() + longest.as_nanos() as u64;
        loop {
            let (now, first) = (stage.nanos(), network.next_for(&sockets).unwrap_or(u64::MAX));
            if first <= now || now >= end || stage.is_stuck() {
                return (first <= now).into();
            }
            let woken = first.saturating_add(stage.turns.wake_up.as_nanos() as u64);
            stage.wait(self.rank, Some(Duration::from_nanos(woken.min(end) - now)), true);
        }
    }

    fn processors(&self) -> usize {
        self.world.conditions.processors
    }

    fn locality(&self) -> Locality {
        self.world.conditions.localities.get(self.rank as usize).copied().unwrap_or_default()
    }

    fn memory_left(&self) -> Option<u64> {
        self.world.conditions.memory_left.get(self.rank as usize).copied().flatten()
    }

    fn receive_buffer_bytes(&self) -> Option<u64> {
        self.world.conditions.receive_buffers.get(self.rank as usize).copied()
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.world.network.random(bytes);
        Ok(())
    }

    fn host(&self) -> (String, String) {
        let host = self.world.conditions.hosts[self.rank as usize];
        (format!("host{host}"), "a kernel".to_owned())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).map(OsString::from)
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn say(&self, text: &str) {
        self.world.say(self.rank, text);
    }

    fn create_arena(&self, most: usize, name: u64) -> Result<(Arena, Offer), SegmentError> {
        self.refuse(Refused::Create)?;
        self.world.arenas[0].fetch_add(1, Ordering::Relaxed);
        let most = self.world.conditions.arena_bytes.map_or(most, |bytes| bytes.min(most));
        let (arena, offer) = outside(|| Arena::create(most, name))?;
        self.world.stage.watch(arena.segment().file())?;
        Ok((arena, offer))
    }

    fn open_arena(&self, offer: Offer) -> Result<Arena, SegmentError> {
        self.refuse(Refused::Open)?;
        outside(|| Arena::open(offer))
    }

    fn take_slot(&self, arena: &Arena, ranks: u32, numbers: usize) -> Option<Slot> {
        self.refuse(Refused::Take).ok()?;
        self.world.arenas[1].fetch_add(1, Ordering::Relaxed);
        outside(|| arena.take(ranks, numbers))
    }

    fn read_process(&self, process: u32, address: u64, place: &mut [u8]) -> io::Result<()> {
        self.refuse(Refused::Read)?;
        let reads = self.reads.replace(self.reads.get() + 1);
        if self.world.conditions.reads_until.is_some_and(|(rank, most)| rank == self.rank && reads >= most) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        polycast_shm::address::read(process, address, place)
    }

    fn interfaces(&self) -> Vec<Interface> {
        self.world.network.interfaces(self.rank)
    }

    fn verbs_port(&self) -> Option<VerbsPort> {
        self.world.network.verbs_port(self.rank)
    }

    fn open(&self, _: &Interface, group: Group, is_verbs: bool) -> Result<Box<dyn Carrier>, Reason> {
        self.world.network.open(self.rank, group, is_verbs)
    }
}
