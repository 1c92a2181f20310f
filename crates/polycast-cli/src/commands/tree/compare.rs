//! All shapes beside each other.

use polycast_core::algorithm::broadcast::Algorithm;
use serde_json::json;

use super::report::{BusiestLink, Report};
use super::shapes::COMPARED;
use super::{Planned, Scene};
use crate::terminal::{nanoseconds, table};

/// The table, or one JSON object.
pub fn run(scene: &Scene, json: bool) -> Result<String, String> {
    let report = |(name, knows): (&str, _)| {
        let algorithm: Algorithm = name.parse().map_err(|error| format!("{error}"))?;
        Ok((knows, Report::new(&Planned::new(algorithm, knows, scene)?)))
    };
    let trees = COMPARED.into_iter().map(report).collect::<Result<Vec<_>, String>>()?;
    if json {
        let trees: Vec<_> =
            trees.iter().map(|(knows, report)| json!({ "knows": knows.name(), "tree": report })).collect();
        return Ok(format!("{:#}\n", json!({ "trees": trees })));
    }
    let rows = trees.iter().map(|(knows, report)| {
        vec![
            report.shape.clone(),
            knows.name().to_owned(),
            report.busiest_link.as_ref().map_or("none".to_owned(), BusiestLink::text),
            report.height.to_string(),
            report.degree.to_string(),
            report.contending_pairs.to_string(),
            nanoseconds(report.estimated_time_ns as f64),
        ]
    });
    let header = ["SHAPE", "KNOWS", "BUSIEST LINK", "HEIGHT", "DEGREE", "CONTENDING", "ESTIMATED"];
    let table = table(header, rows.collect(), 3);
    let (_, first) = &trees[0];
    Ok(format!("{}, {}\n\n{table}", first.place(), first.sizes()))
}
