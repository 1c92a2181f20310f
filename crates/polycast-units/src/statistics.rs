//! Statistics without assumptions about the distribution: times have tails, steps and several humps. The measurements, the
//! tuner and the reports take theirs from here.

/// An estimate of a median, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The sample median.
    pub median: f64,
    /// The 95 % interval of the median; `None` below 6 samples: all of them lie on one side of it with a
    /// probability of 2·(1/2)ⁿ, which is above 5 % then.
    pub interval: Option<(f64, f64)>,
}

/// Sorts samples that are all finite.
pub fn sorted(mut samples: Vec<f64>) -> Vec<f64> {
    samples.sort_unstable_by(f64::total_cmp);
    samples
}

/// The value at the fraction `q` of the samples (the inverse of the empirical distribution function): see [`sample_at`]; for the median of an even number of samples the mean of the two in the middle.
/// `None` without samples.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let n = sorted.len();
    if q == 0.5 && n > 0 && n.is_multiple_of(2) {
        return Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]));
    }
    sample_at(sorted, q)
}

/// The smallest sample that at least the fraction `q` of them does not exceed. `None` without samples.
pub fn sample_at<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let place = q * sorted.len() as f64;
    // Rounded up, by hand: the library that runs in programs is not linked with libm.
    let position = place as usize + usize::from(place > (place as usize) as f64);
    sorted.get(position.max(1) - 1).or(sorted.last()).copied()
}

/// The median and its 95 % interval by order statistics. `None` without samples.
pub fn median(sorted: &[f64]) -> Option<Estimate> {
    let median = quantile(sorted, 0.5)?;
    let interval =
        interval_positions(sorted.len(), CONFIDENCE).map(|(low, high)| (sorted[low - 1], sorted[high - 1]));
    Some(Estimate { median, interval })
}

/// The confidence of the intervals of [`median`].
pub const CONFIDENCE: f64 = 0.95;

/// The positions (from 1) of the order statistics that enclose the median with at least this confidence;
/// `None` where all samples together do not.
///
/// The number of samples below the true median is binomial with p = 1/2, whatever the distribution is. So the l-th
/// smallest sample exceeds the median with the probability P(X < l), and the largest l for which that is at most
/// half of what the confidence leaves, 2.5 % for 95 %, gives the interval (l, n + 1 - l).
pub fn interval_positions(n: usize, confidence: f64) -> Option<(usize, usize)> {
    // The probabilities of at most n/2, from the likeliest down, as multiples of that: 2⁻ⁿ itself would underflow.
    let middle = n / 2;
    let down = || {
        (0..middle).rev().scan(1.0, move |probability, x| {
            *probability *= (x + 1) as f64 / (n - x) as f64;
            Some(*probability)
        })
    };
    let mut below: f64 = down().sum(); // of X < low
    let all = 2.0 * below + if n.is_multiple_of(2) { 1.0 } else { 2.0 };
    let mut low = middle;
    for probability in down() {
        if below <= (1.0 - confidence) / 2.0 * all {
            break;
        }
        below -= probability;
        low -= 1;
    }
    (low > 0).then_some((low, n + 1 - low))
}

/// The factor by which `other` is faster than `reference`, from pairs of repetitions that were made
/// next to each other: the median of the ratios of the pairs, with its interval by order
/// statistics.
///
/// Paired, because what slows the machine down for a while slows both of a pair down; by order statistics and not by
/// resampling, because the interval is then exact for any distribution and the same at every evaluation.
pub fn speedup(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Estimate> {
    let ratios = pairs.filter(|(_, other)| *other > 0.0).map(|(reference, other)| reference / other);
    median(&sorted(ratios.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_positions_are_those_of_the_tables() {
        // Tables of distribution-free intervals, for example in Conover, Practical Nonparametric Statistics.
        for (n, expected) in [
            (0, None),
            (5, None),
            (6, Some((1, 6))),
            (8, Some((1, 8))),
            (9, Some((2, 8))),
            (10, Some((2, 9))),
            (15, Some((4, 12))),
            (20, Some((6, 15))),
            (25, Some((8, 18))),
            (50, Some((18, 33))),
            (100, Some((40, 61))),
        ] {
            assert_eq!(interval_positions(n, CONFIDENCE), expected, "{n}");
        }
    }

    #[test]
    fn many_samples_approach_the_normal_distribution() {
        let (low, high) = interval_positions(1_000_000, CONFIDENCE).unwrap();
        assert_eq!(low + high, 1_000_001);
        assert!((500_000.0 - low as f64 - 980.0).abs() < 2.0, "{low}");
    }

    #[test]
    fn the_interval_covers_the_median_as_often_as_it_says() {
        // Skewed samples; a multiplicative generator is random enough to count coverage.
        let mut state = 12345u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let true_median = 2f64.ln();
        let covered = (0..4000)
            .filter(|_| {
                let samples = sorted((0..30).map(|_| -uniform().ln()).collect());
                let (low, high) = median(&samples).unwrap().interval.unwrap();
                low <= true_median && true_median <= high
            })
            .count();
        // 30 samples: positions 10 and 21 cover with 95.7 %; ± 3.5 standard deviations.
        assert!((3780..=3875).contains(&covered), "{covered} of 4000");
    }

    #[test]
    fn quantiles() {
        let samples = sorted(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(quantile(&samples, 0.5), Some(2.5));
        assert_eq!(quantile(&samples, 0.9), Some(4.0));
        assert_eq!(quantile(&samples, 0.25), Some(1.0));
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(median(&[7.0]), Some(Estimate { median: 7.0, interval: None }));
    }

    #[test]
    fn a_common_slowdown_does_not_touch_the_speedup() {
        let pairs = (1..=20).map(|i| (f64::from(i) * 3.0, f64::from(i)));
        assert_eq!(speedup(pairs), Some(Estimate { median: 3.0, interval: Some((3.0, 3.0)) }));
        assert_eq!(speedup(std::iter::empty()), None);
    }
}
