//! The prediction behind a choice.

use std::fmt::Write;

use polycast_core::algorithm::Registry;
use polycast_core::collective::Collective;
use polycast_core::cost::{Bottleneck, Cost, Predicted, Predictor, compare};
use polycast_core::model::Parameters;
use polycast_core::policy::{Prediction, predicted_choice};
use polycast_core::topology::Placed;
use polycast_core::units::{Bytes, Rank};
use serde::Serialize;

use crate::terminal::{hanging, nanoseconds, paragraph};

/// The most slower choices that are shown.
const RUNNERS_UP: usize = 4;

/// Why a tree was chosen by its predicted time, as `--json` says it.
#[derive(Serialize)]
pub struct Reason {
    /// The parameter file.
    from: String,
    /// The size that was compared: the nearest one.
    compared_bytes: u64,
    ns: u64,
    terms: Option<Terms>,
    /// The next best.
    runners_up: Vec<RunnerUp>,
    /// The choice by the table alone.
    table: String,
}

#[derive(Serialize)]
struct Terms {
    /// The time until the first segment has reached the rank that is last, in nanoseconds.
    fill_ns: u64,
    /// The time between segments at that rank, in nanoseconds.
    interval_ns: u64,
    segments: u64,
    /// The name of the rank or link that sets the interval.
    bottleneck: String,
}

#[derive(Serialize)]
struct RunnerUp {
    choice: String,
    ns: u64,
}

impl Reason {
    /// The reason of the choice for a broadcast of `bytes`. `table` is the choice by the table
    /// alone.
    pub fn new(
        prediction: &Prediction,
        placed: &Placed,
        (parameters, file): (&Parameters, &str),
        bytes: Bytes,
        table: String,
    ) -> Option<Reason> {
        let compared = prediction.deciding(bytes).bytes;
        // Once more, for the names of links are known to a predictor only.
        let mut predictor = Predictor::new(placed, parameters, Rank(0));
        let again = compare(
            &mut predictor,
            &Registry::BUILT_IN.compared_schedules(Collective::Broadcast),
            &[compared],
        );
        let (best, others) = again.first()?.predicted.split_first()?;
        Some(Reason {
            from: file.to_owned(),
            compared_bytes: compared.0,
            ns: best.time.0,
            terms: best.cost.map(|cost| Terms::new(&predictor, &cost)),
            runners_up: others.iter().take(RUNNERS_UP).map(RunnerUp::new).collect(),
            table,
        })
    }

    /// Writes the reason as lines of text.
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let Reason { from, compared_bytes, ns, terms, runners_up, table } = self;
        let source = format!("{from}, compared at {}", Bytes(*compared_bytes));
        writeln!(out, "{}", hanging("  decided by prediction from ", "    ", &source))?;
        let terms = match terms {
            Some(Terms { segments: 0 | 1, .. }) => "in one message per hop".to_owned(),
            Some(Terms { fill_ns, interval_ns, segments, bottleneck }) => format!(
                "= {} until the first segment is everywhere + {} × {} between segments, set by {bottleneck}",
                time(*fill_ns),
                segments - 1,
                time(*interval_ns),
            ),
            None => String::new(),
        };
        writeln!(out, "{}", hanging(&format!("  {:>8}   ", time(*ns)), "             ", &terms))?;
        out.push_str("\nrunners-up\n");
        for RunnerUp { choice, ns } in runners_up {
            writeln!(out, "  {:>8}   {choice}", time(*ns))?;
        }
        writeln!(out, "\n{}", paragraph(&format!("{table}; among trees, predictions decide")))
    }
}

fn time(ns: u64) -> String {
    nanoseconds(ns as f64)
}

impl Terms {
    fn new(predictor: &Predictor, cost: &Cost) -> Terms {
        Terms {
            fill_ns: cost.fill.0,
            interval_ns: cost.interval.0,
            segments: cost.segments,
            bottleneck: match cost.bottleneck {
                Bottleneck::Rank(rank) => format!("rank {rank}"),
                Bottleneck::Link(link) => format!("the link {}", predictor.network().link_name(link)),
            },
        }
    }
}

impl RunnerUp {
    fn new(predicted: &Predicted) -> RunnerUp {
        RunnerUp { choice: predicted_choice(predicted).to_string(), ns: predicted.time.0 }
    }
}
