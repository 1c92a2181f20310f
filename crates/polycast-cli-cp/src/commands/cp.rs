//! `polycast cp`: the same files on every node.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use clap::ArgAction;
use indicatif::{ProgressBar, ProgressStyle};
use polycast_copy::{MAX_BLOCK_BYTES, MIN_BLOCK_BYTES};
use polycast_core::topology::{MAX_HOSTS, expand_hostlist, is_same_name, without_domain};
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Rank, Rate};
use polycast_core::variables::is_off;
use polycast_lab::own_program;

use super::{Outcome, interruption, print, print_json};
use crate::copy::coordinator;
use crate::copy::request::{Request, Target};
use crate::fleet::Fleet;
use crate::hosts;
use crate::numbers::whole;
use crate::reach::{Agent, host_name, is_here};
use crate::settings::{TOPOLOGY, read_topology, variable};
use crate::usage::wrong;

const AGENT_VERB: &str = "cp-agent";

const EXAMPLES: &str = "\
Examples:
  polycast cp --hosts n[0-15] a.out /tmp/a.out     one file
  polycast cp -r --hostfile hosts input/ /scratch   a folder: /scratch/input
  polycast cp -p a.out /tmp/                        the nodes of the Slurm job
  polycast cp -r --lab hosts=8 input /tmp/%h/       an emulated cluster, whose
                                                    first host has the files

%h in DEST stands for the node's name, %% for a percent sign. Where nodes have
DEST in common (a file system that they share) it is written once, for all.

Exit status: 0 if every node has everything, 1 if not, 2 if the command line
is wrong. An interrupted copy goes on where it was if the command is repeated;
with -r, where some nodes are through, for the others alone.";

/// Arguments of `polycast cp`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to copy, and where to on every node: into DEST if that is a folder or ends with a slash, else to that name
    #[arg(value_name = "SOURCE… DEST", num_args = 2.., required = true)]
    paths: Vec<OsString>,
    /// Copy folders with all that is in them
    #[arg(short = 'r', long)]
    recursive: bool,
    /// Replace files that are there
    #[arg(short = 'f', long)]
    force: bool,
    /// Keep modes, and when files were changed
    #[arg(short = 'p', long)]
    preserve: bool,
    /// Compress what becomes shorter by it
    #[arg(short = 'C', long, value_name = "LIBRARY", num_args = 0..=1, require_equals = true,
          default_missing_value = "lz4", value_parser = ["lz4", "none"])]
    compress: Option<String>,
    /// Block size [default: 16KiB, 64KiB from 16 MiB on; more for many GiB]
    #[arg(short = 's', long = "size", value_name = "SIZE", value_parser = parse_block)]
    block: Option<u32>,
    /// Give up a node of which nothing is heard for so long
    #[arg(short = 't', long, value_name = "SEC", default_value_t = 60, value_parser = whole(1u64..=86_400))]
    timeout: u64,
    /// Nodes that each node gives to: 1 is a chain [default: what is faster for so many nodes and bytes]
    #[arg(short = 'F', long, value_name = "FANOUT", value_parser = whole(1usize..=64))]
    fanout: Option<usize>,
    /// The nodes: a,n[0-7] [default: those of the Slurm job]
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["hostfile", "lab"])]
    hosts: Option<String>,
    /// The same from a file as for mpiexec: a line per host
    #[arg(long, value_name = "FILE", conflicts_with = "lab")]
    hostfile: Option<PathBuf>,
    /// The hosts of a lab: its name, or hosts=4,rate=1gbit for one that is made and removed again
    #[arg(long, value_name = "LAB")]
    lab: Option<String>,
    /// A command in place of ssh, called as COMMAND HOST words…
    #[arg(long, value_name = "COMMAND", alias = "launch-agent", conflicts_with = "lab")]
    launcher: Option<String>,
    /// Where polycast is on the nodes [default: where it is here]
    #[arg(long, value_name = "FILE", conflicts_with = "lab")]
    remote_tool: Option<PathBuf>,
    /// The switches that join the hosts, so that the chain goes from switch to switch once: a file of Slurm's, or what
    /// `polycast topology` writes [default: POLYCAST_TOPOLOGY, the lab's; else the hosts' order]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Bring this tool along to nodes where it is not installed; it is removed again
    #[arg(long, conflicts_with_all = ["lab", "remote_tool"])]
    bootstrap: bool,
    /// Send no faster: 500mbit
    #[arg(long, value_name = "RATE")]
    limit: Option<Rate>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Say nothing but what went wrong
    #[arg(short, long, action = ArgAction::SetTrue)]
    quiet: bool,
}

