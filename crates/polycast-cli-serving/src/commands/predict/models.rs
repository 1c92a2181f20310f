//! The models that are fitted to measured parameters, and the papers' closed forms beside what is predicted.

use polycast_core::algorithm::{Algorithm, Formulas, Registry};
use polycast_core::collective::Collective;
use polycast_core::cost::closed_forms::{ClosedForms, efficient_segment};
use polycast_core::cost::{Predicted, Predictor, Work, compare};
use polycast_core::model::{CURVE_NAMES, ClassParameters, Line, LinkClass, Parameters};
use polycast_core::units::Bytes;
use serde::Serialize;

use super::table::us;
use crate::terminal::{count, digits, hanging, nanoseconds, paragraph, size, table};

/// The symbols of the curves, in the order of [`CURVE_NAMES`], and the models that they belong to.
const SYMBOLS: [(&str, &str); CURVE_NAMES.len()] = [
    ("P-LogP", "L(m)"),
    ("P-LogP", "os(m)"),
    ("P-LogP", "or(m)"),
    ("P-LogP", "g(m)"),
    ("parameterized", "t_hold(m)"),
    ("parameterized", "t_end(m)"),
    ("parameterized", "t_send(m)"),
    ("parameterized", "t_net(m)"),
    ("parameterized", "t_recv(m)"),
];

/// The origin of each column of times, for below the table.
const SOURCES: [(&str, &str); 5] = [
    ("SCHEDULE", "all messages of the schedules followed, the ranks where they are"),
    (
        "HOCKNEY",
        "(X+H-1) D T(s) down trees of height H and degree D, T = alpha + s beta; binomial log2(P) T (Patarasuk et al. 2008, 3.1)",
    ),
    ("LOGGP", "the longest time of a rank (Siebert 2006, 1.5)"),
    ("P-LOGP", "A L(s) + B g(s) + D (X-1) g(s) (Patarasuk et al. 2008, formulas 1 and 2)"),
    ("T_HOLD", "from t_hold(m) and t_end(m) (Nupairoj 1998, Table 4.2; opt-tree: 4.3)"),
];

/// The origins for collectives other than the broadcast.
const SOURCES_OF_OTHERS: [(&str, &str); 2] = [
    SOURCES[0],
    ("HOCKNEY", "rounds alpha + bytes beta + combined bytes gamma (Thakur et al. 2005, 3 and 4)"),
];

/// Everything that `--models` says.
#[derive(Serialize)]
pub struct Models<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<&'static str>,
    measured: ParametersOrigin<'a>,
    classes: Vec<Class>,
    /// The closed forms, where ranks were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_forms: Option<Forms>,
}

#[derive(Serialize)]
struct ParametersOrigin<'a> {
    when: &'a str,
    r#where: &'a str,
}

#[derive(Serialize)]
struct Class {
    class: &'static str,
    smallest_bytes: u64,
    largest_bytes: u64,
    efficient_segment_bytes: u64,
    models: Vec<Parameter>,
}

/// A line `startup + m * per_byte`, or one of its two parts alone.
#[derive(Serialize)]
struct Parameter {
    model: &'static str,
    parameter: &'static str,
    startup_ns: Option<f64>,
    per_byte_ns: Option<f64>,
    residual: Option<f64>,
}

#[derive(Serialize)]
struct Forms {
    #[serde(skip)]
    collective: Collective,
    ranks: u32,
    class: &'static str,
    sizes: Vec<ModelSize>,
}

#[derive(Serialize)]
struct ModelSize {
    bytes: u64,
    algorithms: Vec<ModelRow>,
}

#[derive(Serialize)]
struct ModelRow {
    algorithm: String,
    /// All messages followed; if they are too many, as `predict` says without `--models`, or nothing.
    schedule_us: Option<f64>,
    hockney_us: Option<f64>,
    log_gp_us: Option<f64>,
    p_log_gp_us: Option<f64>,
    hold_end_us: Option<f64>,
}

