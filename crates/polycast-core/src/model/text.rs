//! The one decoder and the one printer of parameter files, which are JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    CURVE_NAMES, ClassParameters, Curve, LinkClass, MAX_TEXT_BYTES, Parameters, ParametersError, Point,
    Provenance, Sharing,
};
use crate::collective::Collective;

/// The value of the file's `format`.
const FORMAT: &str = "polycast-parameters";

/// The version of the format that this polycast reads and writes.
const VERSION: u64 = 1;

/// The keys that are looked at first, so that another format is called that and not an unknown key.
#[derive(Deserialize)]
struct Envelope {
    format: Option<String>,
    version: Option<u64>,
}

/// A parameter file as it is written. `S` is what is read of sharing: jobs pass over it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "S: Deserialize<'de> + Default")]
struct WrittenParameters<S> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    measured: WrittenMeasured,
    classes: WrittenClasses,
    #[serde(default)]
    sharing: S,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMeasured {
    when: String,
    #[serde(rename = "where")]
    place: String,
    how: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenClasses {
    same_node: Option<WrittenClass>,
    same_switch: Option<WrittenClass>,
    across_switches: Option<WrittenClass>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    latency: Vec<Point>,
    send_overhead: Option<Vec<Point>>,
    receive_overhead: Option<Vec<Point>>,
    gap: Vec<Point>,
    hold: Option<Vec<Point>>,
    end: Option<Vec<Point>>,
    send: Option<Vec<Point>>,
    net: Option<Vec<Point>>,
    receive: Option<Vec<Point>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSharing {
    collective: String,
    ranks: u32,
    cost: Vec<Point>,
    penalty: Option<Vec<Point>>,
}

/// A file's name, for errors.
#[derive(Clone, Copy)]
struct FileName<'a>(&'a str);

impl FileName<'_> {
    fn error(self, place: impl Into<String>, problem: impl Into<String>) -> ParametersError {
        ParametersError { file: self.0.to_owned(), place: place.into(), problem: problem.into() }
    }

    fn json<'de, T: Deserialize<'de>>(self, text: &'de str) -> Result<T, ParametersError> {
        serde_json::from_str(text).map_err(|json| {
            let place = format!("line {}, column {}", json.line(), json.column());
            let message = json.to_string();
            let problem = message.split(" at line ").next().unwrap_or(&message);
            self.error(place, format!("expected a parameter file as `polycast measure` writes it: {problem}"))
        })
    }

    fn curve(self, class: LinkClass, name: &str, points: Vec<Point>) -> Result<Curve, ParametersError> {
        Curve::new(points)
            .map_err(|curve| self.error(format!("classes.{class}.{name}[{}]", curve.point), curve.problem))
    }

    fn class(self, class: LinkClass, written: WrittenClass) -> Result<ClassParameters, ParametersError> {
        let curve = |name, points: Vec<Point>| self.curve(class, name, points);
        let optional = |name, points: Option<Vec<Point>>| points.map(|p| curve(name, p)).transpose();
        Ok(ClassParameters {
            latency: curve("latency", written.latency)?,
            send_overhead: optional("send_overhead", written.send_overhead)?,
            receive_overhead: optional("receive_overhead", written.receive_overhead)?,
            gap: curve("gap", written.gap)?,
            hold: optional("hold", written.hold)?,
            end: optional("end", written.end)?,
            send: optional("send", written.send)?,
            net: optional("net", written.net)?,
            receive: optional("receive", written.receive)?,
        })
    }

    fn sharing(self, (index, written): (usize, WrittenSharing)) -> Result<Sharing, ParametersError> {
        let WrittenSharing { collective, ranks, cost, penalty } = written;
        let place = format!("sharing[{index}]");
        let collective = collective
            .parse::<Collective>()
            .map_err(|unknown| self.error(format!("{place}.collective"), unknown.to_string()))?;
        let curve = |name: &str, points| {
            Curve::new(points)
                .map_err(|curve| self.error(format!("{place}.{name}[{}]", curve.point), curve.problem))
        };
        let penalty = penalty.map(|points| curve("penalty", points)).transpose()?;
        Ok(Sharing { collective, ranks, cost: curve("cost", cost)?, penalty })
    }
}

