//! The table of the Intel MPI benchmarks.

use std::io::{self, Write};

use super::{View, by_variant, over_ranks};
use crate::bench::environment::Environment;
use crate::bench::point::Point;

/// One table per variant, at the end.
#[derive(Default)]
pub struct Imb {
    points: Vec<Point>,
}

const RULE: &str = "#----------------------------------------------------------------";

impl View for Imb {
    fn begin(&mut self, _environment: &Environment, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn size(&mut self, points: &[Point], _out: &mut dyn Write) -> io::Result<()> {
        self.points.extend_from_slice(points);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for (variant, points) in by_variant(&self.points) {
            let ranks = points.first().map_or(0, |point| point.ranks);
            writeln!(out, "\n{RULE}\n# Benchmarking Bcast, as a view of polycast bench: {variant}")?;
            writeln!(out, "# #processes = {ranks}\n{RULE}")?;
            writeln!(
                out,
                "{:>13} {:>12} {:>12} {:>12} {:>12}",
                "#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"
            )?;
            for point in points {
                let (average, smallest, largest) = over_ranks(point);
                let Point { bytes, samples, .. } = point;
                writeln!(out, "{bytes:>13} {samples:>12} {smallest:>12.2} {largest:>12.2} {average:>12.2}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_those_of_imb() {
        let text = super::super::shown(super::Imb::default());
        assert!(text.contains("#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"), "{text}");
        assert!(text.contains("1024           12        10.00        30.00        20.00\n"), "{text}");
    }
}
