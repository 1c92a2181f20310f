//! Collectives on two levels by the forms of the mixed-mode model (Wu 2005, §4.5): beside the other predictions, and held against what was
//! measured as its Tables 4.2 and 4.3 are.

use std::collections::BTreeSet;

use polycast_core::algorithm::broadcast::TwoLevel;
use polycast_core::collective::Collective;
use polycast_core::cost::mixed::{MixedCost, MixedForm, MixedPredictor, NotMixed};
use polycast_core::model::Parameters;
use polycast_core::topology::Placed;
use polycast_core::units::statistics::{quantile, sorted};
use polycast_core::units::{Bytes, Rank};
use serde::Serialize;

use super::results::ResultPoint;
use super::table::us;
use crate::terminal::{nanoseconds, paragraph, table};

/// Forms that differ by less from what was measured say the same, as in Table 4.2.
const CLOSE: f64 = 0.05;

/// The predictions of a size: the fastest with each way between nodes.
#[derive(Serialize)]
pub struct Levels {
    bytes: u64,
    predictions: Vec<MixedRow>,
}

#[derive(Serialize)]
struct MixedRow {
    algorithm: String,
    /// The form that measured parameters speak for.
    form: &'static str,
    equation: &'static str,
    time_us: f64,
    /// The time that the nodes take among themselves.
    between_us: f64,
    /// The time before that on a node, for an allgather.
    before_us: f64,
    forms: Vec<ByForm>,
}

#[derive(Serialize)]
struct ByForm {
    form: &'static str,
    equation: &'static str,
    time_us: f64,
    used: bool,
}

/// For all sizes; or a sentence that says why there is nothing, which is empty where there are no two levels.
pub fn levels(
    collective: Collective,
    placed: &Placed,
    parameters: &Parameters,
    root: Rank,
    sizes: &[Bytes],
) -> Result<Vec<Levels>, String> {
    let mut predictor =
        MixedPredictor::of(collective, placed, parameters, root).map_err(|why| nothing(collective, why))?;
    let of = |bytes: &Bytes| Levels {
        bytes: bytes.0,
        predictions: predictor.best(*bytes).iter().map(MixedRow::new).collect(),
    };
    Ok(sizes.iter().map(of).collect())
}

/// A sentence on what is missing for a prediction, and how to measure it; empty where there are no
/// two levels.
pub fn nothing(collective: Collective, why: NotMixed) -> String {
    match why {
        NotMixed::OneLevel => String::new(),
        NotMixed::Unmeasured { collective: Collective::Broadcast, ranks }
            if collective == Collective::Broadcast =>
        {
            format!(
                "two-level broadcasts are not predicted: the parameters do not say what {ranks} ranks of a node take to share; \
             `polycast measure --ranks-per-host {ranks}` learns it"
            )
        }
        NotMixed::Unmeasured { collective: of, ranks } => format!(
            "{collective} on two levels through shared memory is not predicted: the parameters do not say what {of} takes among {ranks} ranks of a node; \
             `polycast measure --ranks-per-host {ranks}` learns it"
        ),
        NotMixed::NoForm => {
            format!(
                "{collective} on two levels through shared memory is not predicted: the mixed-mode model has forms for bcast, scatter, gather, \
             allgather, reduce and allreduce"
            )
        }
    }
}

impl MixedRow {
    fn new(cost: &MixedCost) -> MixedRow {
        let by_form = |(form, time): &(MixedForm, _)| ByForm {
            form: form.name(),
            equation: form.equation(),
            time_us: us(*time),
            used: *form == cost.used,
        };
        MixedRow {
            algorithm: cost.algorithm.to_string(),
            form: cost.used.name(),
            equation: cost.used.equation(),
            time_us: us(cost.time()),
            between_us: cost.between.whole_ns / 1e3,
            before_us: cost.before_ns / 1e3,
            forms: cost.forms.iter().map(by_form).collect(),
        }
    }
}