fn parse_block(text: &str) -> Result<u32, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let range = u64::from(MIN_BLOCK_BYTES)..=u64::from(MAX_BLOCK_BYTES);
    match range.contains(&bytes.0) {
        true => Ok(bytes.0 as u32),
        false => Err(format!("expected 4KiB to 16MiB, found {text}")),
    }
}

/// The parts of a copy that are ready before any node is asked.
struct Prepared {
    fleet: Fleet,
    request: Request,
    /// The command that starts the agent of the node that has the files.
    source: Command,
    targets: Vec<Target>,
    /// The order of the nodes in the chain, as numbers.
    order: Vec<u32>,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let prepared = prepare(&args)?;
    copy(&args, prepared)
}

fn prepare(args: &Args) -> Result<Prepared, Box<dyn Error>> {
    let (fleet, names) = fleet(args)?;
    let (destination, sources) = args.paths.split_last().ok_or_else(|| wrong("expected SOURCE and DEST"))?;
    // Hosts of a lab have other current directories.
    let here = std::env::current_dir()?;
    let sources: Vec<OsString> = sources.iter().map(|source| here.join(source).into_os_string()).collect();
    let request = Request {
        into_folder: sources.len() > 1,
        sources,
        recursive: args.recursive,
        force: args.force,
        preserve: args.preserve,
        block_bytes: args.block,
        bits_per_second: args.limit.map(|rate| rate.bits_per_second()),
        fanout: args.fanout,
        patience: Duration::from_secs(args.timeout),
        compress: args.compress.as_deref() == Some("lz4"),
    };
    let (first, names) = match fleet.is_emulated() {
        true => {
            let (first, others) = names.split_first().ok_or_else(|| wrong("expected a lab with hosts"))?;
            (first.clone(), others.to_vec())
        }
        false => (host_name(), names),
    };
    let source = fleet.worker_on(&first, AGENT_VERB)?;
    let tool = args.bootstrap.then(|| std::fs::read(own_program()?).map(Arc::new)).transpose()?;
    let targets = names
        .iter()
        .map(|host| {
            let destination = from_here(&here, with_name(destination.as_os_str(), host)?);
            let (process, tool) = match (fleet.reach().agent_to(host), &tool) {
                (Some(agent), Some(tool)) => {
                    (agent.script(host, &brought_along(tool.len())), Some(Arc::clone(tool)))
                }
                _ => (fleet.worker_on(host, AGENT_VERB)?, None),
            };
            Ok(Target { host: host.clone(), destination, process, tool })
        })
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let order = order(args, &fleet, first, &names)?;
    Ok(Prepared { fleet, request, source, targets, order })
}

