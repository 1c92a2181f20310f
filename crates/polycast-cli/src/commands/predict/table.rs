//! The predictions as a page for people, and as JSON.

use polycast_core::cost::{Bottleneck, Comparison, Cost, Planner, Predicted};
use polycast_core::model::Parameters;
use polycast_core::topology::Placed;
use polycast_core::units::Nanos;
use serde::Serialize;

/// What a page says.
pub struct Page<'a> {
    pub parameters: &'a Parameters,
    pub placed: &'a Placed,
    pub planner: &'a Planner,
    pub comparisons: &'a [Comparison],
}

#[derive(Serialize)]
struct Answer<'a> {
    collective: &'static str,
    ranks: usize,
    root: u32,
    measured: Measured<'a>,
    sizes: Vec<Size>,
}

#[derive(Serialize)]
struct Measured<'a> {
    when: &'a str,
    r#where: &'a str,
    how: &'a str,
}

#[derive(Serialize)]
struct Size {
    bytes: u64,
    best: Option<String>,
    predictions: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    algorithm: String,
    time_us: f64,
    /// Until the first segment is with the rank that is last.
    fill_us: Option<f64>,
    /// Between segments there.
    interval_us: Option<f64>,
    segments: Option<u64>,
    bottleneck: Option<String>,
}

impl Page<'_> {
    /// The name of a rank or link that limits.
    fn bottleneck(&self, cost: &Cost) -> String {
        match cost.bottleneck {
            Bottleneck::Rank(rank) => format!("rank {rank}"),
            Bottleneck::Link(link) => self.planner.network().link_name(link),
        }
    }

    fn row(&self, predicted: &Predicted) -> Row {
        let cost = predicted.cost.as_ref();
        Row {
            algorithm: predicted.candidate.to_string(),
            time_us: us(predicted.time),
            fill_us: cost.map(|cost| us(cost.fill)),
            interval_us: cost.map(|cost| us(cost.interval)),
            segments: cost.map(|cost| cost.segments),
            bottleneck: cost.map(|cost| self.bottleneck(cost)),
        }
    }

    /// One JSON object.
    pub fn json(&self) -> serde_json::Result<String> {
        let measured = self.parameters.measured();
        let sizes = self.comparisons.iter().map(|comparison| Size {
            bytes: comparison.bytes.0,
            best: comparison.predicted.first().map(|best| best.candidate.to_string()),
            predictions: comparison.predicted.iter().map(|predicted| self.row(predicted)).collect(),
        });
        let answer = Answer {
            collective: "bcast",
            ranks: self.placed.host_of.len(),
            root: self.planner.root().0,
            measured: Measured { when: &measured.when, r#where: &measured.place, how: &measured.how },
            sizes: sizes.collect(),
        };
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    /// The page for people: a group of rows per size, the fastest first.
    pub fn text(&self) -> String {
        let measured = self.parameters.measured();
        let mut text = format!(
            "bcast to {} ranks from rank {} · parameters of {}, {}\n",
            self.placed.host_of.len(),
            self.planner.root(),
            measured.when,
            measured.place
        );
        if !self.placed.strangers.is_empty() {
            let strangers = self.placed.strangers.join(", ");
            text += &format!("not in the topology, so placed apart: {strangers}\n");
        }
        let rows = || self.comparisons.iter().flat_map(|comparison| &comparison.predicted);
        let width = rows().map(|row| row.candidate.to_string().len()).max().unwrap_or(0).max(9);
        text += &format!(
            "\n{:>9}  {:<width$}  {:>12}  {:>12}  {:>12}  {:>8}  limited by\n",
            "size", "algorithm", "time µs", "fill µs", "interval µs", "segments"
        );
        for comparison in self.comparisons {
            for (index, predicted) in comparison.predicted.iter().enumerate() {
                let size = if index == 0 { comparison.bytes.to_string() } else { String::new() };
                let name = predicted.candidate.to_string();
                text += &format!("{size:>9}  {name:<width$}  {:>12.1}", us(predicted.time));
                if let Some(cost) = &predicted.cost {
                    let Cost { fill, interval, segments, .. } = cost;
                    let limit = self.bottleneck(cost);
                    text +=
                        &format!("  {:>12.1}  {:>12.1}  {segments:>8}  {limit}", us(*fill), us(*interval));
                }
                text.push('\n');
            }
        }
        text
    }
}

pub(super) fn us(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}
