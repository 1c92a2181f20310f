//! The table for people: a group of rows per size, a row per variant; 80 columns.

use std::io::{self, Write};

use polycast_core::units::Bytes;

use super::View;
use super::notes::Notes;
use super::text::{or_dash, time};
use crate::bench::environment::Environment;
use crate::bench::point::{Point, are_of_several_mpis};
use crate::jobs::record::TimeFrom;
use crate::terminal::{count, digits, hanging, interval, range};

/// Room for the name of a variant; a longer one has a line of its own.
const NAME_WIDTH: usize = 14;

/// A view that prints a table with a row for each variant. Rows are written as sizes are done, so
/// widths are fixed.
#[derive(Default)]
pub struct Table {
    columns: Columns,
    has_heading: bool,
    notes: Notes,
}

/// The optional columns of the table.
#[derive(Default)]
struct Columns {
    wire: bool,
    blast: bool,
    delay: bool,
    speedup: bool,
}

impl View for Table {
    fn begin(&mut self, environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
        if self.has_heading {
            writeln!(out)?;
        }
        *self = Table::default();
        self.columns.wire = environment.rate_bits_per_second.is_some();
        let Environment { launcher, ranks, nodes, machine, clock, span, operation, .. } = environment;
        // Without the path of the mpiexec.
        let library = match &environment.mpis[..] {
            [] => launcher.split(" (").next().unwrap_or_default().to_owned(),
            several => format!("{} in turn", several.join(", ")),
        };
        let shared = if environment.oversubscribed { ", oversubscribed" } else { "" };
        let (ranks, hosts, cores) = (
            count(*ranks, "rank", "ranks"),
            count(*nodes, "host", "hosts"),
            count(machine.cores, "core", "cores"),
        );
        writeln!(out, "{}", hanging("", "  ", &format!("{library} · {ranks} on {hosts} · {cores}{shared}")))?;
        let error = clock.as_ref().map_or(0.0, |clock| clock.error_us);
        // Other methods need no common clock.
        let has_clock = matches!(span.from, TimeFrom::FirstCall | TimeFrom::RootCall);
        let clock = if has_clock { format!(" · clock ± {error:.1} µs") } else { String::new() };
        let what = format!(
            "{} {span}: median, its 95 % interval in the same unit, message bytes per second{clock}{}",
            operation.function(),
            if environment.cold { " · cold caches" } else { "" }
        );
        writeln!(out, "{}", hanging("", "  ", &what))
    }

    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = points.first() else { return Ok(()) };
        if !self.has_heading {
            self.has_heading = true;
            self.columns.delay = points.iter().any(|point| point.delay_us > 0.0);
            self.columns.blast = !self.columns.delay && points.iter().any(|point| !point.reliable);
            self.columns.speedup = points.iter().any(|point| point.variant != first.variant);
            writeln!(out, "\n{}", self.columns.heading(&first.reference))?;
        }
        let are_several = are_of_several_mpis(points);
        for of_one in points.chunk_by(|a, b| a.mpi == b.mpi) {
            writeln!(out, "{}", hanging("", "  ", &title(of_one, are_several)))?;
            for point in of_one {
                writeln!(out, "{}", self.columns.row(point))?;
                if point.wrong > 0 {
                    writeln!(out, "    WRONG DATA in {}", count(point.wrong, "repetition", "repetitions"))?;
                }
                self.notes.add(point, are_several);
            }
        }
        out.flush()
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        std::mem::take(&mut self.notes).write(out)
    }
}

