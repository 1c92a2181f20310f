//! The verdict of measured parameters on a call on two levels: which mode it is in, and why (Wu
//! 2005, §4.5).

use std::fmt::Write;

use polycast_core::collective::Collective;
use polycast_core::cost::mixed::{MixedCost, MixedForm, MixedPredictor, NotMixed};
use polycast_core::model::Parameters;
use polycast_core::policy::Choice;
use polycast_core::topology::Placed;
use polycast_core::units::{Bytes, Rank};
use serde::Serialize;

use crate::commands::predict::mixed::nothing;
use crate::terminal::{hanging, nanoseconds};

/// The mixed-mode model's word on a call, as `--json` says it.
#[derive(Serialize)]
pub struct OnTwoLevels {
    /// The choice, or else what on two levels is predicted to be the fastest.
    algorithm: String,
    is_choice: bool,
    /// The form that decided.
    form: &'static str,
    /// The number of the equation in Wu 2005.
    equation: &'static str,
    ns: u64,
    /// The time that the nodes take among themselves, in nanoseconds.
    between_ns: u64,
    /// The time before that on each node, for an allgather, in nanoseconds.
    before_ns: u64,
    /// The time from one segment to the next, and the part of it in which the sender is busy, in
    /// nanoseconds.
    interval_ns: u64,
    busy_ns: u64,
    /// The time for sharing a segment, or what of it is shared at once, in nanoseconds.
    shared_ns: u64,
}

impl OnTwoLevels {
    /// The model's word on a call with rank 0 as its root. The error is a note where parameters are
    /// missing, and `None` where there are no two levels.
    pub fn new(
        collective: Collective,
        choice: &Choice,
        placed: &Placed,
        parameters: &Parameters,
        bytes: Bytes,
    ) -> Result<OnTwoLevels, Option<String>> {
        let mut predictor = MixedPredictor::of(collective, placed, parameters, Rank(0)).map_err(|why| {
            // Without a form there is nothing that somebody could measure.
            Some(nothing(collective, why)).filter(|text| !text.is_empty() && why != NotMixed::NoForm)
        })?;
        let chosen = match choice {
            Choice::Algorithm(algorithm) => predictor.cost(algorithm, bytes, None),
            _ => None,
        };
        let is_choice = chosen.is_some();
        // Those of the others are followed message by message, which takes too long for an answer.
        let is_quick = collective == Collective::Broadcast;
        let best = || is_quick.then(|| predictor.best(bytes).into_iter().next()).flatten();
        let cost = chosen.or_else(best).ok_or(None)?;
        Ok(OnTwoLevels::of(&cost, is_choice))
    }

    fn of(cost: &MixedCost, is_choice: bool) -> OnTwoLevels {
        let [between_ns, interval_ns, busy_ns, shared_ns] =
            [cost.between.whole_ns, cost.between.interval_ns, cost.between.busy_ns, cost.shared_ns]
                .map(|ns| ns.round() as u64);
        OnTwoLevels {
            algorithm: cost.algorithm.to_string(),
            is_choice,
            form: cost.used.name(),
            equation: cost.used.equation(),
            ns: cost.time().0,
            between_ns,
            before_ns: cost.before_ns.round() as u64,
            interval_ns,
            busy_ns,
            shared_ns,
        }
    }

    /// Writes the model's word as lines of text.
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let time = |ns: u64| nanoseconds(ns as f64);
        let OnTwoLevels { algorithm, is_choice, form, equation, ns, between_ns, .. } = self;
        let who = if *is_choice { "it" } else { algorithm };
        let [interval, busy, shared] = [self.interval_ns, self.busy_ns, self.shared_ns].map(time);
        let is = |form: MixedForm| form.name() == self.form;
        let because = if is(MixedForm::NoOverlap) {
            "nothing is shared beside messages".to_owned()
        } else if is(MixedForm::Complete) {
            format!("sharing a segment, {shared}, fits into what its sender is idle, {interval} less {busy}")
        } else if is(MixedForm::Overlapping) {
            format!(
                "sharing a segment, {shared}, takes longer than its sender is idle, {interval} less {busy}"
            )
        } else {
            format!("sharing a segment, {shared}, was measured to delay messages")
        };
        let before = match self.before_ns {
            0 => String::new(),
            ns => format!(" and {} before on each", time(ns)),
        };
        let text = format!(
            "{who} is predicted to take {}, of which {} between nodes{before}; mode: {form} (Wu 2005, {equation}), for {because}",
            time(*ns),
            time(*between_ns)
        );
        writeln!(out, "{}", hanging("  on two levels ", "    ", &text))
    }
}
