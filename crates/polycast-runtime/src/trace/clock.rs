//! Comparison of clocks with rank 0's: of several exchanges of two messages the fastest one tells,
//! and half of its time bounds the error, whatever the asymmetry of the way. One rank of those with
//! the same clock asks; rank 0 answers one after the other.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use polycast_core::units::Rank;
use polycast_trace::Clock;

use crate::abi::MpiError;
use crate::door::Door;
use crate::machine;
use crate::messages::{Address, Messages, ProbeMessage, Purpose, Route};

const EXCHANGES: usize = 16;

/// Tag of the exchanges, which the first communicator does not use: operation 0 is multicast's and
/// that of measurements, which take fewer.
const TAG: c_int = 7;

/// Longest time for which a rank waits for another one, whose MPI may have failed; more for each
/// clock, for rank 0 may be with others before.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_PER_CLOCK: Duration = Duration::from_millis(50);

/// Part of this rank in a comparison of clocks.
pub struct Clocks {
    door: Door,
    first_tag: c_int,
    world_ranks: Arc<[u32]>,
    rank: u32,
    /// The first rank of each clock but rank 0's.
    askers: Vec<u32>,
}

// SAFETY: the door is that of MPI_COMM_WORLD, which stays as long as the process; it is used by the threads that begin and end MPI only.
unsafe impl Send for Clocks {}
// SAFETY: the same.
unsafe impl Sync for Clocks {}

impl Clocks {
    /// The comparison of ranks with these clocks.
    pub fn new(door: Door, rank: u32, of_ranks: &[u64], first_tag: c_int) -> Clocks {
        let is_first = |(index, clock): &(usize, &u64)| !of_ranks[..*index].contains(clock);
        let askers = of_ranks.iter().enumerate().filter(is_first).map(|(index, _)| index as u32);
        let askers = askers.filter(|asker| *asker != 0).collect();
        Clocks { door, first_tag, world_ranks: (0..of_ranks.len() as u32).collect(), rank, askers }
    }

    /// Compares clocks. Collective over MPI_COMM_WORLD. Returns the finding if this rank is the one
    /// of its clock that asks.
    pub fn compare(&self) -> Option<Clock> {
        let address = Address { world_ranks: self.world_ranks.clone(), first_tag: self.first_tag };
        let mut talk = Talk { messages: Messages::new(self.door, address), patience: self.patience() };
        let outcome = match self.rank {
            0 => self.askers.iter().try_for_each(|asker| talk.answer(Rank(*asker))).map(|()| None),
            rank if self.askers.contains(&rank) => talk.ask(),
            _ => return None,
        };
        // What is still on its way is left to MPI.
        talk.messages.cancel(|_| true);
        outcome.ok().flatten()
    }

    fn patience(&self) -> Duration {
        PATIENCE + PATIENCE_PER_CLOCK * self.askers.len() as u32
    }
}

struct Talk {
    messages: Messages,
    patience: Duration,
}

/// A comparison was given up: MPI has failed, or a rank has not answered.
struct GivenUp;

impl From<MpiError> for GivenUp {
    fn from(_: MpiError) -> GivenUp {
        GivenUp
    }
}

impl Talk {
    /// Sends and receives a time, in the order of `sends_first`; returns the time of sending and
    /// the one that came.
    fn exchange(&mut self, peer: Rank, sends_first: bool) -> Result<(u64, u64), GivenUp> {
        let route = Route { peer, tag: TAG };
        let (mut came, mut sent_ns) = (None, 0);
        self.messages.receive(Purpose::Probe(ProbeMessage::Answer), route, vec![0; 8], 8)?;
        if sends_first {
            sent_ns = self.send(route)?;
        }
        let begun = machine::now();
        loop {
            self.messages.poll(|_, _| {})?;
            for done in std::mem::take(&mut self.messages.probes_done) {
                if done.is_receive && done.outcome? == 8 {
                    came = done.memory.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                }
            }
            if let Some(time) = came {
                if !sends_first {
                    self.send(route)?;
                    sent_ns = 1;
                }
                if sent_ns > 0 {
                    return self.finish_sends().map(|()| (sent_ns, time));
                }
            }
            if machine::now() - begun > self.patience {
                return Err(GivenUp);
            }
            machine::give_way();
        }
    }

    fn send(&mut self, route: Route) -> Result<u64, GivenUp> {
        let now_ns = machine::monotonic_nanos();
        let bytes = now_ns.to_le_bytes().to_vec();
        self.messages.send(Purpose::Probe(ProbeMessage::Question), route, bytes, 8)?;
        Ok(now_ns)
    }

    fn finish_sends(&mut self) -> Result<(), GivenUp> {
        let begun = machine::now();
        while self.messages.is_sending() {
            self.messages.poll(|_, _| {})?;
            if machine::now() - begun > self.patience {
                return Err(GivenUp);
            }
            machine::give_way();
        }
        self.messages.probes_done.clear();
        Ok(())
    }

    fn answer(&mut self, asker: Rank) -> Result<(), GivenUp> {
        (0..EXCHANGES).try_for_each(|_| self.exchange(asker, false).map(|_| ()))
    }

    fn ask(&mut self) -> Result<Option<Clock>, GivenUp> {
        let mut best: Option<Clock> = None;
        for _ in 0..EXCHANGES {
            let (sent_ns, common_ns) = self.exchange(Rank(0), true)?;
            let received_ns = machine::monotonic_nanos();
            let error_ns = (received_ns - sent_ns).div_ceil(2);
            if best.is_none_or(|best| error_ns < best.error_ns) {
                let local_ns = sent_ns + error_ns;
                let offset_ns = common_ns as i64 - local_ns as i64;
                best = Some(Clock { local_ns, offset_ns, error_ns });
            }
        }
        Ok(best)
    }
}