/// The table of the predictions. For each size the best one by all forms, with a mark at the form
/// that is used; for all ways between nodes if `all`.
pub fn text(levels: &[Levels], all: bool) -> String {
    let mut rows = Vec::new();
    for Levels { bytes, predictions } in levels {
        for (index, row) in predictions.iter().take(if all { usize::MAX } else { 1 }).enumerate() {
            let size = if index == 0 { Bytes(*bytes).to_string() } else { String::new() };
            let time = |us: f64| nanoseconds(us * 1e3);
            rows.push(vec![size, row.algorithm.clone(), String::new(), time(row.time_us)]);
            for ByForm { form, equation, time_us, used } in &row.forms {
                let mark = if *used { "*" } else { "" };
                rows.push(vec![
                    String::new(),
                    format!("  {form} ({equation})"),
                    mark.to_owned(),
                    time(*time_us),
                ]);
            }
        }
    }
    let header = ["SIZE", "ON TWO LEVELS, BY FORM", "USED", "TIME"];
    format!(
        "\n{}{}\n",
        table(header, rows, 3),
        paragraph("the forms of the mixed-mode model (Wu 2005, 4.5): docs/models.md")
    )
}

/// A measured collective on two levels and what the forms say of it.
#[derive(Debug, Serialize)]
pub struct Entry {
    collective: &'static str,
    variant: String,
    bytes: u64,
    /// The algorithm between nodes; entries of a collective and size with the same one make up a
    /// matrix.
    tree: &'static str,
    segment: u64,
    overlap: u64,
    measured_us: f64,
    /// The time of the nodes among themselves.
    between_us: f64,
    /// True if the time of the nodes among themselves was measured; else it is predicted.
    between_is_measured: bool,
    /// `predicted / measured - 1`, by equation.
    errors: Vec<ErrorOf>,
    /// The nearest of no overlap, or of (4.4), (4.3) and (4.6).
    nearest: &'static str,
    error: f64,
    /// All of these are close.
    all_are_close: bool,
    /// The form that the parameters speak for.
    used: &'static str,
}

/// The error of a form.
#[derive(Debug, Serialize)]
struct ErrorOf {
    equation: &'static str,
    error: f64,
}

/// Held against a measured time on so many ranks. `between` are the same chains, trees or rings of the nodes alone.
pub fn entry(
    predictor: &mut MixedPredictor<'_>,
    point: &ResultPoint,
    ranks: usize,
    between: Option<&[ResultPoint]>,
) -> Option<Entry> {
    let algorithm = point.algorithm?;
    let measured_us = point.median_us.filter(|us| *us > 0.0)?;
    let bytes = point.block(ranks);
    let predicted = predictor.cost(&algorithm, bytes, None)?;
    let tree = algorithm.between();
    let segment = predicted.between.segment;
    let cut = match point.collective() {
        Collective::Broadcast => TwoLevel::of(&algorithm).cut_segment(),
        _ => algorithm.segment.map_or(u64::MAX, |segment| segment.get()),
    };
    let of_nodes = match cut < point.bytes {
        true => format!("{tree}:segment={}", Bytes(cut)),
        false => tree.to_owned(),
    };
    // Blocks of a node's ranks together are the largest buffer, as a node's alone are.
    let is_it = |other: &&ResultPoint| {
        (other.collective(), &other.variant, other.bytes) == (point.collective(), &of_nodes, point.bytes)
    };
    let between_us = between.and_then(|points| points.iter().find(is_it)?.median_us);
    let cost = predictor.cost(&algorithm, bytes, between_us.map(|us| us * 1e3))?;
    let error = |form| Some(us(cost.by(form)?) / measured_us - 1.0);
    let candidates: &[MixedForm] = match cost.overlap {
        0 => &[MixedForm::NoOverlap],
        _ => &[MixedForm::Complete, MixedForm::Overlapping, MixedForm::LargestPenalty],
    };
    let known = candidates.iter().filter_map(|form| Some((*form, error(*form)?)));
    let (nearest, least) = known.clone().min_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
    Some(Entry {
        collective: point.collective().name(),
        variant: point.variant.clone(),
        bytes: point.bytes,
        tree,
        segment,
        overlap: cost.overlap,
        measured_us,
        between_us: cost.between.whole_ns / 1e3,
        between_is_measured: between_us.is_some(),
        errors: cost
            .forms
            .iter()
            .filter_map(|(form, _)| Some(ErrorOf { equation: form.equation(), error: error(*form)? }))
            .collect(),
        nearest: nearest.equation(),
        error: least,
        all_are_close: known.clone().all(|(_, error)| error.abs() < CLOSE) && known.count() > 1,
        used: cost.used.equation(),
    })
}

