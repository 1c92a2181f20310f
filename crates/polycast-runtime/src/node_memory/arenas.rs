//! The arena of this rank's host, made and opened when MPI begins, in exchanges that there are anyway. Nothing of it is in memory
//! but its front until a communicator needs some.
//!
//! ```text
//!   tell    before the host's name: its process, and where its mark is; the host's first rank: a new arena     MPI_Allgather
//!   vote    beside others: has this rank opened its host's, can it read the mark of the next one there?        MPI_Allgather
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use polycast_shm::{Arena, Offer};

use crate::{machine, settings};

/// Digits by which a rank tells.
pub const OFFER_DIGITS: usize = 48;
/// Part of the memory that this process may still have, if that is limited, which an arena's addresses take.
const PART_OF_LIMIT: u64 = 16;
/// Bytes of addresses that it takes whatever the limit.
const LEAST_BYTES: u64 = 4 << 20;

/// True if some host has several of the ranks with these hosts.
pub fn do_share_hosts(hosts: &[u64]) -> bool {
    let mut sorted = hosts.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// What this rank offers to those of its host; `None` inside: it has no part in an arena.
#[derive(Default)]
pub struct ArenaOffer {
    /// The mark, which others read where it stands.
    mark: Option<Box<u64>>,
    made: Option<(Arena, Offer)>,
}

impl ArenaOffer {
    /// The offer of a rank in MPI_COMM_WORLD, whose ranks have these hosts. `identity`: a random number,
    /// known to all, that the rank shows as its mark.
    pub fn new(hosts: &[u64], rank: usize, identity: u64) -> ArenaOffer {
        let mut neighbours = hosts.iter().enumerate().filter(|(_, host)| **host == hosts[rank]);
        let leads = neighbours.next().is_some_and(|(first, _)| first == rank);
        if !settings::is_memory_wanted() || leads && neighbours.next().is_none() {
            return ArenaOffer::default();
        }
        let most = machine::memory_left().map_or(u64::MAX, |left| (left / PART_OF_LIMIT).max(LEAST_BYTES));
        let made = match machine::random() {
            Ok(name) if leads && name != 0 => machine::create_arena(most as usize, name).ok(),
            _ => None,
        };
        ArenaOffer { mark: Some(Box::new(identity)), made }
    }

    /// The offer in [`OFFER_DIGITS`] digits.
    pub fn digits(&self) -> String {
        let Offer { descriptor, name, .. } = self.made.as_ref().map_or(NO_OFFER, |(_, offer)| *offer);
        let mark_at = self.mark.as_ref().map_or(0, |mark| std::ptr::from_ref(&**mark) as u64);
        format!("{:08x}{descriptor:08x}{name:016x}{mark_at:016x}", std::process::id())
    }

    /// Opens the arena of this rank's host. `told`: the digits of all ranks of MPI_COMM_WORLD.
    pub fn open(self, told: &[String], hosts: &[u64], rank: usize, identities: &[u64]) -> Opened {
        let ArenaOffer { mark, made } = self;
        let told: Vec<ToldOffer> = told.iter().map(|digits| ToldOffer::from_digits(digits)).collect();
        let near: Vec<usize> = (0..hosts.len()).filter(|other| hosts[*other] == hosts[rank]).collect();
        let processes = told.iter().map(|told| told.process).collect();
        let mut opened = Opened { arena: None, reads_others: false, processes, _mark: mark };
        if near.iter().any(|other| told[*other].mark_at == 0) {
            return opened;
        }
        let ToldOffer { process, descriptor, name, .. } = told[near[0]];
        let offered = (name != 0).then_some(Offer { process, descriptor, name });
        let open = |offer| machine::open_arena(offer).ok();
        opened.arena = made.map(|(arena, _)| arena).or_else(|| offered.and_then(open)).map(Arc::new);
        // One another of a ring of all: who may not read, or may not be read, is found.
        let next = near[near.partition_point(|other| *other <= rank) % near.len()];
        let mut place = [0; 8];
        opened.reads_others = machine::read_process(told[next].process, told[next].mark_at, &mut place)
            .is_ok()
            && place == identities[next].to_ne_bytes();
        opened
    }
}

const NO_OFFER: Offer = Offer { process: 0, descriptor: 0, name: 0 };

#[derive(Clone, Copy, Default)]
struct ToldOffer {
    process: u32,
    descriptor: u32,
    name: u64,
    mark_at: u64,
}

impl ToldOffer {
    fn from_digits(digits: &str) -> ToldOffer {
        let number = |from: usize, to: usize| {
            digits.get(from..to).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
        };
        let (process, descriptor) = (number(0, 8) as u32, number(8, 16) as u32);
        ToldOffer { process, descriptor, name: number(16, 32), mark_at: number(32, OFFER_DIGITS) }
    }
}

/// What this rank has opened, before the vote.
pub struct Opened {
    arena: Option<Arc<Arena>>,
    reads_others: bool,
    processes: Box<[u32]>,
    /// Others read it until they have voted.
    _mark: Option<Box<u64>>,
}

impl Opened {
    const HAS_ARENA: u8 = 1 << 1;
    const READS_OTHERS: u8 = 1 << 2;

    /// Bits beside the vote of a rank, which has the lowest.
    pub fn vote(&self) -> u8 {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        bit(self.arena.is_some(), Opened::HAS_ARENA) | bit(self.reads_others, Opened::READS_OTHERS)
    }

    /// The arenas after the vote of all ranks.
    pub fn agreed(self, hosts: &[u64], rank: usize, votes: &[[u8; 1]]) -> Arenas {
        let mut without: Vec<u64> = hosts
            .iter()
            .zip(votes)
            .filter(|(_, [vote])| vote & Opened::HAS_ARENA == 0)
            .map(|(host, _)| *host)
            .collect();
        without.sort_unstable();
        let have: Vec<bool> = hosts.iter().map(|host| without.binary_search(host).is_err()).collect();
        let mut near = hosts.iter().zip(votes).filter(|(host, _)| **host == hosts[rank]);
        Arenas {
            mine: self.arena.filter(|_| have[rank]),
            reads_others: near.all(|(_, [vote])| vote & Opened::READS_OTHERS != 0),
            processes: self.processes,
            have,
        }
    }
}

/// The arenas of the hosts of MPI_COMM_WORLD, of which this process has one.
#[derive(Default)]
pub struct Arenas {
    mine: Option<Arc<Arena>>,
    reads_others: bool,
    /// The kernel's number of the process of each rank.
    pub(super) processes: Box<[u32]>,
    /// True for each rank whose host has an arena, which all ranks there have opened.
    have: Vec<bool>,
}

impl Arenas {
    /// The arena of this host.
    pub(super) fn mine(&self) -> Option<&Arc<Arena>> {
        self.mine.as_ref()
    }

    /// True if the hosts of all these ranks have arenas.
    pub fn have(&self, mut ranks: impl Iterator<Item = u32>) -> bool {
        ranks.all(|rank| self.have.get(rank as usize).copied().unwrap_or(false))
    }

    /// True if processes of this host can read each other's memory, as far as is known.
    pub(super) fn reads_others(&self) -> bool {
        // Relaxed: who misses it asks.
        self.reads_others && self.mine.as_ref().is_some_and(|arena| arena.has_refused().load(Relaxed) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_survive_the_wire_and_hosts_are_judged_whole() {
        let told =
            ToldOffer::from_digits(&format!("{:08x}{:08x}{:016x}{:016x}", 70_000, 9, u64::MAX, 1u64 << 47));
        assert_eq!((told.process, told.descriptor, told.name, told.mark_at), (70_000, 9, u64::MAX, 1 << 47));
        assert_eq!(ArenaOffer::default().digits().len(), OFFER_DIGITS);
        assert_eq!(ToldOffer::from_digits(&ArenaOffer::default().digits()).mark_at, 0);
        assert!(do_share_hosts(&[1, 2, 1]) && !do_share_hosts(&[1, 2, 3]));
        let opened = Opened { arena: None, reads_others: true, processes: Box::new([]), _mark: None };
        let votes = [[7], [3], [7], [5], [3]];
        let arenas = opened.agreed(&[1, 2, 1, 3, 2], 0, &votes);
        let have = |ranks: &[u32]| arenas.have(ranks.iter().copied());
        assert!(have(&[0, 1, 2, 4]) && !have(&[0, 3]) && !have(&[5]));
    }
}
