//! Predictions held against measurements.

use std::collections::{BTreeMap, BTreeSet};

use polycast_core::algorithm::broadcast::ON_NODE;
use polycast_core::collective::Collective;
use polycast_core::cost::mixed::{MixedPredictor, NotMixed};
use polycast_core::cost::{Predicted, Predictor};
use polycast_core::model::Parameters;
use polycast_core::topology::Placed;
use polycast_core::units::statistics::quantile;
use polycast_core::units::{Bytes, Nanos, Rank};
use serde::Serialize;

use super::mixed::{self, Entry};
use super::results::{ResultPoint, Results};
use super::table::us;
use crate::terminal::{nanoseconds, paragraph, table};

/// The most pairs that are listed as the worst.
const WORST: usize = 5;

/// A measured time and its prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// The operation.
    pub collective: &'static str,
    /// The variant that served the measured calls.
    pub variant: String,
    /// The largest buffer of a rank.
    pub bytes: u64,
    /// The median that was measured.
    pub measured_us: f64,
    /// The 95 % interval of the median, if there is one.
    pub interval_us: Option<(f64, f64)>,
    /// The predicted time.
    pub predicted_us: f64,
    /// `predicted / measured - 1`.
    pub error: f64,
}

/// The pairs of measured and predicted times, and their errors.
#[derive(Debug, Serialize)]
pub struct Against {
    /// The median of the errors' sizes.
    pub median_error: f64,
    /// The error, in size, that 90 % of the errors do not exceed.
    pub p90_error: f64,
    /// The pairs, in the order of the results.
    pub pairs: Vec<Pair>,
    /// Variants of which nothing can be predicted.
    pub left_out: Vec<String>,
    /// Collectives on two levels, form by form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub two_level: Vec<Entry>,
    /// The reason why no collectives on two levels are compared, although some were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_level_missing: Option<String>,
}

/// The error where there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// No measured point has a prediction.
    #[error(
        "the results: expected algorithms with a measured time, as of `polycast bench --variants chain,…`, found {0}"
    )]
    Nothing(String),
    /// The results are of other ranks.
    #[error("the results have root {root}, but there are {ranks} ranks; leave out --hosts and --ranks")]
    Root {
        /// The root of a measurement.
        root: u32,
        /// The ranks that were asked for.
        ranks: usize,
    },
}

