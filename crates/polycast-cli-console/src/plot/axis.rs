use super::label;
use super::ticks::{Scale, ticks};

/// The quantity on an axis, and its scale.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    scale: Scale,
    show: fn(f64) -> String,
}

impl Axis {
    /// An axis of plain numbers, evenly spread from 0.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, show: label::number }
    }

    /// A logarithmic axis with powers of two, for numbers of things that are doubled, such as
    /// machines.
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

    /// True if the value has a place on the axis.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    pub(super) fn expected(&self) -> &'static str {
        if self.scale == Scale::Linear { "a number" } else { "a number above 0" }
    }

    /// Returns the value as the axis's ticks would show it.
    pub(super) fn shown(&self, value: f64) -> String {
        if self.scale == Scale::Log2 {
            return (self.show)(value);
        }
        // Four digits, and all before the point.
        let power = 10f64.powi((3 - value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32).clamp(-9, 9));
        let power = if self.scale == Scale::Linear { power.max(1.0) } else { power };
        (self.show)((value * power).round() / power)
    }

    /// The axis with room for all `values`, all of which it [shows](Axis::shows), and for the `ends` of intervals as far as they leave the values more
    /// than a corner.
    pub(super) fn around(
        &self,
        values: impl Iterator<Item = f64>,
        ends: impl Iterator<Item = f64>,
    ) -> Ticked {
        let bounds = |all: &mut dyn Iterator<Item = f64>| {
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (low, high) = bounds(&mut { values });
        let (least, most) = bounds(&mut { ends });
        let (start, end) = (self.place(low), self.place(high));
        let more = (CORNER * (end - start)).max(match self.scale {
            Scale::Linear => 0.25 * end.abs(),
            // Three times as long, or as short.
            _ => 3f64.ln(),
        });
        let back = |place: f64| if self.scale == Scale::Linear { place } else { place.exp() };
        let low = low.min(least.max(back(start - more)));
        let high = high.max(most.min(back(end + more)));
        Ticked { ticks: ticks(self.scale, low, high), scale: self.scale, show: self.show }
    }

    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Linear { value } else { value.ln() }
    }
}

/// The part of the values' range by which intervals may extend the axis beyond the values on either
/// side, where that is more than the least.
const CORNER: f64 = 0.4;

/// An axis with its ticks.
pub(super) struct Ticked {
    ticks: Vec<f64>,
    scale: Scale,
    show: fn(f64) -> String,
}

impl Ticked {
    /// Returns the place of a value on the axis: 0 at the first tick, 1 at the last.
    pub(super) fn part(&self, value: f64) -> f64 {
        let (start, end) = (self.place(self.ticks[0]), self.place(self.ticks[self.ticks.len() - 1]));
        (self.place(value) - start) / (end - start)
    }

    /// The ticks with what stands at them: evenly spread numbers have the same number of digits.
    pub(super) fn labelled(&self) -> impl Iterator<Item = (f64, String)> {
        let digits = |label: &str| label.split_once('.').map_or(0, |(_, digits)| digits.len());
        let is_even = self.scale == Scale::Linear;
        let most = self.ticks.iter().map(|tick| digits(&(self.show)(*tick))).max().filter(|_| is_even);
        self.ticks.iter().map(move |tick| match most {
            Some(most) if most > 0 => (*tick, format!("{tick:.most$}")),
            _ => (*tick, (self.show)(*tick)),
        })
    }

    /// Returns the labels of the ticks.
    pub(super) fn labels(&self) -> impl Iterator<Item = String> {
        self.labelled().map(|(_, label)| label)
    }

    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Linear { value } else { value.max(f64::MIN_POSITIVE).ln() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_gives_each_doubling_the_same_room() {
        let axis = Axis::doublings("machines").around([16.0, 1024.0].into_iter(), std::iter::empty());
        let places = [16.0, 32.0, 64.0, 1024.0].map(|value| (axis.part(value) * 600.0).round());
        assert_eq!(places, [0.0, 100.0, 200.0, 600.0]);
    }

    #[test]
    fn numbers_of_an_axis_have_the_same_digits_and_thousands() {
        let labels = |values: [f64; 2]| -> Vec<String> {
            Axis::linear("x").around(values.into_iter(), std::iter::empty()).labels().collect()
        };
        assert_eq!(labels([0.0, 0.1]).last().unwrap(), "0.10");
        assert_eq!(labels([0.0, 600_000.0]).last().unwrap(), "600,000");
    }

    /// Two intervals must not squeeze the rest into a corner.
    #[test]
    fn long_intervals_do_not_take_the_plot() {
        let values = || [50.0, 60.0, 250.0].into_iter();
        let part = |ends: [f64; 2]| Axis::linear("y").around(values(), ends.into_iter()).part(250.0);
        assert!(part([10.0, 900.0]) > 0.6, "{}", part([10.0, 900.0]));
        assert!((0.8..=1.0).contains(&part([45.0, 260.0])));
        let log = Axis::nanoseconds("y").around([1e3, 1e4].into_iter(), [1.0, 1e9].into_iter());
        assert!(log.part(1e4) - log.part(1e3) > 0.3);
    }
}
