//! `polycast topology discover`.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_core::files::FileKind;
use polycast_core::topology::{Format, Topology};

use super::super::{Outcome, file_of, interruption, print, require_writable, write_output};
use super::convert::parse_format;
use super::draw::draw;
use super::input::Input;
use crate::discover::findings;
use crate::discover::flows::Flows;
use crate::discover::infer::{Quartet, infer};
use crate::install::Installation;
use crate::job_args::JobArgs;
use crate::jobs::{ARGUMENT, DialogueError, RankJob, RankServerError};
use crate::terminal::Paint;
use crate::time_stamp::time_stamp;
use crate::usage::wrong;

/// Arguments of `polycast topology discover`.
#[derive(clap::Args)]
#[command(after_help = "\
Starts one rank on each host, and lets pairs of them send at the same time: they
disturb each other if they share a link that does not carry both. That takes
about half a second for each two hosts on one switch; nothing else should run on
the network. What cannot be seen stands in the notes of the result, and in
docs/measuring.md.

Examples:
  polycast topology discover --hosts a,b,c,d,e,f -o cluster.json
  polycast topology discover --lab topology=examples/topologies/2.conf")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Say how many pairs of hosts are grouped as in this topology [default: in a lab its own]
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Write the topology to a file; - is standard output, in place of the drawing
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format to write, to standard output without a file [default: json]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format())]
    to: Option<Format>,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    require_writable(&args.output)?;
    let truth = args
        .truth
        .as_deref()
        .map(|file| -> Result<_, Box<dyn Error>> { Ok(Input::read(file, FileKind::Topology)?.topology()?) });
    let truth = truth.transpose()?;
    let interrupted = interruption()?;
    let found = discover(args, truth, interrupted);
    if let Err(error) = &found
        && matches!(error.downcast_ref(), Some(RankServerError::Job(DialogueError::Interrupted)))
    {
        return Ok(ExitCode::from(130));
    }
    let (topology, comparison) = found?;
    let is_written = args.output.is_some() || args.to.is_some();
    if is_written && file_of(&args.output).is_none() {
        comparison.iter().for_each(|line| eprint!("polycast: {line}"));
    } else {
        print(&draw(&topology, Paint::of_standard_output()))?;
        comparison.map_or(Ok(()), |line| print(&line))?;
    }
    if is_written {
        let format = args.to.unwrap_or(Format::Json);
        let written = topology.write(format);
        for lost in &written.lost {
            eprintln!("polycast: not in {format}: {lost}");
        }
        write_output(&args.output, &written.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The topology that measurement finds, and how it compares with the truth where that is known.
fn discover(
    args: &Args,
    truth: Option<Topology>,
    interrupted: Arc<AtomicBool>,
) -> Result<(Topology, Option<String>), Box<dyn Error>> {
    let mpi = args.job.mpi()?;
    let program = args.job.measuring_program(&Installation::find()?, &mpi)?;
    let variables = args.job.stock_variables(&mpi)?;
    let target = args.job.target()?;
    let truth = truth.or_else(|| target.topology());
    let mut job =
        RankJob::start(target.command(&mpi, &variables, &[program.into(), ARGUMENT.into()])?, interrupted)?;
    let hosts: Vec<String> = job.hello().places.iter().map(|place| place.host.clone()).collect();
    check(&hosts).map_err(wrong)?;
    let topology = measure(&mut job, &hosts)?;
    job.shutdown()?;
    let comparison = truth.map(|truth| findings::comparison(&topology, &truth) + "\n");
    Ok((topology, comparison))
}

fn check(hosts: &[String]) -> Result<(), String> {
    let unique: BTreeSet<_> = hosts.iter().collect();
    if unique.len() < hosts.len() {
        return Err(
            "expected one rank on each host, found several: two flows of one host share its link".into()
        );
    }
    if hosts.len() < 4 {
        return Err(format!(
            "expected at least 4 hosts, found {}: it takes two hosts on either side to see a link",
            hosts.len()
        ));
    }
    Ok(())
}

fn measure(job: &mut RankJob, hosts: &[String]) -> Result<Topology, Box<dyn Error>> {
    let when = time_stamp();
    // Hidden by itself where standard error is no terminal.
    let progress = ProgressBar::with_draw_target(Some(hosts.len() as u64), ProgressDrawTarget::stderr());
    progress.set_style(ProgressStyle::with_template(
        "{spinner} {wide_msg} [{bar:24}] {pos}/{len} hosts  {elapsed}",
    )?);
    let mut flows = Flows::new(job)?;
    for host in 0..hosts.len() {
        progress.set_message(format!("{} alone", hosts[host]));
        let next = (host + 1) % hosts.len();
        flows.alone((host, next))?;
        flows.alone((next, host))?;
    }
    let inferred = infer(hosts.len(), |quartet| {
        let Quartet { near: [a, b], far: [c, d] } = quartet;
        // Hosts are inserted in their order.
        progress.set_position([a, b, c, d].into_iter().max().unwrap_or(0) as u64);
        progress.set_message(format!("{} → {}, {} → {}", hosts[a], hosts[c], hosts[b], hosts[d]));
        flows.disturb(quartet)
    })?;
    progress.finish_and_clear();
    Ok(findings::topology(&inferred, hosts, &flows, &when))
}
