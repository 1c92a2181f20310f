//! The algorithms that can be written in tables and in POLYCAST_BCAST.

use polycast_core::algorithm::{Entry, Need, Parameter, Registry};
use polycast_core::collective::Collective;
use serde::Serialize;

use crate::terminal::hanging;

/// An algorithm, as `--json` tells of it.
#[derive(Serialize)]
pub struct Algorithm {
    name: &'static str,
    collectives: Vec<&'static str>,
    about: &'static str,
    source: &'static str,
    /// The algorithm as it is written with all its own parameters.
    example: String,
    parameters: Vec<ParameterInfo>,
}

#[derive(Serialize)]
struct ParameterInfo {
    name: &'static str,
    about: &'static str,
    values: String,
    /// The default; `None` if a value must be given.
    default: Option<&'static str>,
}

/// All, in the order in which they are listed.
pub fn all() -> Vec<Algorithm> {
    Registry::BUILT_IN.entries().map(Algorithm::from).collect()
}

/// The list of algorithms by collective, within 80 columns.
pub fn text() -> String {
    let mut out = String::new();
    for collective in Collective::ALL {
        out += &format!("{}{}\n", if out.is_empty() { "" } else { "\n" }, collective.name());
        for algorithm in Registry::BUILT_IN.of(collective).map(Algorithm::from) {
            let Algorithm { name, about, source, parameters, .. } = algorithm;
            out += &format!("  {name}\n{}\n", hanging("      ", "      ", &format!("{about} ({source})")));
            for ParameterInfo { name, about, values, default } in parameters {
                let default = default.map_or("required".to_owned(), |default| format!("default: {default}"));
                let said = format!("{about}; {values}; {default}");
                out += &(hanging(&format!("      {name:<8} "), "               ", &said) + "\n");
            }
        }
    }
    out
}

impl From<&'static Entry> for Algorithm {
    fn from(entry: &'static Entry) -> Algorithm {
        Algorithm {
            name: entry.name,
            collectives: entry.collectives.iter().map(|collective| collective.name()).collect(),
            about: entry.about,
            source: entry.source,
            example: entry.complete().to_string(),
            parameters: entry.all_parameters().map(ParameterInfo::from).collect(),
        }
    }
}

impl From<&Parameter> for ParameterInfo {
    fn from(parameter: &Parameter) -> ParameterInfo {
        let Parameter { name, about, domain, need, default, .. } = *parameter;
        let is_required = need == Need::Required;
        ParameterInfo { name, about, values: domain.to_string(), default: (!is_required).then_some(default) }
    }
}
