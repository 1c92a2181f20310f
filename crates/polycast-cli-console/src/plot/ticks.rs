//! Where an axis has its ticks: at numbers that people like, no more of them than there is room for, around all data.

/// The spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Even, from 0.
    Linear,
    /// Logarithmic: each doubling takes the same room.
    Log2,
    /// Logarithmic: each power of ten takes the same room.
    Log10,
}

/// The most steps between ticks.
const MAX_STEPS: i32 = 10;

/// Returns ticks in ascending order; the first is not above `low`, the last not below `high`, and
/// these two differ.
pub(super) fn ticks(scale: Scale, low: f64, high: f64) -> Vec<f64> {
    match scale {
        Scale::Linear => linear(low.min(0.0), high),
        Scale::Log2 => powers_of_two(low, high),
        Scale::Log10 => decades(low, high),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(low: f64, high: f64) -> Vec<f64> {
    let span = if high > low { high - low } else { 1.0 };
    let rough = span / f64::from(MAX_STEPS);
    let magnitude = 10f64.powf(rough.log10().floor());
    let fits = |factor: &f64| factor * magnitude >= rough;
    let step = [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * magnitude;
    let first = (low / step).floor() as i64;
    let last = ((high / step).ceil() as i64).max(first + 1);
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

fn powers_of_two(low: f64, high: f64) -> Vec<f64> {
    let (mut first, mut last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
    if first == last {
        // A single power stands in the middle; there is no half of 1.
        (first, last) = (if first == 0 { 0 } else { first - 1 }, first + 1);
    }
    let step = (last - first + MAX_STEPS - 1) / MAX_STEPS;
    let steps = (last - first + step - 1) / step;
    (0..=steps).map(|index| 2f64.powi(first + index * step)).collect()
}

/// Returns ticks at 1, 2, 5, 10, … while they fit, else at powers of ten.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = (high.log10().ceil() as i32).max(first + 1);
    let fine: Vec<f64> =
        (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power))).collect();
    let from = fine.iter().rposition(|tick| *tick <= low).unwrap_or(0);
    let to = fine.iter().position(|tick| *tick >= high).unwrap_or(fine.len() - 1).max(from + 1);
    if to - from <= MAX_STEPS as usize {
        return fine[from..=to].to_vec();
    }
    let step = (last - first + MAX_STEPS - 1) / MAX_STEPS;
    let steps = (last - first + step - 1) / step;
    (0..=steps).map(|index| 10f64.powi(first + index * step)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_people_like() {
        assert_eq!(ticks(Scale::Linear, 3.0, 17.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0]);
        assert_eq!(ticks(Scale::Log2, 16.0, 1024.0), [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]);
        assert_eq!(ticks(Scale::Log2, 16.0, 16.0), [8.0, 16.0, 32.0]);
        assert_eq!(ticks(Scale::Log2, 1.0, 1.0), [1.0, 2.0]);
        assert_eq!(ticks(Scale::Log10, 30.0, 700.0), [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(ticks(Scale::Log10, 1.0, 9e5), [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
    }

    fn any_scale() -> impl Strategy<Value = Scale> {
        prop_oneof![Just(Scale::Linear), Just(Scale::Log2), Just(Scale::Log10)]
    }

    proptest! {
        #[test]
        fn ticks_are_around_all_data_and_few(
            scale in any_scale(), exponent in -9.0f64..12.0, factor in 1.0f64..1e9,
        ) {
            let (low, high) = (10f64.powf(exponent), 10f64.powf(exponent) * factor);
            let ticks = ticks(scale, low, high);
            // Binary fractions of a tick are not exact.
            prop_assert!(ticks[0] <= low * (1.0 + 1e-9) && ticks[ticks.len() - 1] >= high * (1.0 - 1e-9));
            prop_assert!(ticks.is_sorted_by(|a, b| a < b));
            prop_assert!((2..=12).contains(&ticks.len()), "{ticks:?}");
        }
    }
}
