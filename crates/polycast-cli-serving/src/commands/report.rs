//! `polycast report`: what jobs and measurements have left.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{Outcome, file_of, print, print_json, write_file_by, write_output};
use crate::report::jobs::{self, JobReport};
use crate::report::load::{Traced, load};
use crate::report::page::page;
use crate::report::results::{Charts, charts};
use crate::report::summary::{Summary, summary};
use crate::report::{arrivals, perfetto};
use crate::terminal::{count, hanging, nanoseconds, paragraph, table};
use polycast_core::units::Bytes;

/// Arguments of `polycast report`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    /// A folder that a job with POLYCAST_TRACE has filled, reports of jobs (POLYCAST_REPORT=FILE.json), and files of `bench --json`, `bench --suite`, `tune` and `simulate --scaling --json`
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// One page with tables, a timeline that can be zoomed, and pictures; it needs nothing from outside
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// All calls for ui.perfetto.dev and other viewers of trace events
    #[arg(long, value_name = "FILE.json")]
    perfetto: Option<PathBuf>,
    /// When ranks called, for `polycast bench --arrival FILE`
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// Print the summary of the traces, or of the reports, as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Without a file to write, the calls are summed up here.

Examples:
  polycast report job.json                    what polycast did in a job
  polycast report reports/*.json              a table of jobs
  POLYCAST_TRACE=trace polycast run -n 16 -- ./a.out
  polycast report trace                       what took how long
  polycast report trace -o report.html        and who waited for whom
  polycast report trace --perfetto job.json   for ui.perfetto.dev
  polycast report trace --arrivals job.arrivals
  polycast bench -n 16 --arrival job.arrivals
  polycast bench -n 16 --json bench.json
  polycast report bench.json -o bench.html";

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let outputs = [&args.output, &args.perfetto, &args.arrivals];
    let printed = outputs.iter().filter(|output| output.is_some() && file_of(output).is_none()).count();
    if printed + usize::from(args.json) > 1 {
        return Err("expected one thing for standard output, found several: name files for the others".into());
    }
    let mut traced: Option<Traced> = None;
    let mut of_files: Vec<Charts> = Vec::new();
    let mut reports: Vec<JobReport> = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            if traced.is_some() {
                return Err("expected one folder of traces at most".into());
            }
            traced = Some(load(path)?);
        } else {
            let bytes = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            // What is not text is none of the formats either, and is told so.
            let text = String::from_utf8_lossy(&bytes);
            let name = path.display().to_string();
            match jobs::read(&text, &name)? {
                Some(report) => reports.push(report),
                None => of_files.push(charts(&text, &name, of_files.len())?),
            }
        }
    }
    if !reports.is_empty() {
        if traced.is_some() || !of_files.is_empty() {
            return Err(
                "expected reports of jobs alone, or traces and results: they are not shown together".into()
            );
        }
        if outputs.iter().any(|output| output.is_some()) {
            return Err("expected no file to write: of reports of jobs there is text, and --json".into());
        }
        return of_jobs(&reports, args.json);
    }
    if args.output.is_none() && !of_files.is_empty() {
        return Err("expected -o FILE.html: of results there is only a page".into());
    }
    let summed = traced.as_ref().map(summary);
    let job = traced.as_ref().zip(summed.as_ref());
    let needs_traces = || "this needs a folder of traces: run a job with POLYCAST_TRACE=FOLDER first";
    if args.output.is_some() {
        write_output(&args.output, &page(job, &of_files))?;
    }
    if let Some(file) = &args.perfetto {
        let (traced, _) = job.ok_or_else(needs_traces)?;
        write_perfetto(traced, file)?;
    }
    if args.arrivals.is_some() {
        let (traced, _) = job.ok_or_else(needs_traces)?;
        write_output(&args.arrivals, &arrivals::arrivals(traced)?)?;
    }
    if args.json {
        let (_, summary) = job.ok_or_else(needs_traces)?;
        print_json(summary)?;
    }
    if printed > 0 || args.json {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some((_, summary)) = job {
        print(&told(summary))?;
    }
    for file in outputs.into_iter().flatten() {
        print(&format!("wrote {}\n", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_jobs(reports: &[JobReport], as_json: bool) -> Outcome {
    if as_json {
        let jobs: Vec<_> = reports.iter().map(JobReport::json).collect();
        print_json(&serde_json::json!({ "jobs": jobs }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&match reports {
        [one] => one.told(),
        several => jobs::told_of_several(several),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write_perfetto(traced: &Traced, file: &Path) -> Result<(), String> {
    if file != Path::new("-") {
        return write_file_by(file, |out| perfetto::write(traced, out));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    perfetto::write(traced, &mut out)
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn told(summary: &Summary) -> String {
    let Summary { program, ranks, traced_ranks, hosts, seconds, clock_error_us, calls, .. } = summary;
    let [length, error] = [seconds * 1e9, clock_error_us * 1e3].map(nanoseconds);
    let hosts = count(*hosts, "host", "hosts");
    let mut text = paragraph(&format!(
        "{program}: {ranks} ranks ({traced_ranks} traced) on {hosts}, {length}, {calls} calls; clocks within {error}"
    )) + "\n\n";
    let mut groups: Vec<_> = summary.served.iter().collect();
    groups.sort_by(|a, b| b.rank_seconds.total_cmp(&a.rank_seconds));
    let rows = groups.iter().map(|group| {
        let after = group.final_us.map_or("-".to_owned(), |us| nanoseconds(us * 1e3));
        vec![
            group.collective.to_owned(),
            group.choice.clone(),
            Bytes(group.first_bytes).to_string(),
            group.calls.to_string(),
            nanoseconds(group.rank_seconds * 1e9),
            group.waited_seconds.map_or("-".to_owned(), |seconds| nanoseconds(seconds * 1e9)),
            nanoseconds(group.median_us * 1e3),
            after,
        ]
    });
    let header = ["CALL", "SERVED BY", "FROM", "CALLS", "ALL RANKS", "WAITED", "MEDIAN", "AFTER LAST"];
    text += &table(header, rows.collect(), 2);
    if let Some(last) = summary.last.first() {
        let host = &last.host;
        text += &format!(
            "\nrank {} on {host} was the last to call most often: {} times\n",
            last.rank, last.calls
        );
    }
    if summary.rooted_calls > 0 {
        text += &format!(
            "the root was the last in {} of {} calls\n",
            summary.root_was_last, summary.rooted_calls
        );
    }
    for note in &summary.notes {
        text += &(hanging("note: ", "      ", note) + "\n");
    }
    text
}
