//! A tree over the switches as SVG: switches are boxes with their hosts and ranks inside, messages are arrows.

mod layout;

use polycast_core::topology::Edge;
use polycast_core::units::Rank;
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Definitions, Group, Line, Marker, Path, Rectangle, Text, Title};

use super::Planned;
use super::report::Report;
use layout::{Frame, Layout, RANK_RADIUS, layout};

/// More could not be told apart on any screen.
const MAX_RANKS: u32 = 4096;

/// Blue and vermillion of Okabe and Ito: people with any colour vision tell them apart.
const QUIET: &str = "#0072b2";
const DISTURBED: &str = "#d55e00";
const CAPTION_HEIGHT: i32 = 64;

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
    let height = layout.height + CAPTION_HEIGHT;
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 13)
        .add(Definitions::new().add(arrowhead("quiet", QUIET)).add(arrowhead("disturbed", DISTURBED)))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(links(planned, &layout))
        .add(boxes(&layout))
        .add(messages(planned, &layout))
        .add(ranks_of(planned, &layout))
        .add(names(planned, &layout))
        .add(caption(planned, layout.height));
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

/// Down to a switch, and up from it.
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
        let path = arrow(layout.ranks[from.index()], layout.ranks[to.index()]);
        let arrow = Path::new().set("d", path).set("stroke", colour).set("marker-end", head);
        group = group.add(arrow.add(Title::new(format!("{from} → {to}"))));
    }
    group
}

fn arrow(from: (i32, i32), to: (i32, i32)) -> Data {
    let (x, y) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let bend = 0.16;
    let control = (f64::from(from.0) + x / 2.0 + y * bend, f64::from(from.1) + y / 2.0 - x * bend);
    let start = toward(from, control, f64::from(RANK_RADIUS));
    let end = toward(to, control, f64::from(RANK_RADIUS) + 2.0);
    let control = (control.0.round() as i32, control.1.round() as i32);
    Data::new().move_to(start).quadratic_curve_to((control, end))
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

fn caption(planned: &Planned, top: i32) -> Group {
    let report = Report::new(planned);
    let heading = label(report.heading(), 30, top + 10).set("font-weight", "bold");
    let pairs = report.contending_pairs;
    let numbers =
        format!("height {}, most children {}, contending pairs {pairs}", report.height, report.degree);
    let colours = "; orange messages share a link with one of another sender";
    let numbers = if pairs > 0 { numbers + colours } else { numbers };
    Group::new().add(heading).add(label(numbers, 30, top + 32))
}
