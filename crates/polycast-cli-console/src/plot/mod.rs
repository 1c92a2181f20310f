//! Line charts as SVG: curves over linear or logarithmic axes, error bars, a legend beside them.
//!
//! A [`Chart`] is data; [`Chart::to_svg`] is the only thing that can be done with it:
//!
//! ```text
//! let mut chart = Chart::new("Broadcast to 32 ranks", Axis::bytes("message"), Axis::nanoseconds("time"));
//! chart.curves.push(Curve::measured("chain", points));            // line, marks, error bars where a point has them
//! chart.curves.push(Curve::reference("wire", points));            // dashed grey line
//! chart.curves.push(Curve::scattered("worst cases", points));     // marks only
//! chart.curves.push(Curve::published("chain", points));           // dotted, with hollow marks: what somebody else has measured
//! chart.notes.push("Open MPI v4.1.4, 100 Mb/s".to_owned());       // stands under the title
//! fs::write(file, chart.to_svg()?)?;
//! ```
//!
//! An algorithm has the same [colour](crate::picture::colour) in every chart; each curve also has its own dashes and mark. Names stand at the ends of the
//! curves, in their order. An interval that would squeeze all points into a corner is cut, and ends in an arrow.

mod axis;
mod draw;
mod label;
mod legend;
mod style;
mod ticks;

pub use axis::Axis;

use thiserror::Error;

/// Curves over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title above the plot.
    pub title: String,
    /// Lines under the title: the program, the MPI, the rate, the day.
    pub notes: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves. Later ones are drawn over earlier ones.
    pub curves: Vec<Curve>,
}

/// A named row of points.
#[derive(Clone, Debug)]
pub struct Curve {
    name: String,
    /// The subject that gives the curve its colour: an algorithm, or what is measured in its place.
    about: String,
    points: Vec<Point>,
    look: Look,
}

/// A point in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value along the horizontal axis.
    pub x: f64,
    /// The value along the vertical axis.
    pub y: f64,
    /// The ends of the error bar along the vertical axis.
    pub interval: Option<(f64, f64)>,
    /// The sign of a point that is not to be taken as it is: `?`, `!`.
    pub doubt: Option<char>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Measured,
    Reference,
    Scattered,
    Published,
}

/// The reason why a chart cannot be drawn.
#[derive(Debug, Error)]
pub enum PlotError {
    /// No curve has a point.
    #[error("plot {title:?}: there is nothing to draw, expected at least one point")]
    Empty {
        /// The chart's title.
        title: String,
    },
    /// The value has no place on its axis.
    #[error("plot {title:?}: {curve} has the value {value} on {axis}, expected {expected}")]
    OffAxis {
        /// The chart's title.
        title: String,
        /// The curve's name.
        curve: String,
        /// The axis's label.
        axis: String,
        /// The values that the axis can show, in words.
        expected: &'static str,
        /// The value that was to be shown.
        value: f64,
    },
}

impl Point {
    /// A point without error bar.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, interval: None, doubt: None }
    }

    /// Returns the point with an error bar from `low` to `high`.
    pub fn between(self, low: f64, high: f64) -> Point {
        Point { interval: Some((low, high)), ..self }
    }

    /// Returns the point with a sign that warns of its value.
    pub fn doubted(self, sign: Option<char>) -> Point {
        Point { doubt: sign, ..self }
    }
}

impl Curve {
    fn new(name: impl Into<String>, points: Vec<Point>, look: Look) -> Curve {
        let name = name.into();
        Curve { about: name.clone(), name, points, look }
    }

    /// A curve of measured values: a line with marks, and error bars where points have them.
    pub fn measured(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve::new(name, points, Look::Measured)
    }

    /// A curve that the others are held against: a dashed grey line.
    pub fn reference(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve::new(name, points, Look::Reference)
    }

    /// Marks without a line.
    pub fn scattered(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve::new(name, points, Look::Scattered)
    }

    /// Makes the curve of somebody else's measurements of the same thing: a dotted line of the same
    /// colour.
    pub fn published(name: &str, points: Vec<Point>) -> Curve {
        Curve::new(format!("{name}, published"), points, Look::Published).about(name)
    }

    /// Returns the curve in the colour of this algorithm.
    pub fn about(self, algorithm: &str) -> Curve {
        Curve { about: algorithm.to_owned(), ..self }
    }

