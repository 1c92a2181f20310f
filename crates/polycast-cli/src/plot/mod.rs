//! Line charts as SVG: curves over linear or logarithmic axes, error bars, a legend beside them.
//!
//! A [`Chart`] is data; [`Chart::to_svg`] is the only thing that can be done with it:
//!
//! ```text
//! let mut chart = Chart::new("Broadcast to 32 ranks", Axis::bytes("message"), Axis::nanoseconds("time"));
//! chart.curves.push(Curve::measured("chain", points));            // line, marks, error bars where a point has them
//! chart.curves.push(Curve::reference("wire", points));            // dashed grey line
//! chart.curves.push(Curve::scattered("worst cases", points));     // marks only
//! fs::write(file, chart.to_svg()?)?;
//! ```
//!
//! Colours are those of Okabe and Ito, which people with any colour vision tell apart; each curve also has its own dashes
//! and mark. Names stand at the ends of the curves, in their order.

mod axis;
mod draw;
mod label;
mod legend;
mod ticks;

pub use axis::Axis;

use thiserror::Error;

/// Curves over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Stands above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The later ones are drawn over the earlier ones.
    pub curves: Vec<Curve>,
}

/// A named row of points.
#[derive(Clone, Debug)]
pub struct Curve {
    name: String,
    points: Vec<Point>,
    look: Look,
}

/// A point in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of its error bar along the vertical axis.
    pub interval: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Measured,
    Reference,
    Scattered,
}

/// Why a chart cannot be drawn.
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
        /// What the axis can show.
        expected: &'static str,
        /// What it was to show.
        value: f64,
    },
    /// The drawing library refused.
    #[error("plot {title:?}: {problem}")]
    Drawing {
        /// The chart's title.
        title: String,
        /// What it said.
        problem: String,
    },
}

impl Point {
    /// A point without error bar.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, interval: None }
    }

    /// The same point with an error bar from `low` to `high`.
    pub fn between(self, low: f64, high: f64) -> Point {
        Point { interval: Some((low, high)), ..self }
    }
}

impl Curve {
    /// A line with marks, and error bars where points have them.
    pub fn measured(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve { name: name.into(), points, look: Look::Measured }
    }

    /// A dashed grey line: what the others are held against.
    pub fn reference(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve { name: name.into(), points, look: Look::Reference }
    }

    /// Marks without a line.
    pub fn scattered(name: impl Into<String>, points: Vec<Point>) -> Curve {
        Curve { name: name.into(), points, look: Look::Scattered }
    }
}

impl Curve {
    /// What stands at its end.
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
        Chart { title: title.into(), x, y, curves: Vec::new() }
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
        draw::svg(self)
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
    /// Everything that must have room along the vertical axis.
    fn heights(&self) -> impl Iterator<Item = f64> + use<> {
        let interval = self.interval.map(|(low, high)| [low, high]);
        [self.y].into_iter().chain(interval.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_cannot_be_drawn_is_said() {
        let error = chart(vec![Curve::measured("chain", vec![])]).to_svg().unwrap_err().to_string();
        assert!(error.contains("nothing to draw"), "{error}");
        let zero = vec![Point::new(1024.0, 1.0).between(0.0, 2.0)];
        let error = chart(vec![Curve::measured("chain", zero)]).to_svg().unwrap_err().to_string();
        assert!(error.contains("chain has the value 0 on time, expected a number above 0"), "{error}");
        assert!(chart(vec![Curve::measured("chain", vec![Point::new(1.0, f64::NAN)])]).to_svg().is_err());
    }
}
