//! The map as SVG: for each collective sizes by shapes, a colour for each algorithm, the deeper the more it gains.

use polycast_core::policy::Choice;
use polycast_core::units::Bytes;

use super::map::{Map, OfCollective, algorithm, column, gain, sizes};
use crate::terminal::nanoseconds;

/// Okabe and Ito's colours, which people with any colour vision tell apart.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31"];
const STOCK: &str = "#999999";
const LEFT: usize = 90;
const WIDTH: usize = 150;
const HEIGHT: usize = 26;
const GAP: usize = 16;
/// Names beside each other in the legend.
const NAMES: usize = 3;
/// What gains so many times is as deep as it gets.
const DEEPEST: f64 = 4.0;

/// Draws it. Names of algorithms and shapes have no character that SVG would take for its own.
pub fn svg(map: &Map) -> String {
    let mut names: Vec<String> = Vec::new();
    let of_cells = map.collectives.iter().flat_map(|one| &one.shapes).flat_map(|(_, sizes)| sizes);
    for name in of_cells.map(|size| algorithm(size.found.best)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let columns = map.collectives.iter().map(|one| one.shapes.len()).max().unwrap_or(0);
    let (mut y, mut body) = (GAP, String::new());
    for one in &map.collectives {
        y = collective(one, &names, y, &mut body);
    }
    for (place, name) in names.iter().enumerate() {
        let (x, line) = (GAP + place % NAMES * WIDTH, y + place / NAMES * HEIGHT);
        cell([x, line, 14, 14], colour(name, &names), 100, name, &mut body);
        words(x + 20, line + 12, name, &mut body);
    }
    let width = LEFT + columns.max(NAMES) * WIDTH + GAP;
    let height = y + names.len().div_ceil(NAMES) * HEIGHT + GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// From there on; where it ends.
fn collective(one: &OfCollective, names: &[String], top: usize, body: &mut String) -> usize {
    words(GAP, top + 12, one.name, body);
    for (place, (shape, _)) in one.shapes.iter().enumerate() {
        words(LEFT + place * WIDTH, top + 12, &column(shape), body);
    }
    let sizes = sizes(&one.shapes);
    for (row, bytes) in sizes.iter().enumerate() {
        let y = top + GAP + 4 + row * HEIGHT;
        words(GAP, y + 17, &Bytes(*bytes).to_string(), body);
        for (place, (_, of_shape)) in one.shapes.iter().enumerate() {
            let Some(size) = of_shape.iter().find(|size| size.bytes == *bytes) else { continue };
            let (x, gain) = (LEFT + place * WIDTH, gain(&size.found));
            let name = algorithm(size.found.best);
            let depth = 25.0 + 60.0 * (gain.unwrap_or(1.0).clamp(1.0, DEEPEST) - 1.0) / (DEEPEST - 1.0);
            let time = size.found.time.map_or_else(String::new, |time| nanoseconds(time.median_us * 1e3));
            let title = format!("{}: {time}", size.found.best);
            cell([x, y, WIDTH - 2, HEIGHT - 2], colour(&name, names), depth as u32, &title, body);
            let gain = gain.map_or_else(String::new, |gain| format!(" {gain:.2} ×"));
            let doubt = if size.found.separates { "" } else { " ?" };
            words(x + 5, y + 16, &format!("{name}{gain}{doubt}"), body);
        }
    }
    top + 2 * GAP + 8 + sizes.len() * HEIGHT
}

fn cell([x, y, width, height]: [usize; 4], colour: &str, percent: u32, title: &str, body: &mut String) {
    *body += &format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\" fill-opacity=\"{percent}%\">\
         <title>{title}</title></rect>\n"
    );
}

fn words(x: usize, y: usize, text: &str, body: &mut String) {
    *body += &format!("<text x=\"{x}\" y=\"{y}\">{text}</text>\n");
}

fn colour(name: &str, names: &[String]) -> &'static str {
    let stock = Choice::Stock.to_string();
    let place = names.iter().filter(|one| **one != stock).position(|one| one == name);
    place.map_or(STOCK, |place| COLOURS[place % COLOURS.len()])
}
