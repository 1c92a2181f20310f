//! The pictures of `simulate --collective --svg` and `--scaling --svg`.

use polycast_core::units::Bytes;
use serde_json::Value;

use crate::operation::capitalised;
use crate::plot::{Axis, Chart, Curve, Point};
use crate::scaling;

/// Times over the sizes where there are several, else over the number of nodes; from the objects that `--json` prints.
pub fn of_collective(collective: &str, objects: &[Value], note: String) -> Chart {
    let number = |object: &Value, key: &str| object[key].as_f64().filter(|value| *value > 0.0);
    let several = |key: &str| objects.iter().any(|object| object[key] != objects[0][key]);
    let over_sizes = several("bytes");
    let (key, other) = if over_sizes { ("bytes", "nodes") } else { ("nodes", "bytes") };
    let x = if over_sizes { Axis::bytes("message") } else { Axis::doublings("nodes") };
    let fixed = objects.first().map_or_else(String::new, |object| match other {
        "nodes" if !several(other) => format!(", {} nodes", object[other]),
        "bytes" if number(object, other).is_some() => {
            format!(" of {}", Bytes(object[other].as_u64().unwrap_or(0)))
        }
        _ => String::new(),
    });
    let title = format!("MPI_{}{fixed}, in virtual time", capitalised(collective));
    let mut chart = Chart::new(title, x, Axis::nanoseconds("until the last node has it"));
    chart.notes.push(note);
    let mut wire = Curve::reference("the wire", Vec::new());
    let first = objects.first().map(|object| object["algorithm"].clone());
    for object in objects {
        let algorithm = object["algorithm"].as_str().unwrap_or_default();
        let (Some(x), Some(us)) = (number(object, key), number(object, "completion_us")) else { continue };
        let name = match over_sizes && several(other) {
            true => format!("{algorithm}, {} nodes", object[other]),
            false => algorithm.to_owned(),
        };
        let point = Point::new(x, us * 1e3);
        match chart.curves.iter_mut().find(|curve| curve.name() == name) {
            Some(curve) => curve.push(point),
            None => chart.curves.push(Curve::measured(name, vec![point]).about(algorithm)),
        }
        // The wire is the same for all algorithms; of several numbers of nodes each may have its own.
        let is_first = Some(&object["algorithm"]) == first.as_ref() && !(over_sizes && several(other));
        if let Some(us) = number(object, "wire_us").filter(|_| is_first) {
            wire.push(Point::new(x, us * 1e3));
        }
    }
    chart.curves.push(wire);
    chart
}

/// A single picture for all sizes.
pub fn of_scaling(completions: &[Value], note: String) -> Result<Chart, String> {
    let mut charts = scaling::charts(completions, vec![note])?;
    if charts.len() == 1 {
        return Ok(charts.remove(0));
    }
    let mut sizes: Vec<u64> = completions.iter().filter_map(|one| one["bytes"].as_u64()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut all = charts[0].clone();
    (all.title, all.curves) = ("Broadcasts in virtual time".to_owned(), Vec::new());
    for (bytes, chart) in sizes.into_iter().zip(charts) {
        let size = Bytes(bytes);
        all.curves.extend(chart.curves.into_iter().map(|curve| {
            let name = curve.name().to_owned();
            curve.named(format!("{name}, {size}"))
        }));
    }
    Ok(all)
}
