//! A chart as SVG.
//!
//! ```text
//!     title
//!     notes: what it was measured with
//!     ┌───────────────┐
//!   y │          ╱────┼── name of a curve, in the order in which they end
//!     │     ____╱     │
//!     └───────────────┘
//!             x
//! ```

use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Group, Line, Path, Rectangle, Text, Title};

use super::axis::Ticked;
use super::style::{self, Style};
use super::{Chart, Curve, Look, Point, legend};
use crate::picture::words;

const WIDTH: f64 = 960.0;
/// The height of the plot with its axes.
const HEIGHT: f64 = 510.0;
const MARGIN: f64 = 14.0;
const TITLE: f64 = 18.0;
const NOTE: f64 = 12.0;
pub(super) const FONT: f64 = 14.0;
/// The distance from one line of text to the next, as a multiple of the font's size.
const LINE: f64 = 1.4;
/// The height below the plot, for numbers and the axis's name.
const BELOW: f64 = 56.0;
/// The distance between the frame and the first and last point, so that no interval lies on an
/// axis.
const INSET: f64 = 16.0;

const INK: &str = "#1c2126";
const FAINT: &str = "#5d6873";

/// The place of the plot, and the way from values to it.
pub(super) struct Frame<'a> {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    x: &'a Ticked,
    y: &'a Ticked,
}

impl Frame<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        let (from, to) = (self.left + INSET, self.right - INSET);
        from + self.x.part(value) * (to - from)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.part(value) * (self.bottom - self.top)
    }

    /// Returns the place of an interval's end, and whether the end lies beyond the axis.
    fn end(&self, value: f64) -> (f64, bool) {
        let y = self.y(value);
        (y.clamp(self.top, self.bottom), y < self.top - 0.5 || y > self.bottom + 0.5)
    }
}

/// Draws a chart whose points are on its axes, at least one of them.
pub(super) fn svg(chart: &Chart) -> String {
    let styles = style::all(&chart.curves);
    let points = || chart.curves.iter().flat_map(|curve| &curve.points);
    let x = chart.x.around(points().map(|point| point.x), std::iter::empty());
    let ends = points().filter_map(|point| point.interval).flat_map(|(low, high)| [low, high]);
    let y = chart.y.around(points().map(|point| point.y), ends);
    let title = words::lines(&chart.title, TITLE, WIDTH - 2.0 * MARGIN);
    let fit = |note: &String| words::lines(note, NOTE, WIDTH - 2.0 * MARGIN);
    let mut notes: Vec<String> = chart.notes.iter().flat_map(fit).collect();
    notes.extend(what_marks_mean(chart));
    let top = MARGIN + title.len() as f64 * TITLE * LINE + notes.len() as f64 * NOTE * LINE + 10.0;
    let height = top + HEIGHT - BELOW;
    let widest = y.labels().map(|label| words::width(&label, FONT)).fold(0.0, f64::max);
    let frame = Frame {
        left: MARGIN + FONT * LINE + widest + 8.0,
        right: WIDTH - legend::width(&chart.curves, WIDTH / 2.0),
        top,
        bottom: height - BELOW,
        x: &x,
        y: &y,
    };
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", FONT)
        .set("fill", INK)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(heading(&title, &notes))
        .add(axes(chart, &frame));
    for (index, (curve, style)) in chart.curves.iter().zip(&styles).enumerate() {
        let shift = shift(index, chart.curves.len());
        document = document.add(drawn(chart, curve, style, &frame, shift));
    }
    format!("{}\n", document.add(legend::drawn(&chart.curves, &styles, &frame, WIDTH, height)))
}

fn heading(title: &[String], notes: &[String]) -> Group {
    let mut y = MARGIN;
    let mut group = Group::new();
    for line in title {
        y += TITLE * LINE;
        group = group.add(text(line, MARGIN, y - 6.0).set("font-size", TITLE));
    }
    for line in notes {
        y += NOTE * LINE;
        group = group.add(text(line, MARGIN, y - 4.0).set("font-size", NOTE).set("fill", FAINT));
    }
    group
}

/// Returns the line that explains hollow marks, if the chart has any.
fn what_marks_mean(chart: &Chart) -> Option<String> {
    let points = || chart.curves.iter().flat_map(|curve| &curve.points);
    let said = [
        (
            points().any(|point| point.doubt == Some('?')),
            "?: more than the place can show, or not known well",
        ),
        (points().any(|point| point.doubt == Some('!')), "!: with a remark in the table"),
    ];
    let said: Vec<&str> = said.iter().filter(|(is_there, _)| *is_there).map(|(_, said)| *said).collect();
    (!said.is_empty()).then(|| format!("Hollow: {}.", said.join("; ")))
}

fn text(content: &str, x: f64, y: f64) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

