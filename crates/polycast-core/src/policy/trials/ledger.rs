use super::{Recalled, Sameness, State, TOLD, Trials};

/// The trials of a process on communicators for which the same rules hold; the next such
/// communicator goes on with them.
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
    pub fn words_for_others(&self) -> [u64; TOLD] {
        self.0.words_for_others()
    }

    /// Begins the trials of such a communicator, with rank 0's words.
    pub fn resumed(&self, told: &[u64; TOLD]) -> Trials {
        Trials::resumed(told, &self.0)
    }

    /// Learns from a communicator that ends, or has found something: a trial that is further than
    /// the one that is known is kept. Adds up the calls.
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

    /// Takes over what an earlier job has found.
    pub fn remember(&mut self, recalled: &Recalled) {
        self.0.remember(recalled);
    }

    /// The call until which a way stays for such calls, if that is decided.
    pub fn stays_until(&self, of: Sameness) -> Option<u64> {
        let trial = self.0.trials.iter().find(|trial| trial.of == of)?;
        match trial.state {
            State::Settled(_, until) => Some(until),
            State::Running(_) | State::Waiting(..) => None,
        }
    }
}
