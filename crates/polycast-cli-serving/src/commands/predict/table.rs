//! The predictions as a page for people, and as JSON.

use polycast_core::collective::Collective;
use polycast_core::cost::closed_forms::{efficient_segment, sufficiently_large};
use polycast_core::cost::{Bottleneck, Comparison, Cost, Predicted, Predictor};
use polycast_core::model::Parameters;
use polycast_core::topology::Placed;
use polycast_core::units::{Bytes, Nanos};
use serde::Serialize;

use super::mixed::{self, Levels};
use super::models::cheap_segments;
use crate::terminal::{count, nanoseconds, paragraph, size, table};
use crate::times::Times;

/// The contents of a page.
pub struct Page<'a> {
    pub collective: Collective,
    pub parameters: &'a Parameters,
    pub placed: &'a Placed,
    pub predictor: &'a Predictor,
    pub comparisons: &'a [Comparison],
    /// The most rows for a size, for people; JSON has all.
    pub most_rows: usize,
    /// The predictions on two levels, or a sentence on why there are none.
    pub levels: Result<Vec<Levels>, String>,
}

#[derive(Serialize)]
struct PredictionAnswer<'a> {
    collective: &'static str,
    ranks: usize,
    root: u32,
    measured: Measured<'a>,
    sizes: Vec<Size>,
    /// The predictions on two levels, where nodes have several ranks and the parameters know what
    /// they share.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_level: Option<&'a [Levels]>,
    /// A sentence on why there are no such predictions, although there are two levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_level_missing: Option<&'a str>,
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
    /// The time until the first segment is with the rank that is last.
    fill_us: Option<f64>,
    /// The time between segments at that rank.
    interval_us: Option<f64>,
    segments: Option<u64>,
    bottleneck: Option<String>,
    /// The times that the tree is planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Times>,
}

