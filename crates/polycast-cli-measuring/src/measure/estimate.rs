use polycast_core::model::Point;
use polycast_core::units::statistics;

/// A time in nanoseconds with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median, or a value computed from medians.
    pub ns: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The samples that the estimate rests on; of several estimates combined the smallest number.
    pub samples: usize,
}

impl Estimate {
    /// The median of samples with its interval by order statistics. With less than six, which give none, the interval is
    /// from the least to the greatest. `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Estimate> {
        let sorted = statistics::sorted(samples.to_vec());
        let estimate = statistics::median(&sorted)?;
        let (low, high) = estimate.interval.unwrap_or((sorted[0], sorted[sorted.len() - 1]));
        Some(Estimate { ns: estimate.median, low, high, samples: sorted.len() })
    }

    /// True if the interval is not wider than this fraction of the estimate, by enough samples for
    /// an interval.
    pub fn is_narrow(&self, fraction: f64) -> bool {
        self.samples > 5 && self.high - self.low <= fraction * self.ns.abs()
    }

    /// The estimate times a factor that is not negative.
    pub fn scaled(self, factor: f64) -> Estimate {
        let Estimate { ns, low, high, samples } = self;
        Estimate { ns: ns * factor, low: low * factor, high: high * factor, samples }
    }

    /// The difference; its interval holds whatever the two depend on each other.
    pub fn minus(self, other: Estimate) -> Estimate {
        Estimate {
            ns: self.ns - other.ns,
            low: self.low - other.high,
            high: self.high - other.low,
            samples: self.samples.min(other.samples),
        }
    }

    /// Returns the estimate with value and interval limited to `least`..=`most`.
    pub fn clamped(self, least: f64, most: f64) -> Estimate {
        let clamp = |ns: f64| ns.clamp(least, most);
        Estimate { ns: clamp(self.ns), low: clamp(self.low), high: clamp(self.high), samples: self.samples }
    }

    /// The point of a curve.
    pub fn at(self, bytes: u64) -> Point {
        let tenths = |ns: f64| (ns * 10.0).round() / 10.0;
        Point {
            bytes,
            ns: tenths(self.ns),
            low: tenths(self.low),
            high: tenths(self.high),
            samples: self.samples as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_few_and_many_samples() {
        assert_eq!(Estimate::of(&[]), None);
        let few = Estimate::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((few.low, few.ns, few.high, few.samples), (1.0, 2.0, 3.0, 3));
        assert!(!Estimate::of(&[2.0; 5]).unwrap().is_narrow(0.02), "five samples have no interval");
        assert!(Estimate::of(&[2.0; 6]).unwrap().is_narrow(0.02));
        let samples: Vec<f64> = (1..=25).map(f64::from).collect();
        let many = Estimate::of(&samples).unwrap();
        assert_eq!((many.low, many.ns, many.high), (8.0, 13.0, 18.0));
    }

    #[test]
    fn differences_are_as_uncertain_as_both() {
        let a = Estimate { ns: 10.0, low: 9.0, high: 12.0, samples: 30 };
        let b = Estimate { ns: 4.0, low: 3.0, high: 5.0, samples: 20 };
        assert_eq!(a.minus(b), Estimate { ns: 6.0, low: 4.0, high: 9.0, samples: 20 });
        assert_eq!(b.minus(a).clamped(0.0, 100.0), Estimate { ns: 0.0, low: 0.0, high: 0.0, samples: 20 });
    }
}
