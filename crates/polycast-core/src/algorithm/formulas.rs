//! The formulas that papers have for the time of an algorithm between hosts on one switch: which they
//! are, as far as the algorithm alone decides. `cost::closed_forms` has their values.

use crate::model::Hockney;
use crate::units::Bytes;

/// The formulas for an algorithm's time.
#[derive(Clone, Copy, Debug)]
pub enum Formulas {
    /// Of the broadcast from the root to each.
    Flat,
    /// Of the broadcast down a chain, in segments, too.
    Chain,
    /// Of the broadcast down a tree of two children per rank, in segments, too.
    Binary,
    /// Of the broadcast down a binomial tree.
    Binomial,
    /// Of the broadcast down the fastest tree for the times of a message.
    Optimal,
    /// Of another collective: the terms of Hockney's model on a number of ranks, at least 2; `None`
    /// where the paper has no formula for so many.
    Stages(fn(u32) -> Option<Stages>),
}

impl Formulas {
    /// True if there are formulas for messages in segments.
    pub fn are_for_segments(&self) -> bool {
        matches!(self, Formulas::Chain | Formulas::Binary)
    }
}

/// The terms of Hockney's model for a collective other than the broadcast, whole and between hosts
/// on one switch (Thakur et al. 2005, §3 and §4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// The number of messages that follow each other.
    pub rounds: f64,
    /// The bytes that these messages carry in all, as a multiple of the [bytes of the
    /// call](crate::collective::Call::bytes).
    pub carried: f64,
    /// The bytes that are combined on the way, as a multiple of the bytes of the call.
    pub combined: f64,
}

impl Stages {
    /// Messages of blocks that are not combined.
    pub(super) const fn of_blocks(rounds: f64, carried: f64) -> Stages {
        Stages { rounds, carried, combined: 0.0 }
    }

    /// The time of a call in nanoseconds, where combining takes `gamma_ns` per byte.
    pub fn ns(&self, hockney: &Hockney, gamma_ns: f64, bytes: Bytes) -> f64 {
        let per_byte_ns = self.carried * hockney.beta_ns + self.combined * gamma_ns;
        self.rounds * hockney.alpha_ns + bytes.0 as f64 * per_byte_ns
    }
}

/// The rounds in which a number that doubles reaches `ranks`.
pub(super) fn doublings(ranks: u32) -> f64 {
    f64::from(ranks.next_power_of_two().trailing_zeros())
}

/// The number of ranks besides one.
pub(super) fn others(ranks: u32) -> f64 {
    f64::from(ranks - 1)
}

/// All bytes but a rank's own share of them, as a part of all.
pub(super) fn others_share(ranks: u32) -> f64 {
    others(ranks) / f64::from(ranks)
}
