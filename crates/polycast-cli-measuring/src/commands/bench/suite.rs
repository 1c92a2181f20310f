//! `polycast bench --suite`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_core::units::Bytes;
use polycast_lab::own_program;
use rustix::process::{Pid, Signal, kill_process};

use super::Args;
use crate::bench::arrival::parse_duration;
use crate::bench::point::Point;
use crate::bench::suite::{Cell, Grid, Measured, Store, page};
use crate::commands::{Outcome, beside, file_of, interruption, print, require_writable, write_file};
use crate::usage::wrong;

/// The time between two looks at whether a job has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Arguments of a suite.
#[derive(clap::Args)]
#[command(next_help_heading = "Suites")]
pub struct SuiteArgs {
    /// Measure a whole grid in labs: never-slower holds polycast against stock on 2 to 31 hosts, four rates, both MPIs. Goes
    /// on with what the file that --json names has [default: never-slower.jsonl]
    #[arg(long, value_name = "NAME", value_parser = ["never-slower"], conflicts_with_all = ["lab", "hosts", "hostfile", "ranks", "mpi",
        "collective", "sizes", "variants", "arrival", "root", "method", "cold", "clock", "topology", "no_topology", "params", "interface", "rate", "mpiexec_args", "ranks_per_host", "format", "svg", "raw", "program"])]
    suite: Option<String>,
    /// Begin no job of the suite that would end later than this; the next run goes on
    #[arg(long, value_name = "TIME", requires = "suite", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// A part of the suite, as hosts=4,16 or rate=1gbit or bytes=8KiB; may be repeated. Keys: mpi, hosts, ranks-per-host, rate,
    /// root, bytes
    #[arg(long, value_name = "KEY=VALUES", requires = "suite")]
    only: Vec<String>,
    /// Write the results as Markdown [default: beside the JSON file, with .md added]; - for standard output alone
    #[arg(long, value_name = "FILE", requires = "suite")]
    page: Option<PathBuf>,
}

impl SuiteArgs {
    /// Whether a suite is wanted.
    pub fn is_wanted(&self) -> bool {
        self.suite.is_some()
    }
}

/// Measures what the file lacks.
pub fn run(args: &Args) -> Outcome {
    let mut grid = Grid::never_slower();
    args.suite.only.iter().try_for_each(|part| grid.only(part))?;
    let file = args.json.clone().unwrap_or_else(|| PathBuf::from("never-slower.jsonl"));
    if file == Path::new("-") {
        return Err(wrong("--json: expected a file, which the next run goes on with; found -"));
    }
    require_writable(&args.suite.page)?;
    let mut store = Store::open(&file)?;
    let interrupted = interruption()?;
    let began = Instant::now();
    let todo: Vec<(Cell, Vec<Bytes>)> = grid
        .cells()
        .into_iter()
        .map(|cell| (store.missing(&cell, grid.sizes()), cell))
        .filter_map(|(sizes, cell)| (!sizes.is_empty()).then_some((cell, sizes)))
        .collect();
    let progress = progress(todo.len())?;
    for (index, (cell, sizes)) in todo.iter().enumerate() {
        let mean = store.mean_seconds().map(Duration::from_secs_f64);
        let is_too_late =
            args.suite.budget.is_some_and(|budget| began.elapsed() + mean.unwrap_or_default() > budget);
        if interrupted.load(Ordering::Relaxed) || is_too_late {
            break;
        }
        let left = mean.map(|mean| mean * (todo.len() - index) as u32);
        let left = left.map_or_else(String::new, |left| format!(", {} left", HumanDuration(left)));
        progress.set_message(format!("{cell}{left}"));
        let job = Job { args, cell, sizes, ends: args.suite.budget.map(|budget| began + budget) };
        store.add(job.run(&file, &interrupted)?)?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    let text = page(&grid, &store)?;
    let named = args.suite.page.clone().or_else(|| Some(beside(&file, ".md")));
    file_of(&named).map_or(Ok(()), |named| write_file(named, &text))?;
    print(&text)?;
    let is_wrong = store.measured.iter().any(|one| one.points.iter().any(|point| point.wrong > 0));
    Ok(match (interrupted.load(Ordering::Relaxed), is_wrong) {
        (_, true) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(130),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn progress(jobs: usize) -> Result<ProgressBar, indicatif::style::TemplateError> {
    let progress = ProgressBar::with_draw_target(Some(jobs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {wide_msg} [{bar:24}] {pos}/{len}  {elapsed}")?;
    progress.set_style(style.progress_chars("━╸ "));
    progress.enable_steady_tick(Duration::from_secs(1));
    Ok(progress)
}

struct Job<'a> {
    args: &'a Args,
    cell: &'a Cell,
    sizes: &'a [Bytes],
    /// The time at which the job is told to report what it has.
    ends: Option<Instant>,
}

impl Job<'_> {
    fn run(&self, file: &Path, interrupted: &AtomicBool) -> Result<Measured, Box<dyn std::error::Error>> {
        let began = Instant::now();
        let (json, errors) = (beside(file, ".job"), beside(file, ".errors"));
        let mut job = Command::new(own_program()?)
            .args(self.words())
            .arg("--json")
            .arg(&json)
            .args(["--raw", "/dev/null"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors)?)
            .spawn()?;
        let mut told = None;
        let status = loop {
            if let Some(status) = job.try_wait()? {
                break status;
            }
            let is_late = self.ends.is_some_and(|ends| Instant::now() > ends);
            let is_interrupted = interrupted.load(Ordering::Relaxed);
            if told.is_none() && (is_late || is_interrupted) {
                // It ends its ranks and its lab, as after Ctrl-C.
                let _ = Pid::from_raw(job.id() as i32).map(|job| kill_process(job, Signal::INT));
                told = Some(if is_interrupted { "it was interrupted" } else { "the time was up" });
            }
            thread::sleep(LOOK_EVERY);
        };
        let lines = fs::read_to_string(&json).unwrap_or_default();
        let points: Vec<Point> =
            lines.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok()).collect();
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let failure = (!status.success()).then(|| match told.or(said.lines().last()) {
            Some(reason) => reason.to_owned(),
            None => status.to_string(),
        });
        for file in [json, errors] {
            let _ = fs::remove_file(file);
        }
        let seconds = began.elapsed().as_secs_f64();
        Ok(Measured { cell: self.cell.clone(), points, failure, seconds })
    }

    fn words(&self) -> Vec<String> {
        let Job { args, cell, sizes, .. } = self;
        let sizes: Vec<String> = sizes.iter().map(|bytes| bytes.0.to_string()).collect();
        let pairs = [
            ("--lab", cell.lab()),
            ("--ranks-per-host", cell.ranks_per_host.to_string()),
            ("--mpi", cell.mpi.clone()),
            ("--root", cell.root.clone()),
            ("--sizes", sizes.join(",")),
            ("--variants", "stock,polycast".to_owned()),
            ("--time", format!("{}ms", args.time.as_millis())),
            ("--launches", args.launches.unwrap_or(1).to_string()),
        ];
        let pairs = pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let variables = args.job.variables.iter();
        let variables = variables.flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")]);
        ["bench", "--no-calibration"].map(str::to_owned).into_iter().chain(pairs).chain(variables).collect()
    }
}
