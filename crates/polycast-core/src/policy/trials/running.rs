//! The rounds of a trial.
//!
//! ```text
//!  ways A, B        1     2     3     4     5     6   …  17
//!  short calls      A B   B A   B A   A B   A B   B A      each call counts but those of the first round
//!  long calls       A B   B A   B A   AA BB   A AA BB  …   from the fourth round on the second of two counts; 9 rounds
//! ```
//! A way that stays follows itself, not another one. What a long call leaves behind (packets that were lost, windows that shrank, ranks that
//! are far apart) may make the next one slower or faster; so of long calls each way has two in a row. That makes no trial longer: it ends
//! after half of the rounds.
//!
//! Where what trials may cost is [bounded](super::budget), the way that serves otherwise has calls
//! alone at first, so that it is known how long these take, and ways are judged after the first
//! round that counts, too.

use super::{Arm, MAX_ARMS};

/// Numbers of rounds that count after which the times are judged. A way that is clearly slower
/// goes; after the last the fastest stays.
pub(super) const JUDGED_AFTER: [usize; 4] = [2, 4, 8, 16];
pub(super) const MAX_ROUNDS: usize = JUDGED_AFTER[JUDGED_AFTER.len() - 1];
/// The number of times of a way: the round for warming up, and those that count.
pub(super) const COLUMNS: usize = MAX_ROUNDS + 1;
/// Rounds that count in which a way has calls alone.
const ROUNDS_ALONE: usize = 4;
/// The most rounds that count where calls are long.
const MAX_ROUNDS_OF_PAIRS: usize = 8;
/// The time of the fastest way from which on calls are long.
const LONG_NANOS: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub(super) struct Running {
    /// Ways that may still win, in their order.
    pub arms: Vec<Arm>,
    /// The MPI: the last one of the ways that there were.
    pub mpi: Arm,
    /// The round that is under way; 0 is for warming up.
    pub round: usize,
    /// Calls made of the round.
    pub made: usize,
    /// True if each way has two calls in a row.
    pub is_paired: bool,
    /// True if the times are to be added up before the next call.
    pub is_due: bool,
    /// Times of this rank in nanoseconds, for each way and each round.
    pub nanos: [[u64; COLUMNS]; MAX_ARMS],
    /// The bound, where the cost of the trial has one.
    pub bound: Option<Bound>,
}

/// A trial whose cost is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The way that serves calls that are not compared.
    pub incumbent: Arm,
    /// True while it has all calls.
    pub is_alone: bool,
    /// The expected cost until all ways can be had, in nanoseconds of a rank.
    pub set_up_nanos: u64,
}

impl Running {
    pub fn new(arms: usize) -> Box<Running> {
        let mpi = arms as Arm - 1;
        Box::new(Running {
            arms: (0..=mpi).collect(),
            mpi,
            round: 0,
            made: 0,
            is_paired: false,
            is_due: false,
            nanos: [[0; COLUMNS]; MAX_ARMS],
            bound: None,
        })
    }

    /// A trial whose cost is bounded, beside a way that serves otherwise.
    pub fn bounded(arms: usize, incumbent: Arm, set_up_nanos: u64) -> Box<Running> {
        let bound = Some(Bound { incumbent, is_alone: true, set_up_nanos });
        Box::new(Running { arms: vec![incumbent], bound, ..*Running::new(arms) })
    }

    /// Lets all ways take part, after one has had calls alone.
    pub fn let_all_begin(&mut self) {
        let begun = Running::new(usize::from(self.mpi) + 1);
        let bound = self.bound.map(|bound| Bound { is_alone: false, ..bound });
        *self = Running { bound, ..*begun };
    }

    /// True while one way has all calls.
    pub fn is_alone(&self) -> bool {
        self.bound.is_some_and(|bound| bound.is_alone)
    }

    /// The number of rounds that count after which the ways are judged next.
    pub fn judged_next(&self) -> usize {
        let rounds = self.rounds();
        match self.bound {
            Some(Bound { is_alone: true, .. }) => ROUNDS_ALONE,
            Some(_) if rounds == 0 => 1,
            _ => JUDGED_AFTER.into_iter().find(|after| *after > rounds).unwrap_or(MAX_ROUNDS),
        }
    }

