//! Simpler models, fitted to the curves: a line, Hockney's, LogGP.

use super::{ClassParameters, Curve, Point};

/// A point counts as if it were known to this share of its value at best, so that exact ones do not outweigh the rest.
const BEST_PRECISION: f64 = 0.01;

/// `startup + bytes * delay`, as Nupairoj 1998 writes its parameters (`t_ss`, `t_sd` and so on).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Nanoseconds for a message without bytes.
    pub startup_ns: f64,
    /// Nanoseconds per byte.
    pub delay_ns: f64,
    /// The root mean square of the points' deviations as shares of the points: 0.1 is 10 %. Above some percent a
    /// single line does not describe the curve.
    pub residual: f64,
}

impl Line {
    /// The line with the least sum of squared deviations, each measured in the width of its point's interval, or in
    /// 1 % of the point where that is more. A single point gives a constant.
    pub fn fit(curve: &Curve) -> Line {
        let points = curve.points();
        let weights: Vec<f64> = points.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn(&Point) -> f64| {
            points.iter().zip(&weights).map(|(point, weight)| of(point) * weight / total).sum::<f64>()
        };
        let (mean_bytes, mean_ns) = (mean(&|p| p.bytes as f64), mean(&|p| p.ns));
        let variance = mean(&|p| (p.bytes as f64 - mean_bytes).powi(2));
        let covariance = mean(&|p| (p.bytes as f64 - mean_bytes) * (p.ns - mean_ns));
        let delay_ns = if variance > 0.0 { covariance / variance } else { 0.0 };
        let mut line = Line { startup_ns: mean_ns - delay_ns * mean_bytes, delay_ns, residual: 0.0 };
        let squares = points.iter().map(|p| ((line.at(p.bytes) - p.ns) / scale(p)).powi(2));
        line.residual = (squares.sum::<f64>() / points.len() as f64).sqrt();
        line
    }

    /// The line's value for a message of `bytes`, in nanoseconds.
    pub fn at(&self, bytes: u64) -> f64 {
        self.startup_ns + self.delay_ns * bytes as f64
    }
}

/// The value that a point's deviations are a share of, in nanoseconds; not 0.
fn scale(point: &Point) -> f64 {
    point.ns.abs().max(1.0)
}

fn weight(point: &Point) -> f64 {
    let half_width = (point.high - point.low) / 2.0;
    half_width.max(BEST_PRECISION * scale(point)).powi(-2)
}

/// Hockney's model: a message takes `alpha + m * beta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hockney {
    /// Nanoseconds for a message without bytes.
    pub alpha_ns: f64,
    /// Nanoseconds per byte.
    pub beta_ns: f64,
    /// The points' deviation from the model, as in [`Line::residual`].
    pub residual: f64,
}

/// LogGP without its P (Alexandrov et al. 1995; Siebert 2006, §1.4): a message takes `o + (m - 1) * G + L + o`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogGp {
    /// L, the latency, in nanoseconds.
    pub latency_ns: f64,
    /// o, what a message costs either processor, in nanoseconds; 0 where it was not measured.
    pub overhead_ns: f64,
    /// g, between two short messages, in nanoseconds.
    pub gap_ns: f64,
    /// G, per byte of a long message, in nanoseconds.
    pub gap_per_byte_ns: f64,
    /// The deviation of the times of a message from the model, as in [`Line::residual`].
    pub residual: f64,
}

impl ClassParameters {
    /// The time of a message from rank to rank at every size that was measured: `t_end(m)`, or `L(m) + g(m)`.
    fn message_times(&self) -> Curve {
        self.end.clone().unwrap_or_else(|| {
            let of = |point: &Point| Point { ns: self.hop_ns(point.bytes), ..sum(point, self) };
            let points = self.gap.points().iter().map(of).collect();
            Curve::new(points).expect("the sizes of a curve rise")
        })
    }

    /// Hockney's model of the class.
    pub fn hockney(&self) -> Hockney {
        let Line { startup_ns, delay_ns, residual } = Line::fit(&self.message_times());
        Hockney { alpha_ns: startup_ns, beta_ns: delay_ns, residual }
    }

