//! `polycast tree`: broadcast trees over a cluster, drawn and counted.

mod compare;
mod picture;
mod placement;
mod report;
mod shapes;
mod study;
mod terminal;
mod traffic;

use std::error::Error;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::CONTENTION_FREE_BINARY;
use polycast_core::files::FileKind;
use polycast_core::model::Parameters;
use polycast_core::topology::{Paths, Placed};
use polycast_core::tree::{Pipelined, PlannedTree};
use polycast_core::units::{Bytes, Nanos, Rank};

use super::{Outcome, print, write_file};
use crate::hosts;
use crate::numbers::whole;
use crate::settings::read_parameters;
use crate::terminal::paragraph;
use crate::times::Times;
use crate::topology_input::Input;
use crate::usage::wrong;
use placement::Placement;
use shapes::Knowledge;
use traffic::Traffic;

/// Arguments of `polycast tree`.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// The cluster, in any format that `polycast topology` reads
    #[arg(long, value_name = "FILE", required = true)]
    topology: Option<PathBuf>,

    /// Ranks in all [default: as many as the hosts take]
    #[arg(long, value_name = "N", conflicts_with = "hosts_of_ranks", value_parser = whole(1u32..))]
    ranks: Option<u32>,
    /// Ranks on each host
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "hosts_of_ranks",
          value_parser = whole(1u32..=4096))]
    ranks_per_host: u32,
    /// Which hosts get the ranks: by-name (n0, n1, n2, … n10), cyclic (by name, one rank at a time) or shuffled:SEED
    #[arg(long, value_name = "HOW", default_value = "by-name", conflicts_with = "hosts_of_ranks")]
    placement: Placement,
    /// The host of each rank, in the order of the ranks: a,a,b or a:2,n[0-7]
    #[arg(long, value_name = "HOSTS")]
    hosts_of_ranks: Option<String>,

    /// The rank that has the data
    #[arg(long, value_name = "RANK", default_value_t = 0, value_parser = whole(0u32..))]
    root: u32,
    /// The tree, named as for POLYCAST_BCAST
    #[arg(long, value_name = "SHAPE", default_value_t = CONTENTION_FREE_BINARY, conflicts_with = "compare")]
    shape: Algorithm,
    /// Make the tree as a job does that does not know the topology: it knows only which ranks share a host
    #[arg(long, conflicts_with = "compare")]
    unaware: bool,
    /// Show all shapes beside each other instead of one
    #[arg(long)]
    compare: bool,

    /// Measured parameters, whose times opt-tree and alpha-port are planned for
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,

    /// Length of the message, for the estimated time
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    bytes: NonZeroU64,
    /// Length of its segments where the shape has none, for the estimated time
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = size)]
    segment: NonZeroU64,

    /// Also draw the tree over the switches, as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  polycast tree --topology cluster.conf             contention-free, binary
  polycast tree --topology cluster.conf --root 5 --shape binomial --svg tree.svg
  polycast tree --topology cluster.conf --compare   all shapes side by side
  polycast tree --topology cluster.conf --compare --ranks-per-host 4 \\
    --placement shuffled:1
  polycast tree --topology cluster.conf --shape opt-tree --bytes 64KiB \\
    --params cluster.json                           by measured times
  polycast tree study --svg study.svg               heights on random clusters

Arrows: → between hosts on one switch or on the same host, ⇒ from switch to
switch; a ! behind a rank says that its message shares a link with one of
another sender. docs/trees.md explains the trees and the numbers.";

#[derive(Subcommand)]
enum Verb {
    /// How high contention-free binary trees are on random clusters
    Study(study::Args),
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    match &args.verb {
        Some(Verb::Study(study)) => study::run(study),
        None => run_tree(args),
    }
}

/// Ranks on a cluster, one of them as root, and the message that it sends.
struct Scene {
    placed: Placed,
    paths: Paths,
    root: Rank,
    bytes: NonZeroU64,
    segment: NonZeroU64,
    parameters: Option<Parameters>,
}