    /// Calls before the first turn, and of each turn. Every second round of pairs has one before, so that what a program does with every
    /// second call is counted as often as the others.
    fn shape(&self) -> (usize, usize) {
        if self.is_paired { (self.round % 2, 2) } else { (0, 1) }
    }

    /// The number of calls in the round.
    pub fn calls(&self) -> usize {
        let (before, each) = self.shape();
        before + each * self.arms.len()
    }

    /// Counts a call. Returns its way, and the round for which its time is told, 0 for the one that
    /// is for warming up, if it is told. Rounds begin with another way each, and go through the
    /// ways forwards and backwards
    /// by turns, so what a program does with every second or third call meets all.
    pub fn next(&mut self) -> (Arm, Option<usize>) {
        let arms = self.arms.len();
        let (before, each) = self.shape();
        let call = self.made.saturating_sub(before);
        let place = (call / each + self.round) % arms;
        let place = if (self.round / arms).is_multiple_of(2) { place } else { arms - 1 - place };
        let is_last = self.made >= before && call % each == each - 1;
        let is_told = is_last && (self.round > 0 || self.bound.is_some());
        let counted = is_told.then_some(self.round);
        self.made += 1;
        if self.made == self.calls() {
            let due_after = self.judged_next();
            (self.made, self.round) = (0, self.round + 1);
            self.is_due = self.rounds() == due_after;
        }
        (self.arms[place], counted)
    }

    /// The number of rounds behind that count.
    pub fn rounds(&self) -> usize {
        self.round.saturating_sub(1)
    }

    /// Whether there are more rounds, after a judgement in which a call of the fastest way took
    /// `nanos`.
    pub fn goes_on(&mut self, nanos: u64) -> bool {
        self.is_paired |= self.rounds() == JUDGED_AFTER[0] && nanos >= LONG_NANOS;
        let most = if self.is_paired { MAX_ROUNDS_OF_PAIRS } else { MAX_ROUNDS };
        self.rounds() < most && self.arms.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of a trial none of whose ways goes, which take so long; those that count in capitals.
    fn calls(arms: usize, nanos: u64) -> String {
        let mut running = Running::new(arms);
        let mut calls = String::new();
        loop {
            let (arm, counted) = running.next();
            let way = [b'a', b'A'][usize::from(counted.is_some())] + arm;
            calls.push(way.into());
            if running.made == 0 {
                calls.push(' ');
            }
            if std::mem::take(&mut running.is_due) && !running.goes_on(nanos) {
                return calls.trim_end().to_owned();
            }
        }
    }

    #[test]
    fn of_long_calls_the_second_in_a_row_counts() {
        assert!(calls(2, LONG_NANOS - 1).starts_with("ab BA BA AB AB BA BA"));
        assert_eq!(calls(2, LONG_NANOS), "ab BA BA aaAbB aAbB bbBaA bBaA aaAbB aAbB");
        assert!(calls(3, LONG_NANOS).starts_with("abc BCA CAB ccCbBaA bBaAcC aaAcCbB"));
    }

    #[test]
    fn pairs_make_no_trial_longer() {
        for arms in 2..=MAX_ARMS {
            let [long, short] = [LONG_NANOS, 0].map(|nanos| calls(arms, nanos).replace(' ', "").len());
            assert!(long <= short, "{arms} ways: {long} calls, {short}");
        }
    }

    /// What a program does with every second call, each way meets as often.
    #[test]
    fn each_way_has_even_and_odd_calls() {
        for arms in 2..=MAX_ARMS {
            let calls = calls(arms, LONG_NANOS).replace(' ', "");
            for arm in 0..arms as u8 {
                let of_parity = |odd| {
                    let counted = calls.bytes().skip(odd).step_by(2).filter(|way| *way == b'A' + arm);
                    counted.count()
                };
                assert!(of_parity(0).abs_diff(of_parity(1)) <= 4, "{arms} ways: {calls}");
            }
        }
    }
}
