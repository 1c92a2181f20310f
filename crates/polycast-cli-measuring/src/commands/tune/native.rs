//! `polycast tune --native`: the stock library's own algorithms, and a file that tells it which is best.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use polycast_core::policy::tune::Measured;
use polycast_core::units::Bytes;

use super::{Args, incomplete, nothing_measured, operations, place, shape, sizes};
use crate::bench::operation::Operation;
use crate::bench::variant::Variant;
use crate::commands::one_launch::{On, measured};
use crate::commands::{Outcome, interruption, print, require_writable, write_file};
use crate::install::Installation;
use crate::jobs::target::JobTarget;
use crate::mpi::{Family, Mpi, mapped_mpi};
use crate::native::{Library, Rules, Search, Target, Tree, Way};
use crate::terminal::{nanoseconds, paragraph};
use crate::usage::wrong;
use std::process::ExitCode;

/// The factor of time for the second round, which measures only algorithms that may win.
const LONGER: u32 = 4;

/// Measures, and writes the file.
pub fn run(args: &Args, wanted: Target) -> Outcome {
    let mpi = args.job.mpi()?;
    let library = match wanted.format() {
        Some(_) if mpi.family() == Family::OpenMpi => Library::OpenMpi,
        None if mpi.family() == Family::Mpich => Library::Mpich,
        Some(_) => {
            let found = mpi.title();
            return Err(wrong(format_args!(
                "--native: expected an Open MPI, found {found}; choose it by --mpi, or --native=mpich"
            )));
        }
        None => {
            return Err(wrong(format_args!(
                "--native=mpich: expected an MPICH, found {}; choose it by --mpi",
                mpi.title()
            )));
        }
    };
    require_writable(&Some(args.output.clone()))?;
    let operations = operations(args).map_err(wrong)?;
    let target = args.job.target()?;
    let shape = shape(&target)?;
    let ranks = shape.ranks;
    if library == Library::Mpich && shape.nodes < ranks {
        return Err(wrong(format_args!(
            "--native=mpich: expected one rank on each host, found {} on the fullest: within a host MPICH has other ways, which no file decides",
            shape.ranks_per_node
        )));
    }
    let measuring = Measuring {
        args,
        library,
        ranks,
        mpi: &mpi,
        target: &target,
        program: args.job.measuring_program(&Installation::find()?, &mpi)?,
        variables: args.job.stock_variables(&mpi)?,
        interrupted: interruption()?,
        ends: Instant::now() + args.budget,
    };
    // Looked for before it takes an hour to find out what is to be put into it.
    let tree = match wanted.format() {
        Some(_) => Tree::default(),
        None => own_tree(&measuring.program, &measuring.variables)?,
    };
    let (mut rules, mut text) = (Vec::new(), String::new());
    let (mut found, mut asked) = (0, 0);
    for operation in operations {
        let search = measuring.search(operation)?;
        found += search.found().len();
        asked += sizes(args, operation).len();
        text += &map(operation, &search);
        rules.push((operation.collective(), search.rules()));
    }
    if rules.iter().all(|(_, rules)| rules.is_empty()) {
        return nothing_measured(&measuring.interrupted);
    }
    let rules = Rules::for_ranks(ranks, rules);
    let missing = incomplete(found, asked, &measuring.interrupted);
    let mut head: Vec<String> = missing.clone().into_iter().collect();
    head.extend([
        format!("Made by polycast {} on {}", env!("CARGO_PKG_VERSION"), crate::time_stamp::time_stamp()),
        format!("for {ranks} ranks ({}), {}", place(&target), mpi.title()),
        "mpiexec --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE …"
            .to_owned(),
    ]);
    let file = match wanted.format() {
        Some(format) => rules.write(format, &head)?,
        None => in_its_tree(tree, ranks, &rules)?,
    };
    write_file(&args.output, file)?;
    let mark = missing.map_or(String::new(), |missing| format!("\n{}\n", paragraph(&missing)));
    print(&format!("{text}{mark}\nwritten: {}\n", args.output.display()))?;
    Ok(if measuring.interrupted.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

/// The decision tree of the MPICH library that `program` is linked with.
pub fn own_tree(program: &Path, variables: &[(String, String)]) -> Result<Tree, Box<dyn Error>> {
    let library = mapped_mpi(program, variables)?
        .ok_or_else(|| format!("{}: expected a program of MPICH, found none", program.display()))?;
    Ok(Tree::of_library(&library)?)
}

/// The text of `tree` with the decisions for communicators of `ranks` ranks replaced by `rules`.
pub fn in_its_tree(mut tree: Tree, ranks: u32, rules: &Rules) -> Result<String, String> {
    for (collective, rules) in rules.of_ranks(ranks) {
        tree.graft(collective, ranks, rules)?;
    }
    Ok(tree.text())
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
    library: Library,
    ranks: u32,
    mpi: &'a Mpi,
    target: &'a JobTarget,
    program: std::path::PathBuf,
    variables: Vec<(String, String)>,
    interrupted: Arc<std::sync::atomic::AtomicBool>,
    ends: Instant,
}

impl Measuring<'_> {
    fn search(&self, operation: Operation) -> Result<Search, Box<dyn Error>> {
        let sizes = sizes(self.args, operation);
        let mut search = Search::new(self.library, operation.collective(), sizes, self.ranks);
        for time in [self.args.time, self.args.time * LONGER] {
            let is_first = time == self.args.time;
            let all = if is_first { search.first_round() } else { search.second_round() };
            let count = all.len();
            for (index, (way, sizes)) in all.into_iter().enumerate() {
                if self.is_over() {
                    return Ok(search);
                }
                eprintln!("{operation}: {way} ({} of {count})", index + 1);
                for (sizes, time) in search.launches(way, sizes, time) {
                    let left = self.ends.saturating_duration_since(Instant::now());
                    let time = time.min(left.max(self.args.time));
                    let times = match self.launch(operation, way, &sizes, time) {
                        Err(error) if way != Way::STOCK => {
                            eprintln!("{operation}: {way} is left out: {error}");
                            search.leave_out(way);
                            break;
                        }
                        times => times?,
                    };
                    // Of a launch that was interrupted some are missing.
                    if !self.interrupted.load(Ordering::Relaxed) {
                        times.into_iter().for_each(|(bytes, time)| search.took(way, bytes, time));
                    }
                    if self.is_over() {
                        return Ok(search);
                    }
                }
            }
        }
        Ok(search)
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || Instant::now() > self.ends
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
            variables: [self.variables.clone(), self.library.variables(way, operation.collective())].concat(),
            interrupted: &self.interrupted,
        };
        let sizes = sizes.iter().map(|bytes| Bytes(*bytes)).collect();
        let report = on.measure(None, operation, sizes, vec![Variant::Stock], time)?;
        if report.wrong {
            return Err(format!("a rank had wrong data after {operation} by the library's own {way}").into());
        }
        let times = report.points.iter().filter_map(|point| Some((point.bytes, measured(point)?)));
        Ok(times.collect())
    }
}