fn copy(args: &Args, Prepared { fleet, request, source, targets, order }: Prepared) -> Outcome {
    let remedy = |host: &str, code: Option<i32>, _said: &str| fleet.remedy_for(host, code);
    let interrupted = interruption()?;
    // Drawn on standard error, and only where that is a terminal.
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:24} {bytes}/{total_bytes} {binary_bytes_per_sec} {msg}")
    {
        bar.set_style(style);
    }
    let report = coordinator::run(&request, source, targets, &order, &remedy, &interrupted, |progress| {
        bar.set_length(progress.bytes);
        bar.set_position(progress.least_bytes);
        let behind = match progress.behind.is_empty() {
            true => String::new(),
            false => format!("; slowest: {}", progress.behind.join(", ")),
        };
        bar.set_message(format!("{} of {} nodes have all{behind}", progress.done, progress.nodes));
    });
    bar.finish_and_clear();
    let report = report?;
    if args.json {
        print_json(&report)?;
    } else if !args.quiet || !report.is_whole() {
        print(&report.text())?;
    }
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A relative path seen from this folder.
fn from_here(here: &Path, destination: OsString) -> OsString {
    let tells_folder = destination.as_bytes().ends_with(b"/");
    let mut all = here.join(destination).into_os_string();
    // Joining takes that away.
    if tells_folder && !all.as_bytes().ends_with(b"/") {
        all.push("/");
    }
    all
}

/// `%h` becomes the host's name without its domain, or its address, `%%` a percent sign.
fn with_name(destination: &OsStr, host: &str) -> Result<OsString, Box<dyn Error>> {
    let short = without_domain(host);
    let mut named = Vec::new();
    let mut bytes = destination.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        match (byte, byte == &b'%') {
            (_, true) => match bytes.next() {
                Some(b'h') => named.extend_from_slice(short.as_bytes()),
                Some(b'%') => named.push(b'%'),
                _ => {
                    return Err(wrong(format_args!(
                        "{}: expected %h or %% after a percent sign",
                        destination.to_string_lossy()
                    )));
                }
            },
            (byte, false) => named.push(*byte),
        }
    }
    Ok(OsString::from_vec(named))
}

/// The script that starts an agent from the tool that comes first on its standard input, so many bytes.
fn brought_along(bytes: usize) -> String {
    let file = "\"${TMPDIR:-/tmp}/polycast-$$\"";
    // A part of it, if the way to the host ends or its disk is full, is removed and not run. Not every shell thinks of that when a signal ends it.
    format!(
        "umask 077; set -C; : > {file} && trap 'rm -f {file}' EXIT && trap 'exit 1' HUP INT TERM && head -c {bytes} >> {file} && \
         [ $(wc -c < {file}) = {bytes} ] && chmod 700 {file} && exec {file} {AGENT_VERB} --remove-tool"
    )
}

/// The order in which the chain goes through the hosts, counted from 1: by their names, or depth
/// first through the switches from the source's on, so that no link carries a block twice in one
/// direction.
fn order(args: &Args, fleet: &Fleet, source: String, names: &[String]) -> Result<Vec<u32>, Box<dyn Error>> {
    let named = || variable(TOPOLOGY).filter(|file| !is_off(file)).map(PathBuf::from);
    let topology = match (fleet.reach().lab(), args.topology.clone().or_else(named)) {
        (_, Some(file)) => read_topology(&file)?,
        (Some(lab), None) => lab.plan().topology(),
        (None, None) => return Ok((1..=names.len() as u32).collect()),
    };
    let all: Vec<String> = std::iter::once(source).chain(names.iter().cloned()).collect();
    let traversal = Site::new(&topology.place(&all)).from_root(Rank(0));
    Ok(traversal.ranks().iter().map(|rank| rank.0).filter(|rank| *rank > 0).collect())
}

