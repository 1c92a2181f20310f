//! What has been measured: a file with a line for each job, which later runs add to.

use std::path::Path;

use polycast_core::units::Bytes;

use polycast_cli_results::suite::{Cell, Measured};

use crate::bench::point::Point;
use crate::json_lines::JsonLines;

/// The file of results, and the results in it.
pub struct Store {
    file: JsonLines,
    /// The results in the order in which they were measured.
    pub measured: Vec<Measured>,
}

impl Store {
    /// Reads the file, if there is one.
    pub fn open(path: &Path) -> Result<Store, String> {
        let (file, measured) = JsonLines::open(path)?;
        Ok(Store { file, measured })
    }

    /// Adds a job.
    pub fn add(&mut self, measured: Measured) -> Result<(), String> {
        self.file.add(&measured)?;
        self.measured.push(measured);
        Ok(())
    }

    /// Returns the last measurement of polycast beside stock, in this size. A measurement that was
    /// cut off counts where it says something.
    pub fn point(&self, cell: &Cell, bytes: Bytes) -> Option<&Point> {
        let of_cell = self.measured.iter().rev().filter(|measured| measured.cell == *cell);
        let mut points =
            of_cell.flat_map(|measured| measured.points.iter().map(move |point| (measured, point)));
        let says = |measured: &Measured, point: &Point| {
            measured.failure.is_none()
                || point.speedup_ci_low.is_some()
                || point.speedup_withheld.is_some()
                || point.wrong > 0
        };
        let is_it = |(measured, point): &(&Measured, &Point)| {
            point.bytes == bytes.0 && point.variant != "stock" && says(measured, point)
        };
        points.find(is_it).map(|(_, point)| point)
    }

    /// Cells whose last job did not end well, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Cell, &String)> {
        let is_last =
            |at: usize, cell: &Cell| self.measured[at + 1..].iter().all(|later| later.cell != *cell);
        let failed = self.measured.iter().enumerate().filter(move |(at, one)| is_last(*at, &one.cell));
        failed.filter_map(|(_, one)| Some((&one.cell, one.failure.as_ref()?)))
    }

    /// The sizes that this cell lacks.
    pub fn missing(&self, cell: &Cell, sizes: &[Bytes]) -> Vec<Bytes> {
        sizes.iter().copied().filter(|bytes| self.point(cell, *bytes).is_none()).collect()
    }

    /// Returns the average time of a job, in seconds.
    pub fn mean_seconds(&self) -> Option<f64> {
        let seconds = self.measured.iter().map(|measured| measured.seconds);
        (!self.measured.is_empty()).then(|| seconds.sum::<f64>() / self.measured.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::Grid;

    #[test]
    fn what_was_cut_off_is_measured_again_and_told_until_then() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("suite.jsonl")).unwrap();
        let cells = Grid::never_slower().cells();
        let point = |bytes, samples, speedup_ci_low| Point {
            bytes,
            samples,
            speedup_ci_low,
            variant: "polycast".to_owned(),
            ..Point::default()
        };
        let points = vec![point(8, 20, Some(1.0)), point(1024, 1, None)];
        let failure = Some("the time was up".to_owned());
        store.add(Measured { cell: cells[0].clone(), points, failure, seconds: 3.0 }).unwrap();
        assert_eq!(store.missing(&cells[0], &[8, 1024].map(Bytes)), [Bytes(1024)]);
        assert_eq!(store.failures().count(), 1);
        let points = vec![point(1024, 2, None)];
        store.add(Measured { cell: cells[0].clone(), points, failure: None, seconds: 3.0 }).unwrap();
        assert!(store.missing(&cells[0], &[8, 1024].map(Bytes)).is_empty(), "it has had its time");
        assert_eq!(store.failures().count(), 0);
    }

    #[test]
    fn a_later_run_goes_on_where_one_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.jsonl");
        let cells = Grid::never_slower().cells();
        let point = |bytes| Point { bytes, variant: "polycast".to_owned(), ..Point::default() };
        let stock = Point { bytes: 8, variant: "stock".to_owned(), ..Point::default() };
        let mut store = Store::open(&path).unwrap();
        let points = vec![stock, point(1024)];
        let measured = Measured { cell: cells[0].clone(), points, failure: None, seconds: 3.0 };
        store.add(measured.clone()).unwrap();
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"cell\":{\"mpi\"").unwrap();
        let again = Store::open(&path).unwrap();
        let sizes = [8, 1024, 8192].map(Bytes);
        assert_eq!(again.missing(&cells[0], &sizes), [Bytes(8), Bytes(8192)], "stock alone says nothing");
        assert_eq!(again.missing(&cells[1], &sizes), sizes);
        assert_eq!(again.mean_seconds(), Some(3.0));
    }
}
