//! The medians over the sizes as SVG: a curve with intervals for each variant, and the wire.

use std::time::{Duration, UNIX_EPOCH};

use polycast_core::units::Rate;
use serde_json::Value;

use crate::operation::capitalised;
use crate::plot::{self, Axis, Chart, Curve, PlotError};
use crate::point::{Point, are_of_several_mpis, is_sweep};
use crate::terminal::count;

/// Draws all points that have a time. What the axes, which are logarithmic, have no place for is left out: messages
/// of 0 bytes.
pub fn of_times(points: &[Point], notes: Vec<String>) -> Result<String, PlotError> {
    let first = points.first();
    let (ranks, nodes) = first.map_or((0, 0), |point| (point.ranks, point.nodes));
    let from = first.map(|point| point.time_from).unwrap_or_default();
    let collective = first.map_or("", |point| &point.collective);
    let is_one = points.iter().all(|point| point.collective == collective);
    let is_sweep = is_sweep(points);
    let title = format!(
        "{}, {}{} on {}, from the {from}",
        if is_one { format!("MPI_{}", capitalised(collective)) } else { "Collectives".to_owned() },
        if is_sweep { "up to " } else { "" },
        count(ranks, "rank", "ranks"),
        count(nodes, "host", "hosts")
    );
    let mut chart =
        Chart::new(title, Axis::bytes("message"), Axis::nanoseconds("time (median, 95 % interval)"));
    chart.notes = notes;
    let are_several = are_of_several_mpis(points);
    let key =
        |point: &Point| (point.collective.clone(), point.variant.clone(), point.ranks, point.mpi.clone());
    let mut variants = Vec::new();
    for point in points {
        let variant = key(point);
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    for own_key in variants {
        let own = points.iter().filter(|point| key(point) == own_key);
        let (of, variant, ranks, mpi) = own_key.clone();
        let mut name = if is_one { variant.clone() } else { format!("{of} {variant}") };
        if is_sweep {
            name += &format!(", {ranks} ranks");
        }
        if are_several {
            name += &format!(", {mpi}");
        }
        chart.curves.push(Curve::measured(&name, own.filter_map(median).collect()).about(&variant));
    }
    let mut wire: Vec<plot::Point> = Vec::new();
    // Each collective has a wire of its own, and some each number of ranks.
    for point in points
        .iter()
        .filter(|point| is_one && point.ranks == ranks && point.bytes > 0 && point.wire_bytes > 0)
    {
        let x = point.bytes as f64;
        if let Some(us) = point.wire_us.filter(|_| wire.last().is_none_or(|last| last.x != x)) {
            wire.push(plot::Point::new(x, us * 1e3));
        }
    }
    if !wire.is_empty() {
        chart.curves.push(Curve::reference("the wire", wire));
    }
    chart.to_svg()
}

/// Returns the notes under a chart's title: the tool, MPI, rate and day of the measurement, from
/// the first line of a file of `bench --json`.
pub fn notes(environment: &Value) -> Vec<String> {
    let text = |key: &str| environment[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    // An MPI says all about its build.
    let short = |version: String| version.split(['\n', ',']).next().unwrap_or_default().trim().to_owned();
    let mpis: Vec<&str> =
        environment["mpis"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mpi = if mpis.is_empty() { text("mpi_version").map(short) } else { Some(mpis.join(", ")) };
    let rate = environment["rate_bits_per_second"].as_u64().and_then(Rate::from_bits_per_second);
    let rate = rate.map(|rate| match environment["lab"].is_null() {
        true => format!("links of {rate}"),
        false => format!("emulated links of {rate}"),
    });
    let day = environment["started_unix_s"].as_u64().filter(|seconds| *seconds < 1 << 36).map(|seconds| {
        let at = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
        at.split('T').next().unwrap_or_default().to_owned()
    });
    let program = text("polycast").map(|version| format!("polycast bench {version}"));
    let said: Vec<String> = [program, mpi, rate, day].into_iter().flatten().collect();
    if said.is_empty() { Vec::new() } else { vec![said.join(", ")] }
}

fn median(point: &Point) -> Option<plot::Point> {
    let us = point.median_us.filter(|us| *us > 0.0 && point.bytes > 0)?;
    let at = plot::Point::new(point.bytes as f64, us * 1e3).doubted(point.mark());
    let interval = point.ci_low_us.zip(point.ci_high_us).filter(|(low, _)| *low > 0.0);
    Some(interval.map_or(at, |(low, high)| at.between(low * 1e3, high * 1e3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_a_curve_beside_the_wire() {
        let point = |variant: &str, bytes, us| Point {
            variant: variant.into(),
            bytes,
            ranks: 4,
            nodes: 4,
            median_us: us,
            ci_low_us: us.map(|us| us * 0.9),
            ci_high_us: us.map(|us| us * 1.1),
            wire_bytes: bytes,
            wire_us: Some(bytes as f64 / 10.0),
            ..Point::default()
        };
        let points = [
            point("stock", 0, Some(1.0)),
            point("stock", 1024, Some(200.0)),
            point("polycast", 1024, Some(120.0)),
            point("stock", 4096, None),
            point("polycast", 4096, Some(500.0)),
        ];
        let svg = of_times(&points, Vec::new()).unwrap();
        for text in ["stock", "polycast", "the wire", "1 KiB", "4 ranks on 4 hosts", "first call"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(of_times(&points[..1], Vec::new()).is_err(), "nothing to draw");
        let alone = [Point { nodes: 1, ..point("stock", 1024, Some(1.0)) }];
        assert!(of_times(&alone, Vec::new()).unwrap().contains("4 ranks on 1 host,"));
    }
}
