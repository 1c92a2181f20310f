//! A tree over the switches as SVG: switches are boxes with their hosts and ranks inside, messages are arrows.

mod layout;

use polycast_core::topology::Edge;
use polycast_core::units::Rank;
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Definitions, Group, Line, Marker, Path, Rectangle, Text, Title};

use super::Planned;
use super::report::Report;
use crate::picture::words;
use layout::{Frame, Layout, RANK_RADIUS, layout};

/// The most ranks of a picture: more could not be told apart on any screen.
const MAX_RANKS: u32 = 4096;

/// Blue and vermillion of Okabe and Ito: people with any colour vision tell them apart.
const QUIET: &str = "#0072b2";
const DISTURBED: &str = "#d55e00";
const FONT: f64 = 13.0;
/// The margin beside the caption.
const MARGIN: i32 = 30;
/// The distance between two lines of the caption.
const LINE: i32 = 20;

/// Draws a tree.
pub fn svg(planned: &Planned) -> Result<String, String> {
    let ranks = planned.tree.ranks();
    if ranks > MAX_RANKS {
        return Err(format!(
            "--svg: expected at most {MAX_RANKS} ranks, found {ranks}; choose fewer with --ranks"
        ));
    }
    let layout = layout(&planned.scene.placed);
    let width = layout.width.max(640);
    let (caption, caption_height) = caption(planned, &layout, f64::from(width - 2 * MARGIN));
    let height = layout.height + caption_height;
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", FONT)
        .add(Definitions::new().add(arrowhead("quiet", QUIET)).add(arrowhead("disturbed", DISTURBED)))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(links(planned, &layout))
        .add(boxes(&layout))
        .add(messages(planned, &layout))
        .add(ranks_of(planned, &layout))
        .add(names(planned, &layout))
        .add(caption);
    Ok(format!("{document}\n"))
}

fn arrowhead(name: &str, colour: &str) -> Marker {
    let shape = Data::new().move_to((0, 0)).line_to((7, 3)).line_to((0, 6)).close();
    Marker::new()
        .set("id", name)
        .set("markerWidth", 7)
        .set("markerHeight", 6)
        .set("refX", 6)
        .set("refY", 3)
        .set("orient", "auto")
        .set("markerUnits", "userSpaceOnUse")
        .add(Path::new().set("d", shape).set("fill", colour))
}

/// Links between switches.
fn links(planned: &Planned, layout: &Layout) -> Group {
    let mut group = Group::new().set("stroke-width", 5).set("stroke-linecap", "round");
    for (switch, frame) in &layout.switches {
        let Some(above) = above(planned, layout, *switch) else { continue };
        let (from, to) =
            ((above.x + above.width / 2, above.y + above.height), (frame.x + frame.width / 2, frame.y));
        let [down, up] = directions(*switch);
        let is_contended = planned.traffic.is_contended(down) || planned.traffic.is_contended(up);
        let line = Line::new().set("x1", from.0).set("y1", from.1).set("x2", to.0).set("y2", to.1);
        group = group.add(line.set("stroke", if is_contended { "#eeb48f" } else { "#cccccc" }));
    }
    group
}

/// The switch above, if it is drawn.
fn above(planned: &Planned, layout: &Layout, switch: usize) -> Option<Frame> {
    let parent = planned.scene.placed.topology.switches[switch].parent?;
    layout.switches.iter().find(|(index, _)| *index == parent).map(|(_, frame)| *frame)
}

/// The directed edges down to a switch, and up from it.
fn directions(switch: usize) -> [Edge; 2] {
    [false, true].map(|is_up| Edge { node: switch, is_up })
}

/// Switches and the hosts inside.
fn boxes(layout: &Layout) -> Group {
    let mut group = Group::new();
    for (_, frame) in &layout.switches {
        group = group.add(rectangle(*frame, 8).set("fill", "#f4f4f4").set("stroke", "#888888"));
    }
    for (_, frame) in &layout.hosts {
        group = group.add(rectangle(*frame, 4).set("fill", "white").set("stroke", "#bbbbbb"));
    }
    group
}

