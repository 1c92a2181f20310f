//! The results as a page that people read.

use std::fmt::{self, Write};

use polycast_core::units::Bytes;

use super::{Grid, Store};
use crate::bench::point::Point;

/// The part of stock's speed that is to be reached, everywhere.
const AT_LEAST: f64 = 0.97;

/// The verdict of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The whole interval lies below.
    Slower,
    /// The whole interval lies above.
    Holds,
    /// The interval has both.
    Open,
    /// Too few repetitions for an interval.
    Few,
    /// Wrong data.
    Wrong,
}

impl Verdict {
    fn of(point: &Point) -> Verdict {
        match (point.speedup_ci_low, point.speedup_ci_high) {
            _ if point.wrong > 0 => Verdict::Wrong,
            _ if point.speedup_withheld.is_some() => Verdict::Open,
            (_, Some(high)) if high < AT_LEAST => Verdict::Slower,
            (Some(low), _) if low >= AT_LEAST => Verdict::Holds,
            (Some(_), Some(_)) => Verdict::Open,
            _ => Verdict::Few,
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Verdict::Slower => "**",
            Verdict::Wrong => "**WRONG** ",
            Verdict::Holds | Verdict::Open | Verdict::Few => "",
        }
    }
}

/// Writes the page in Markdown: the points that are slower, and every point.
pub fn page(grid: &Grid, store: &Store) -> Result<String, fmt::Error> {
    let cells = grid.cells();
    let points = || cells.iter().flat_map(|cell| grid.sizes().iter().map(move |bytes| (cell, *bytes)));
    let measured: Vec<_> =
        points().filter_map(|(cell, bytes)| Some((cell, bytes, store.point(cell, bytes)?))).collect();
    let count = |verdict| measured.iter().filter(|(.., point)| Verdict::of(point) == verdict).count();
    let mut out = String::new();
    writeln!(out, "# polycast beside the MPI below\n")?;
    writeln!(
        out,
        "Times the speed of stock, measured by turns in one job; 95 % intervals. {} of {} points are measured: {} are at {AT_LEAST} \
         or more with their whole interval, {} below it with their whole interval, {} are open, {} have too few repetitions, {} had wrong \
         data.\n",
        measured.len(),
        points().count(),
        count(Verdict::Holds),
        count(Verdict::Slower),
        count(Verdict::Open),
        count(Verdict::Few),
        count(Verdict::Wrong),
    )?;
    writeln!(out, "## Slower than {AT_LEAST} × stock\n")?;
    let mut slower: Vec<_> =
        measured.iter().filter(|(.., point)| Verdict::of(point) == Verdict::Slower).collect();
    slower.sort_by(|one, other| one.2.speedup.unwrap_or(0.0).total_cmp(&other.2.speedup.unwrap_or(0.0)));
    if slower.is_empty() {
        writeln!(out, "None of those that were measured.")?;
    }
    for (cell, bytes, point) in slower {
        let algorithm = point.algorithm.as_deref().unwrap_or("?");
        writeln!(out, "* {cell}, {bytes}: {}, by `{algorithm}`", ratio(point))?;
    }
    writeln!(out, "\n## All points\n")?;
    let heads: Vec<String> = grid.sizes().iter().map(Bytes::to_string).collect();
    writeln!(out, "| where | {} |\n|---|{}", heads.join(" | "), "---|".repeat(heads.len()))?;
    let mut sorted: Vec<_> = cells.iter().collect();
    sorted.sort_by_key(|cell| (&cell.rate, &cell.mpi, cell.hosts, cell.ranks_per_host, &cell.root));
    for cell in sorted {
        let entries: Vec<Option<&Point>> =
            grid.sizes().iter().map(|bytes| store.point(cell, *bytes)).collect();
        if entries.iter().all(Option::is_none) {
            continue;
        }
        let entries = entries.into_iter().map(|point| point.map_or_else(String::new, marked));
        writeln!(out, "| {cell} | {} |", entries.collect::<Vec<_>>().join(" | "))?;
    }
    let failures: Vec<_> = store.failures().filter(|(cell, _)| cells.contains(cell)).collect();
    if !failures.is_empty() {
        writeln!(out, "\n## Jobs that did not end well\n")?;
    }
    for (cell, failure) in failures {
        writeln!(out, "* {cell}: {failure}")?;
    }
    Ok(out)
}

fn marked(point: &Point) -> String {
    let mark = Verdict::of(point).mark();
    let end = if mark == "**" { "**" } else { "" };
    format!("{mark}{}{end}", ratio(point))
}

/// `1.02 (0.98–1.05)`.
fn ratio(point: &Point) -> String {
    let Some(speedup) = point.speedup else { return "–".to_owned() };
    match (point.speedup_ci_low, point.speedup_ci_high) {
        (Some(low), Some(high)) => format!("{speedup:.2} ({low:.2}–{high:.2})"),
        _ => format!("{speedup:.2} (n = {})", point.samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::Measured;

    fn point(bytes: u64, low: f64, median: f64, high: f64) -> Point {
        Point {
            bytes,
            variant: "polycast".to_owned(),
            algorithm: Some("chain".to_owned()),
            samples: 20,
            speedup: Some(median),
            speedup_ci_low: Some(low),
            speedup_ci_high: Some(high),
            ..Point::default()
        }
    }

    #[test]
    fn what_is_slower_beyond_its_interval_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut grid = Grid::never_slower();
        for part in ["hosts=4", "ranks-per-host=1", "rate=1gbit", "mpi=openmpi", "bytes=8KiB,64KiB,1MiB"] {
            grid.only(part).unwrap();
        }
        let mut store = Store::open(&folder.path().join("f")).unwrap();
        let points =
            vec![point(8192, 0.3, 0.4, 0.5), point(65_536, 0.9, 0.95, 1.0), point(1 << 20, 1.8, 2.0, 2.1)];
        let cell = grid.cells().into_iter().find(|cell| cell.root == "0").unwrap();
        store.add(Measured { cell, points, failure: None, seconds: 1.0 }).unwrap();
        let page = page(&grid, &store).unwrap();
        assert!(page.contains("3 of 6 points are measured: 1 are at 0.97"), "{page}");
        assert!(
            page.contains("* 4 hosts × 1, 1gbit, openmpi, root 0, 8KiB: 0.40 (0.30–0.50), by `chain`"),
            "{page}"
        );
        let row = "| **0.40 (0.30–0.50)** | 0.95 (0.90–1.00) | 2.00 (1.80–2.10) |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn verdicts_need_intervals() {
        let few = Point { speedup: Some(0.2), ..Point::default() };
        assert_eq!(Verdict::of(&few), Verdict::Few);
        assert_eq!(Verdict::of(&Point { wrong: 1, ..point(8, 2.0, 2.0, 2.0) }), Verdict::Wrong);
        assert_eq!(Verdict::of(&point(8, 0.97, 1.0, 1.1)), Verdict::Holds);
        assert_eq!(Verdict::of(&point(8, 0.9, 0.95, 0.97)), Verdict::Open);
    }
}
