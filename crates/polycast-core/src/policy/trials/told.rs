//! What rank 0 tells the others of its ledger, in words that all ranks go on with, rank 0 included.
//!
//! ```text
//!  bit 63  1: there is a trial      settled (bit 39 is 1)                 under way (bit 39 is 0)
//!  0 … 3   collective               40, 41    the arm                     40 … 43  those that may still win
//!  4 … 7   capabilities             42 … 47   log2 of the call at which   44, 45   the MPI's
//!  8 … 14  binary digits                      it is looked at again       46 … 50  the round
//! 15 … 22  interval                 48 … 53   log2 of the calls until     51 … 54  calls made of it
//! 23 … 30  epoch                              then                        55       1: times are to be added up
//! 31 … 38  verdicts                54, 55    the second                  56       1: pairs of calls
//!                                  56 … 61   log2 of the call at which
//!                                            that is looked at again,
//!                                            0: there is none          57       1: its cost is bounded
//!                                                                       58, 59   the incumbent's arm
//!                                                                       60       1: that one has calls alone
//!                                                                       61       1: it waits; then 51 … 56 are log2 of
//!                                                                                the calls until it goes on
//!                                                                       62       1: it waits, and has pairs of calls
//! ```

use super::running::Bound;
use super::{
    Arm, COLUMNS, Capabilities, Collective, Epoch, MAX_ARMS, MAX_ROUNDS, Running, Sameness, State, TUNED,
    Trial, Trials,
};

/// Trials that are told at most.
pub const TOLD: usize = 64;

const THERE: u64 = 1 << 63;
const SETTLED: u64 = 1 << 39;
const BOUNDED: u32 = 57;
const WAITS: u32 = 61;
/// The interval in a word of ways that were found by tuning.
const TOLD_TUNED: u8 = u8::MAX;

fn bits(word: u64, first: u32, count: u32) -> u64 {
    word >> first & ((1 << count) - 1)
}

impl Trial {
    /// Writes the trial as a word. `None`: it is beyond what a word can say, and every communicator
    /// has a trial of its own.
    fn to_word(&self) -> Option<u64> {
        let Sameness { collective, epoch, interval, digits, there } = self.of;
        let interval = match interval {
            TUNED => TOLD_TUNED,
            interval => u8::try_from(interval).ok().filter(|interval| *interval != TOLD_TUNED)?,
        };
        let epoch = u8::try_from(epoch.0).ok()?;
        let of = collective as u64
            | u64::from(there.bits()) << 4
            | u64::from(digits) << 8
            | u64::from(interval) << 15
            | u64::from(epoch) << 23
            | u64::from(self.verdicts) << 31;
        let state = match &self.state {
            State::Settled(arm, until) => {
                let left = until.saturating_sub(self.calls).max(1);
                let (second, until_second) = self.second.unwrap_or((0, 1));
                SETTLED
                    | u64::from(second) << 54
                    | u64::from(until_second.ilog2()) << 56
                    | u64::from(*arm) << 40
                    | u64::from(until.ilog2()) << 42
                    | u64::from(left.ilog2()) << 48
            }
            State::Running(running) => {
                running.to_bits()
                    | (running.made as u64) << 51
                    | u64::from(running.is_due) << 55
                    | u64::from(running.is_paired) << 56
            }
            State::Waiting(running, until) => {
                let left = until.saturating_sub(self.calls).clamp(1, 1 << 63).next_power_of_two();
                running.to_bits()
                    | u64::from(left.ilog2()) << 51
                    | 1 << WAITS
                    | u64::from(running.is_paired) << 62
            }
        };
        Some(THERE | of | state)
    }

    /// Undoes [`Trial::to_word`]; `None` for anything else.
    fn from_word(word: u64) -> Option<Trial> {
        if word & THERE == 0 {
            return None;
        }
        let of = Sameness {
            collective: *Collective::ALL.get(bits(word, 0, 4) as usize)?,
            there: Capabilities::from_bits(bits(word, 4, 4) as u8)?,
            digits: bits(word, 8, 7) as u8,
            interval: match bits(word, 15, 8) as u8 {
                TOLD_TUNED => TUNED,
                interval => interval.into(),
            },
            epoch: Epoch(bits(word, 23, 8) as usize),
        };
        let (state, calls) = if word & SETTLED != 0 {
            let arm = bits(word, 40, 2) as Arm;
            let (until, left) = (1 << bits(word, 42, 6), 1 << bits(word, 48, 6));
            (State::Settled(arm, until), (usize::from(arm) < MAX_ARMS).then(|| until - left.min(until))?)
        } else {
            let running = Box::new(Running::from_bits(word)?);
            let waits = bits(word, WAITS, 1) == 1;
            (if waits { State::Waiting(running, 1 << bits(word, 51, 6)) } else { State::Running(running) }, 0)
        };
        let second = Some(bits(word, 56, 6)).filter(|digits| word & SETTLED != 0 && *digits > 0);
        let second = second.map(|zeros| (bits(word, 54, 2) as Arm, 1 << zeros));
        let verdicts = bits(word, 31, 8) as u8;
        Some(Trial { calls, calls_elsewhere: calls, verdicts, second, ..Trial::new(of, state) })
    }
}

