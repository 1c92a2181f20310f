//! `polycast tree study`: how high contention-free binary trees are on random clusters (Patarasuk et al. 2008, §4.1.2, Figure 5).
//!
//! The paper says of its clusters that random links were added between switches "until a tree that connects all nodes is
//! formed (links that violate the tree property are not added)". That can be read in two ways, and the trees are far apart:
//! [`Wiring::Grown`] and [`Wiring::Joined`]. Both are studied.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::topology::{Placed, Topology};
use polycast_core::tree::{PlannedShape, Site, contending_pairs};
use polycast_core::units::Rank;
use rayon::prelude::*;
use serde::Serialize;

use super::report::complete_binary_height;
use crate::commands::{Outcome, print, require_writable, write_file};
use crate::numbers::whole;
use crate::plot::{Axis, Chart, Curve, Point};
use crate::terminal::table;

const BINARY: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// Arguments of `polycast tree study`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast tree study --svg study.svg        the figure of the paper, in seconds
  polycast tree study --machines 4096,8192 --per-switch 24 --topologies 100
  polycast tree study --seed 7 --json        other random clusters, as JSON

Switches are wired at random in two ways: grown (each new switch is linked to
one of those before it) and joined (links that would close a cycle are left out,
any others are made); joined trees are deeper.")]
pub struct Args {
    /// Machines in the cluster
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,32,64,128,256,512,1024",
          value_parser = whole(2u32..=65_536))]
    machines: Vec<u32>,
    /// Machines on each switch, on average
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8,16",
          value_parser = whole(1u32..=65_536))]
    per_switch: Vec<u32>,
    /// Random clusters of each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole(1u32..=100_000))]
    topologies: u32,
    /// The seed of everything that is drawn
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = whole(0u64..))]
    seed: u64,
    /// Also plot the heights, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The way in which switches are linked at random.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Wiring {
    Grown,
    Joined,
}

/// Everything that was found, as `--json` says it.
#[derive(Serialize)]
struct Study {
    seed: u64,
    topologies: u32,
    /// The contending pairs of all trees together; the trees are made so that there are 0.
    contending_pairs: u64,
    clusters: Vec<Clusters>,
}

/// Random clusters of one kind and size.
#[derive(Serialize)]
struct Clusters {
    wiring: Wiring,
    machines_per_switch: u32,
    machines: u32,
    switches: u32,
    complete_binary_height: u32,
    mean_height: f64,
    least_height: u32,
    greatest_height: u32,
    /// The ratio of the mean height to the complete binary tree's height.
    ratio: f64,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    require_writable(&args.svg)?;
    let study = Study::new(args);
    if let Some(file) = &args.svg {
        write_file(file, &study.chart().to_svg()?)?;
    }
    print(&if args.json { serde_json::to_string_pretty(&study)? + "\n" } else { study.text() })?;
    Ok(ExitCode::SUCCESS)
}

impl Study {
    fn new(args: &Args) -> Study {
        let mut random = fastrand::Rng::with_seed(args.seed);
        let mut study =
            Study { seed: args.seed, topologies: args.topologies, contending_pairs: 0, clusters: Vec::new() };
        for wiring in [Wiring::Grown, Wiring::Joined] {
            for &machines_per_switch in &args.per_switch {
                for &machines in &args.machines {
                    let switches = (machines / machines_per_switch).max(1);
                    let seeds: Vec<u64> = (0..args.topologies).map(|_| random.u64(..)).collect();
                    let tree = |seed| wiring.tree(switches, machines, seed);
                    let trees: Vec<Tree> = seeds.into_par_iter().map(tree).collect();
                    study.contending_pairs += trees.iter().map(|tree| tree.contending_pairs).sum::<u64>();
                    study.clusters.push(Clusters::new(
                        wiring,
                        machines_per_switch,
                        machines,
                        switches,
                        &trees,
                    ));
                }
            }
        }
        study
    }