/// `64KiB · wire 549 µs · polycast by multicast-pull`
fn title(points: &[Point], names_mpi: bool) -> String {
    let Some(first) = points.first() else { return String::new() };
    let wire = first.wire_us.filter(|us| *us > 0.0).map(|us| format!("wire {}", time(us)));
    let of_polycast = points.iter().find(|point| point.variant == "polycast");
    let choice = of_polycast.and_then(|point| point.algorithm.as_ref());
    let choice = choice.map(|algorithm| format!("polycast by {algorithm}"));
    let mpi = Some(first.mpi.clone()).filter(|_| names_mpi);
    [Some(Bytes(first.bytes).to_string()), mpi, wire, choice]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

impl Columns {
    fn heading(&self, reference: &str) -> String {
        let mut heading = format!("  {:<NAME_WIDTH$} {:>7}  {:<9}", "variant", "median", "95 %");
        heading += &if self.delay { format!(" {:>9}", "last call") } else { format!(" {:>5}", "MB/s") };
        if self.wire {
            heading += &format!(" {:>6}", "×wire");
        }
        if self.blast {
            heading += &format!(" {:>6}", "×blast");
        }
        if self.speedup {
            // The long name of a reference would push the columns apart.
            let title = format!("over {reference}");
            let title = if title.len() > 16 { "times faster".to_owned() } else { title };
            heading += &format!("  {title:<16}");
        }
        heading + &format!(" {:>5}", "n")
    }

    fn row(&self, point: &Point) -> String {
        let name = format!("{}{}", point.variant, if point.reliable { "" } else { "*" });
        let (name, before) = match name.chars().count() > NAME_WIDTH {
            true => (String::new(), format!("  {name}\n")),
            false => (name, String::new()),
        };
        let ends = point.median_us.zip(point.ci_low_us.zip(point.ci_high_us));
        let mut row = format!(
            "{before}  {name:<NAME_WIDTH$} {:>7}  {:<9}",
            or_dash(point.median_us, time),
            ends.map_or("-".into(), |(us, (low, high))| interval(us * 1e3, (low * 1e3, high * 1e3)))
        );
        row += &match self.delay {
            true => format!(" {:>9}", or_dash(point.since_last_arrival_median_us, time)),
            false => format!(" {:>5}", or_dash(point.bandwidth_mb_per_s, digits)),
        };
        if self.wire {
            row += &format!(" {:>6}", or_dash(point.ratio_to_wire, digits));
        }
        if self.blast {
            row += &format!(" {:>6}", or_dash(point.ratio_to_blast, digits));
        }
        if self.speedup {
            row += &format!("  {:<16}", speedup(point));
        }
        row + &format!(" {:>5}{}", point.samples, Notes::mark(point))
    }
}

/// `3.32 (3.07–3.57)`; nothing of the reference itself, and `withheld` where it says nothing.
pub(super) fn speedup(point: &Point) -> String {
    let Some(times) = point.speedup else {
        return if point.speedup_withheld.is_some() { "withheld".to_owned() } else { String::new() };
    };
    match point.speedup_ci_low.zip(point.speedup_ci_high) {
        Some((low, high)) => format!("{} ({})", digits(times), range(low, high)),
        None => digits(times),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::view::sample_points;
    use crate::terminal::WIDTH;

    fn lines(points: &[Point]) -> Vec<String> {
        let mut table = Table::default();
        table.columns.wire = true;
        let mut out = Vec::new();
        table.size(points, &mut out).unwrap();
        table.end(&mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_stand_under_their_headings() {
        let lines = lines(&sample_points());
        assert_eq!(lines[1].chars().count() + 1, lines[3].chars().count(), "but for the mark");
        assert_eq!(lines[2], "1KiB · polycast by chain");
        assert!(lines[3].starts_with("  stock           400 µs  390–410  "), "{}", lines[3]);
        assert!(lines[4].starts_with("  polycast        200 µs  195–205  "), "{}", lines[4]);
    }

    /// Of the longest values there are.
    #[test]
    fn no_line_is_longer_than_80_columns() {
        let mut points = sample_points();
        for point in &mut points {
            (point.median_us, point.samples) = (Some(99_900.0), 12_345);
            (point.ci_low_us, point.ci_high_us) = (Some(99_400.0), Some(100_400.0));
            (point.ratio_to_wire, point.ratio_to_blast) = (Some(12_345.0), Some(99.94));
            (point.speedup, point.speedup_ci_low, point.speedup_ci_high) =
                (Some(12.3), Some(11.1), Some(13.3));
            (point.bandwidth_mb_per_s, point.doubt) = (Some(12_345.0), Some("a long word ".repeat(30)));
            point.remark = Some("another long word ".repeat(30));
        }
        points[0].reliable = false;
        points[1].variant = "chain:segment=8KiB,ready".into();
        let lines = lines(&points);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        assert!(lines.iter().any(|line| line.chars().count() == WIDTH), "{lines:#?}");
    }

    #[test]
    fn wrong_data_and_doubts_are_not_overlooked() {
        let mut points = sample_points();
        (points[1].verified, points[1].wrong) = (false, 3);
        (points[2].reliable, points[2].lost) = (false, 7);
        (points[1].believed, points[1].doubt) = (Some(false), Some("cores are the limit".into()));
        points[0].remark = Some("1 repetition only".into());
        let text = lines(&points).join("\n");
        assert!(text.contains("12?\n    WRONG DATA in 3 repetitions"), "{text}");
        assert!(text.contains("1KiB: more than this lab can show: cores are the limit"), "{text}");
        assert!(text.contains("12!\n") && text.contains("! stock 1KiB: 1 repetition only"), "{text}");
        assert!(text.contains("not MPI and not reliable; 7 of"), "{text}");
    }
}
