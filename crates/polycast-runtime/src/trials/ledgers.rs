use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use polycast_core::policy::trials::{
    CACHE_FILE, Finding, Ledger, Memory, Recalled, Sameness, Setting, TOLD, Trials,
};
use polycast_core::policy::{Choice, CommunicatorShape, Policy};

use super::cache;
use crate::identity::build_identity;
use crate::machine;
use crate::of_process::change;
use crate::say::warn_once;
use crate::settings;

/// Most shapes of which ledgers are kept: those that came last.
const MAX_LEDGERS: usize = 64;

/// Knowledge that the communicators of a shape have in common.
struct Kept {
    shape: CommunicatorShape,
    /// The policy; arms are places among its options.
    policy: Arc<Policy>,
    ledger: Ledger,
    /// True if the ledger has what earlier jobs left.
    is_read: bool,
    /// Findings by tuning, also those of earlier jobs.
    tuned: Vec<Memory>,
    /// Number of lines of the file that could not be read.
    unread: usize,
    /// Findings by tuning that the report has.
    told: Vec<Sameness>,
}

/// What a process has learned of ways, on communicators of each shape.
#[derive(Default)]
pub struct Ledgers {
    kept: Mutex<VecDeque<Kept>>,
    /// The library of the MPI below, and the kind of host.
    place: OnceLock<(String, String)>,
}

impl Ledgers {
    fn with<R>(
        &self,
        shape: CommunicatorShape,
        policy: &Arc<Policy>,
        work: impl FnOnce(&mut Kept) -> R,
    ) -> R {
        change(&self.kept, |ledgers| {
            let known = ledgers.iter().position(|kept| {
                kept.shape == shape && (Arc::ptr_eq(&kept.policy, policy) || kept.policy == *policy)
            });
            let index = known.unwrap_or_else(|| {
                if ledgers.len() == MAX_LEDGERS {
                    ledgers.pop_front();
                }
                let (ledger, tuned) = Default::default();
                ledgers.push_back(Kept {
                    shape,
                    policy: policy.clone(),
                    ledger,
                    is_read: false,
                    tuned,
                    unread: 0,
                    told: Vec::new(),
                });
                ledgers.len() - 1
            });
            work(&mut ledgers[index])
        })
    }

    fn setting(&self, shape: CommunicatorShape) -> Setting {
        let find = || (cache::mpi_below(), Setting::kind_of_host(&machine::host().0));
        let (mpi, hosts) = self.place.get_or_init(find);
        Setting { mpi: mpi.clone(), hosts: hosts.clone(), build: build_identity(), shape }
    }

    /// Words of rank 0 for a communicator that begins its trials, and what was just read of earlier
    /// jobs.
    pub fn told(&self, shape: CommunicatorShape, policy: &Arc<Policy>) -> ([u64; TOLD], Vec<Recalled>) {
        self.with(shape, policy, |kept| {
            let mut recalled = Vec::new();
            if !kept.is_read {
                kept.is_read = true;
                let read = settings::cache_folder().map(|folder| cache::read(&folder, machine::today()));
                let ((memories, unread), setting) = (read.unwrap_or_default(), self.setting(shape));
                recalled = memories.iter().filter_map(|memory| memory.recall(&setting, policy)).collect();
                recalled.iter().for_each(|recalled| kept.ledger.remember(recalled));
                // The nearest setting first, of these the last line: what is known is not learnt again.
                let distance =
                    |memory: &Memory| memory.recall_tuned().and_then(|_| memory.distance(&setting));
                let near =
                    memories.iter().rev().filter_map(|memory| Some((distance(memory)?, memory.clone())));
                let mut tuned: Vec<(u64, Memory)> = near.collect();
                tuned.sort_by_key(|(distance, _)| *distance);
                for (_, memory) in tuned {
                    if !kept.tuned.contains(&memory) {
                        kept.tuned.push(memory);
                    }
                }
                kept.unread = unread;
            }
            (kept.ledger.words_for_others(), recalled)
        })
    }

    /// Findings of this process by tuning, for the other ranks: lines of the file.
    pub fn tuned(&self, shape: CommunicatorShape, policy: &Arc<Policy>) -> String {
        self.with(shape, policy, |kept| {
            if kept.unread > 0 {
                let lines = if kept.unread == 1 { "a line counts" } else { "some lines count" };
                let folder = settings::cache_folder().unwrap_or_default().join(CACHE_FILE);
                warn_once(&format!(
                    "{}: {lines} for nothing: half written, or by another version of polycast",
                    folder.display()
                ));
            }
            kept.tuned.iter().map(|memory| memory.line() + "\n").collect()
        })
    }

    /// Findings by tuning in rank 0's lines, alike on all ranks; and for each, true if this process did
    /// not know it before.
    pub fn tuned_elsewhere(
        &self,
        shape: CommunicatorShape,
        policy: &Arc<Policy>,
        lines: &str,
    ) -> (Vec<Recalled>, Vec<bool>) {
        self.with(shape, policy, |kept| {
            let memories = Memory::read(lines, 0).into_iter();
            let known: Vec<(Memory, Recalled)> =
                memories.filter_map(|memory| Some((memory.clone(), memory.recall_tuned()?))).collect();
            let mut tell = |(memory, recalled): (Memory, Recalled)| {
                let is_new = !kept.told.contains(&recalled.of);
                if is_new {
                    kept.told.push(recalled.of);
                }
                if !kept.tuned.contains(&memory) {
                    kept.tuned.push(memory);
                }
                (recalled, is_new)
            };
            known.into_iter().map(&mut tell).unzip()
        })
    }

    /// Returns the result of tuning as a line of the file, which keeps it for later jobs if there is a
    /// place for it. On rank 0.
    pub fn keep_tuned(&self, shape: CommunicatorShape, ways: &[Choice], finding: &Finding) -> String {
        let today = machine::today();
        let memory = Memory::new(&self.setting(shape), ways, finding, finding.first_look(), today);
        if let Some(folder) = settings::cache_folder() {
            // As below.
            let _ = cache::add(&folder, &memory, today);
        }
        memory.line()
    }

    /// Trials that begin with rank 0's words.
    pub fn resumed(&self, shape: CommunicatorShape, policy: &Arc<Policy>, told: &[u64; TOLD]) -> Trials {
        self.with(shape, policy, |kept| kept.ledger.resumed(told))
    }

    /// Learns from the trials of a communicator that ends, or has found something.
    pub fn learn(&self, shape: CommunicatorShape, policy: &Arc<Policy>, trials: &mut Trials) {
        self.with(shape, policy, |kept| kept.ledger.learn(trials));
    }

    /// Leaves a finding to later jobs, if there is a place for it. On rank 0.
    pub fn keep(&self, shape: CommunicatorShape, policy: &Arc<Policy>, ways: &[Choice], finding: &Finding) {
        let Some(folder) = settings::cache_folder() else { return };
        let Some(until_calls) = self.with(shape, policy, |kept| kept.ledger.stays_until(finding.of)) else {
            return;
        };
        let today = machine::today();
        let memory = Memory::new(&self.setting(shape), ways, finding, until_calls, today);
        // No job fails because its home is full or read-only.
        let _ = cache::add(&folder, &memory, today);
    }
}
