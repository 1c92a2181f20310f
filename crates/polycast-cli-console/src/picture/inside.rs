//! Whether a picture shows all that it says: for tests.

use std::collections::HashMap;

use svg::node::element::tag::Type;
use svg::parser::Event;

use super::words;

/// The texts of an SVG that reach beyond its view box, by generous widths of characters.
pub fn cut_off(document: &str) -> Vec<String> {
    let mut of_groups: Vec<HashMap<String, String>> = vec![HashMap::new()];
    let (mut width, mut height) = (f64::NAN, f64::NAN);
    let (mut at, mut found) = (None, Vec::new());
    for event in svg::read(document).expect("an SVG") {
        match event {
            Event::Tag(name, kind, attributes) => {
                let own = attributes.iter().map(|(key, value)| (key.clone(), value.to_string()));
                let mut all = of_groups.last().cloned().unwrap_or_default();
                all.extend(own);
                if name == "svg" && kind == Type::Start {
                    let numbers: Vec<f64> =
                        all["viewBox"].split([' ', ',']).filter_map(|number| number.parse().ok()).collect();
                    (width, height) = (numbers[2], numbers[3]);
                }
                if name == "text" && kind == Type::Start {
                    at = Some(all.clone());
                }
                match kind {
                    Type::Start => of_groups.push(all),
                    Type::End => drop(of_groups.pop()),
                    Type::Empty => {}
                }
            }
            Event::Text(text) if !text.trim().is_empty() => {
                let Some(attributes) = at.take() else { continue };
                let number = |key: &str, otherwise: f64| {
                    attributes.get(key).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
                };
                let (x, y, font) = (number("x", 0.0), number("y", 0.0), number("font-size", 16.0));
                let text = text.trim().replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
                let long = words::width(&text, font);
                let (from, to) = match attributes.get("text-anchor").map(String::as_str) {
                    Some("middle") => (-long / 2.0, long / 2.0),
                    Some("end") => (-long, 0.0),
                    _ => (0.0, long),
                };
                // Turned by a quarter around its own place, or not at all.
                let is_turned = attributes.contains_key("transform");
                let (left, right) = if is_turned { (x - font, x) } else { (x + from, x + to) };
                let (top, bottom) = if is_turned { (y - to, y - from) } else { (y - font, y) };
                if left < 0.0 || right > width || top < 0.0 || bottom > height {
                    found.push(format!("{text} at {x},{y} of {width},{height}"));
                }
            }
            _ => {}
        }
    }
    assert!(width > 0.0 && height > 0.0, "no view box");
    found
}

#[test]
fn what_is_cut_off_is_found() {
    let svg = |x: u32, anchor: &str| {
        format!(
            "<svg viewBox=\"0 0 100 20\"><g font-size=\"10\" text-anchor=\"{anchor}\"><text x=\"{x}\" y=\"12\">words</text></g></svg>"
        )
    };
    assert!(cut_off(&svg(60, "start")).is_empty() && cut_off(&svg(90, "end")).is_empty());
    assert_eq!(cut_off(&svg(80, "start")).len(), 1);
    assert_eq!(cut_off(&svg(20, "end")).len(), 1);
}
