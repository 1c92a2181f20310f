//! Names of curves at their ends: in the order in which the curves leave the plot, so that each is found at its name.

use svg::node::element::{Group, Path, Text, Title};

use super::Curve;
use super::draw::{FONT, Frame, line};
use super::style::{Style, outline};
use crate::picture::words;

/// The least distance from one name to the next.
const LINE: i32 = 20;
/// The room for the sample of a curve, and for the line that leads there from the curve's end.
const SAMPLE: f64 = 36.0;
const LEAD: f64 = 22.0;
/// The distance above the first name and below the last one.
const MARGIN: i32 = 20;

/// The room that the names need beside the plot.
pub(super) fn width(curves: &[Curve], most: f64) -> f64 {
    let longest = curves.iter().map(|curve| words::width(&curve.name, FONT)).fold(0.0, f64::max);
    (longest + SAMPLE + LEAD + 20.0).min(most)
}

/// Draws the names of the curves that have points, beside the plot.
pub(super) fn drawn(curves: &[Curve], styles: &[Style], frame: &Frame<'_>, width: f64, height: f64) -> Group {
    let last = |curve: &Curve| curve.points.iter().max_by(|a, b| a.x.total_cmp(&b.x)).copied();
    let present: Vec<(usize, f64)> = curves
        .iter()
        .enumerate()
        .filter_map(|(index, curve)| Some((index, frame.y(last(curve)?.y).clamp(frame.top, frame.bottom))))
        .collect();
    let heights: Vec<i32> = present.iter().map(|(_, end)| end.round() as i32).collect();
    let top = frame.top as i32 + MARGIN / 2;
    let places = places(&heights, LINE, top, height as i32 - MARGIN);
    let mut group = Group::new();
    for (&(index, end), place) in present.iter().zip(places) {
        let (curve, style, place) = (&curves[index], &styles[index], f64::from(place));
        let from = frame.right + LEAD;
        let lead = line((frame.right, end), (from, place)).set("stroke-opacity", 0.5);
        let sample = Path::new().set("d", format!("M{from},{place} h{SAMPLE}")).set("stroke-width", 2);
        let mut drawn = Group::new()
            .set("stroke", style.colour.to_string())
            .set("fill", style.colour.to_string())
            .add(lead)
            .add(style.dashed(sample));
        if let Some(mark) = style.mark {
            drawn = drawn.add(Path::new().set("d", outline(mark, (from + SAMPLE / 2.0, place))));
        }
        let x = from + SAMPLE + 6.0;
        let mut short = curve.name.clone();
        while words::width(&short, FONT) > width - x && short.pop().is_some() {}
        let name = if short.len() < curve.name.len() {
            short.pop();
            short + "…"
        } else {
            short
        };
        let name = Text::new(name).set("x", x).set("y", place + 5.0).add(Title::new(curve.name.clone()));
        group = group.add(drawn).add(name);
    }
    group
}

/// Returns heights for labels that want to be at `wanted`, in the same order from above, not nearer
/// than `line` to each other unless there is no room, and between `top` and `bottom`.
fn places(wanted: &[i32], line: i32, top: i32, bottom: i32) -> Vec<i32> {
    let steps = wanted.len().saturating_sub(1).max(1) as i32;
    let line = line.min((bottom - top) / steps);
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|index| wanted[*index]);
    let mut places = vec![0; wanted.len()];
    let mut least = top;
    for &index in &order {
        places[index] = wanted[index].max(least);
        least = places[index] + line;
    }
    // What was pushed out below moves up again, and what is above it makes room.
    let mut most = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - line;
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_stay_where_there_is_room() {
        assert_eq!(places(&[100, 300, 200], 20, 0, 500), [100, 300, 200]);
        assert_eq!(places(&[100, 105, 110], 20, 0, 500), [100, 120, 140]);
        assert_eq!(places(&[495, 500], 20, 0, 500), [480, 500]);
        assert!(places(&[], 20, 0, 500).is_empty());
    }

    proptest! {
        #[test]
        fn labels_keep_the_order_of_the_ends_and_their_distance(
            wanted in proptest::collection::vec(0i32..540, 0..60),
        ) {
            let found = places(&wanted, 20, 20, 520);
            let line = 20.min(500 / (wanted.len() as i32 - 1).max(1));
            prop_assert!(found.iter().all(|place| (20..=520).contains(place)), "{found:?}");
            for (a, b) in (0..wanted.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                prop_assert!((found[a] - found[b]).abs() >= line, "{found:?}");
                if wanted[a] < wanted[b] {
                    prop_assert!(found[a] < found[b], "{wanted:?} {found:?}");
                }
            }
        }
    }
}
