//! Names of curves at their ends: in the order in which the curves leave the plot, so that each is found at its name.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Curve;
use super::draw::{Area, CHARACTER_WIDTH, FONT, FONT_SIZE, Failure, HEIGHT, Style};

/// From one name to the next, where they would be nearer.
const LINE: i32 = 20;
/// Room of the sample of a curve, and of what leads there from the curve's end.
const SAMPLE: i32 = 36;
const LEAD: i32 = 22;
/// Above the first name and below the last one.
const MARGIN: i32 = 20;

/// The room that the names need beside the plot.
pub(super) fn width(curves: &[Curve], most: u32) -> u32 {
    let longest = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
    (longest as u32 * CHARACTER_WIDTH + (SAMPLE + LEAD) as u32 + 20).min(most)
}

/// `ends`: for each curve the height at which it ends, in pixels from above; none for one without points.
pub(super) fn draw<'a>(area: &Area<'a>, curves: &[Curve], ends: &[Option<i32>]) -> Result<(), Failure<'a>> {
    let text = TextStyle::from((FONT, FONT_SIZE)).pos(Pos::new(HPos::Left, VPos::Center));
    let present: Vec<(usize, i32)> =
        ends.iter().enumerate().filter_map(|(index, end)| Some((index, (*end)?))).collect();
    let heights: Vec<i32> = present.iter().map(|(_, end)| *end).collect();
    let places = places(&heights, LINE, MARGIN, HEIGHT as i32 - MARGIN);
    for (&(index, end), place) in present.iter().zip(places) {
        let (curve, style) = (&curves[index], Style::of(&curves[index], index));
        area.draw(&PathElement::new(vec![(0, end), (LEAD, place)], style.colour.mix(0.5).stroke_width(1)))?;
        let ends = [(LEAD, place), (LEAD + SAMPLE, place)];
        match style.dash {
            None => area.draw(&PathElement::new(ends.to_vec(), style.line()))?,
            Some((length, gap)) => area.draw(&DashedPathElement::new(ends, length, gap, style.line()))?,
        }
        if let Some(mark) = style.mark {
            let mark = Polygon::new(mark, style.colour.filled());
            area.draw(&(EmptyElement::at((LEAD + SAMPLE / 2, place)) + mark))?;
        }
        area.draw(&Text::new(curve.name.clone(), (LEAD + SAMPLE + 6, place), text.clone()))?;
    }
    Ok(())
}

/// Heights for labels that want to be at `wanted`, in the same order from above, not nearer than `line` to each other
/// unless there is no room, and between `top` and `bottom`.
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