/// Tenths of a pixel are enough.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

pub(super) fn line(from: (f64, f64), to: (f64, f64)) -> Line {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(rounded);
    Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2)
}

fn axes(chart: &Chart, frame: &Frame) -> Group {
    let &Frame { left, right, top, bottom, .. } = frame;
    let mut lines = Group::new().set("stroke", "#e0e0e0");
    let mut numbers = Group::new();
    for (value, label) in frame.x.labelled() {
        let x = frame.x(value);
        lines = lines.add(line((x, top), (x, bottom)));
        numbers = numbers.add(text(&label, x, bottom + 20.0).set("text-anchor", "middle"));
    }
    for (value, label) in frame.y.labelled() {
        let y = frame.y(value);
        lines = lines.add(line((left, y), (right, y)));
        numbers = numbers.add(text(&label, left - 8.0, y + 5.0).set("text-anchor", "end"));
    }
    let (middle, x) = ((top + bottom) / 2.0, MARGIN + FONT);
    let up = text(chart.y.label(), x, middle).set("text-anchor", "middle");
    let across = text(chart.x.label(), (left + right) / 2.0, bottom + 44.0).set("text-anchor", "middle");
    Group::new()
        .add(lines)
        .add(line((left, bottom), (right, bottom)).set("stroke", INK))
        .add(line((left, top), (left, bottom)).set("stroke", INK))
        .add(numbers)
        .add(across)
        .add(up.set("transform", format!("rotate(-90 {} {})", rounded(x), rounded(middle))))
}

/// `shift`: of the error bars to the right, in pixels, so that those of several curves do not lie on each other.
fn drawn(chart: &Chart, curve: &Curve, style: &Style, frame: &Frame, shift: f64) -> Group {
    let mut group =
        Group::new().set("stroke", style.colour.to_string()).set("fill", style.colour.to_string());
    let mut way = Data::new();
    for (index, point) in curve.points.iter().enumerate() {
        let at = (rounded(frame.x(point.x)), rounded(frame.y(point.y)));
        way = if index == 0 { way.move_to(at) } else { way.line_to(at) };
    }
    if curve.look != Look::Scattered && curve.points.len() > 1 {
        let path = Path::new().set("d", way).set("fill", "none").set("stroke-width", 2);
        group = group.add(style.dashed(path));
    }
    for point in &curve.points {
        group = group.add(interval(point, frame, shift));
    }
    let Some(mark) = style.mark else { return group };
    for point in &curve.points {
        let at = (frame.x(point.x), frame.y(point.y));
        let is_hollow = point.doubt.is_some() || curve.look == Look::Published;
        let fill = if is_hollow { "white".to_owned() } else { style.colour.to_string() };
        let drawn = Path::new().set("d", style::outline(mark, at)).set("fill", fill);
        group = group.add(drawn.add(Title::new(told(chart, curve, point))));
        if let Some(doubt) = point.doubt {
            let sign = text(&doubt.to_string(), at.0 + 6.0, at.1 - 6.0);
            group = group.add(sign.set("stroke", "none"));
        }
    }
    group
}

/// Returns the words that appear when a pointer is on a point.
fn told(chart: &Chart, curve: &Curve, point: &Point) -> String {
    let (x, y) = (chart.x.shown(point.x), chart.y.shown(point.y));
    let interval = point.interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", chart.y.shown(low), chart.y.shown(high))
    });
    format!("{}, {x}: {y}{interval}", curve.name)
}

fn interval(point: &Point, frame: &Frame, shift: f64) -> Group {
    let group = Group::new().set("stroke-width", 1);
    let Some((low, high)) = point.interval else { return group };
    let x = frame.x(point.x) + shift;
    let ends = [frame.end(low), frame.end(high)];
    let mut group = group.add(line((x, ends[0].0), (x, ends[1].0)));
    for ((y, goes_on), down) in ends.into_iter().zip([-1.0, 1.0]) {
        // A cap, or the head of an arrow where the interval leaves the plot.
        let back = if goes_on { y + 7.0 * down } else { y };
        group = group.add(line((x - 4.0, back), (x, y))).add(line((x, y), (x + 4.0, back)));
    }
    group
}

/// Shifts of error bars around their points, at most so far to either side.
fn shift(index: usize, curves: usize) -> f64 {
    const FARTHEST: i32 = 12;
    if curves < 2 {
        return 0.0;
    }
    let step = (2 * FARTHEST / (curves as i32 - 1)).min(5);
    f64::from(step * index as i32 - step * (curves as i32 - 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bars_of_few_curves_stand_beside_each_other() {
        assert_eq!([shift(0, 1), shift(0, 2), shift(1, 2)], [0.0, -2.0, 3.0]);
        assert!((0..100).all(|index| shift(index, 100).abs() <= 12.0));
    }
}
