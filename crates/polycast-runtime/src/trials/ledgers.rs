use std::collections::VecDeque;
use std::sync::Mutex;

use polycast_core::policy::trials::{Ledger, TOLD, Trials};
use polycast_core::policy::{CommunicatorShape, Policy};

use crate::of_process::{Shared, of_process};

/// Shapes of which ledgers are kept: those that came last.
const MAX_LEDGERS: usize = 64;

/// What the communicators of a shape have in common.
struct Kept {
    shape: CommunicatorShape,
    /// Arms are places among its options.
    policy: Policy,
    ledger: Ledger,
}

of_process! {
    static LEDGERS: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());
}

fn with<R>(shape: CommunicatorShape, policy: &Policy, change: impl FnOnce(&mut Ledger) -> R) -> R {
    LEDGERS.change(|ledgers| {
        let known = ledgers.iter().position(|kept| kept.shape == shape && kept.policy == *policy);
        let index = known.unwrap_or_else(|| {
            if ledgers.len() == MAX_LEDGERS {
                ledgers.pop_front();
            }
            ledgers.push_back(Kept { shape, policy: policy.clone(), ledger: Ledger::default() });
            ledgers.len() - 1
        });
        change(&mut ledgers[index].ledger)
    })
}

/// Rank 0's words for a communicator that begins its trials.
pub fn told(shape: CommunicatorShape, policy: &Policy) -> [u64; TOLD] {
    with(shape, policy, |ledger| ledger.told())
}

/// What it begins with.
pub fn resumed(shape: CommunicatorShape, policy: &Policy, told: &[u64; TOLD]) -> Trials {
    with(shape, policy, |ledger| ledger.resumed(told))
}

/// A communicator ends, or has found something.
pub fn learn(shape: CommunicatorShape, policy: &Policy, trials: &mut Trials) {
    with(shape, policy, |ledger| ledger.learn(trials));
}