    fn text(&self) -> String {
        let rows = self.clusters.iter().map(|clusters| {
            vec![
                clusters.wiring.name().to_owned(),
                clusters.machines_per_switch.to_string(),
                clusters.machines.to_string(),
                clusters.switches.to_string(),
                clusters.complete_binary_height.to_string(),
                format!("{:.2}", clusters.mean_height),
                format!("{} … {}", clusters.least_height, clusters.greatest_height),
                format!("{:.2}", clusters.ratio),
            ]
        });
        let header =
            ["WIRING", "PER SWITCH", "MACHINES", "SWITCHES", "COMPLETE", "MEAN", "RANGE", "MEAN/COMPLETE"];
        format!(
            "Heights of contention-free binary trees on {} random clusters of each kind, seed {}\n\n{}\n\
             Greatest mean over complete: {:.2} grown, {:.2} joined. Contending pairs in all trees: {}.\n",
            self.topologies,
            self.seed,
            table(header, rows.collect(), 1),
            self.greatest_ratio(Wiring::Grown),
            self.greatest_ratio(Wiring::Joined),
            self.contending_pairs
        )
    }

    fn greatest_ratio(&self, wiring: Wiring) -> f64 {
        let of_wiring = self.clusters.iter().filter(|clusters| clusters.wiring == wiring);
        of_wiring.map(|clusters| clusters.ratio).fold(0.0, f64::max)
    }

    fn chart(&self) -> Chart {
        let title =
            format!("Contention-free binary trees on {} random clusters of each kind", self.topologies);
        let height = "height (mean, lowest and highest)";
        let mut chart = Chart::new(title, Axis::doublings("machines"), Axis::linear(height));
        chart.notes = vec![format!("polycast tree study {}", env!("CARGO_PKG_VERSION"))];
        let mut complete = Vec::new();
        for kind in self.clusters.chunk_by(|a, b| a.kind() == b.kind()) {
            let (wiring, machines_per_switch) = kind[0].kind();
            let name = format!("{}, {machines_per_switch} machines/switch", wiring.name());
            chart.curves.push(Curve::measured(name, by_machines(kind.iter().map(Clusters::mean_point))));
            complete.extend(kind.iter().map(Clusters::complete_point));
        }
        complete = by_machines(complete.into_iter());
        complete.dedup();
        chart.curves.push(Curve::reference("complete binary tree", complete));
        chart
    }
}

fn by_machines(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

struct Tree {
    height: u32,
    contending_pairs: u64,
}

impl Wiring {
    fn name(self) -> &'static str {
        match self {
            Wiring::Grown => "grown",
            Wiring::Joined => "joined",
        }
    }

    /// The contention-free binary tree from the first machine of a random cluster.
    fn tree(self, switches: u32, machines: u32, seed: u64) -> Tree {
        let mut random = fastrand::Rng::with_seed(seed);
        let below = |number| random.usize(..number);
        let (switches, machines) = (switches as usize, machines as usize);
        let topology = match self {
            Wiring::Grown => Topology::random_grown(switches, machines, below),
            Wiring::Joined => Topology::random(switches, machines, below),
        };
        let placed = Placed { topology, host_of: (0..machines).collect(), unplaced_hosts: Vec::new() };
        let tree = PlannedShape::ContentionFreeKAry(BINARY).plan(&Site::new(&placed), Rank(0));
        Tree { height: tree.height(), contending_pairs: contending_pairs(&tree, &placed) }
    }
}

impl Clusters {
    fn new(
        wiring: Wiring,
        machines_per_switch: u32,
        machines: u32,
        switches: u32,
        trees: &[Tree],
    ) -> Clusters {
        let heights = || trees.iter().map(|tree| tree.height);
        let complete_binary_height = complete_binary_height(machines);
        let mean_height = heights().map(f64::from).sum::<f64>() / trees.len() as f64;
        Clusters {
            wiring,
            machines_per_switch,
            machines,
            switches,
            complete_binary_height,
            mean_height,
            least_height: heights().min().unwrap_or(0),
            greatest_height: heights().max().unwrap_or(0),
            ratio: mean_height / f64::from(complete_binary_height),
        }
    }

    fn kind(&self) -> (Wiring, u32) {
        (self.wiring, self.machines_per_switch)
    }

    fn mean_point(&self) -> Point {
        let range = (f64::from(self.least_height), f64::from(self.greatest_height));
        Point::new(f64::from(self.machines), self.mean_height).between(range.0, range.1)
    }

    fn complete_point(&self) -> Point {
        Point::new(f64::from(self.machines), f64::from(self.complete_binary_height))
    }
}