/// A tree in its scene.
struct Planned<'a> {
    /// The algorithm, with the length of its segments.
    algorithm: Algorithm,
    scene: &'a Scene,
    tree: PlannedTree,
    traffic: Traffic,
    /// The times of a message that the tree is made for, if it is made for some.
    times: Option<Times>,
}

impl<'a> Planned<'a> {
    fn new(algorithm: Algorithm, knows: Knowledge, scene: &'a Scene) -> Result<Planned<'a>, String> {
        let (tree, times) = shapes::plan(&algorithm, knows, scene)?;
        let algorithm = Algorithm { segment: algorithm.segment.or(Some(scene.segment)), ..algorithm };
        let traffic = Traffic::new(&tree, &scene.paths);
        Ok(Planned { algorithm, scene, tree, traffic, times })
    }

    /// Bytes of a segment.
    fn segment(&self) -> NonZeroU64 {
        self.algorithm.segment.unwrap_or(self.scene.bytes).min(self.scene.bytes)
    }

    /// The time until the last rank has the whole message, by the links alone.
    fn estimated_time(&self) -> Nanos {
        let segment = self.segment().get();
        let segments = self.scene.bytes.get().div_ceil(segment);
        Pipelined::over(&self.tree, &self.scene.paths, segment).completion(segments)
    }

    /// True if the message to a rank shares an edge with a message of another sender.
    fn is_disturbed(&self, rank: Rank) -> bool {
        let parent = self.tree.parent(rank);
        let path = parent.map(|parent| self.scene.paths.between(parent, rank)).unwrap_or_default();
        path.into_iter().any(|edge| self.traffic.is_contended(edge))
    }
}

fn run_tree(args: &Args) -> Outcome {
    let scene = scene(args)?;
    if args.compare {
        print(&compare::run(&scene, args.json)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let knows = if args.unaware { Knowledge::Hosts } else { Knowledge::Topology };
    let planned = Planned::new(args.shape, knows, &scene).map_err(wrong)?;
    if let Some(file) = &args.svg {
        write_file(file, &picture::svg(&planned).map_err(wrong)?)?;
    }
    let report = report::Report::new(&planned);
    match args.json {
        true => print(&(serde_json::to_string_pretty(&report.with_tree(&planned))? + "\n"))?,
        false => print(&format!("{}\n{}", terminal::draw(&planned), report.text()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn scene(args: &Args) -> Result<Scene, Box<dyn Error>> {
    let file = args.topology.as_ref().expect("clap demands it without a subcommand");
    let topology = Input::read(file, FileKind::Topology)?.topology()?;
    for note in &topology.notes {
        eprintln!("{}", paragraph(&format!("polycast: {}: {note}", file.display())));
    }
    let hosts = match &args.hosts_of_ranks {
        Some(list) => hosts::of_ranks(hosts::place(&hosts::parse(list)?, None)?),
        None => args.placement.hosts_of_ranks(&topology, args.ranks, args.ranks_per_host).map_err(wrong)?,
    };
    let placed = topology.place(&hosts);
    for host in &placed.unplaced_hosts {
        let lacks = format!("{} lacks host {host}: it stands apart, on a switch of its own", file.display());
        eprintln!("{}", paragraph(&format!("polycast: {lacks}")));
    }
    let ranks = hosts.len() as u32;
    if args.root >= ranks {
        return Err(wrong(format_args!("--root {}: expected a rank from 0 to {}", args.root, ranks - 1)));
    }
    let paths = Paths::new(&placed);
    let parameters = args.params.as_deref().map(read_parameters).transpose()?;
    Ok(Scene { placed, paths, root: Rank(args.root), bytes: args.bytes, segment: args.segment, parameters })
}

fn size(text: &str) -> Result<NonZeroU64, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    NonZeroU64::new(bytes.0).ok_or_else(|| "expected at least 1 byte".to_owned())
}
