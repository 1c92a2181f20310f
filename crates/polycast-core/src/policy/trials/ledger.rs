use super::{Recalled, Sameness, State, TOLD, Trials};

/// What a process has learned on communicators for which the same rules hold, and what the next one goes on with.
///
/// ```text
///  communicator   A ── 3 calls ── free      B ── 40 calls ───────────────── free
///                 begins a trial    │       ▲ goes on          settles it     │
///  ledger         ──────────────────┴───────┘ ────────────────────────────────┴───
/// ```
/// # Invariant
/// The ranks of a communicator all go on with the words of its rank 0, so they agree whatever their own ledgers hold: of those only
/// their own times are used.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Trials);

impl Ledger {
    /// Rank 0's words for a communicator that begins.
    pub fn told(&self) -> [u64; TOLD] {
        self.0.told()
    }

    /// With rank 0's words, the trials of such a communicator.
    pub fn resumed(&self, told: &[u64; TOLD]) -> Trials {
        Trials::resumed(told, &self.0)
    }

    /// A communicator ends, or has found something: what goes further than what is known is kept. Adds up the calls.
    pub fn learn(&mut self, from: &mut Trials) {
        if from.is_over {
            return;
        }
        for trial in &mut from.trials {
            let calls_here = trial.calls - trial.calls_elsewhere;
            let known = self.0.trials.iter_mut().find(|known| known.of == trial.of);
            match known {
                Some(known) if trial.progress() <= known.progress() => {
                    known.calls = known.calls.saturating_add(calls_here);
                }
                Some(known) => *known = trial.clone(),
                None => self.0.trials.push(trial.clone()),
            }
            trial.calls_elsewhere = trial.calls;
        }
    }

    /// An earlier job has found that.
    pub fn remember(&mut self, recalled: &Recalled) {
        self.0.remember(recalled);
    }

    /// Until which call a way stays for such calls, if that is decided.
    pub fn stays_until(&self, of: Sameness) -> Option<u64> {
        let trial = self.0.trials.iter().find(|trial| trial.of == of)?;
        match trial.state {
            State::Settled(_, until) => Some(until),
            State::Running(_) => None,
        }
    }
}
