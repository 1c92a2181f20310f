use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use polycast_core::policy::trials::{Finding, Ledger, Memory, Recalled, Setting, TOLD, Trials};
use polycast_core::policy::{CommunicatorShape, Policy};

use super::cache;
use crate::identity::build_identity;
use crate::machine;
use crate::of_process::{Shared, of_process};
use crate::settings;

/// Shapes of which ledgers are kept: those that came last.
const MAX_LEDGERS: usize = 64;

/// What the communicators of a shape have in common.
struct Kept {
    shape: CommunicatorShape,
    /// Arms are places among its options.
    policy: Arc<Policy>,
    ledger: Ledger,
    /// What earlier jobs left is in it.
    is_read: bool,
}

of_process! {
    static LEDGERS: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());
}

of_process! {
    /// The library of the MPI below, and the kind of host.
    static PLACE: OnceLock<(String, String)> = OnceLock::new();
}

fn with<R>(shape: CommunicatorShape, policy: &Arc<Policy>, change: impl FnOnce(&mut Kept) -> R) -> R {
    LEDGERS.change(|ledgers| {
        let known = ledgers.iter().position(|kept| {
            kept.shape == shape && (Arc::ptr_eq(&kept.policy, policy) || kept.policy == *policy)
        });
        let index = known.unwrap_or_else(|| {
            if ledgers.len() == MAX_LEDGERS {
                ledgers.pop_front();
            }
            let ledger = Ledger::default();
            ledgers.push_back(Kept { shape, policy: policy.clone(), ledger, is_read: false });
            ledgers.len() - 1
        });
        change(&mut ledgers[index])
    })
}

fn setting(shape: CommunicatorShape) -> Setting {
    PLACE.with(|place| {
        let (mpi, hosts) =
            place.get_or_init(|| (cache::mpi_below(), Setting::kind_of_host(&machine::host().0)));
        Setting { mpi: mpi.clone(), hosts: hosts.clone(), build: build_identity(), shape }
    })
}

/// Rank 0's words for a communicator that begins its trials; and what it has just read of earlier jobs.
pub fn told(shape: CommunicatorShape, policy: &Arc<Policy>) -> ([u64; TOLD], Vec<Recalled>) {
    with(shape, policy, |kept| {
        let mut recalled = Vec::new();
        if !kept.is_read {
            kept.is_read = true;
            let memories = settings::cache_folder().map(|folder| cache::read(&folder, machine::today()));
            let (memories, setting) = (memories.unwrap_or_default(), setting(shape));
            recalled = memories.iter().filter_map(|memory| memory.recall(&setting, policy)).collect();
            recalled.iter().for_each(|recalled| kept.ledger.remember(recalled));
        }
        (kept.ledger.told(), recalled)
    })
}

/// What it begins with.
pub fn resumed(shape: CommunicatorShape, policy: &Arc<Policy>, told: &[u64; TOLD]) -> Trials {
    with(shape, policy, |kept| kept.ledger.resumed(told))
}

/// A communicator ends, or has found something.
pub fn learn(shape: CommunicatorShape, policy: &Arc<Policy>, trials: &mut Trials) {
    with(shape, policy, |kept| kept.ledger.learn(trials));
}

/// Leaves a finding to later jobs, if there is a place for it. On rank 0.
pub fn keep(shape: CommunicatorShape, policy: &Arc<Policy>, finding: &Finding) {
    let Some(folder) = settings::cache_folder() else { return };
    let Some(until_calls) = with(shape, policy, |kept| kept.ledger.stays_until(finding.of)) else { return };
    let today = machine::today();
    let memory = Memory::new(&setting(shape), policy, finding, until_calls, today);
    // No job fails because its home is full or read-only.
    let _ = cache::add(&folder, &memory, today);
}
