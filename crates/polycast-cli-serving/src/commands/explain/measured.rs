use std::fmt::Write;
use std::path::Path;

use polycast_core::policy::{Collective, CommunicatorShape};
use polycast_core::units::Bytes;
use serde::Serialize;

use crate::commands::beside;
use crate::terminal::{hanging, nanoseconds};
use crate::tune::{Key, Store};

/// The ratio of two times up to which they are taken for alike.
const ALIKE: f64 = 1.03;

/// The measurements of `polycast tune` for such calls, as they stand beside the table that it
/// wrote.
#[derive(Serialize)]
pub struct TuneMeasurement {
    /// The size that was measured, the nearest one.
    bytes: u64,
    /// The place of the measurement, and the MPI above which it was made.
    place: String,
    mpi: String,
    /// The fastest first.
    ways: Vec<Way>,
}

#[derive(Serialize)]
struct Way {
    choice: String,
    median_us: f64,
    low_us: f64,
    high_us: f64,
    samples: usize,
    verdict: String,
}

impl TuneMeasurement {
    /// `None` if nothing stands there about calls of this collective on communicators of this shape.
    pub fn read(
        table: &str,
        shape: CommunicatorShape,
        collective: Collective,
        bytes: Bytes,
    ) -> Option<TuneMeasurement> {
        let path = beside(Path::new(table), ".found");
        let store = path.is_file().then(|| Store::open(&path).ok()).flatten()?;
        let is_it = |key: &Key| {
            (key.ranks, key.nodes, key.ranks_per_node) == (shape.ranks, shape.nodes, shape.ranks_per_node)
                && key.collective == collective.name()
        };
        let far = |of: u64| (of.max(1) as f64 / bytes.0.max(1) as f64).ln().abs();
        let near = store.about(&is_it).filter(|record| !record.all.is_empty());
        let record = near.min_by(|one, other| far(one.block_bytes).total_cmp(&far(other.block_bytes)))?;
        let best = record.time?;
        let verdict = |choice: &str, (median, low, _, _): (f64, f64, f64, usize)| {
            let times = median / best.0;
            if choice == record.best {
                "serves such calls".to_owned()
            } else if times < 1.0 {
                format!("not faster than {} beyond both intervals", record.best)
            } else if times <= ALIKE {
                "as good".to_owned()
            } else if low > best.2 {
                format!("{times:.2} times as long")
            } else {
                format!("{times:.2} times as long, which does not separate")
            }
        };
        let way = |(choice, numbers): &(String, (f64, f64, f64, usize))| {
            let (median_us, low_us, high_us, samples) = *numbers;
            Way {
                choice: choice.clone(),
                median_us,
                low_us,
                high_us,
                samples,
                verdict: verdict(choice, *numbers),
            }
        };
        Some(TuneMeasurement {
            bytes: record.block_bytes,
            place: record.key.place.clone(),
            mpi: record.key.mpi.clone(),
            ways: record.all.iter().map(way).collect(),
        })
    }

    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let head = format!("measured for {} on {}, {}", Bytes(self.bytes), self.place, self.mpi);
        writeln!(out, "\n{}", hanging("", "  ", &head))?;
        let width = self.ways.iter().map(|way| way.choice.len()).max().unwrap_or(0);
        for Way { choice, median_us, low_us, high_us, verdict, .. } in &self.ways {
            let [median, low, high] = [median_us, low_us, high_us].map(|us| nanoseconds(us * 1e3));
            let text =
                format!("{median:>8}  {:<20}  {choice:<width$}  {verdict}", format!("{low} to {high}"));
            writeln!(out, "{}", hanging("  ", "      ", &text))?;
        }
        Ok(())
    }
}
