//! The predictions as SVG.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Collective;

use super::against::Against;
use super::table::Page;
use crate::plot::{Axis, Chart, Curve, PlotError, Point};

/// What stands under the titles.
const PROGRAM: &str = concat!("polycast predict ", env!("CARGO_PKG_VERSION"));

/// A curve for each algorithm over the sizes, at the best segment size of each.
pub fn of_times(page: &Page) -> Result<String, PlotError> {
    let ranks = page.placed.host_of.len();
    let title = match page.collective {
        Collective::Broadcast => format!("Predicted broadcast to {ranks} ranks"),
        other => format!("Predicted {other} of {ranks} ranks"),
    };
    let mut chart = Chart::new(title, Axis::bytes("message"), Axis::nanoseconds("time"));
    let measured = page.parameters.measured();
    chart.notes = vec![format!("{PROGRAM}, by parameters of {}, {}", measured.when, measured.place)];
    let mut curves: Vec<(String, Vec<Point>)> = Vec::new();
    for comparison in page.comparisons.iter().filter(|comparison| comparison.bytes.0 > 0) {
        for predicted in comparison.predicted.iter().filter(|predicted| predicted.time.0 > 0) {
            let name = name(&predicted.algorithm);
            let point = Point::new(comparison.bytes.0 as f64, predicted.time.0 as f64);
            match curves.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => curves.push((name, vec![point])),
            }
        }
    }
    curves.sort_by(|a, b| a.0.cmp(&b.0));
    chart.curves = curves.into_iter().map(|(name, points)| Curve::measured(name, points)).collect();
    chart.to_svg()
}

/// The name without the segment size, which differs from size to size.
fn name(algorithm: &Algorithm) -> String {
    algorithm.whole().to_string()
}

/// Predicted over measured times; on the line both are the same.
pub fn of_errors(against: &Against) -> Result<String, PlotError> {
    let title =
        format!("{} predictions, median error {:.0} %", against.pairs.len(), against.median_error * 100.0);
    let mut chart = Chart::new(title, Axis::nanoseconds("measured"), Axis::nanoseconds("predicted"));
    chart.notes = vec![PROGRAM.to_owned()];
    let times = against.pairs.iter().flat_map(|pair| [pair.measured_us, pair.predicted_us]);
    let (low, high) = times.fold((f64::INFINITY, 0.0f64), |(low, high), us| (low.min(us), high.max(us)));
    let same = [low, high].map(|us| Point::new(us * 1e3, us * 1e3)).to_vec();
    chart.curves.push(Curve::reference("the same", same));
    for variant in against.names() {
        let own =
            against.pairs.iter().filter(|pair| against.name(pair) == variant && pair.predicted_us > 0.0);
        let points = own.map(|pair| Point::new(pair.measured_us * 1e3, pair.predicted_us * 1e3)).collect();
        chart.curves.push(Curve::scattered(variant, points));
    }
    chart.to_svg()
}