impl Against {
    /// Predicts everything that was measured, and what was measured `between` the nodes alone. A
    /// root that rotates is predicted as rank 0.
    pub fn new(
        results: &Results,
        between: Option<&[ResultPoint]>,
        parameters: &Parameters,
        placed: &Placed,
    ) -> Result<Against, AgainstError> {
        let mut predictors: BTreeMap<u32, Predictor> = BTreeMap::new();
        let mut against = Against {
            median_error: 0.0,
            p90_error: 0.0,
            pairs: Vec::new(),
            left_out: Vec::new(),
            two_level: Vec::new(),
            two_level_missing: None,
        };
        let ranks = placed.host_of.len();
        let root_of = |point: &ResultPoint| point.root.parse::<u32>().unwrap_or(0);
        if let Some(root) = results.points.iter().map(root_of).find(|root| *root as usize >= ranks) {
            return Err(AgainstError::Root { root, ranks });
        }
        let mut missing: Vec<String> = Vec::new();
        let mut by_levels: Vec<(Collective, u32, Result<MixedPredictor<'_>, NotMixed>)> = Vec::new();
        for point in &results.points {
            let (collective, root) = (point.collective(), root_of(point));
            if is_on_two_levels(point) {
                let is_known = |(of, from, _): &(Collective, u32, _)| (*of, *from) == (collective, root);
                let known = by_levels.iter().position(is_known).unwrap_or_else(|| {
                    let levels = MixedPredictor::of(collective, placed, parameters, Rank(root));
                    by_levels.push((collective, root, levels));
                    by_levels.len() - 1
                });
                match &mut by_levels[known].2 {
                    Ok(levels) => {
                        against.two_level.extend(mixed::entry(levels, point, ranks, between));
                        continue;
                    }
                    Err(NotMixed::OneLevel) => {}
                    Err(why) => {
                        let why = mixed::nothing(collective, *why);
                        if !missing.contains(&why) {
                            missing.push(why);
                        }
                    }
                }
            }
            let predictor =
                predictors.entry(root).or_insert_with(|| Predictor::new(placed, parameters, Rank(root)));
            match predicted(predictor, point, ranks) {
                Some(time) => against.pairs.extend(pair(point, time)),
                None if !against.left_out.contains(&point.variant) => {
                    against.left_out.push(point.variant.clone())
                }
                None => {}
            }
        }
        let missing = missing.join(". ");
        against.two_level_missing = Some(missing).filter(|missing| !missing.is_empty());
        if against.pairs.is_empty() {
            let is_of_levels = !against.two_level.is_empty() || against.two_level_missing.is_some();
            if is_of_levels {
                return Ok(against);
            }
            let found: BTreeSet<&str> = results.points.iter().map(|point| &point.variant[..]).collect();
            let found = found.into_iter().collect::<Vec<_>>().join(", ");
            let none = || format!("nothing on {ranks} ranks");
            return Err(AgainstError::Nothing(if found.is_empty() { none() } else { found }));
        }
        let sizes = sorted_errors(against.pairs.iter());
        (against.median_error, against.p90_error) = (at(&sizes, 0.5), at(&sizes, 0.9));
        Ok(against)
    }

    /// The comparison as a JSON object.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The pair's variant, with its collective before it where the pairs are of more than one.
    pub fn name(&self, pair: &Pair) -> String {
        match self.pairs.iter().all(|other| other.collective == pair.collective) {
            true => pair.variant.clone(),
            false => format!("{} {}", pair.collective, pair.variant),
        }
    }

    /// All of these, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.pairs.iter().map(|pair| self.name(pair)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A table by size, what it comes to, and the worst cases.
    pub fn text(&self) -> String {
        let mut levels = match self.two_level[..] {
            [] => String::new(),
            _ => mixed::matrices(&self.two_level),
        };
        if let Some(why) = &self.two_level_missing {
            levels += &format!("\n{}\n", paragraph(why));
        }
        if self.pairs.is_empty() {
            return levels.trim_start().to_owned();
        }
        let row = |pair: &Pair| {
            vec![
                Bytes(pair.bytes).to_string(),
                self.name(pair),
                nanoseconds(pair.measured_us * 1e3),
                nanoseconds(pair.predicted_us * 1e3),
                format!("{:+.0} %", pair.error * 100.0),
            ]
        };
        let header = ["SIZE", "ALGORITHM", "MEASURED", "PREDICTED", "ERROR"];
        let mut text = table(header, self.pairs.iter().map(row).collect(), 2) + "\n";
        let error_of = |variant: String| {
            let errors = sorted_errors(self.pairs.iter().filter(|pair| self.name(pair) == variant));
            vec![variant, format!("{:.0} %", at(&errors, 0.5) * 100.0)]
        };
        text += &(table(["ALGORITHM", "MEDIAN ERROR"], self.names().into_iter().map(error_of).collect(), 1)
            + "\n");
        let mut worst: Vec<&Pair> = self.pairs.iter().collect();
        worst.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
        text += "the worst\n";
        text += &table(header, worst.into_iter().take(WORST).map(row).collect(), 2);
        text += &format!(
            "\n{} predictions: median error {:.1} %, 90 % of them within {:.1} %\n",
            self.pairs.len(),
            self.median_error * 100.0,
            self.p90_error * 100.0
        );
        if !self.left_out.is_empty() {
            let left_out = self.left_out.join(", ");
            text += &(paragraph(&format!("not predictable, left out: {left_out}")) + "\n");
        }
        text + &levels
    }
}

/// True if the point is of an algorithm through shared memory, which is what the forms are about.
fn is_on_two_levels(point: &ResultPoint) -> bool {
    point.algorithm.is_some_and(|one| one.entry.name == ON_NODE.entry.name && one.shares_memory())
}

fn predicted(predictor: &mut Predictor, point: &ResultPoint, ranks: usize) -> Option<Nanos> {
    let algorithm = point.algorithm.filter(|algorithm| !algorithm.shares_memory())?;
    let predicted = Predicted::of_call(predictor, &algorithm, point.collective(), point.block(ranks))?;
    Some(predicted.time)
}

/// `None` if the point has no time.
fn pair(point: &ResultPoint, time: Nanos) -> Option<Pair> {
    let measured_us = point.median_us.filter(|us| *us > 0.0)?;
    Some(Pair {
        collective: point.operation.name(),
        variant: point.variant.clone(),
        bytes: point.bytes,
        measured_us,
        interval_us: point.ci_low_us.zip(point.ci_high_us),
        predicted_us: us(time),
        error: us(time) / measured_us - 1.0,
    })
}

fn sorted_errors<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Vec<f64> {
    let mut errors: Vec<f64> = pairs.map(|pair| pair.error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The error at this fraction of sorted errors; 0 where there are none.
fn at(sorted: &[f64], fraction: f64) -> f64 {
    quantile(sorted, fraction).unwrap_or(0.0)
}
