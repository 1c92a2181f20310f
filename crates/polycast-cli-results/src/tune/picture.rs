//! The map as SVG: for each collective sizes by shapes, a colour for each algorithm, the deeper the more it gains.

use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};

use polycast_core::units::Bytes;

use super::map::{Map, OfCollective, algorithm, column, gain, sizes};
use crate::picture::colour::Colour;
use crate::picture::words;
use crate::terminal::nanoseconds;

const MARGIN: f64 = 16.0;
const LEFT: f64 = 90.0;
const HEIGHT: f64 = 26.0;
const FONT: f64 = 12.0;
const TITLE: f64 = 16.0;
/// The gain over the MPI from which on a cell is no deeper in colour.
const DEEPEST: f64 = 4.0;
/// The least width of the picture, so that its words have room.
const LEAST_WIDTH: f64 = 560.0;
const HOW: &str = "In a cell: what is fastest for messages of this size, its median time, and how many times as fast as stock, the MPI's own, it is: \
                   the deeper the colour. ?: the best two are not apart.";

/// Draws the map; `notes` stand under its title.
pub fn svg(map: &Map, notes: &[String]) -> String {
    let cells = || map.collectives.iter().flat_map(|one| &one.shapes);
    let texts = cells().flat_map(|(_, sizes)| sizes.iter().map(text));
    let texts = texts.chain(cells().map(|(shape, _)| column(shape)));
    let wide = texts.map(|text| words::width(&text, FONT) + 12.0).fold(110.0, f64::max);
    let columns = map.collectives.iter().map(|one| one.shapes.len()).max().unwrap_or(0);
    let width = (LEFT + columns as f64 * wide + MARGIN).max(LEAST_WIDTH);
    let mut body = Group::new();
    let mut y = MARGIN + TITLE;
    body = body.add(said("What polycast tune found", MARGIN, y).set("font-size", TITLE));
    let lines = notes.iter().map(|note| &note[..]).chain([HOW]);
    for line in lines.flat_map(|line| words::lines(line, FONT, width - 2.0 * MARGIN)) {
        y += FONT * 1.5;
        body = body.add(said(&line, MARGIN, y).set("fill", "#5d6873"));
    }
    y += 12.0;
    for one in &map.collectives {
        let (drawn, end) = collective(one, wide, y);
        body = body.add(drawn);
        y = end;
    }
    let (key, height) = key(map, width, y);
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", FONT)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"));
    format!("{}\n", document.add(body).add(key))
}

/// Draws a collective from the height `top` on; also returns the height at which the drawing ends.
fn collective(one: &OfCollective, wide: f64, top: f64) -> (Group, f64) {
    let mut group = Group::new().add(said(one.name, MARGIN, top + 12.0).set("font-weight", "bold"));
    group = group.add(said("message", MARGIN, top + 28.0).set("fill", "#5d6873"));
    for (place, (shape, _)) in one.shapes.iter().enumerate() {
        group = group.add(said(&column(shape), LEFT + place as f64 * wide, top + 28.0));
    }
    let sizes = sizes(&one.shapes);
    for (row, bytes) in sizes.iter().enumerate() {
        let y = top + 36.0 + row as f64 * HEIGHT;
        group = group.add(said(&Bytes(*bytes).to_string(), MARGIN, y + 17.0));
        for (place, (_, of_shape)) in one.shapes.iter().enumerate() {
            let Some(size) = of_shape.iter().find(|size| size.bytes == *bytes) else { continue };
            let x = LEFT + place as f64 * wide;
            let gain = gain(&size.found).unwrap_or(1.0).clamp(1.0, DEEPEST);
            let depth = 0.25 + 0.6 * (gain - 1.0) / (DEEPEST - 1.0);
            let cell = Rectangle::new()
                .set("x", x)
                .set("y", y)
                .set("width", wide - 2.0)
                .set("height", HEIGHT - 2.0)
                .set("fill", Colour::of(&algorithm(size.found.best)).to_string())
                .set("fill-opacity", (depth * 100.0).round() / 100.0);
            let time = time(size).unwrap_or_default();
            let told = Title::new(format!("{}: {time}", size.found.best));
            group = group.add(cell.add(told)).add(said(&text(size), x + 5.0, y + 16.0));
        }
    }
    (group, top + 52.0 + sizes.len() as f64 * HEIGHT)
}

fn time(size: &super::Size) -> Option<String> {
    size.found.time.map(|time| nanoseconds(time.median_us * 1e3))
}

/// Returns the words in a cell: the algorithm, its time and its gain; `?` if intervals do not
/// separate the best two.
fn text(size: &super::Size) -> String {
    let time = time(size).map_or_else(String::new, |time| format!(" {time}"));
    let gain = gain(&size.found).map_or_else(String::new, |gain| format!(", {gain:.2} ×"));
    let doubt = if size.found.separates { "" } else { " ?" };
    format!("{}{time}{gain}{doubt}", algorithm(size.found.best))
}

/// Draws the key to the algorithms' colours from the height `top` on; also returns the height at
/// which it ends.
fn key(map: &Map, width: f64, top: f64) -> (Group, f64) {
    let mut names: Vec<String> = Vec::new();
    let of_cells = map.collectives.iter().flat_map(|one| &one.shapes).flat_map(|(_, sizes)| sizes);
    for name in of_cells.map(|size| algorithm(size.found.best)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (mut x, mut y, mut group) = (MARGIN, top, Group::new());
    for name in &names {
        let wide = 20.0 + words::width(name, FONT) + 14.0;
        if x > MARGIN && x + wide > width - MARGIN {
            (x, y) = (MARGIN, y + HEIGHT);
        }
        let square = Rectangle::new().set("x", x).set("y", y).set("width", 14).set("height", 14);
        let square = square.set("fill", Colour::of(name).to_string()).set("fill-opacity", 0.85);
        group = group.add(square).add(said(name, x + 20.0, y + 12.0));
        x += wide;
    }
    (group, y + HEIGHT + MARGIN / 2.0)
}

fn said(text: &str, x: f64, y: f64) -> Text {
    Text::new(text).set("x", x).set("y", y)
}
