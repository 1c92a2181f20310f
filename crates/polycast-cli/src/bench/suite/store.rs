//! What has been measured: a file with a line for each job, which later runs add to.

use std::path::Path;

use polycast_core::units::Bytes;
use serde::{Deserialize, Serialize};

use super::Cell;
use crate::bench::point::Point;
use crate::json_lines::JsonLines;

/// What came of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// What was measured.
    pub cell: Cell,
    /// One for each size and variant.
    pub points: Vec<Point>,
    /// Why there are fewer than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How long the job took, its lab included.
    pub seconds: f64,
}

/// The file, and what it holds.
pub struct Store {
    file: JsonLines,
    /// In the order in which they were measured.
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

    /// polycast beside stock, in this size; the last measurement.
    pub fn point(&self, cell: &Cell, bytes: Bytes) -> Option<&Point> {
        let of_cell = self.measured.iter().rev().filter(|measured| measured.cell == *cell);
        let is_it = |point: &&Point| point.bytes == bytes.0 && point.variant != "stock";
        of_cell.flat_map(|measured| &measured.points).find(is_it)
    }

    /// The sizes that this cell lacks.
    pub fn missing(&self, cell: &Cell, sizes: &[Bytes]) -> Vec<Bytes> {
        sizes.iter().copied().filter(|bytes| self.point(cell, *bytes).is_none()).collect()
    }

    /// What a job takes on average, in seconds.
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
