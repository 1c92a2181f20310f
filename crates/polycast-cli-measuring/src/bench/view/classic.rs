//! The tables of the OSU micro-benchmarks (with `-f`) and of the Intel MPI benchmarks.

use std::io::{self, Write};

use super::View;
use crate::bench::operation::capitalised;
use crate::bench::point::Point;

/// A view that prints one table per variant, at the end.
pub struct Classic {
    /// Writes the table of a variant.
    write: fn(&str, &[&Point], &mut dyn Write) -> io::Result<()>,
    points: Vec<Point>,
}

impl Classic {
    /// The view of OSU's benchmark.
    pub fn osu() -> Classic {
        Classic { write: osu, points: Vec::new() }
    }

    /// The view of Intel's benchmark.
    pub fn imb() -> Classic {
        Classic { write: imb, points: Vec::new() }
    }
}

impl View for Classic {
    fn size(&mut self, points: &[Point], _out: &mut dyn Write) -> io::Result<()> {
        self.points.extend_from_slice(points);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut tables: Vec<(&str, Vec<&Point>)> = Vec::new();
        let points = std::mem::take(&mut self.points);
        for point in &points {
            match tables.iter_mut().find(|(variant, _)| *variant == point.variant) {
                Some((_, rows)) => rows.push(point),
                None => tables.push((&point.variant, vec![point])),
            }
        }
        tables.into_iter().try_for_each(|(variant, points)| (self.write)(variant, &points, out))
    }
}

fn osu(variant: &str, points: &[&Point], out: &mut dyn Write) -> io::Result<()> {
    let name = match points.first().map_or("", |point| &point.collective) {
        "bcast" => "Broadcast".to_owned(),
        "alltoall" => "All-to-All Personalized Exchange".to_owned(),
        other => capitalised(other),
    };
    writeln!(out, "\n# OSU MPI {name} Latency Test, as a view of polycast bench: {variant}")?;
    writeln!(
        out,
        "{:<10}{:>18}{:>18}{:>18}{:>12}",
        "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"
    )?;
    for point in points {
        let [average, smallest, largest] = over_ranks(point);
        let Point { block_bytes: bytes, samples, .. } = point;
        writeln!(out, "{bytes:<10}{average:>18}{smallest:>18}{largest:>18}{samples:>12}")?;
    }
    Ok(())
}

const RULE: &str = "#----------------------------------------------------------------";

fn imb(variant: &str, points: &[&Point], out: &mut dyn Write) -> io::Result<()> {
    let ranks = points.first().map_or(0, |point| point.ranks);
    let name = capitalised(points.first().map_or("", |point| &point.collective));
    writeln!(out, "\n{RULE}\n# Benchmarking {name}, as a view of polycast bench: {variant}")?;
    writeln!(out, "# #processes = {ranks}\n{RULE}")?;
    writeln!(
        out,
        "{:>13} {:>12} {:>12} {:>12} {:>12}",
        "#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"
    )?;
    for point in points {
        let [average, smallest, largest] = over_ranks(point);
        let Point { block_bytes: bytes, samples, .. } = point;
        writeln!(out, "{bytes:>13} {samples:>12} {smallest:>12} {largest:>12} {average:>12}")?;
    }
    Ok(())
}

/// The mean, smallest and largest of the ranks' own mean times, in µs: all that these tables show.
fn over_ranks(point: &Point) -> [String; 3] {
    let means = &point.per_rank_mean_us;
    let average = (point.samples > 0).then(|| means.iter().sum::<f64>() / means.len().max(1) as f64);
    let smallest = means.iter().copied().reduce(f64::min);
    let largest = means.iter().copied().reduce(f64::max);
    [average, average.and(smallest), average.and(largest)]
        .map(|us| us.map_or("-".to_owned(), |us| format!("{us:.2}")))
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn columns_are_those_of_osu() {
        let text = shown(Classic::osu());
        assert!(
            text.contains("# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n")
        );
        assert!(
            text.contains("\n1024                   20.00             10.00             30.00          12\n"),
            "{text}"
        );
        assert_eq!(text.matches("# Size").count(), 2);
        assert!(text.contains("# OSU MPI Broadcast Latency Test,"), "{text}");
    }

    #[test]
    fn a_variant_without_a_sample_has_no_time() {
        let lost = Point { samples: 0, per_rank_mean_us: vec![0.0; 3], ..Point::default() };
        assert_eq!(over_ranks(&lost), ["-"; 3]);
    }

    #[test]
    fn columns_are_those_of_imb() {
        let text = shown(Classic::imb());
        assert!(text.contains("# Benchmarking Bcast,"), "{text}");
        assert!(text.contains("#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"), "{text}");
        assert!(text.contains("1024           12        10.00        30.00        20.00\n"), "{text}");
    }
}