impl<'a> Models<'a> {
    /// The models of every class that was measured; with a predictor, the closed forms for its ranks and these sizes, too.
    pub fn new(
        parameters: &'a Parameters,
        job: Option<(Collective, &mut Predictor, &[Bytes])>,
    ) -> Models<'a> {
        let measured = parameters.measured();
        Models {
            collective: job.as_ref().map(|(collective, ..)| collective.name()),
            measured: ParametersOrigin { when: &measured.when, r#where: &measured.place },
            classes: parameters.classes().map(|(class, of)| Class::new(class, of)).collect(),
            closed_forms: job.map(|(collective, predictor, sizes)| Forms::new(collective, predictor, sizes)),
        }
    }

    /// The models as a JSON object.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The page for people.
    pub fn text(&self) -> String {
        let source = format!("models of parameters of {}, {}", self.measured.when, self.measured.r#where);
        let mut text = paragraph(&source) + "\n";
        for class in &self.classes {
            let sizes = format!("{} to {}", size(class.smallest_bytes), size(class.largest_bytes));
            text += &format!("\n{}, {sizes}\n\n", class.class);
            let rows = class.models.iter().map(Parameter::cells).collect();
            text += &table(["MODEL", "PARAMETER", "STARTUP", "PER BYTE", "RESIDUAL"], rows, 2);
            text += &(cheap_segments(class.efficient_segment_bytes) + "\n");
        }
        text += "\nresidual: root mean square of the deviations from what was measured\n";
        if self.closed_forms.is_some() {
            text += &format!("\n{}", self.closed_forms());
        }
        text
    }

    /// The table of the closed forms of a collective; empty where no ranks were given.
    pub fn closed_forms(&self) -> String {
        let Some(forms) = &self.closed_forms else { return String::new() };
        let ranks = count(forms.ranks, "rank", "ranks");
        let mut header = vec!["SIZE", "ALGORITHM", "SCHEDULE", "HOCKNEY", "LOGGP", "P-LOGP", "T_HOLD"];
        let (of, sources) = match forms.collective {
            Collective::Broadcast => ("to", &SOURCES[..]),
            _ => ("of", &SOURCES_OF_OTHERS[..]),
        };
        header.truncate(2 + sources.len());
        let rows = forms.sizes.iter().flat_map(|size| size.rows(header.len()));
        let mut text =
            format!("{} {of} {ranks}, closed forms as if all were {}\n\n", forms.collective, forms.class);
        text += &table(header.clone(), rows.collect(), 2);
        for (column, formula) in sources {
            text += &(hanging(&format!("{column:<8} "), "         ", formula) + "\n");
        }
        text
    }
}

/// A sentence on the segments that are cheap by a class of links.
pub fn cheap_segments(segment: u64) -> String {
    format!("segments of {} and more cost at most 10 % over one long message", size(segment))
}

impl Class {
    fn new(class: LinkClass, of: &ClassParameters) -> Class {
        let line = |(model, parameter), Line { startup_ns, delay_ns, residual }| Parameter {
            model,
            parameter,
            startup_ns: Some(startup_ns),
            per_byte_ns: Some(delay_ns),
            residual: Some(residual),
        };
        let part = |parameter, startup_ns, per_byte_ns, residual| Parameter {
            model: "LogGP",
            parameter,
            startup_ns,
            per_byte_ns,
            residual,
        };
        let (hockney, log_gp) = (of.hockney(), of.log_gp());
        let whole =
            Line { startup_ns: hockney.alpha_ns, delay_ns: hockney.beta_ns, residual: hockney.residual };
        let mut models = vec![
            line(("Hockney", "alpha + m beta"), whole),
            part("L", Some(log_gp.latency_ns), None, Some(log_gp.residual)),
            part("o", Some(log_gp.overhead_ns), None, None),
            part("g, G", Some(log_gp.gap_ns), Some(log_gp.gap_per_byte_ns), None),
        ];
        let curves = SYMBOLS.into_iter().zip(of.curves());
        models.extend(curves.filter_map(|(symbol, curve)| Some(line(symbol, Line::fit(curve?)))));
        let points = of.gap.points();
        Class {
            class: class.name(),
            smallest_bytes: points.first().map_or(0, |point| point.bytes),
            largest_bytes: points.last().map_or(0, |point| point.bytes),
            efficient_segment_bytes: efficient_segment(of),
            models,
        }
    }
}

impl Parameter {
    fn cells(&self) -> Vec<String> {
        let or_empty = |cell: Option<String>| cell.unwrap_or_default();
        vec![
            self.model.to_owned(),
            self.parameter.to_owned(),
            or_empty(self.startup_ns.map(|ns| nanoseconds(ns.round() + 0.0))),
            or_empty(self.per_byte_ns.map(|ns| format!("{} ns", digits(ns)))),
            or_empty(self.residual.map(|share| format!("{} %", digits(share * 100.0)))),
        ]
    }
}

impl Forms {
    fn new(collective: Collective, predictor: &mut Predictor, sizes: &[Bytes]) -> Forms {
        let class = predictor.usual_class();
        let parameters = predictor.network().parameters(class).clone();
        let ranks = predictor.network().ranks();
        let sizes = sizes.iter().map(|&bytes| {
            let row = |predictor: &mut Predictor, predicted: &Predicted, formulas: Formulas| {
                let algorithm = predicted.algorithm;
                let segment = algorithm.segment.map(|segment| segment.get());
                let forms = ClosedForms::of(formulas, &parameters, ranks, bytes.0, segment);
                let form = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
                ModelRow {
                    algorithm: algorithm.to_string(),
                    schedule_us: Some(us(predictor
                        .follow(&algorithm, Collective::Broadcast, bytes)
                        .unwrap_or(predicted.time))),
                    hockney_us: form(forms.hockney),
                    log_gp_us: form(forms.log_gp),
                    p_log_gp_us: form(forms.p_log_gp),
                    hold_end_us: form(forms.hold_end),
                }
            };
            if collective != Collective::Broadcast {
                let algorithms = Registry::BUILT_IN.compared(collective).into_iter();
                let row = |algorithm: Algorithm| {
                    let Some(Formulas::Stages(stages)) = algorithm.entry.formulas else { return None };
                    let stages = stages(ranks)?;
                    let gamma_ns = Work::default().combine_ns_per_byte;
                    Some(ModelRow {
                        algorithm: algorithm.to_string(),
                        schedule_us: predictor.follow(&algorithm, collective, bytes).map(us),
                        hockney_us: Some(stages.ns(&parameters.hockney(), gamma_ns, bytes) / 1e3),
                        log_gp_us: None,
                        p_log_gp_us: None,
                        hold_end_us: None,
                    })
                };
                return ModelSize { bytes: bytes.0, algorithms: algorithms.filter_map(row).collect() };
            }
            let mut algorithms = Vec::new();
            for entry in Registry::BUILT_IN.of(collective) {
                let Some(formulas) = entry.formulas else { continue };
                let whole = entry.typical();
                let predicted = Predicted::of(predictor, &whole, bytes);
                algorithms.push(row(predictor, &predicted, formulas));
                let best = compare(predictor, &[whole], &[bytes]).remove(0).predicted.remove(0);
                if best.algorithm.segment.is_some() && formulas.are_for_segments() {
                    algorithms.push(row(predictor, &best, formulas));
                }
            }
            ModelSize { bytes: bytes.0, algorithms }
        });
        Forms { collective, ranks, class: class.name(), sizes: sizes.collect() }
    }
}

impl ModelSize {
    /// The size stands in the first row.
    fn rows(&self, columns: usize) -> Vec<Vec<String>> {
        let row = |(index, row): (usize, &ModelRow)| {
            let size = if index == 0 { Bytes(self.bytes).to_string() } else { String::new() };
            let forms = [row.hockney_us, row.log_gp_us, row.p_log_gp_us, row.hold_end_us];
            let times = std::iter::once(row.schedule_us).chain(forms).take(columns - 2);
            let times = times.map(|us| us.map_or(String::new(), |us| nanoseconds(us * 1e3)));
            [size, row.algorithm.clone()].into_iter().chain(times).collect()
        };
        self.algorithms.iter().enumerate().map(row).collect()
    }
}
