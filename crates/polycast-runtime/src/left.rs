//! Calls that the MPI serves on whatever communicator of this job they are: the door makes nothing for a communicator that has no others.

use std::sync::atomic::{AtomicU64, Ordering};

use polycast_core::collective::Collective;
use polycast_core::policy::{self, CommunicatorShape};

use crate::of_process::of_process;
use crate::settings::Settings;

const COLLECTIVES: usize = Collective::ALL.len();

of_process! {
    /// Of each collective those of fewer bytes. Until ranks have told each other where they are it is not known of any.
    static BELOW: [AtomicU64; COLLECTIVES] = [const { AtomicU64::new(0) }; COLLECTIVES];
}

/// All ranks of the job lie so, and go by these settings. Where some rank tells of its calls, or ways are measured for each of them, none is of no
/// interest. All ranks come to the same: what they leave here they do not count, and rules may ask how many calls there were before.
pub fn learn(settings: &Settings, most: CommunicatorShape, are_told: bool) {
    if !are_told && settings.tune.is_none() {
        set(policy::left_below(settings.rules(None), most));
    }
}

/// The program changes settings.
pub fn forget() {
    set([0; COLLECTIVES]);
}

fn set(below: [u64; COLLECTIVES]) {
    BELOW.with(|all| all.iter().zip(below).for_each(|(one, below)| one.store(below, Ordering::Relaxed)));
}

/// Whether such calls are left.
#[inline]
pub fn is_left(collective: usize, bytes: u64) -> bool {
    BELOW.with(|all| all.get(collective).is_some_and(|below| bytes < below.load(Ordering::Relaxed)))
}
