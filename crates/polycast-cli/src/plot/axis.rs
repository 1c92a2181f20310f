use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::label;
use super::ticks::{Scale, ticks};

/// What an axis shows, and how.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    scale: Scale,
    show: fn(f64) -> String,
}

impl Axis {
    /// Plain numbers, evenly spread from 0.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, show: label::number }
    }

    /// Numbers of things that are doubled, such as machines: a logarithmic axis with powers of two.
    pub fn doublings(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log2, show: label::number }
    }

    /// Bytes, on a logarithmic axis with powers of two.
    pub fn bytes(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log2, show: label::bytes }
    }

    /// Nanoseconds, on a logarithmic axis; shown as µs, ms, s.
    pub fn nanoseconds(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log10, show: label::nanoseconds }
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Whether the value has a place on it.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    pub(super) fn expected(&self) -> &'static str {
        if self.scale == Scale::Linear { "a number" } else { "a number above 0" }
    }

    /// The axis as plotters takes it, with room for all of `values`, all of which it [shows](Axis::shows).
    pub(super) fn around(&self, values: impl Iterator<Item = f64>) -> Ticked {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        Ticked { ticks: ticks(self.scale, low, high), scale: self.scale, show: self.show }
    }
}

/// An axis with its ticks. plotters' own logarithmic axis chooses no ticks at powers of two, and few on a short range.
pub(super) struct Ticked {
    ticks: Vec<f64>,
    scale: Scale,
    show: fn(f64) -> String,
}

impl Ticked {
    /// The number of ticks.
    pub(super) fn len(&self) -> usize {
        self.ticks.len()
    }

    /// The longest label, in characters.
    pub(super) fn label_width(&self) -> usize {
        self.ticks.iter().map(|tick| (self.show)(*tick).chars().count()).max().unwrap_or(0)
    }

    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Linear { value } else { value.ln() }
    }
}

impl Ranged for Ticked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let Range { start, end } = self.range();
        let (start, end) = (self.place(start), self.place(end));
        from + (f64::from(to - from) * (self.place(*value) - start) / (end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light points are lines between ticks; there are none.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.ticks[0]..self.ticks[self.ticks.len() - 1]
    }
}

impl ValueFormatter<f64> for Ticked {
    fn format_ext(&self, value: &f64) -> String {
        (self.show)(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_gives_each_doubling_the_same_room() {
        let axis = Axis::doublings("machines").around([16.0, 1024.0].into_iter());
        assert_eq!(axis.map(&16.0, (0, 600)), 0);
        assert_eq!(axis.map(&32.0, (0, 600)), 100);
        assert_eq!(axis.map(&1024.0, (0, 600)), 600);
        // Upside down, as the pixels of a vertical axis are.
        assert_eq!(axis.map(&1024.0, (600, 0)), 0);
    }
}