/// Names of switches and hosts, and how many messages per segment take each link. They come last, with a white rim, so that no
/// arrow goes through a word.
fn names(planned: &Planned, layout: &Layout) -> Group {
    let topology = &planned.scene.placed.topology;
    let mut group = Group::new()
        .set("fill", "#555555")
        .set("stroke", "white")
        .set("stroke-width", 4)
        .set("stroke-linejoin", "round")
        .set("paint-order", "stroke");
    for (host, frame) in &layout.hosts {
        let middle = frame.x + frame.width / 2;
        let name = label(topology.hosts[*host].name.clone(), middle, frame.y + frame.height - 6);
        group = group.add(name.set("text-anchor", "middle"));
    }
    for (switch, frame) in &layout.switches {
        let name = label(topology.switches[*switch].name.clone(), frame.x + 10, frame.y + 17);
        group = group.add(name.set("font-weight", "bold").set("fill", "black"));
        if above(planned, layout, *switch).is_some() {
            let [down, up] = directions(*switch).map(|edge| planned.traffic.count(edge));
            // Close to the lower switch, where links of the same upper one are apart.
            let numbers = label(format!("↓{down} ↑{up}"), frame.x + frame.width / 2 + 8, frame.y - 8);
            group = group.add(numbers);
        }
    }
    group
}

fn rectangle(frame: Frame, radius: i32) -> Rectangle {
    let at = Rectangle::new().set("x", frame.x).set("y", frame.y);
    at.set("width", frame.width).set("height", frame.height).set("rx", radius)
}

fn label(text: String, x: i32, y: i32) -> Text {
    Text::new(text).set("x", x).set("y", y)
}

/// An arrow per edge of the tree, bent to its left so that messages to and fro do not cover each other.
fn messages(planned: &Planned, layout: &Layout) -> Group {
    let mut group = Group::new().set("fill", "none").set("stroke-width", 1.8).set("stroke-opacity", 0.85);
    for (from, to) in planned.tree.edges() {
        let (colour, head) = match planned.is_disturbed(to) {
            true => (DISTURBED, "url(#disturbed)"),
            false => (QUIET, "url(#quiet)"),
        };
        let path = arrow(layout.ranks[from.index()], layout.ranks[to.index()], &layout.ranks);
        let arrow = Path::new().set("d", path).set("stroke", colour).set("marker-end", head);
        group = group.add(arrow.add(Title::new(format!("{from} → {to}"))));
    }
    group
}

/// The arrow, over those that stand in its row between both ends, else bent so that it is behind as few circles as possible.
fn arrow(from: (i32, i32), to: (i32, i32), ranks: &[(i32, i32)]) -> Data {
    let (x, y) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let bent = |bend: f64| (f64::from(from.0) + x / 2.0 + y * bend, f64::from(from.1) + y / 2.0 - x * bend);
    let (left, right) = (from.0.min(to.0), from.0.max(to.0));
    let between = ranks.iter().filter(|rank| rank.1 == from.1 && (left + 1..right).contains(&rank.0)).count();
    let control = if from.1 == to.1 && between > 0 {
        // The further the higher, so that arrows of one sender lie beside each other.
        let peak = f64::from(RANK_RADIUS + 5) + (3.0 * (between as f64 - 1.0)).min(10.0);
        (bent(0.0).0, f64::from(from.1) - 2.0 * peak.max(x.abs() * BENDS[0] / 2.0))
    } else {
        let hidden = |bend: &f64| hidden(from, bent(*bend), to, ranks);
        let few = ranks.len() <= MAX_TRIED;
        let best = BENDS.iter().min_by_key(|bend| if few { hidden(bend) } else { 0 });
        bent(best.copied().unwrap_or_default())
    };
    let start = toward(from, control, f64::from(RANK_RADIUS));
    let end = toward(to, control, f64::from(RANK_RADIUS) + 2.0);
    let control = (control.0.round() as i32, control.1.round() as i32);
    Data::new().move_to(start).quadratic_curve_to((control, end))
}

/// Bends of arrows to their left, the usual one first.
const BENDS: [f64; 5] = [0.16, -0.16, 0.3, -0.3, 0.02];
/// The most ranks with which several bends of an arrow are tried: with more it would take long to
/// find out which circles are in its way.
const MAX_TRIED: usize = 512;

