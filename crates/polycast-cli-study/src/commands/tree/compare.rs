//! All shapes beside each other.

use serde_json::json;

use super::report::{BusiestLink, Report};
use super::shapes::{Knowledge, compared};
use super::{Planned, Scene};
use crate::terminal::{nanoseconds, paragraph, table};

const LEGEND: &str = "LOAD: messages per segment over the busiest link. CONTEND: pairs of messages that share a \
                      link. TIME: estimated by the links alone. Hosts only: the job does not know the switches.";

/// The comparison as a table, or as a JSON object.
pub fn run(scene: &Scene, json: bool) -> Result<String, String> {
    let plan = |(algorithm, knows)| Ok((knows, Planned::new(algorithm, knows, scene)?));
    let planned = compared().into_iter().map(plan).collect::<Result<Vec<_>, String>>()?;
    let trees: Vec<_> = planned.iter().map(|(knows, planned)| (knows, Report::new(planned))).collect();
    if json {
        let trees: Vec<_> =
            trees.iter().map(|(knows, report)| json!({ "knows": knows.name(), "tree": report })).collect();
        return Ok(format!("{:#}\n", json!({ "trees": trees })));
    }
    let rows = trees.iter().map(|(knows, report)| {
        vec![
            match knows {
                Knowledge::Hosts => format!("{} (hosts only)", report.shape),
                Knowledge::Topology => report.shape.clone(),
            },
            report.busiest_link.as_ref().map_or("none".to_owned(), BusiestLink::ends),
            report.busiest_link.as_ref().map_or(0, BusiestLink::messages).to_string(),
            report.height.to_string(),
            report.degree.to_string(),
            report.contending_pairs.to_string(),
            nanoseconds(report.estimated_time_ns as f64),
        ]
    });
    let header = ["SHAPE", "BUSIEST LINK", "LOAD", "HEIGHT", "DEGREE", "CONTEND", "TIME"];
    let table = table(header, rows.collect(), 2);
    let (_, first) = &trees[0];
    let heading = paragraph(&format!("{}, {}", first.place(), first.sizes()));
    let planned_for = trees.iter().filter_map(|(_, report)| Some((&report.shape, report.times?)));
    let planned_for = planned_for.map(|(shape, times)| format!(" {shape}: {}.", times.source()));
    let legend = paragraph(&(LEGEND.to_owned() + &planned_for.collect::<String>()));
    Ok(format!("{heading}\n\n{table}\n{legend}\n"))
}
