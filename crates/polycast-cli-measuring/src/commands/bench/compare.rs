//! `polycast bench compare`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polycast_core::files::FileKind;
use polycast_core::units::Bytes;

use crate::bench::compare::{Kept, Pair, differences, pairs};
use crate::bench::point::{Point, are_of_several_mpis, is_sweep};
use crate::commands::{Outcome, print};
use crate::terminal::{count, digits, hanging, nanoseconds, paragraph, range, table};

/// Arguments of `polycast bench compare`.
#[derive(clap::Args)]
pub struct Args {
    /// The JSON lines of the measurement to compare with
    before: PathBuf,
    /// The JSON lines of the other one
    after: PathBuf,
    /// Compare also what was measured in different surroundings, and say what is different
    #[arg(long)]
    force: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let different = differences(&before, &after);
    if !different.is_empty() {
        let list: String = different.iter().map(|one| format!("\n{}", hanging("  ", "    ", one))).collect();
        if !args.force {
            let sentence =
                "not compared, because the surroundings are not alike (--force compares all the same):";
            return Err(format!("{sentence}{list}").into());
        }
        eprintln!("polycast: the surroundings are not alike:{list}");
    }
    let (pairs, single) = pairs(&before, &after);
    if pairs.is_empty() {
        return Err("the two have no size and variant in common: nothing to compare".into());
    }
    let version = |kept: &Kept| kept.environment["polycast"].as_str().unwrap_or("?").to_owned();
    let title = format!(
        "Medians of {} (polycast {}) over those of {} (polycast {}). Ends of the interval: those of the 95 % intervals of \
         both medians, which hold together with 90 % at least.",
        args.after.display(),
        version(&after),
        args.before.display(),
        version(&before)
    );
    print(&(paragraph(&title) + "\n\n"))?;
    let header = ["variant", "verdict", "size", "before", "after", "ratio", "interval"];
    let of_one = pairs.iter().all(|pair| pair.before.collective == pairs[0].before.collective);
    let is_sweep = is_sweep(&before.points);
    let are_several = are_of_several_mpis(&before.points);
    let rows = pairs.iter().map(|pair| row(pair, of_one, is_sweep, are_several));
    print(&table(header, rows.collect(), 2))?;
    if single > 0 {
        print(&format!(
            "\n{} only one of the two has.\n",
            count(single as u64, "point that", "points that")
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Kept, Box<dyn std::error::Error>> {
    let shown = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let text = FileKind::Results.text(bytes).map_err(|problem| format!("{shown}: {problem}"))?;
    Ok(Kept::parse(&text, &shown)?)
}

fn row(pair: &Pair, of_one: bool, is_sweep: bool, are_several: bool) -> Vec<String> {
    let Point { collective, variant, mpi, .. } = pair.before;
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| nanoseconds(us * 1e3));
    let name = if of_one { variant.clone() } else { format!("{collective} {variant}") };
    let name = if are_several { format!("{name}, {mpi}") } else { name };
    vec![
        if is_sweep { format!("{name}, {} ranks", pair.before.ranks) } else { name },
        pair.verdict().to_owned(),
        Bytes(pair.before.bytes).to_string(),
        time(pair.before.median_us),
        time(pair.after.median_us),
        pair.ratio.map_or("-".to_owned(), digits),
        pair.interval.map_or("-".to_owned(), |(low, high)| range(low, high)),
    ]
}
