//! Parameters as a table for people.

use polycast_core::model::{Curve, Parameters, Point, Sharing};
use polycast_core::units::Bytes;

use super::doubt::{WIDEST, reach_ns};
use crate::terminal::{margin, nanoseconds, table};

/// The curves that are shown, with their headings; the others follow from them or are for simulators.
const COLUMNS: [&str; 6] = ["bytes", "L(m)", "g(m)", "os(m)", "or(m)", "t_end(m)"];

/// The mark of values that are hardly known.
const DOUBT: char = '?';

/// Writes a table per class: the estimates, and how far the 95 % interval of each reaches to either
/// side, as a part of it.
pub fn print(parameters: &Parameters) -> String {
    let mut text = String::new();
    for (class, curves) in parameters.classes() {
        let columns: [Option<&Curve>; 5] = [
            Some(&curves.latency),
            Some(&curves.gap),
            curves.send_overhead.as_ref(),
            curves.receive_overhead.as_ref(),
            curves.end.as_ref(),
        ];
        let row = |(row, bytes)| {
            let cells = columns.iter().map(|curve| curve.map_or_else(String::new, |curve| cell(curve, row)));
            std::iter::once(Bytes(bytes).to_string()).chain(cells).collect()
        };
        let sizes = curves.gap.points().iter().map(|point| point.bytes).enumerate();
        text += &format!("{class}\n{}\n", table(COLUMNS, sizes.map(row).collect(), 0));
    }
    parameters.sharing().iter().for_each(|sharing| text += &shared(sharing));
    if text.contains(DOUBT) {
        text += &format!(
            "{DOUBT}: hardly known, for the 95 % interval reaches further than {} % of it\n",
            WIDEST * 100.0
        );
    }
    text
}

/// Writes the table of a collective among the ranks of a node, with the penalty where it is known.
fn shared(Sharing { collective, ranks, cost: smcc, penalty }: &Sharing) -> String {
    let row = |(row, point): (usize, &Point)| {
        let ovp = penalty.as_ref().and_then(|curve| {
            let place = curve.points().iter().position(|other| other.bytes == point.bytes)?;
            Some(margin(curve.points()[place].ns, reach_ns(&curve.points()[place])))
        });
        vec![Bytes(point.bytes).to_string(), cell(smcc, row), ovp.unwrap_or_default()]
    };
    let rows = smcc.points().iter().enumerate().map(row).collect();
    format!("{collective} on {ranks} ranks of a node\n{}\n", table(["bytes", "smcc(m)", "ovp(m)"], rows, 0))
}

/// `9.14 ms ±7%`, `9.14 ms ?97%`
fn cell(curve: &Curve, row: usize) -> String {
    let Some(point) = curve.points().get(row) else { return String::new() };
    let share = reach_ns(point) / point.ns.abs();
    let mark = if share > WIDEST { DOUBT } else { '±' };
    let percent = match (share * 100.0).round() {
        small if small <= 999.0 => format!("{mark}{small}%"),
        _ => format!("{mark}>999%"),
    };
    format!("{} {percent}", nanoseconds(point.ns))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use polycast_core::collective::Collective;
    use polycast_core::model::{ClassParameters, LinkClass, Provenance};

    use super::*;
    use crate::terminal::WIDTH;

    #[test]
    fn it_fits_80_columns() {
        let point = |bytes, ns: f64| Point { bytes, ns, low: ns * 0.03, high: ns * 1.97, samples: 9 };
        let curve = || Curve::new(vec![point(1024, 9_138e3), point(4 << 20, 278_953e3)]).unwrap();
        let class = ClassParameters {
            send_overhead: Some(curve()),
            receive_overhead: Some(curve()),
            end: Some(curve()),
            ..ClassParameters::new(curve(), curve())
        };
        let measured = Provenance { when: "now".into(), place: "here".into(), how: "so".into() };
        let parameters = Parameters::new(measured, BTreeMap::from([(LinkClass::SameNode, class)])).unwrap();
        let sharing =
            Sharing { collective: Collective::Broadcast, ranks: 16, cost: curve(), penalty: Some(curve()) };
        let text = print(&parameters.with_sharing(vec![sharing]).unwrap());
        assert!(
            text.contains("9.14 ms ?97%")
                && text.contains("279 ms ?97%")
                && text.contains("\n?: hardly known"),
            "{text}"
        );
        assert!(text.contains("bcast on 16 ranks of a node") && text.contains("9.14 ± 8.86 ms"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