/// The part of an arrow that lies behind circles which it does not join, in twentieths.
fn hidden(from: (i32, i32), control: (f64, f64), to: (i32, i32), ranks: &[(i32, i32)]) -> usize {
    let others: Vec<&(i32, i32)> = ranks.iter().filter(|rank| **rank != from && **rank != to).collect();
    let is_hidden = |step: &i32| {
        let part = f64::from(*step) / 20.0;
        let at = |from: i32, control: f64, to: i32| {
            f64::from(from) * (1.0 - part).powi(2)
                + 2.0 * control * part * (1.0 - part)
                + f64::from(to) * part.powi(2)
        };
        let (x, y) = (at(from.0, control.0, to.0), at(from.1, control.1, to.1));
        others
            .iter()
            .any(|rank| (x - f64::from(rank.0)).hypot(y - f64::from(rank.1)) < f64::from(RANK_RADIUS))
    };
    (1..20).filter(is_hidden).count()
}

/// The point at a distance from `from` on the way to `to`.
fn toward(from: (i32, i32), to: (f64, f64), distance: f64) -> (i32, i32) {
    let (x, y) = (to.0 - f64::from(from.0), to.1 - f64::from(from.1));
    let length = x.hypot(y).max(1.0);
    let along = |from: i32, component: f64| from + (component * distance / length).round() as i32;
    (along(from.0, x), along(from.1, y))
}

/// Circles with the numbers of ranks; the root is filled.
fn ranks_of(planned: &Planned, layout: &Layout) -> Group {
    let mut group = Group::new().set("text-anchor", "middle").set("font-size", 11);
    for (rank, &(x, y)) in (0..).map(Rank).zip(&layout.ranks) {
        let is_root = rank == planned.tree.root();
        let (fill, ink) = if is_root { ("#333333", "white") } else { ("white", "#111111") };
        let circle = Circle::new().set("cx", x).set("cy", y).set("r", RANK_RADIUS);
        let number = label(rank.to_string(), x, y + 4).set("fill", ink);
        group = group.add(circle.set("fill", fill).set("stroke", "#333333")).add(number);
    }
    group
}

/// The words below the picture, in lines of this width, and their height.
fn caption(planned: &Planned, layout: &Layout, width: f64) -> (Group, i32) {
    let top = layout.height;
    let report = Report::new(planned);
    let pairs = report.contending_pairs;
    let mut sentences = vec![
        format!("Height {}, most children {}, contending pairs {pairs}.", report.height, report.degree),
        "A circle is a rank, filled the root; an arrow is what a rank sends to one of its children."
            .to_owned(),
    ];
    if pairs > 0 {
        sentences.push("Orange arrows share a link with one of another sender.".to_owned());
    }
    if layout.switches.iter().any(|(switch, _)| above(planned, layout, *switch).is_some()) {
        sentences.push(HOW_OFTEN.to_owned());
    }
    let heading = words::lines(&report.heading(), FONT * BOLD, width);
    let lines = words::lines(&sentences.join(" "), FONT, width);
    let mut group = Group::new();
    for (at, line) in (1..).zip(&heading) {
        group = group.add(label(line.clone(), MARGIN, top + at * LINE - 8).set("font-weight", "bold"));
    }
    for (at, line) in (heading.len() as i32 + 1..).zip(&lines) {
        group = group.add(label(line.clone(), MARGIN, top + at * LINE - 6));
    }
    (group, (heading.len() + lines.len()) as i32 * LINE + LINE)
}

const HOW_OFTEN: &str =
    "↓3 ↑0: the link above a switch carries each segment three times down to it, and never up.";
/// The width of bold letters, relative to plain ones.
const BOLD: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The highest point of a curve that begins and ends at the same height.
    fn peak(data: &Data) -> f64 {
        let text = svg::node::Value::from(data.clone()).to_string();
        let numbers: Vec<f64> = text
            .split(|c: char| !c.is_ascii_digit() && c != '-' && c != '.')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, start, _, control, _, end] = numbers[..] else { panic!("{text}") };
        (start + 2.0 * control + end) / 4.0
    }

    #[test]
    fn arrows_pass_over_the_circles_between_and_lie_apart() {
        let ranks: Vec<(i32, i32)> = (0..5).map(|rank| (100 + 30 * rank, 200)).collect();
        let peaks: Vec<f64> = (1..5).map(|to| peak(&arrow(ranks[0], ranks[to], &ranks))).collect();
        let clear = f64::from(200 - RANK_RADIUS);
        assert!(peaks[1..].iter().all(|peak| *peak < clear), "{peaks:?}");
        assert!(peaks.windows(2).all(|two| two[1] < two[0] - 1.0), "{peaks:?}");
    }
}