/// Matrices of segments and overlaps as Wu's Tables 4.2 and 4.3 in one: which equation is the nearest, `*` where all are close, and by how
/// much it is off. Then how far each is off.
pub fn matrices(entries: &[Entry]) -> String {
    let mut text = String::new();
    let key = |entry: &Entry| (entry.collective, entry.bytes, entry.tree);
    let mut groups: Vec<_> = entries.iter().map(key).collect();
    groups.sort_unstable();
    groups.dedup();
    for (collective, bytes, tree) in groups {
        let of = |entry: &&Entry| key(entry) == (collective, bytes, tree);
        let group: Vec<&Entry> = entries.iter().filter(of).collect();
        let segments: BTreeSet<u64> = group.iter().map(|entry| entry.segment).collect();
        let overlaps: BTreeSet<u64> = group.iter().map(|entry| entry.overlap).collect();
        let cell = |segment: u64, overlap: u64| {
            let found = group.iter().find(|entry| (entry.segment, entry.overlap) == (segment, overlap));
            found.map_or("-".to_owned(), |entry| {
                let equation = if entry.all_are_close { "*" } else { entry.nearest };
                format!("{equation} {:+.1} %", entry.error * 100.0)
            })
        };
        let row = |overlap: &u64| {
            let name = if *overlap == 0 { "none".to_owned() } else { Bytes(*overlap).to_string() };
            std::iter::once(name).chain(segments.iter().map(|segment| cell(*segment, *overlap))).collect()
        };
        let between = |segment: &u64| {
            let entry = group.iter().find(|entry| entry.segment == *segment);
            entry.map_or(String::new(), |entry| {
                let about = if entry.between_is_measured { "" } else { "about " };
                format!("{about}{}", nanoseconds(entry.between_us * 1e3))
            })
        };
        let mut rows: Vec<Vec<String>> = overlaps.iter().map(row).collect();
        rows.push(std::iter::once("nodes alone".to_owned()).chain(segments.iter().map(between)).collect());
        let header =
            std::iter::once("OVERLAP".to_owned()).chain(segments.iter().map(|s| Bytes(*s).to_string()));
        text += &format!(
            "\n{collective}, {}, {tree} of nodes, segments of\n{}",
            Bytes(bytes),
            table(header, rows, 1)
        );
    }
    let equations: Vec<&str> = MixedForm::ALL.into_iter().map(MixedForm::equation).collect();
    let of = |equation: &str| {
        let is_apart = equation == MixedForm::NoOverlap.equation();
        let about = entries.iter().filter(|entry| (entry.overlap == 0) == is_apart);
        let errors =
            about.filter_map(|entry| Some(entry.errors.iter().find(|of| of.equation == equation)?.error));
        let errors = sorted(errors.collect());
        let (least, most) = (errors.first()?, errors.last()?);
        let percent = |error: f64| format!("{:+.1} %", error * 100.0);
        let median = quantile(&errors, 0.5)?;
        let count = errors.len().to_string();
        Some(vec![equation.to_owned(), count, percent(*least), percent(median), percent(*most)])
    };
    let rows = equations.into_iter().filter_map(of).collect();
    text += &format!("\n{}", table(["EQUATION", "ENTRIES", "LEAST", "MEDIAN", "MOST"], rows, 1));
    let legend = "the nearest equation of Wu 2005, 4.5, and by how much it is off: + says too long; * where (4.3), (4.4) and (4.6) all are within 5 %";
    text + &paragraph(legend) + "\n"
}