    /// Returns the curve with another name, in the same colour.
    pub fn named(self, name: String) -> Curve {
        Curve { name, ..self }
    }

    /// Returns the name that stands at the curve's end.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Goes on to a further point.
    pub fn push(&mut self, point: Point) {
        self.points.push(point);
    }
}

impl Chart {
    /// A chart without curves.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Chart {
        Chart { title: title.into(), notes: Vec::new(), x, y, curves: Vec::new() }
    }

    /// The chart as an SVG document.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        if self.curves.iter().all(|curve| curve.points.is_empty()) {
            return Err(PlotError::Empty { title: self.title.clone() });
        }
        for curve in &self.curves {
            for point in &curve.points {
                self.expect_on(&self.x, curve, [point.x].into_iter())?;
                self.expect_on(&self.y, curve, point.heights())?;
            }
        }
        Ok(draw::svg(self))
    }

    fn expect_on(
        &self,
        axis: &Axis,
        curve: &Curve,
        mut values: impl Iterator<Item = f64>,
    ) -> Result<(), PlotError> {
        let Some(value) = values.find(|value| !axis.shows(*value)) else { return Ok(()) };
        Err(PlotError::OffAxis {
            title: self.title.clone(),
            curve: curve.name.clone(),
            axis: axis.label().to_owned(),
            expected: axis.expected(),
            value,
        })
    }
}

impl Point {
    /// Returns the values that must have room along the vertical axis.
    fn heights(&self) -> impl Iterator<Item = f64> + use<> {
        let interval = self.interval.map(|(low, high)| [low, high]);
        [self.y].into_iter().chain(interval.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::inside;

    fn chart(curves: Vec<Curve>) -> Chart {
        Chart { curves, ..Chart::new("a < b", Axis::bytes("message"), Axis::nanoseconds("time")) }
    }

    #[test]
    fn labels_units_and_names_are_there_and_escaped() {
        let points = vec![Point::new(1024.0, 2e6).between(1.5e6, 2.5e6), Point::new(1048576.0, 4e8)];
        let svg =
            chart(vec![Curve::measured("chain & co", points.clone()), Curve::reference("wire", points)])
                .to_svg()
                .unwrap();
        for text in
            ["a &lt; b", "chain &amp; co", "wire", "1 KiB", "1 MiB", "1 ms", "500 ms", "message", "time"]
        {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn nothing_that_is_said_is_cut_off() {
        let points = || vec![Point::new(1024.0, 2e6).between(1.0, 2.5e12), Point::new(1048576.0, 4e8)];
        let names = [
            "chain:segment=8KiB",
            "a name that is so long that nobody has seen anything like it on any plot",
            "x",
        ];
        let mut chart = chart(names.map(|name| Curve::measured(name, points())).to_vec());
        chart.title =
            "Collectives, up to 4096 ranks on 4096 hosts, from the first call to the last return ".repeat(3);
        chart.notes = vec!["polycast bench 0.2.0, Open MPI v4.1.4, emulated links of 100mbit ".repeat(4)];
        let svg = chart.to_svg().unwrap();
        assert_eq!(inside::cut_off(&svg), Vec::<String>::new(), "{svg}");
    }

    #[test]
    fn what_is_doubted_is_hollow_and_says_so() {
        let points = vec![Point::new(1024.0, 2e6), Point::new(2048.0, 2e6).doubted(Some('?'))];
        let svg = chart(vec![Curve::measured("chain", points)]).to_svg().unwrap();
        assert!(svg.contains("Hollow: ?") && svg.contains("chain, 2 KiB: 2 ms"), "{svg}");
        let hollow = svg.matches("fill=\"white\"").count();
        assert_eq!(hollow, 2, "the ground and one mark: {svg}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let error = chart(vec![Curve::measured("chain", vec![])]).to_svg().unwrap_err().to_string();
        assert!(error.contains("nothing to draw"), "{error}");
        let zero = vec![Point::new(1024.0, 1.0).between(0.0, 2.0)];
        let error = chart(vec![Curve::measured("chain", zero)]).to_svg().unwrap_err().to_string();
        assert!(error.contains("chain has the value 0 on time, expected a number above 0"), "{error}");
        assert!(chart(vec![Curve::measured("chain", vec![Point::new(1.0, f64::NAN)])]).to_svg().is_err());
    }
}
