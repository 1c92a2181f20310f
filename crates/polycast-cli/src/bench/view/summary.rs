//! One row per size: the wire, then every variant, as times and as multiples of the wire.

use std::io::{self, Write};

use polycast_core::units::Bytes;

use super::View;
use crate::bench::environment::Environment;
use crate::bench::point::Point;

/// Needs no state but whether the heading has been written: widths are fixed.
#[derive(Default)]
pub struct Summary {
    has_heading: bool,
    is_doubted: bool,
    /// Of a variant that is not reliable: its name, repetitions that were lost, and all.
    unreliable: Option<(String, usize, usize)>,
}

impl View for Summary {
    fn begin(&mut self, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
        let library = environment.launcher.split(" (").next().unwrap_or_default();
        writeln!(
            out,
            "MPI_Bcast on {} ranks, {} hosts, {library}: milliseconds from the first call to the last return, medians",
            environment.ranks, environment.nodes
        )
    }

    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = points.first() else { return Ok(()) };
        if !self.has_heading {
            self.has_heading = true;
            let variants: String = points.iter().map(|point| format!("  {:>20}", title(point))).collect();
            let reference = &first.reference;
            writeln!(out, "\n{:>8}  {:>9}{variants}   times faster than {reference} (95 %)", "size", "wire")?;
        }
        let mut row = format!("{:>8}  {:>9}", Bytes(first.bytes).to_string(), milliseconds(first.wire_us));
        for point in points {
            row += &format!("  {:>20}", cell(point));
        }
        for point in points.iter().filter(|point| point.variant != point.reference && point.reliable) {
            row += &format!("   {}", speedup(point));
        }
        self.count_losses(points);
        self.is_doubted |= points.iter().any(|point| point.doubt.is_some());
        writeln!(out, "{row}")?;
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if let Some((variant, lost, all)) = &self.unreliable {
            writeln!(
                out,
                "\n* {variant}: a bare UDP multicast of the same bytes, not MPI and not reliable; {lost} of {all} \
                 repetitions were lost and are not timed"
            )?;
        }
        if self.is_doubted {
            writeln!(
                out,
                "\n? more than this emulation can show: so small a message, or so much traffic at once, that the machine \
                 and not the link sets the time"
            )?;
        }
        Ok(())
    }
}

impl Summary {
    fn count_losses(&mut self, points: &[Point]) {
        for point in points.iter().filter(|point| !point.reliable) {
            let (_, lost, all) = self.unreliable.get_or_insert_with(|| (point.variant.clone(), 0, 0));
            *lost += point.lost;
            *all += point.lost + point.samples;
        }
    }
}

/// The head of a variant's column, which has room for 20 characters.
fn title(point: &Point) -> String {
    let name = point.variant.get(..20).unwrap_or(&point.variant);
    format!("{name}{}", if point.reliable { "" } else { "*" })
}

/// `12.34 (1.20×)`, with a mark where it is not to be believed; all marks stand in one column.
fn cell(point: &Point) -> String {
    let ratio = point.ratio_to_wire.map_or(String::new(), |ratio| format!(" ({ratio:.2}×)"));
    milliseconds(point.median_us) + &ratio + if point.doubt.is_some() { "?" } else { " " }
}

fn milliseconds(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), |us| format!("{:.2}", us / 1000.0))
}

fn speedup(point: &Point) -> String {
    match (point.speedup, point.speedup_ci_low, point.speedup_ci_high) {
        (Some(times), Some(low), Some(high)) => format!("{times:.2} ({low:.2} … {high:.2})"),
        (Some(times), ..) => format!("{times:.2}"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample_points, shown};
    use super::*;

    /// The rows of points whose second one is twice the wire.
    fn rows(change: impl Fn(&mut Point)) -> String {
        let mut points = sample_points();
        points.iter_mut().for_each(|point| point.wire_us = Some(100.0));
        (points[1].ratio_to_wire, points[1].speedup) = (Some(2.0), Some(2.0));
        change(&mut points[1]);
        let (mut summary, mut out) = (Summary::default(), Vec::new());
        summary.size(&points[..2], &mut out).unwrap();
        summary.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_size_is_a_row_with_the_wire_first() {
        let text = shown(Summary::default());
        assert!(text.contains("size") && text.contains("wire") && text.contains("polycast"), "{text}");
        let text = rows(|_| ());
        let row = text.lines().last().unwrap();
        assert!(
            row.contains("1KiB       0.10") && row.contains("0.20 (2.00×)") && row.contains("   2.00"),
            "{row}"
        );
    }

    #[test]
    fn a_doubt_stands_at_its_figure() {
        let text = rows(|point| point.doubt = Some("too fast".into()));
        assert!(text.contains("0.40   ") && text.contains("0.20 (2.00×)?"), "{text}");
        assert!(text.contains("? more than this emulation can show"), "{text}");
    }

    #[test]
    fn what_is_not_reliable_is_said_to_be_so() {
        let text = rows(|point| (point.reliable, point.lost) = (false, 3));
        assert!(text.contains("polycast*") && text.contains("3 of 15 repetitions were lost"), "{text}");
        assert!(!text.contains("   2.00"), "it is not compared with stock: {text}");
    }
}
