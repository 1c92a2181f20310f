//! One multicast as a picture: bars for the channels that its messages held, by parts of the network, time to the right.

use std::path::Path;

use polycast_study::wormhole::{Experiment, Hold, Trace};
use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text, Title};

use super::lanes::{Lanes, lanes};
use crate::commands::write_file;
use crate::picture::words;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 13.0;
/// The least and the greatest height of lines without names: all of them are to fit on a page.
const THIN: (f64, f64) = (3.5, 9.0);
const PAGE: f64 = 1800.0;
const FONT: f64 = 10.0;
const HEADING: f64 = 15.0;
const MARGIN: f64 = 10.0;

/// Okabe and Ito's blue and vermilion, and grey.
const OWN: &str = "#0072b2";
const OTHER: &str = "#c8c8c8";
const BLOCKED: &str = "#d55e00";
const FAINT: &str = "#5d6873";

/// Runs one multicast of the experiment, and draws it.
pub fn draw(experiment: &Experiment, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let trace = experiment.trace();
    write_file(file, picture(experiment, &trace).to_string())?;
    Ok(())
}

fn picture(experiment: &Experiment, trace: &Trace) -> Document {
    let lanes = lanes(experiment.topology, trace);
    let label = lanes.labels().map(|text| words::width(text, FONT)).fold(0.0, f64::max) + 2.0 * MARGIN;
    let width = label + WIDTH + 2.0 * MARGIN;
    let (heading, top) = heading(experiment, trace, &lanes, width);
    let (high, top) =
        (if lanes.are_shared { (PAGE / lanes.rows as f64).clamp(THIN.0, THIN.1) } else { ROW }, top + 34.0);
    let place = LinesPlace { trace, left: label, top, bottom: top + high * lanes.rows as f64, high };
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, width, place.bottom + 40.0))
        .set("width", width)
        .set("height", place.bottom + 40.0)
        .set("font-family", "sans-serif")
        .set("font-size", FONT)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(heading)
        .add(place.axis());
    for part in &lanes.parts {
        let y = place.row(part.first);
        let line =
            Line::new().set("x1", 0).set("x2", width).set("y1", y).set("y2", y).set("stroke", "#d9dee3");
        document = document.add(line).add(place.beside(part.first, &part.name).set("font-weight", "bold"));
        for (row, name) in &part.names {
            document = document.add(place.beside(*row, name));
        }
    }
    let shown = trace.record.holds.iter().filter_map(|hold| Some((hold, lanes.row(hold.channel)?)));
    for (hold, row) in shown {
        let colour = if trace.is_own(&hold.message) { OWN } else { OTHER };
        let about = Title::new(format!("{}: {}", experiment.topology.name(hold.channel), about(trace, hold)));
        let mut group = Group::new().add(about).add(place.bar(row, hold.from, hold.until, colour));
        for (from, until) in trace.blocked(hold) {
            group = group.add(place.bar(row, from, until, BLOCKED));
        }
        document = document.add(group);
    }
    document
}

/// The heading: what the picture shows, how to read it, and its colours; with the position at which
/// it ends.
fn heading(experiment: &Experiment, trace: &Trace, lanes: &Lanes, width: f64) -> (Group, f64) {
    let traffic = &experiment.traffic;
    let title = format!(
        "{} to {} nodes of {}, {} bytes: {} units of time",
        traffic.tree.title(experiment.topology),
        traffic.group_nodes,
        experiment.topology,
        words::thousands(&traffic.bytes.to_string()),
        words::thousands(&(trace.received - trace.called).to_string()),
    );
    let each = match lanes.are_shared {
        false => {
            "A line is a channel, the one that the multicast took first on top of its part of the network."
        }
        true => {
            "Channels of a part of the network share a line where they are held one after the other; point at a bar for its channel and message."
        }
    };
    let how = format!("Simulated by polycast {}. {each}", env!("CARGO_PKG_VERSION"));
    let (mut y, mut group) = (MARGIN, Group::new());
    for (text, font, colour) in [(&title, HEADING, "black"), (&how, 11.0, FAINT)] {
        for line in words::lines(text, font, width - 2.0 * MARGIN) {
            y += font * 1.4;
            let line = Text::new(line).set("x", MARGIN).set("y", y).set("font-size", font);
            group = group.add(line.set("fill", colour));
        }
    }
    y += 10.0;
    let key =
        [("held by the multicast", OWN), ("by others", OTHER), ("stands still, its head waits", BLOCKED)];
    for (number, (text, colour)) in (0..).map(f64::from).zip(key) {
        let x = MARGIN + 220.0 * number;
        let square =
            Rectangle::new().set("x", x).set("y", y).set("width", 18).set("height", 9).set("fill", colour);
        let text = Text::new(text).set("x", x + 24.0).set("y", y + 9.0).set("font-size", 11);
        group = group.add(square).add(text);
    }
    (group, y + 14.0)
}