/// The hosts' names, each once, and the way to reach them.
fn fleet(args: &Args) -> Result<(Fleet, Vec<String>), Box<dyn Error>> {
    if let Some(lab) = &args.lab {
        let fleet = Fleet::emulated(lab)?;
        let names = fleet.hosts().to_vec();
        return if names.len() > 1 {
            Ok((fleet, names))
        } else {
            Err(wrong("--lab: expected two hosts or more"))
        };
    }
    let agent = args.launcher.as_deref().map(|text| Agent::named("--launcher", text)).transpose();
    let mut agent = agent.map_err(wrong)?;
    let mut names: Vec<String> = Vec::new();
    let listed = match hosts::given(args.hosts.as_deref(), args.hostfile.as_deref())? {
        Some(listed) => listed.into_iter().map(|host| host.name).collect(),
        None => {
            let list = std::env::var("SLURM_JOB_NODELIST")
                .map_err(|_| wrong("expected nodes: --hosts a,b, --hostfile FILE, or a Slurm job"))?;
            agent.get_or_insert_with(Agent::srun);
            expand_hostlist(&list, MAX_HOSTS).map_err(wrong)?
        }
    };
    for name in listed {
        if !names.iter().any(|known| is_same_name(known, &name)) {
            names.push(name);
        }
    }
    if agent.is_none() && args.hosts.is_some() {
        let far = names.iter().filter(|name| !is_here(name));
        hosts::require_known(far.map(String::as_str))?;
    }
    Ok((Fleet::remote(names.clone(), agent, args.remote_tool.clone()), names))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_chain_goes_through_each_switch_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("topology.conf");
        let text = "SwitchName=l Nodes=a,c,e\nSwitchName=r Nodes=b,d,f\nSwitchName=t Switches=l,r\n";
        std::fs::write(&file, text).unwrap();
        let words = ["cp", "--topology", file.to_str().unwrap(), "--hosts", "a,b,c,d,e,f", "x", "y"];
        let args = Line::parse_from(words).args;
        let names: Vec<String> = "abcdef".chars().map(String::from).collect();
        let fleet = Fleet::remote(names.clone(), None, None);
        let order = order(&args, &fleet, host_name(), &names).unwrap();
        let switches: Vec<u32> = order.iter().map(|node| node % 2).collect();
        assert!(switches == [1, 1, 1, 0, 0, 0] || switches == [0, 0, 0, 1, 1, 1], "{order:?}");
    }

    #[test]
    fn a_host_has_its_name_in_the_destination() {
        let named =
            |text: &str| with_name(OsStr::new(text), "n1.site.org").map(|name| name.into_string().unwrap());
        assert_eq!(named("/scratch/%h/100%%").unwrap(), "/scratch/n1/100%");
        assert_eq!(named("/tmp/a").unwrap(), "/tmp/a");
        let of_address = with_name(OsStr::new("/tmp/%h"), "10.0.0.2").unwrap();
        assert_eq!(of_address, "/tmp/10.0.0.2", "no domain of 10");
        assert!(named("/tmp/%x").is_err() && named("/tmp/%").is_err());
    }

    #[test]
    fn a_tool_that_comes_in_part_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let script = brought_along(1_000);
        for bytes in [0, 999] {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(&script).env("TMPDIR", folder.path()).stdin(std::process::Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            std::io::Write::write_all(&mut shell.stdin.take().unwrap(), &vec![b' '; bytes]).unwrap();
            assert!(!shell.wait().unwrap().success());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{bytes} bytes of it");
        }
    }

    #[test]
    fn a_tool_on_its_way_is_removed_when_a_signal_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(brought_along(200_000)).env("TMPDIR", folder.path());
        let mut shell = shell.stdin(std::process::Stdio::piped()).spawn().unwrap();
        shell.stdin.as_mut().unwrap().write_all(&[0; 100_000]).unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap());
        // Its traps are set before the first byte is in the file.
        while !files().any(|file| file.metadata().unwrap().len() > 0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&shell),
            rustix::process::Signal::TERM,
        )
        .unwrap();
        drop(shell.stdin.take());
        assert!(!shell.wait().unwrap().success());
        assert_eq!(files().count(), 0);
    }

    #[test]
    fn blocks_have_limits() {
        assert_eq!(parse_block("64KiB"), Ok(65_536));
        assert!(parse_block("4KiB").is_ok() && parse_block("16MiB").is_ok());
        assert!(parse_block("4095").is_err() && parse_block("17MiB").is_err() && parse_block("x").is_err());
    }
}
