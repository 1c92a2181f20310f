//! How curves are told from each other.

use svg::node::element::Path;
use svg::node::element::path::Data;

use super::{Curve, Look};
use crate::picture::colour::Colour;

const GREY: Colour = Colour(110, 110, 110);

/// Lengths of dashes and gaps in pixels; none for whole lines.
const DASHES: [Option<&str>; 4] = [None, Some("10 4"), Some("4 3"), Some("2 4")];

/// Outlines of marks around their middle. Their number and that of the dashes have no common factor.
const MARKS: [&[(f64, f64)]; 5] = [
    &[(-2.0, -4.0), (2.0, -4.0), (4.0, -2.0), (4.0, 2.0), (2.0, 4.0), (-2.0, 4.0), (-4.0, 2.0), (-4.0, -2.0)],
    &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
    &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
    &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
    &[(-5.0, -4.0), (5.0, -4.0), (0.0, 5.0)],
];

/// The style of a curve: its colour, dashes and marks, so that it stays visible where another curve
/// lies on it, and without colours.
pub(super) struct Style {
    pub(super) colour: Colour,
    pub(super) dash: Option<&'static str>,
    pub(super) mark: Option<&'static [(f64, f64)]>,
}

/// Chooses the styles of a chart's curves. A curve has the colour of its subject; of several curves
/// about the same subject the later ones have other shades.
pub(super) fn all(curves: &[Curve]) -> Vec<Style> {
    let colour = |curve: &Curve| Colour::of(&curve.about);
    let of = |(index, curve): (usize, &Curve)| match curve.look {
        Look::Reference => Style { colour: GREY, dash: Some("7 5"), mark: None },
        Look::Published => Style { colour: colour(curve), dash: Some("1 5"), mark: Some(MARKS[0]) },
        Look::Measured | Look::Scattered => {
            let alike = |other: &&Curve| other.look == curve.look && colour(other) == colour(curve);
            Style {
                colour: colour(curve).of_several(curves[..index].iter().filter(alike).count()),
                dash: DASHES[index % DASHES.len()],
                mark: Some(MARKS[index % MARKS.len()]),
            }
        }
    };
    curves.iter().enumerate().map(of).collect()
}

impl Style {
    /// The line with its dashes.
    pub(super) fn dashed(&self, path: Path) -> Path {
        match self.dash {
            Some(dash) => path.set("stroke-dasharray", dash).set("stroke-linecap", "butt"),
            None => path,
        }
    }
}

/// A mark at its place.
pub(super) fn outline(mark: &[(f64, f64)], (x, y): (f64, f64)) -> Data {
    let mut data = Data::new();
    for (index, (across, down)) in mark.iter().enumerate() {
        let at = (super::draw::rounded(x + across), super::draw::rounded(y + down));
        data = if index == 0 { data.move_to(at) } else { data.line_to(at) };
    }
    data.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::type_complexity, reason = "colour, dashes and mark of each, to be compared")]
    fn looks(names: &[String]) -> Vec<(Colour, Option<&'static str>, Option<&'static [(f64, f64)]>)> {
        let curves: Vec<Curve> = names.iter().map(|name| Curve::measured(name.clone(), Vec::new())).collect();
        all(&curves).into_iter().map(|Style { colour, dash, mark }| (colour, dash, mark)).collect()
    }

    #[test]
    fn curves_all_look_different_even_of_one_algorithm() {
        let names: Vec<String> = (0..40).map(|number| format!("chain:segment={number}KiB")).collect();
        let looks = looks(&names);
        for (at, look) in looks.iter().enumerate() {
            assert!(!looks[..at].contains(look), "{at}");
        }
    }

    #[test]
    fn an_algorithm_has_its_colour_wherever_it_stands() {
        let alone = looks(&["stock".to_owned()]);
        let last = looks(&["polycast".to_owned(), "binomial".to_owned(), "stock".to_owned()]);
        assert_eq!(alone[0].0, last[2].0);
    }
}