impl Running {
    fn to_bits(&self) -> u64 {
        let arms = self.arms.iter().fold(0, |arms, arm| arms | 1u64 << arm);
        let bound = self
            .bound
            .map_or(0, |bound| 1 | u64::from(bound.incumbent) << 1 | u64::from(bound.is_alone) << 3);
        arms << 40 | u64::from(self.mpi) << 44 | (self.round as u64) << 46 | bound << BOUNDED
    }

    fn from_bits(word: u64) -> Option<Running> {
        let bit = |at| bits(word, at, 1) == 1;
        let mpi = bits(word, 44, 2) as Arm;
        let arms: Vec<Arm> = (0..=mpi).filter(|arm| bit(40 + u32::from(*arm))).collect();
        let (round, waits) = (bits(word, 46, 5) as usize, bit(WAITS));
        let (made, is_due) = if waits { (0, false) } else { (bits(word, 51, 4) as usize, bit(55)) };
        let is_paired = bit(if waits { 62 } else { 56 });
        let incumbent = bits(word, BOUNDED + 1, 2) as Arm;
        let bound = Bound { incumbent, is_alone: bit(BOUNDED + 3), set_up_nanos: 0 };
        let bound = bit(BOUNDED).then_some(bound);
        let nanos = [[0; COLUMNS]; MAX_ARMS];
        let running = Running { arms, mpi, round, made, is_paired, is_due, nanos, bound };
        // Behind the last round there is only its judgement.
        let is_round = if is_due { (2..=MAX_ROUNDS + 1).contains(&round) } else { round <= MAX_ROUNDS };
        let is_bound = bound.is_none_or(|bound| {
            bound.incumbent <= mpi && (!bound.is_alone || running.arms == [bound.incumbent])
        });
        let is_possible = is_round && is_bound && (bound.is_some() || !waits) && !running.arms.is_empty();
        (is_possible && running.made < running.calls()).then_some(running)
    }
}

impl Trials {
    /// The words for the other ranks of a communicator that begins.
    pub(super) fn words_for_others(&self) -> [u64; TOLD] {
        let mut told = [0; TOLD];
        let words = self.trials.iter().filter_map(Trial::to_word);
        told.iter_mut().zip(words).for_each(|(place, word)| *place = word);
        told
    }

    /// The trials that the ranks of a communicator go on with. Each rank has its own times (`mine`)
    /// of the rounds that are behind, as far as it was there; where it was not, it adds nothing to
    /// the time of any way.
    pub(super) fn resumed(told: &[u64; TOLD], mine: &Trials) -> Trials {
        let mut trials: Vec<Trial> = told.iter().copied().filter_map(Trial::from_word).collect();
        for trial in &mut trials {
            let known =
                mine.trials.iter().find(|known| known.of == trial.of && known.verdicts == trial.verdicts);
            if let (
                State::Running(running) | State::Waiting(running, _),
                Some(State::Running(known) | State::Waiting(known, _)),
            ) = (&mut trial.state, known.map(|known| &known.state))
                && running.is_alone() == known.is_alone()
            {
                running.nanos = known.nanos;
            }
        }
        let mut resumed = Trials { trials, ..Trials::default() };
        resumed.due = resumed.first_due();
        resumed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever comes, and whatever state a trial is in.
        #[test]
        fn words_are_read_back(word in any::<u64>()) {
            if let Some(trial) = Trial::from_word(word | THERE) {
                let again = trial.to_word().and_then(Trial::from_word).unwrap();
                prop_assert_eq!(trial.progress(), again.progress());
                prop_assert_eq!((trial.of, trial.calls, trial.second), (again.of, again.calls, again.second));
            }
            prop_assert!(Trial::from_word(word & !THERE).is_none());
        }
    }

    #[test]
    fn a_decision_is_looked_at_again_in_time() {
        let of = Trial::from_word(THERE | SETTLED).unwrap().of;
        let mut trial = Trial::new(of, State::Settled(1, 1024));
        for (calls, told) in [(0, 0), (300, 512), (1000, 1008), (1023, 1023), (2000, 1023)] {
            trial.calls = calls;
            assert_eq!(trial.to_word().and_then(Trial::from_word).unwrap().calls, told);
        }
        trial.state = State::Settled(1, u64::MAX);
        assert!(trial.to_word().is_some());
    }
}
