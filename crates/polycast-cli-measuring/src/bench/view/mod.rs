//! Forms in which results are shown. Each is handed the figures of a size when they are complete.

mod classic;
mod csv;
mod notes;
mod summary;
mod table;
mod text;

use std::io::{self, Write};

use super::environment::Environment;
use super::point::Point;

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Everything that counts, for people
    Table,
    /// A row per size, a column per variant; of more than four variants or several MPIs the table
    Summary,
    /// As the OSU micro-benchmarks print it; averages over repetitions per rank, which hide the completion
    Osu,
    /// As the Intel MPI benchmarks print it; averages, too
    Imb,
    /// All fields of a point, comma-separated
    Csv,
}

/// Shows results as they come.
pub trait View {
    /// Begins the output of an operation, before its first size.
    fn begin(&mut self, _environment: &Environment, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
    /// Prints all variants of a size.
    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()>;
    /// Ends the output of an operation, after its last size, also when the run was interrupted.
    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Shows nothing.
pub struct Silent;

impl View for Silent {
    fn size(&mut self, _points: &[Point], _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

impl Format {
    /// The view in this format, for this number of variants of as many MPIs.
    pub fn view(self, variants: usize, mpis: usize) -> Box<dyn View> {
        match self {
            Format::Summary if variants > summary::MAX_VARIANTS || mpis > 1 => {
                Box::new(table::Table::default())
            }
            Format::Table => Box::new(table::Table::default()),
            Format::Summary => Box::new(summary::Summary::default()),
            Format::Osu => Box::new(classic::Classic::osu()),
            Format::Imb => Box::new(classic::Classic::imb()),
            Format::Csv => Box::new(csv::Csv::default()),
        }
    }
}

#[cfg(test)]
fn sample_points() -> Vec<Point> {
    let point = |variant: &str, bytes, factor: f64| Point {
        variant: variant.into(),
        algorithm: Some(if variant == "stock" { "stock" } else { "chain" }.into()),
        reference: "stock".into(),
        collective: "bcast".into(),
        bytes,
        block_bytes: bytes,
        samples: 12,
        median_us: Some(400.0 * factor),
        ci_low_us: Some(390.0 * factor),
        ci_high_us: Some(410.0 * factor),
        per_rank_mean_us: vec![10.0 * factor, 20.0 * factor, 30.0 * factor],
        verified: true,
        reliable: true,
        ..Point::default()
    };
    vec![point("stock", 1024, 1.0), point("polycast", 1024, 0.5), point("stock", 65536, 10.0)]
}

#[cfg(test)]
fn shown(mut view: impl View) -> String {
    let mut out = Vec::new();
    view.size(&sample_points(), &mut out).unwrap();
    view.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}
