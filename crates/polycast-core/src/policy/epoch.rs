use super::{Call, Collective, Policy};

/// A stretch of the calls of one collective on one communicator for which the same rules hold; see [`CallCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub(super) usize);

impl Epoch {
    /// The epoch of the first calls.
    pub const FIRST: Epoch = Epoch(0);
}

/// The numbers of calls that a communicator has had, for each collective. Calls that are never
/// served do not count.
///
/// All ranks make the same calls on a communicator in the same order, so they count alike, and what is to change at a call number
/// changes on all ranks at the same call, though none of them says anything:
///
/// ```text
///  earlier calls   0    1    2    3    4    5 …
///  epoch           ├──── 0 ───┤├────── 1 ─────    a rule with earlier_calls = "3.."
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    earlier_calls: [u64; Collective::ALL.len()],
    /// The epoch of the last call of each collective. A byte is enough, for a table has few epochs;
    /// a program may have many communicators.
    epochs: [u8; Collective::ALL.len()],
}

impl CallCounts {
    /// The counts of a communicator that has had `earlier_calls` calls of each collective.
    pub fn after(policy: &Policy, earlier_calls: [u64; Collective::ALL.len()]) -> CallCounts {
        let epoch = |collective| policy.epoch(collective, earlier_calls[collective as usize]).0 as u8;
        CallCounts { earlier_calls, epochs: Collective::ALL.map(epoch) }
    }

    /// Counts a call and returns its epoch. A call that the policy leaves in any epoch is not
    /// counted.
    pub fn next(&mut self, policy: &Policy, call: &Call) -> Epoch {
        let epoch = self.peek(policy, call.collective);
        if !policy.leaves(call) {
            self.earlier_calls[call.collective as usize] += 1;
            self.epochs[call.collective as usize] = epoch.0 as u8;
        }
        epoch
    }

    /// The number of further calls that are in the epoch of the last one.
    pub fn left_in_epoch(&self, policy: &Policy, collective: Collective) -> u64 {
        let epoch = usize::from(self.epochs[collective as usize]);
        let next = policy.first_call(collective, Epoch(epoch + 1));
        next.map_or(u64::MAX, |next| next - self.earlier_calls[collective as usize])
    }

    /// Counts `calls` calls, no more than are left in this epoch, none of which the policy leaves
    /// in any epoch.
    pub fn add(&mut self, collective: Collective, calls: u64) {
        self.earlier_calls[collective as usize] += calls;
    }

    /// The number of calls that were counted of a collective.
    pub fn earlier_calls(&self, collective: Collective) -> u64 {
        self.earlier_calls[collective as usize]
    }

    /// The epoch before that of the last call, and the number of calls since; `None` in the first epoch.
    pub fn last_change(&self, policy: &Policy, collective: Collective) -> Option<(Epoch, u64)> {
        let epoch = usize::from(self.epochs[collective as usize]);
        let first = policy.first_call(collective, Epoch(epoch))?;
        Some((Epoch(epoch.checked_sub(1)?), self.earlier_calls(collective).saturating_sub(first)))
    }

    /// The epoch of the next call.
    pub fn peek(&self, policy: &Policy, collective: Collective) -> Epoch {
        let epoch = usize::from(self.epochs[collective as usize]);
        let begins = policy.first_call(collective, Epoch(epoch + 1));
        Epoch(epoch + usize::from(begins == Some(self.earlier_calls[collective as usize])))
    }
}
