//! `polycast tune --native`: the stock library's own algorithms, and a file that tells it which is best.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use polycast_core::policy::tune::Measured;
use polycast_core::units::Bytes;

use super::{Args, On, measured, place, shape};
use crate::bench::operation::Operation;
use crate::bench::variant::Variant;
use crate::commands::{Outcome, interruption, print, write_file};
use crate::install::Installation;
use crate::jobs::target::JobTarget;
use crate::mpi::{Family, Mpi};
use crate::native::{Format, Rules, Search, Way};
use crate::terminal::nanoseconds;
use std::process::ExitCode;

/// Those that may win are measured for so many times as long.
const LONGER: u32 = 4;

/// Measures, and writes the file.
pub fn run(args: &Args, format: Format) -> Outcome {
    let mpi = args.job.mpi()?;
    if mpi.family() != Family::OpenMpi {
        return Err(
            format!("--native: expected an Open MPI, found {}; choose it by --mpi", mpi.title()).into()
        );
    }
    let target = args.job.target()?;
    let ranks = shape(&target)?.ranks;
    let measuring = Measuring {
        args,
        mpi: &mpi,
        target: &target,
        program: args.job.measuring_program(&Installation::find()?, &mpi)?,
        variables: args.job.stock_variables(&mpi)?,
        interrupted: interruption()?,
        ends: Instant::now() + args.budget,
    };
    let (mut rules, mut text) = (Vec::new(), String::new());
    for operation in args.collective.iter().copied().filter(|one| *one != Operation::Allgatherv) {
        let search = measuring.search(operation)?;
        text += &map(operation, &search);
        rules.push((operation.collective(), search.rules()));
    }
    let head = vec![
        format!("Made by polycast {} on {}", env!("CARGO_PKG_VERSION"), crate::measure::time_stamp()),
        format!("for {ranks} ranks ({}), {}", place(&target), mpi.title()),
        "mpiexec --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE …"
            .to_owned(),
    ];
    write_file(&args.output, Rules::for_ranks(ranks, rules).write(format, &head))?;
    print(&format!("{text}\nwritten: {}\n", args.output.display()))?;
    Ok(if measuring.interrupted.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

/// A line for each size: what is best, its time, and how many times faster than what the library does by itself.
fn map(operation: Operation, search: &Search) -> String {
    let mut text = format!("\n{:>10}  {:<44} {:>8} {:>8}\n", operation.name(), "best", "time", "× itself");
    for (bytes, way, time, stock) in search.found() {
        let gain = stock
            .filter(|_| way != Way::STOCK)
            .map_or_else(|| "-".to_owned(), |stock| format!("{:.2}", stock.median_us / time.median_us));
        let time = nanoseconds(time.median_us * 1e3);
        text += &format!("{:>10}  {:<44} {time:>8} {gain:>8}\n", Bytes(bytes).to_string(), way.to_string());
    }
    text
}

struct Measuring<'a> {
    args: &'a Args,
    mpi: &'a Mpi,
    target: &'a JobTarget,
    program: std::path::PathBuf,
    variables: Vec<(String, String)>,
    interrupted: Arc<std::sync::atomic::AtomicBool>,
    ends: Instant,
}

impl Measuring<'_> {
    fn search(&self, operation: Operation) -> Result<Search, Box<dyn Error>> {
        let sizes: Vec<u64> = match operation {
            Operation::Barrier => vec![0],
            _ => self.args.sizes.iter().map(|bytes| bytes.0).collect(),
        };
        let mut search = Search::new(operation.collective(), sizes);
        for time in [self.args.time, self.args.time * LONGER] {
            let is_first = time == self.args.time;
            let all = if is_first { search.first_round() } else { search.second_round() };
            let count = all.len();
            for (index, (way, sizes)) in all.into_iter().enumerate() {
                if self.interrupted.load(Ordering::Relaxed) || Instant::now() > self.ends {
                    return Ok(search);
                }
                eprintln!("{operation}: {way} ({} of {count})", index + 1);
                for (bytes, time) in self.launch(operation, way, &sizes, time)? {
                    search.took(way, bytes, time);
                }
            }
        }
        Ok(search)
    }

    fn launch(
        &self,
        operation: Operation,
        way: Way,
        sizes: &[u64],
        time: Duration,
    ) -> Result<Vec<(u64, Measured)>, Box<dyn Error>> {
        let on = On {
            target: self.target,
            mpi: self.mpi,
            program: &self.program,
            variables: [self.variables.clone(), way.variables(operation.collective())].concat(),
            interrupted: &self.interrupted,
        };
        let sizes = sizes.iter().map(|bytes| Bytes(*bytes)).collect();
        let report = on.measure(operation, sizes, vec![Variant::Stock], time)?;
        if report.wrong {
            return Err(format!("a rank had wrong data after {operation} by the library's own {way}").into());
        }
        let times = report.points.iter().filter_map(|point| Some((point.bytes, measured(point)?)));
        Ok(times.collect())
    }
}