    /// LogGP's parameters, from the line through the times of a message (its slope is G), and from o and g of the
    /// smallest messages as in the conversion of Kielmann et al. 2000, whom Siebert and Patarasuk et al. cite.
    pub fn log_gp(&self) -> LogGp {
        let line = Line::fit(&self.message_times());
        let smallest = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.points()[0].ns);
        let overheads: Vec<f64> =
            [&self.send_overhead, &self.receive_overhead].into_iter().filter_map(smallest).collect();
        let overhead_ns = overheads.iter().sum::<f64>() / overheads.len().max(1) as f64;
        LogGp {
            latency_ns: line.at(1) - 2.0 * overhead_ns,
            overhead_ns,
            gap_ns: self.gap.points()[0].ns,
            gap_per_byte_ns: line.delay_ns,
            residual: line.residual,
        }
    }
}

/// The interval of `L + g` around a point of g, from those of both.
fn sum(gap: &Point, class: &ClassParameters) -> Point {
    let ns = class.hop_ns(gap.bytes);
    let latency = class.latency.points().iter().find(|latency| latency.bytes == gap.bytes);
    let half_width = ((gap.high - gap.low) + latency.map_or(0.0, |l| l.high - l.low)) / 2.0;
    Point { bytes: gap.bytes, ns, low: ns - half_width, high: ns + half_width, samples: gap.samples }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(of: impl Fn(u64) -> f64) -> Curve {
        let sizes = [1, 64, 256, 1024, 4096, 65536];
        Curve::new(sizes.map(|bytes| Point::exact(bytes, of(bytes))).to_vec()).unwrap()
    }

    proptest! {
        #[test]
        fn a_line_is_found_again(startup in 0.0..1e6f64, delay in 0.0..1e3f64) {
            let line = Line::fit(&curve(|bytes| startup + delay * bytes as f64));
            let tolerance = 1e-6 * (startup + delay + 1.0);
            prop_assert!((line.startup_ns - startup).abs() < tolerance, "{line:?}");
            prop_assert!((line.delay_ns - delay).abs() < tolerance && line.residual < 1e-6, "{line:?}");
        }

        #[test]
        fn no_other_line_is_nearer(
            values in prop::array::uniform6(1.0..1e6f64),
            (up, tilt) in (-0.1..0.1f64, -0.1..0.1f64),
        ) {
            let mut values = values.into_iter();
            let sizes = [1, 64, 256, 1024, 4096, 65536];
            let curve = Curve::new(sizes.map(|b| Point::exact(b, values.next().unwrap())).to_vec()).unwrap();
            let line = Line::fit(&curve);
            let distance = |line: &Line| {
                curve.points().iter().map(|p| (line.at(p.bytes) - p.ns).powi(2) * weight(p)).sum::<f64>()
            };
            let (startup_ns, delay_ns) = (line.startup_ns * (1.0 + up), line.delay_ns * (1.0 + tilt));
            let other = Line { startup_ns, delay_ns, ..line };
            prop_assert!(distance(&line) <= distance(&other) * (1.0 + 1e-9));
        }
    }

    #[test]
    fn wide_intervals_count_less() {
        let mut points = vec![Point::exact(1, 100.0), Point::exact(2, 200.0), Point::exact(3, 300.0)];
        points.push(Point { bytes: 4, ns: 900.0, low: 0.0, high: 1800.0, samples: 2 });
        let line = Line::fit(&Curve::new(points).unwrap());
        assert!((line.at(4) - 400.0).abs() < 5.0, "{line:?}");
    }

    #[test]
    fn models_of_a_network_that_is_one() {
        // o = 3 µs, L = 20 µs, G = 8 ns; messages follow each other at o + (m-1)G here.
        let message = |bytes: u64| 26e3 + 8.0 * (bytes - 1) as f64;
        let gap = |bytes: u64| 3e3 + 8.0 * (bytes - 1) as f64;
        let mut class = ClassParameters::new(curve(|b| message(b) - gap(b)), curve(gap));
        (class.send_overhead, class.receive_overhead) = (Some(curve(|_| 3e3)), Some(curve(|_| 3e3)));
        let LogGp { latency_ns, overhead_ns, gap_ns, gap_per_byte_ns, residual } = class.log_gp();
        assert!((latency_ns - 20e3).abs() < 1.0 && (gap_per_byte_ns - 8.0).abs() < 1e-3 && residual < 1e-6);
        assert_eq!((overhead_ns, gap_ns), (3e3, 3e3));
        let hockney = class.hockney();
        assert!((hockney.alpha_ns - 25_992.0).abs() < 1.0 && (hockney.beta_ns - 8.0).abs() < 1e-3);
    }

    #[test]
    fn a_step_is_seen_in_the_residual() {
        let line = Line::fit(&curve(|bytes| if bytes < 1024 { 1e3 } else { 1e5 }));
        assert!(line.residual > 0.3, "{line:?}");
    }
}
