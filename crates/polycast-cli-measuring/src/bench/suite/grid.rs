//! What is measured.

use polycast_core::units::Bytes;

use polycast_cli_results::suite::{Cell, RATES};

use crate::bench::arrival::Root;

/// The points of a suite: all combinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    mpis: Vec<String>,
    hosts: Vec<u32>,
    ranks_per_host: Vec<u32>,
    rates: Vec<String>,
    roots: Vec<String>,
    sizes: Vec<Bytes>,
}

/// A part of a grid that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--only {text}: {problem}")]
pub struct ParseGridError {
    text: String,
    problem: String,
}

impl Grid {
    /// Returns the grid in which polycast is to be at least as fast as the MPI below, after its
    /// trials.
    pub fn never_slower() -> Grid {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let sizes = [8, 1 << 10, 8 << 10, 12_345, 64 << 10, 1 << 20, 16 << 20];
        Grid {
            mpis: texts(&["openmpi", "mpich"]),
            hosts: vec![2, 3, 4, 7, 16, 31],
            ranks_per_host: vec![1, 4],
            rates: texts(&RATES.map(|(name, _)| name)),
            roots: texts(&["0", "rotate"]),
            sizes: sizes.map(Bytes).to_vec(),
        }
    }

    /// Limits a dimension to the values that `KEY=VALUE,VALUE` names. Values need not be in the
    /// grid.
    pub fn only(&mut self, text: &str) -> Result<(), ParseGridError> {
        let error = |problem: &str| ParseGridError { text: text.to_owned(), problem: problem.to_owned() };
        const KEYS: &str =
            "expected mpi=, hosts=, ranks-per-host=, rate=, root= or bytes=, and values with commas";
        let (key, values) = text.split_once('=').ok_or_else(|| error(KEYS))?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let numbers = |most: u32| {
            let number = |text: &&str| text.parse().ok().filter(|number| (1..=most).contains(number));
            let numbers: Option<Vec<u32>> = values.iter().map(number).collect();
            numbers.ok_or_else(|| error(&format!("expected whole numbers from 1 to {most}")))
        };
        let texts = || values.iter().map(|text| (*text).to_owned()).collect();
        match key.trim() {
            "mpi" => self.mpis = texts(),
            "hosts" => self.hosts = numbers(250)?,
            "ranks-per-host" => self.ranks_per_host = numbers(64)?,
            "rate" => {
                let names = RATES.map(|(name, _)| name);
                if values.iter().any(|value| !names.contains(value)) {
                    return Err(error(&format!("expected some of {}", names.join(", "))));
                }
                self.rates = texts();
            }
            "root" => {
                let roots: Result<Vec<Root>, String> = values.iter().map(|text| text.parse()).collect();
                roots.map_err(|problem| error(&problem))?;
                self.roots = texts();
            }
            "bytes" => {
                let sizes: Result<Vec<Bytes>, _> = values.iter().map(|text| text.parse()).collect();
                self.sizes = sizes.map_err(|_| error("expected sizes such as 8KiB"))?;
            }
            _ => return Err(error(KEYS)),
        }
        Ok(())
    }

    /// The sizes of each job.
    pub fn sizes(&self) -> &[Bytes] {
        &self.sizes
    }

    /// Lists the jobs in an order in which the first few are from all over the grid, for a budget
    /// may end before the list does.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for rate in &self.rates {
            for hosts in &self.hosts {
                for ranks_per_host in &self.ranks_per_host {
                    for mpi in &self.mpis {
                        for root in &self.roots {
                            let (mpi, rate, root) = (mpi.clone(), rate.clone(), root.clone());
                            let (hosts, ranks_per_host) = (*hosts, *ranks_per_host);
                            cells.push(Cell { mpi, hosts, ranks_per_host, rate, root });
                        }
                    }
                }
            }
        }
        // Steps of the golden ratio spread evenly, however many there are (Knuth 1973, vol. 3, 6.4).
        let mut keyed: Vec<(u32, Cell)> =
            (0u32..).map(|index| index.wrapping_mul(0x9e37_79b9)).zip(cells).collect();
        keyed.sort_unstable_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, cell)| cell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_all_combinations_once() {
        let grid = Grid::never_slower();
        let cells = grid.cells();
        assert_eq!(cells.len(), 2 * 6 * 2 * 4 * 2);
        let different: std::collections::HashSet<&Cell> = cells.iter().collect();
        assert_eq!((different.len(), grid.sizes().len()), (cells.len(), 7));
        let first: std::collections::HashSet<&str> =
            cells[..16].iter().map(|cell| cell.rate.as_str()).collect();
        assert_eq!(first.len(), 4, "the first of them are from all over the grid");
    }

    #[test]
    fn a_part_can_be_chosen() {
        let mut grid = Grid::never_slower();
        for part in ["hosts=4", "ranks-per-host=1", "rate=1gbit", "mpi=openmpi", "root=0", "bytes=8KiB,64KiB"]
        {
            grid.only(part).unwrap();
        }
        assert_eq!(grid.sizes(), [Bytes(8192), Bytes(65_536)]);
        let cells = grid.cells();
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0].lab(), "hosts=4,rate=1gbit,burst=64KiB");
        assert_eq!(cells[0].to_string(), "4 hosts × 1, 1gbit, openmpi, root 0");
    }

    #[test]
    fn mistakes_are_named() {
        let mut grid = Grid::never_slower();
        for (part, expected) in [
            ("hosts", "expected mpi=, hosts="),
            ("ranks=1", "expected mpi=, hosts="),
            ("hosts=0", "whole numbers from 1 to 250"),
            ("rate=3gbit", "expected some of 20mbit"),
            ("root=x", "expected a rank or rotate"),
            ("bytes=many", "sizes such as 8KiB"),
        ] {
            let error = grid.only(part).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--only {part}: ")) && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn every_rate_is_one_of_a_lab() {
        for cell in Grid::never_slower().cells() {
            assert!(cell.lab().parse::<polycast_lab::LabSpec>().is_ok(), "{}", cell.lab());
        }
    }
}
