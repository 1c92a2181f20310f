use super::{Collective, Policy};

/// A stretch of the calls of one collective on one communicator for which the same rules hold; see [`CallCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub(super) usize);

impl Epoch {
    /// Of the first calls.
    pub const FIRST: Epoch = Epoch(0);
}

/// How many calls of each collective a communicator has had.
///
/// All ranks make the same calls on a communicator in the same order, so they count alike, and what is to change at a call number
/// changes on all ranks at the same call, though none of them says anything:
///
/// ```text
///  earlier calls   0    1    2    3    4    5 …
///  epoch           ├──── 0 ───┤├────── 1 ─────    a rule with earlier_calls = "3.."
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts([Count; Collective::ALL.len()]);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    earlier_calls: u64,
    epoch: Epoch,
}

impl CallCounts {
    /// Counts a call and says in which epoch it is.
    pub fn next(&mut self, policy: &Policy, collective: Collective) -> Epoch {
        let count = &mut self.0[collective as usize];
        if policy.first_call(collective, Epoch(count.epoch.0 + 1)) == Some(count.earlier_calls) {
            count.epoch.0 += 1;
        }
        count.earlier_calls += 1;
        count.epoch
    }

    /// The epoch of the next call.
    pub fn peek(&self, policy: &Policy, collective: Collective) -> Epoch {
        self.clone().next(policy, collective)
    }
}
