use std::collections::BTreeMap;

use super::class::DIFFERENCES;
use super::{CURVE_NAMES, ClassParameters, LinkClass, Sharing, sharing, text};
use crate::collective::Collective;

/// Bytes that the text of a parameter file may have.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// Bytes that each of the notes on a measurement may have.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Notes on when, where and how parameters were measured, in the measurer's words; at most
/// [`MAX_NOTE_BYTES`] each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The time, as `2026-11-22T03:00:00Z`.
    pub when: String,
    /// The hosts and the network.
    pub place: String,
    /// The MPI, the command.
    pub how: String,
}

/// The times of a network, as far as they were measured: a set of curves for each link class, at
/// least one class; and curves of sharing within its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    measured: Provenance,
    classes: BTreeMap<LinkClass, ClassParameters>,
    sharing: Vec<Sharing>,
}

/// Why something is not a set of parameters. Written `FILE: PLACE: problem`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}: {problem}")]
pub struct ParametersError {
    /// The file, as it was given.
    pub file: String,
    /// The place in the file: `line 3, column 7`, or `classes.same-switch.gap[3]`.
    pub place: String,
    /// The problem: what was expected and what was found.
    pub problem: String,
}

impl Parameters {
    /// Puts parameters together. The error names no file.
    pub fn new(
        measured: Provenance,
        classes: BTreeMap<LinkClass, ClassParameters>,
    ) -> Result<Parameters, ParametersError> {
        let error =
            |place: String, problem| ParametersError { file: "parameters".to_owned(), place, problem };
        if classes.is_empty() {
            let names = LinkClass::ALL.map(LinkClass::name).join(", ");
            return Err(error("classes".to_owned(), format!("expected at least one of {names}, found none")));
        }
        for (name, note) in [("when", &measured.when), ("where", &measured.place), ("how", &measured.how)] {
            if note.len() > MAX_NOTE_BYTES {
                let problem = format!("expected at most {MAX_NOTE_BYTES} bytes, found {}", note.len());
                return Err(error(format!("measured.{name}"), problem));
            }
        }
        for (class, parameters) in &classes {
            for (name, curve) in CURVE_NAMES.into_iter().zip(parameters.curves()) {
                let points = curve.filter(|_| !DIFFERENCES.contains(&name)).map_or(&[][..], |c| c.points());
                if let Some(index) = points.iter().position(|point| point.ns < 0.0) {
                    let problem =
                        format!("expected a time that is not negative, found {} ns", points[index].ns);
                    return Err(error(format!("classes.{class}.{name}[{index}]"), problem));
                }
            }
        }
        Ok(Parameters { measured, classes, sharing: Vec::new() })
    }

    /// Adds the curves of sharing within a node: each collective and number of ranks once. The
    /// error names no file.
    pub fn with_sharing(self, sharing: Vec<Sharing>) -> Result<Parameters, ParametersError> {
        sharing::check(&sharing)?;
        Ok(Parameters { sharing, ..self })
    }

    /// Reads the text of a parameter file but what it says of sharing within nodes, which jobs do not need; `file` is for errors. The format
    /// is in `docs/models.md`.
    pub fn parse(text: &str, file: &str) -> Result<Parameters, ParametersError> {
        text::parse(text, file)
    }

    /// Reads the whole text of a parameter file, what it says of sharing within nodes included;
    /// `file` is for errors.
    pub fn parse_all(text: &str, file: &str) -> Result<Parameters, ParametersError> {
        text::parse_all(text, file)
    }

    /// The text of a parameter file, with a line per point; [`Parameters::parse_all`] reads it back exactly.
    pub fn to_json(&self) -> String {
        text::print(self)
    }

    /// The notes on when, where and how the parameters were measured.
    pub fn measured(&self) -> &Provenance {
        &self.measured
    }

    /// The classes that were measured.
    pub fn classes(&self) -> impl Iterator<Item = (LinkClass, &ClassParameters)> {
        self.classes.iter().map(|(class, parameters)| (*class, parameters))
    }

    /// The curves of sharing within a node, for each collective and number of ranks that was
    /// measured.
    pub fn sharing(&self) -> &[Sharing] {
        &self.sharing
    }

    /// The curves of a collective among exactly so many ranks of a node, if they were measured:
    /// with others it is another curve.
    pub fn sharing_of(&self, collective: Collective, ranks: u32) -> Option<&Sharing> {
        self.sharing.iter().find(|sharing| (sharing.collective, sharing.ranks) == (collective, ranks))
    }

    /// The parameters of a class, or of the class most like it that was measured.
    pub fn class(&self, class: LinkClass) -> &ClassParameters {
        &self.classes[&self.stand_in(class)]
    }

    /// The class whose parameters [`Parameters::class`] gives.
    pub fn stand_in(&self, class: LinkClass) -> LinkClass {
        let found = class.substitutes().into_iter().find(|class| self.classes.contains_key(class));
        found.expect("Parameters::new refuses an empty set of classes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Curve, Point};

    fn class(latency: f64, gap: f64) -> ClassParameters {
        let constant = |ns| Curve::new(vec![Point::exact(1, ns)]).unwrap();
        ClassParameters::new(constant(latency), constant(gap))
    }

    #[test]
    fn the_class_most_alike_stands_in() {
        let of = |classes: &[(LinkClass, f64)]| {
            let classes = classes.iter().map(|(name, gap)| (*name, class(0.0, *gap))).collect();
            let parameters = Parameters::new(Provenance::default(), classes).unwrap();
            LinkClass::ALL.map(|class| parameters.class(class).gap.at(1))
        };
        use LinkClass::{AcrossSwitches, SameNode, SameSwitch};
        assert_eq!(of(&[(SameNode, 1.0), (SameSwitch, 2.0), (AcrossSwitches, 3.0)]), [1.0, 2.0, 3.0]);
        assert_eq!(of(&[(SameNode, 1.0), (SameSwitch, 2.0)]), [1.0, 2.0, 2.0]);
        assert_eq!(of(&[(SameNode, 1.0), (AcrossSwitches, 3.0)]), [1.0, 3.0, 3.0]);
        assert_eq!(of(&[(AcrossSwitches, 3.0)]), [3.0; 3]);
    }

    #[test]
    fn limits() {
        let new =
            |measured, gap| Parameters::new(measured, [(LinkClass::SameSwitch, class(-1.0, gap))].into());
        let note = |bytes| Provenance { how: "x".repeat(bytes), ..Provenance::default() };
        assert!(new(note(MAX_NOTE_BYTES), 0.0).is_ok());
        let error = new(note(MAX_NOTE_BYTES + 1), 1.0).unwrap_err();
        assert_eq!(error.place, "measured.how");
        let error = new(note(0), -1.0).unwrap_err();
        assert_eq!(error.place, "classes.same-switch.gap[0]");
        assert!(error.problem.contains("not negative"));
        assert!(Parameters::new(note(0), BTreeMap::new()).is_err());
    }
}