fn read<'de, S: Deserialize<'de> + Default>(
    text: &'de str,
    file: &str,
) -> Result<(Parameters, S), ParametersError> {
    let source = FileName(file);
    if text.len() > MAX_TEXT_BYTES {
        let problem = format!("expected at most {MAX_TEXT_BYTES} bytes of text, found {}", text.len());
        return Err(source.error("the whole file", problem));
    }
    let envelope: Envelope = source.json(text)?;
    if envelope.format.as_deref() != Some(FORMAT) {
        let found = envelope.format.map_or_else(|| "none".to_owned(), |format| format!("{format:?}"));
        return Err(source.error("format", format!("expected {FORMAT:?}, found {found}")));
    }
    if envelope.version != Some(VERSION) {
        let found = envelope.version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        let problem = format!("expected {VERSION}, which this polycast reads, found {found}");
        return Err(source.error("version", problem));
    }
    let written: WrittenParameters<S> = source.json(text)?;
    let WrittenMeasured { when, place, how } = written.measured;
    let WrittenClasses { same_node, same_switch, across_switches } = written.classes;
    let mut classes = BTreeMap::new();
    for (class, written) in LinkClass::ALL.into_iter().zip([same_node, same_switch, across_switches]) {
        if let Some(written) = written {
            classes.insert(class, source.class(class, written)?);
        }
    }
    let parameters = Parameters::new(Provenance { when, place, how }, classes)
        .map_err(|error| ParametersError { file: file.to_owned(), ..error })?;
    Ok((parameters, written.sharing))
}

pub(super) fn parse(text: &str, file: &str) -> Result<Parameters, ParametersError> {
    read::<IgnoredAny>(text, file).map(|(parameters, _)| parameters)
}

pub(super) fn parse_all(text: &str, file: &str) -> Result<Parameters, ParametersError> {
    let (parameters, sharing) = read::<Vec<WrittenSharing>>(text, file)?;
    let sharing = sharing.into_iter().enumerate().map(|one| FileName(file).sharing(one));
    parameters
        .with_sharing(sharing.collect::<Result<_, _>>()?)
        .map_err(|error| ParametersError { file: file.to_owned(), ..error })
}

pub(super) fn print(parameters: &Parameters) -> String {
    let Provenance { when, place, how } = parameters.measured();
    let note = |text: &str| serde_json::Value::from(text).to_string();
    let mut classes = Vec::new();
    for (class, parameters) in parameters.classes() {
        let curves = CURVE_NAMES.into_iter().zip(parameters.curves());
        let curves: Vec<String> =
            curves.filter_map(|(name, curve)| Some(print_curve(name, curve?))).collect();
        classes.push(format!("  \"{class}\": {{\n{}\n  }}", curves.join(",\n")));
    }
    let sharing: Vec<String> = parameters.sharing().iter().map(print_sharing).collect();
    let sharing = match sharing.is_empty() {
        true => String::new(),
        false => format!(",\n\"sharing\": [\n{}\n]", sharing.join(",\n")),
    };
    format!(
        "{{\n\"format\": \"{FORMAT}\", \"version\": {VERSION},\n\
         \"measured\": {{\n  \"when\": {},\n  \"where\": {},\n  \"how\": {}\n}},\n\
         \"classes\": {{\n{}\n}}{sharing}\n}}\n",
        note(when),
        note(place),
        note(how),
        classes.join(",\n")
    )
}

fn print_sharing(sharing: &Sharing) -> String {
    let Sharing { collective, ranks, .. } = sharing;
    let curves = sharing.curves().into_iter();
    let curves: Vec<String> = curves.filter_map(|(name, curve)| Some(print_curve(name, curve?))).collect();
    format!("  {{\"collective\": \"{collective}\", \"ranks\": {ranks},\n{}\n  }}", curves.join(",\n"))
}

fn print_curve(name: &str, curve: &Curve) -> String {
    let mut text = format!("    \"{name}\": [");
    for (index, Point { bytes, ns, low, high, samples }) in curve.points().iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        // Rust prints the shortest digits that are read back as the same number, and never an exponent.
        let _ = write!(
            text,
            "{separator}\n      {{\"bytes\": {bytes}, \"ns\": {ns}, \"low\": {low}, \"high\": {high}, \"samples\": {samples}}}"
        );
    }
    text + "]"
}

#[cfg(test)]
mod tests;
