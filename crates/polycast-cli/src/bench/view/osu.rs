//! The table of the OSU micro-benchmarks with `-f`.

use std::io::{self, Write};

use super::{View, by_variant, over_ranks};
use crate::bench::environment::Environment;
use crate::bench::point::Point;

/// One table per variant, at the end.
#[derive(Default)]
pub struct Osu {
    points: Vec<Point>,
}

impl View for Osu {
    fn begin(&mut self, _environment: &Environment, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn size(&mut self, points: &[Point], _out: &mut dyn Write) -> io::Result<()> {
        self.points.extend_from_slice(points);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for (variant, points) in by_variant(&self.points) {
            writeln!(out, "\n# OSU MPI Broadcast Latency Test, as a view of polycast bench: {variant}")?;
            writeln!(
                out,
                "{:<10}{:>18}{:>18}{:>18}{:>12}",
                "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"
            )?;
            for point in points {
                let (average, smallest, largest) = over_ranks(point);
                let Point { bytes, samples, .. } = point;
                writeln!(out, "{bytes:<10}{average:>18.2}{smallest:>18.2}{largest:>18.2}{samples:>12}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_those_of_osu() {
        let text = super::super::shown(super::Osu::default());
        assert!(
            text.contains("# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n")
        );
        assert!(
            text.contains("\n1024                   20.00             10.00             30.00          12\n"),
            "{text}"
        );
        assert_eq!(text.matches("# Size").count(), 2);
    }
}
