//! The table for people: a group of rows per size, a row per variant.

use std::io::{self, Write};

use polycast_core::units::Bytes;

use super::View;
use crate::bench::environment::Environment;
use crate::bench::point::Point;

/// Rows are written as sizes are done, so widths are fixed.
#[derive(Default)]
pub struct Table {
    has_wire: bool,
    has_delay: bool,
    compares: bool,
    variant_width: usize,
    notes: Vec<String>,
}

impl View for Table {
    fn begin(&mut self, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
        self.has_wire = environment.rate_bits_per_second.is_some();
        let Environment { launcher, ranks, nodes, machine, clock, .. } = environment;
        // Without the path of the mpiexec.
        let library = launcher.split(" (").next().unwrap_or_default();
        let hosts = if *nodes == 1 { "host" } else { "hosts" };
        let shared = if environment.oversubscribed { ", oversubscribed" } else { "" };
        writeln!(out, "{library} · {ranks} ranks on {nodes} {hosts} · {} cores{shared}", machine.cores)?;
        let error = clock.as_ref().map_or(0.0, |clock| clock.error_us);
        writeln!(
            out,
            "MPI_Bcast, first call to last return, median with 95 % interval · clock ± {error:.1} µs"
        )
    }

    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
        if self.variant_width == 0 {
            self.compares = points.len() > 1;
            self.has_delay = points.iter().any(|point| point.delay_us > 0.0);
            self.variant_width = points.iter().map(|point| point.variant.len()).max().unwrap_or(0).max(8);
            writeln!(out, "\n{}", self.heading(points))?;
        }
        for (position, point) in points.iter().enumerate() {
            writeln!(out, "{}", self.row(point, position == 0))?;
            if let Some(doubt) = &point.doubt {
                let note = format!("{}: {doubt}", Bytes(point.bytes));
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.notes.is_empty() {
            writeln!(out, "\n? the lab is not to be believed here:")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "  {note}"))
    }
}

impl Table {
    fn heading(&self, points: &[Point]) -> String {
        let reference = points.first().map_or("", |point| &point.reference);
        let mut heading = format!("{:>10}  {:<width$}", "size", "variant", width = self.variant_width);
        heading += &format!("  {:>12}  {:<23}", "median µs", "95 % interval");
        if self.has_delay {
            heading += &format!("  {:>14}", "after last µs");
        }
        if self.has_wire {
            heading += &format!("  {:>7}", "× wire");
        }
        if self.compares {
            heading += &format!("  {:<25}", format!("times faster than {reference}"));
        }
        heading + &format!("  {:>5}  {:>5}  {:>7}", "skew", "n", "dropped")
    }

    fn row(&self, point: &Point, first_of_size: bool) -> String {
        let size = if first_of_size { Bytes(point.bytes).to_string() } else { String::new() };
        let mut row = format!("{size:>10}  {:<width$}", point.variant, width = self.variant_width);
        row += &format!(
            "  {:>12}  {:<23}",
            number(point.median_us, 1),
            interval(point.ci_low_us, point.ci_high_us, 1)
        );
        if self.has_delay {
            row += &format!("  {:>14}", number(point.since_last_arrival_median_us, 1));
        }
        if self.has_wire {
            row += &format!("  {:>7}", number(point.ratio_to_wire, 2));
        }
        if self.compares {
            let range = interval(point.speedup_ci_low, point.speedup_ci_high, 2);
            let speedup = point.speedup.map(|speedup| format!("{speedup:.2} ({range})"));
            row += &format!("  {:<25}", speedup.unwrap_or_default());
        }
        row += &format!("  {:>5}  {:>5}  {:>7}", number(point.skew_ratio, 2), point.samples, point.dropped);
        if !point.reliable {
            row += "  not MPI, unreliable";
        }
        if point.lost > 0 {
            row += &format!(": {} lost", point.lost);
        }
        if point.wrong > 0 {
            row += &format!("  WRONG DATA in {} repetitions", point.wrong);
        }
        if point.believed == Some(false) {
            row += "  ?";
        }
        row
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

fn interval(low: Option<f64>, high: Option<f64>, digits: usize) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{low:.digits$} … {high:.digits$}"),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::view::sample_points;

    fn lines(points: &[Point]) -> Vec<String> {
        let mut table = Table { has_wire: true, ..Table::default() };
        let mut out = Vec::new();
        table.size(points, &mut out).unwrap();
        table.end(&mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_stand_under_their_headings() {
        let lines = lines(&sample_points());
        assert_eq!(lines[1].chars().count(), lines[2].chars().count());
        assert!(lines[2].starts_with("      1KiB  stock            400.0  390.0 … 410.0"), "{}", lines[2]);
        assert!(lines[3].starts_with("            polycast         200.0"), "{}", lines[3]);
    }

    #[test]
    fn wrong_data_and_doubts_are_not_overlooked() {
        let mut points = sample_points();
        (points[1].verified, points[1].wrong) = (false, 3);
        (points[2].reliable, points[2].lost) = (false, 7);
        (points[1].believed, points[1].doubt) = (Some(false), Some("cores are the limit".into()));
        let text = lines(&points).join("\n");
        assert!(text.contains("WRONG DATA in 3 repetitions  ?"), "{text}");
        assert!(text.contains("1KiB: cores are the limit"), "{text}");
        assert!(text.contains("not MPI, unreliable: 7 lost"), "{text}");
    }
}
