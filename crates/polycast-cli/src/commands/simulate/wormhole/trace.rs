//! One multicast as a picture: a row for each channel that one of its messages held, time to the right.

use std::collections::BTreeMap;
use std::path::Path;

use polycast_sim::wormhole::{Channel, Experiment, Hold, Trace};
use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};

use crate::commands::write_file;

const LABEL: f64 = 130.0;
const WIDTH: f64 = 1200.0;
const ROW: f64 = 11.0;
const TOP: f64 = 56.0;

/// Okabe and Ito's blue and vermilion, and grey.
const OWN: &str = "#0072b2";
const OTHER: &str = "#c8c8c8";
const BLOCKED: &str = "#d55e00";

/// Runs one multicast of the experiment, and draws it.
pub fn draw(experiment: &Experiment, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let trace = experiment.trace();
    write_file(file, picture(experiment, &trace).to_string())?;
    Ok(())
}

fn picture(experiment: &Experiment, trace: &Trace) -> Document {
    let rows: BTreeMap<Channel, usize> = {
        let own = trace.record.holds.iter().filter(|hold| trace.is_own(&hold.message));
        let mut channels: Vec<Channel> = own.map(|hold| hold.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        channels.into_iter().zip(0..).collect()
    };
    let span = (trace.received - trace.called).max(1) as f64;
    let x = |at: u64| LABEL + WIDTH * (at.clamp(trace.called, trace.received) - trace.called) as f64 / span;
    let bar = |row: usize, from: u64, until: u64, colour: &str| {
        Rectangle::new()
            .set("x", x(from))
            .set("y", TOP + ROW * row as f64 + 1.0)
            .set("width", (x(until) - x(from)).max(0.3))
            .set("height", ROW - 2.0)
            .set("fill", colour)
    };
    let traffic = &experiment.traffic;
    let heading = format!(
        "{} to {} nodes of {}, {} bytes: {} units of time",
        traffic.tree.title(experiment.topology),
        traffic.group_nodes,
        experiment.topology,
        traffic.bytes,
        trace.received - trace.called
    );
    let height = TOP + ROW * rows.len() as f64 + 24.0;
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, LABEL + WIDTH + 10.0, height))
        .set("font-family", "sans-serif")
        .set("font-size", 9)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(Text::new(heading).set("x", 8).set("y", 18).set("font-size", 14));
    let legend =
        [("held by the multicast", OWN), ("by others", OTHER), ("stands still, its head waits", BLOCKED)];
    for (place, (text, colour)) in (0..).map(f64::from).zip(legend) {
        let at = LABEL + 220.0 * place;
        document = document
            .add(
                Rectangle::new()
                    .set("x", at)
                    .set("y", 30)
                    .set("width", 18)
                    .set("height", 9)
                    .set("fill", colour),
            )
            .add(Text::new(text).set("x", at + 24.0).set("y", 38).set("font-size", 11));
    }
    for (channel, row) in &rows {
        let name = experiment.topology.name(*channel);
        let y = TOP + ROW * (*row as f64 + 1.0) - 3.0;
        document = document.add(Text::new(name).set("x", LABEL - 6.0).set("y", y).set("text-anchor", "end"));
    }
    let shown = trace.record.holds.iter().filter_map(|hold| Some((hold, *rows.get(&hold.channel)?)));
    for (hold, row) in shown {
        let colour = if trace.is_own(&hold.message) { OWN } else { OTHER };
        let mut group =
            Group::new().add(Title::new(about(trace, hold))).add(bar(row, hold.from, hold.until, colour));
        for (from, until) in trace.blocked(hold) {
            group = group.add(bar(row, from, until, BLOCKED));
        }
        document = document.add(group);
    }
    document
}

/// For who points at it.
fn about(trace: &Trace, hold: &Hold) -> String {
    let blocked: u64 = trace.blocked(hold).map(|(from, until)| until - from).sum();
    let at = |time: u64| time as i64 - trace.called as i64;
    format!(
        "{} to {}, {} bytes: held from {} to {}, stood still for {blocked}",
        hold.message.from,
        hold.message.to,
        hold.message.flits,
        at(hold.from),
        at(hold.until)
    )
}
