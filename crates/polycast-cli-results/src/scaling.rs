//! The pictures of `simulate --scaling`: times over the number of nodes, one for each size.

use polycast_core::units::Bytes;
use serde_json::Value;

use crate::plot::{Axis, Chart, Curve, Point};

/// Draws a chart for each size from completions as `--json` prints them; `notes` stand under the
/// titles.
///
/// # Errors
/// Where something else is there.
pub fn charts(completions: &[Value], notes: Vec<String>) -> Result<Vec<Chart>, String> {
    let mut sizes: Vec<u64> = completions.iter().filter_map(|one| one["bytes"].as_u64()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let chart = |bytes: &u64| {
        let title = format!("Broadcasts of {} in virtual time", Bytes(*bytes));
        let last = Axis::nanoseconds("until the last node has it (mean, 95 % interval)");
        let mut chart = Chart::new(title, Axis::doublings("nodes"), last);
        chart.notes.clone_from(&notes);
        for one in completions.iter().filter(|one| one["bytes"].as_u64() == Some(*bytes)) {
            add(&mut chart, one)?;
        }
        Ok(chart)
    };
    sizes.iter().map(chart).collect()
}

fn add(chart: &mut Chart, one: &Value) -> Result<(), String> {
    let numbers = ["nodes", "mean_us", "interval_us"].map(|key| one[key].as_f64());
    let ([Some(nodes), Some(mean), Some(reach)], Some(algorithm)) = (numbers, one["algorithm"].as_str())
    else {
        return Err("expected what `polycast simulate --scaling --json` prints".to_owned());
    };
    let low = (mean - reach).max(mean * 1e-3);
    let point = Point::new(nodes, mean * 1e3).between(low * 1e3, (mean + reach) * 1e3);
    match chart.curves.iter_mut().find(|curve| curve.name() == algorithm) {
        Some(curve) => curve.push(point),
        None => chart.curves.push(Curve::measured(algorithm, vec![point])),
    }
    Ok(())
}