impl Page<'_> {
    /// The name of a rank or link that limits.
    fn bottleneck(&self, cost: &Cost) -> String {
        match cost.bottleneck {
            Bottleneck::Rank(rank) => format!("rank {rank}"),
            Bottleneck::Link(link) => self.predictor.network().link_name(link),
        }
    }

    /// The times that a tree is planned for, if it is planned for the times of messages.
    fn times(&self, predicted: &Predicted, bytes: Bytes) -> Option<Times> {
        self.predictor.made_for(&predicted.algorithm, bytes).map(Times::from)
    }

    fn row(&self, predicted: &Predicted, bytes: Bytes) -> Row {
        let cost = predicted.cost.as_ref();
        Row {
            algorithm: predicted.algorithm.to_string(),
            time_us: us(predicted.time),
            fill_us: cost.map(|cost| us(cost.fill)),
            interval_us: cost.map(|cost| us(cost.interval)),
            segments: cost.map(|cost| cost.segments),
            bottleneck: cost.map(|cost| self.bottleneck(cost)),
            times: self.times(predicted, bytes),
        }
    }

    /// The page as a JSON object.
    pub fn json(&self) -> serde_json::Result<String> {
        let measured = self.parameters.measured();
        let sizes = self.comparisons.iter().map(|comparison| Size {
            bytes: comparison.bytes.0,
            best: comparison.predicted.first().map(|best| best.algorithm.to_string()),
            predictions: comparison
                .predicted
                .iter()
                .map(|predicted| self.row(predicted, comparison.bytes))
                .collect(),
        });
        let answer = PredictionAnswer {
            collective: self.collective.name(),
            ranks: self.placed.host_of.len(),
            root: self.predictor.root().0,
            measured: Measured { when: &measured.when, r#where: &measured.place, how: &measured.how },
            sizes: sizes.collect(),
            two_level: self.levels.as_deref().ok(),
            two_level_missing: self.levels.as_ref().err().map(|why| &why[..]).filter(|why| !why.is_empty()),
        };
        Ok(serde_json::to_string_pretty(&answer)? + "\n")
    }

    /// The page for people: a group of rows per size, the fastest first.
    pub fn text(&self) -> String {
        let measured = self.parameters.measured();
        let ranks = count(self.placed.host_of.len(), "rank", "ranks");
        let root = self.predictor.root();
        let source = paragraph(&format!("by parameters of {}, {}", measured.when, measured.place));
        let heading = match self.collective {
            Collective::Broadcast => format!("bcast to {ranks} from rank {root}"),
            rooted if rooted.has_root() => format!("{rooted} of {ranks}, rank {root} being the root"),
            other => format!("{other} of {ranks}"),
        };
        let mut text = format!("{heading}\n{source}\n");
        if !self.placed.unplaced_hosts.is_empty() {
            let unplaced_hosts = self.placed.unplaced_hosts.join(", ");
            text += &(paragraph(&format!("not in the topology, so placed apart: {unplaced_hosts}")) + "\n");
        }
        let rows = self.comparisons.iter().flat_map(|comparison| self.rows_of(comparison));
        text += &match self.collective {
            Collective::Broadcast => {
                let header = ["SIZE", "ALGORITHM", "LIMIT", "TIME", "FILL", "PERIOD", "PIECES"];
                format!("\n{}", table(header, rows.collect(), 3))
            }
            _ => {
                let rows = rows.map(|row| [0, 1, 3].map(|column: usize| row[column].clone()).to_vec());
                format!("\n{}", table(["SIZE", "ALGORITHM", "TIME"], rows.collect(), 2))
            }
        };
        let slower = |comparison: &Comparison| comparison.predicted.len().saturating_sub(self.most_rows);
        if self.comparisons.iter().any(|comparison| slower(comparison) > 0) {
            text += "\nthe best of each size; --all shows the slower ones too\n";
        }
        let below = match self.collective {
            Collective::Broadcast => self.rule_of_thumb(),
            _ => "all messages of the schedules followed; nobody measured how fast ranks copy and combine"
                .to_owned(),
        };
        text += &(paragraph(&below) + "\n");
        for note in self.notes_on_times() {
            text += &(paragraph(&note) + "\n");
        }
        match &self.levels {
            Ok(levels) => text += &mixed::text(levels, self.most_rows == usize::MAX),
            Err(why) if why.is_empty() => {}
            Err(why) => text += &format!("\n{}\n", paragraph(why)),
        }
        text
    }

    /// Notes on the origin of the times for which the shown trees are planned; each note once.
    fn notes_on_times(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for comparison in self.comparisons {
            for predicted in comparison.predicted.iter().take(self.most_rows) {
                let Some(times) = self.times(predicted, comparison.bytes) else { continue };
                let candidate = predicted.algorithm.to_string();
                let name = candidate.split(':').next().unwrap_or_default();
                let note = format!("{name}: planned for times {}", times.origin());
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes
    }

    /// A sentence on the segments and messages from which on pipelines pay (Patarasuk et al. 2008,
    /// §5.4).
    fn rule_of_thumb(&self) -> String {
        let network = self.predictor.network();
        let segment = efficient_segment(network.parameters(self.predictor.usual_class()));
        // As there, where the height of a linear tree is its number of ranks, and that of a binary one log2 of it; of several ranks on a
        // node, one has its messages from elsewhere.
        let far = if network.nodes() > 1 { network.nodes() } else { network.ranks() };
        let heights = [far, far.max(1).ilog2()];
        let [chain, binary] = heights.map(|height| size(sufficiently_large(height, segment)));
        let cheap = cheap_segments(segment);
        format!("{cheap}; pipelines of them pay from {chain} (chain) and {binary} (binary) on")
    }

    /// The fastest for a size, which stands in the first row.
    fn rows_of(&self, comparison: &Comparison) -> Vec<Vec<String>> {
        let time = |time: Nanos| nanoseconds(time.0 as f64);
        let row = |(index, predicted): (usize, &Predicted)| {
            let size = if index == 0 { comparison.bytes.to_string() } else { String::new() };
            let mut row = vec![size, predicted.algorithm.to_string()];
            let cost = predicted.cost.as_ref();
            row.push(cost.map_or(String::new(), |cost| self.bottleneck(cost)));
            row.push(time(predicted.time));
            row.push(cost.map_or(String::new(), |cost| time(cost.fill)));
            row.push(cost.map_or(String::new(), |cost| time(cost.interval)));
            row.push(cost.map_or(String::new(), |cost| cost.segments.to_string()));
            row
        };
        comparison.predicted.iter().take(self.most_rows).enumerate().map(row).collect()
    }
}

pub(super) fn us(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}