/// The place of the channels' lines in the picture.
struct LinesPlace<'a> {
    trace: &'a Trace,
    left: f64,
    top: f64,
    bottom: f64,
    /// The height of a line.
    high: f64,
}

impl LinesPlace<'_> {
    fn x(&self, at: u64) -> f64 {
        let Trace { called, received, .. } = *self.trace;
        self.left + WIDTH * (at.clamp(called, received) - called) as f64 / (received - called).max(1) as f64
    }

    fn row(&self, row: usize) -> f64 {
        self.top + self.high * row as f64
    }

    fn bar(&self, row: usize, from: u64, until: u64, colour: &str) -> Rectangle {
        Rectangle::new()
            .set("x", (self.x(from) * 10.0).round() / 10.0)
            .set("y", self.row(row) + self.high * 0.1)
            .set("width", ((self.x(until) - self.x(from)) * 10.0).round().max(3.0) / 10.0)
            .set("height", self.high * 0.8)
            .set("fill", colour)
    }

    /// A name at the left end of a row.
    fn beside(&self, row: usize, name: &str) -> Text {
        let text = Text::new(name).set("x", self.left - 6.0).set("y", self.row(row) + ROW - 3.0);
        text.set("text-anchor", "end")
    }

    /// Times since the root's call, above and below, and a line through all rows at each.
    fn axis(&self) -> Group {
        const NAME: &str = "units of time since the root's call (the published ones have 10 ns)";
        let span = (self.trace.received - self.trace.called).max(1);
        let mut group = Group::new().set("text-anchor", "middle").set("fill", FAINT);
        for at in (0..).map(|number| number * step(span)).take_while(|at| *at <= span) {
            let x = self.x(self.trace.called + at);
            let line =
                Line::new().set("x1", x).set("x2", x).set("y1", self.top - 4.0).set("y2", self.bottom + 4.0);
            group = group.add(line.set("stroke", "#d9dee3"));
            for y in [self.top - 8.0, self.bottom + 16.0] {
                group = group.add(Text::new(words::thousands(&at.to_string())).set("x", x).set("y", y));
            }
        }
        let middle = self.left + WIDTH / 2.0;
        for y in [self.top - 22.0, self.bottom + 32.0] {
            group = group.add(Text::new(NAME).set("x", middle).set("y", y));
        }
        group
    }
}

/// The step between times of the axis: a round number, so that there are eleven of them at most.
fn step(span: u64) -> u64 {
    let power = 10u64.pow((span / 10).max(1).ilog10());
    [1, 2, 5, 10]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| span / step <= 10)
        .unwrap_or(10 * power)
}

/// A sentence on a bar, for who points at it.
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

#[cfg(test)]
mod tests {
    use polycast_study::wormhole::{Costs, Effort, MulticastTree, Topology, Traffic};

    use super::*;
    use crate::picture::inside;

    fn drawn(topology: &str, group_nodes: u32) -> String {
        let traffic = Traffic {
            tree: MulticastTree::OptTree,
            groups: 1,
            group_nodes,
            bytes: 4 << 10,
            interval: None,
            local: None,
            background: None,
            mean_bytes: 1 << 10,
            seed: 1,
        };
        let topology: Topology = topology.parse().unwrap();
        let experiment = Experiment::plain(topology, Costs::BASELINE, traffic, Effort::QUICK);
        picture(&experiment, &experiment.trace()).to_string()
    }

    #[test]
    fn there_is_a_time_axis_and_nothing_is_cut_off() {
        for (network, nodes) in [("mesh:4x4", 8), ("mesh:16x16", 128), ("min:64", 40)] {
            let svg = drawn(network, nodes);
            assert_eq!(inside::cut_off(&svg), Vec::<String>::new(), "{network}");
            assert_eq!(svg.matches("since the root's call").count(), 2, "above and below: {svg}");
            let parts = if network.starts_with("mesh") {
                ["row 0", "row 3"]
            } else {
                ["up, level 0", "down, level 0"]
            };
            assert!(parts.iter().all(|part| svg.contains(part)), "{network}: {svg}");
        }
    }

    /// A lesson needs it on a page.
    #[test]
    fn many_nodes_fit_on_a_page() {
        let height = |svg: &str| -> f64 {
            svg.split(" height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let svg = drawn("mesh:16x16", 128);
        assert!(height(&svg) < 2400.0, "{}", height(&svg));
    }

    #[test]
    fn times_of_the_axis_are_round_and_few() {
        for span in [1, 7, 99, 100, 12_345, 2_123_243, u64::MAX / 16] {
            assert!(span / step(span) <= 10, "{span}");
        }
        assert_eq!([step(100), step(12_345)], [10, 2_000]);
    }
}
