//! One row per size: the wire, then every variant, and how those of polycast compare; 80 columns.

use std::io::{self, Write};

use polycast_core::units::Bytes;

use super::View;
use super::notes::Notes;
use super::table::speedup;
use super::text::{head, or_dash, time};
use crate::bench::environment::Environment;
use crate::bench::point::Point;
use crate::terminal::{count, digits, hanging};

/// The most variants of a summary; more need the table, which has a row for each.
pub const MAX_VARIANTS: usize = 4;

/// A column with a time.
const TIME_WIDTH: usize = 10;

/// Needs no state but whether the heading has been written: widths are fixed.
#[derive(Default)]
pub struct Summary {
    has_heading: bool,
    notes: Notes,
}

impl View for Summary {
    fn begin(&mut self, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
        if self.has_heading {
            writeln!(out)?;
        }
        *self = Summary::default();
        let library = environment.launcher.split(" (").next().unwrap_or_default();
        let (ranks, hosts) =
            (count(environment.ranks, "rank", "ranks"), count(environment.nodes, "host", "hosts"));
        let what = format!(
            "{} on {ranks}, {hosts}, {library}: medians {}",
            environment.operation.function(),
            environment.span
        );
        writeln!(out, "{}", hanging("", "  ", &what))
    }

    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = points.first() else { return Ok(()) };
        let compared: Vec<&Point> =
            points.iter().filter(|point| point.variant != point.reference && point.reliable).collect();
        let blast = points.iter().any(|point| !point.reliable);
        if !self.has_heading {
            self.has_heading = true;
            heading(points, &compared, blast).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let mut row = format!("{:>8} {:>8}", Bytes(first.bytes).to_string(), or_dash(first.wire_us, time));
        for point in points {
            row += &format!("{:>TIME_WIDTH$}{}", or_dash(point.median_us, time), Notes::mark(point));
            self.notes.add(point, false);
        }
        match compared[..] {
            [one] => {
                row += &format!(" {:>5}", or_dash(one.ratio_to_wire, digits));
                if blast {
                    row += &format!(" {:>6}", or_dash(one.ratio_to_blast, digits));
                }
                row += &format!("  {}", speedup(one));
            }
            _ => compared.iter().for_each(|one| row += &format!(" {:>6}", or_dash(one.speedup, digits))),
        }
        writeln!(out, "{}", row.trim_end())?;
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        std::mem::take(&mut self.notes).write(out)
    }
}

/// Returns the heading in lines: names of variants may take several, and end together.
fn heading(points: &[Point], compared: &[&Point], blast: bool) -> Vec<String> {
    let reference = points.first().map_or("", |point| &point.reference);
    let title = |point: &Point| {
        let mut lines = head(&point.variant, TIME_WIDTH - 1);
        if !point.reliable {
            lines.iter_mut().next_back().iter_mut().for_each(|line| line.push('*'));
        }
        lines
    };
    let titles: Vec<Vec<String>> = points.iter().map(title).collect();
    let height = titles.iter().map(Vec::len).max().unwrap_or(1);
    let mut lines = vec![String::new()];
    for line in 0..height {
        let is_last = line + 1 == height;
        let (size, wire) = if is_last { ("size", "wire") } else { ("", "") };
        let mut text = format!("{size:>8} {wire:>8}");
        for title in &titles {
            let from_end = height - line;
            let part = title.len().checked_sub(from_end).and_then(|position| title.get(position));
            text += &format!("{:>TIME_WIDTH$} ", part.map_or("", String::as_str));
        }
        if is_last && compared.len() == 1 {
            text += &format!(" {:>5}", "×wire");
            text += if blast { " ×blast" } else { "" };
            text += &format!("  over {}", reference.get(..14).unwrap_or(reference));
        } else if is_last && !compared.is_empty() {
            text += &format!("  over {}", reference.get(..14).unwrap_or(reference));
        }
        lines.push(text.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sample_points;
    use super::*;
    use crate::terminal::WIDTH;

    /// The rows of points whose second one is twice the wire.
    fn rows(change: impl Fn(&mut Vec<Point>)) -> String {
        let mut points = sample_points();
        points.truncate(2);
        points.iter_mut().for_each(|point| point.wire_us = Some(100.0));
        (points[1].ratio_to_wire, points[1].speedup) = (Some(2.0), Some(2.5));
        change(&mut points);
        let (mut summary, mut out) = (Summary::default(), Vec::new());
        summary.size(&points, &mut out).unwrap();
        summary.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_size_is_a_row_with_the_wire_first() {
        let text = rows(|_| ());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "    size     wire     stock   polycast  ×wire  over stock", "{text}");
        assert_eq!(lines[2], "    1KiB   100 µs    400 µs     200 µs   2.00  2.50", "{text}");
    }

    #[test]
    fn a_doubt_stands_at_its_figure() {
        let text = rows(|points| points[1].doubt = Some("too fast".into()));
        assert!(text.contains("400 µs ") && text.contains("200 µs? "), "{text}");
        assert!(text.contains("? 1KiB: more than this lab can show: too fast"), "{text}");
    }

    #[test]
    fn blast_stands_beside_and_is_said_to_be_unreliable() {
        let text = rows(|points| {
            let blast = Point { variant: "blast".into(), reliable: false, lost: 3, ..points[0].clone() };
            points[1].ratio_to_blast = Some(1.07);
            points.push(blast);
        });
        assert!(text.contains("blast*") && text.contains("not reliable; 3 of"), "{text}");
        assert!(text.contains("×wire ×blast  over stock") && text.contains("2.00   1.07  2.50"), "{text}");
    }

    #[test]
    fn four_variants_with_long_names_fit_80_columns() {
        let text = rows(|points| {
            points[1].variant = "multicast-pull".into();
            (points[1].speedup_ci_low, points[1].speedup_ci_high) = (Some(12.3), Some(45.6));
            points.push(Point { variant: "chain:segment=8KiB,ready".into(), ..points[1].clone() });
            points.push(Point { variant: "blast".into(), reliable: false, ..points[1].clone() });
        });
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("multicast-") && text.contains("ready"), "{text}");
    }
}
