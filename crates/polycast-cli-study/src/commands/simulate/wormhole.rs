//! `polycast simulate --mesh`, `--min` and `--figure`: multicast trees on wormhole networks.

mod figures;
mod lanes;
mod report;
mod store;
mod told;
mod trace;

use std::error::Error;
use std::path::PathBuf;

use polycast_core::units::Bytes;
use polycast_study::multicast_figures::{Published, TOLD};
use polycast_study::wormhole::{
    Arbitration, Choice, Costs, Effort, Experiment, FIGURES, Figure, MulticastTree, Receives, Topology,
    Traffic,
};

use crate::commands::Outcome;
use crate::numbers::{percentage, whole};
use crate::usage::wrong;

/// Bytes and units of time with which nothing overflows.
const LIMIT: u64 = 1 << 50;

/// The options that change something only on these networks.
pub const OPTIONS: [&str; 14] = [
    "tree",
    "group",
    "groups",
    "load",
    "background",
    "interval",
    "local",
    "costs",
    "buffer",
    "router_delay",
    "arbitration",
    "choice",
    "receives",
    "trace",
];

/// What only `--mesh`, `--min` and `--figure` take.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Wormhole networks (docs/wormhole.md)")]
pub struct Args {
    /// Trees of messages on a mesh of so many nodes: 16x16
    #[arg(long, value_name = "WxH", groups = ["what", "network"], value_parser = mesh)]
    mesh: Option<Topology>,
    /// The same on a multistage network of so many nodes: 256
    #[arg(long, value_name = "NODES", groups = ["what", "network"], value_parser = min)]
    min: Option<Topology>,
    /// Figures of Nupairoj 1998: 5.9 to 6.23, or all; s0.18, s0.19 of Siebert 2006, s3.4 to s3.7 of Hoefler et al. 2007
    #[arg(long, value_name = "NUMBER", group = "what", value_delimiter = ',', value_parser = figure)]
    pub figure: Vec<Figures>,

    /// sequential, binomial, opt-tree, u, opt, dyn [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "network", value_parser = MulticastTree::parse)]
    tree: Vec<MulticastTree>,
    /// Nodes of the group that multicasts, placed at random
    #[arg(long, value_name = "NODES", default_value_t = 64, requires = "network", value_parser = whole(2u32..))]
    group: u32,
    /// Groups that multicast at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "network", value_parser = whole(1u32..))]
    groups: u32,
    /// Traffic that the other nodes offer, in parts of what all channels into nodes carry: 0,0.04,0.08, or eight from 0 to 0.1: 0..0.1:8
    #[arg(long, value_name = "LIST", default_value = "0", requires = "network", value_parser = loads)]
    load: Loads,
    /// Where that goes: uniform, or 1 % of it to one node: hotspot=1%
    #[arg(long, value_name = "WHERE", default_value = "uniform", requires = "network", value_parser = hot_spot)]
    background: f64,
    /// Units of time between multicasts; without, the next one begins when the last one is complete
    #[arg(long, value_name = "UNITS", requires = "network", value_parser = whole(1u64..=LIMIT))]
    interval: Option<u64>,
    /// Mean units of time between messages of each member to others of its group
    #[arg(long, value_name = "UNITS", requires = "network", value_parser = whole(1u32..))]
    local: Option<u32>,
    /// What messages cost: chapter-5, baseline, fast-network, fast-software
    #[arg(long, value_name = "SET", default_value = "baseline", requires = "network", value_parser = costs)]
    costs: Costs,
    /// Flits that a channel's buffer holds
    #[arg(long, value_name = "FLITS", default_value_t = 1, requires = "network", value_parser = whole(1u64..=1 << 20))]
    buffer: u64,
    /// Units of time that a head waits in each router
    #[arg(long, value_name = "UNITS", default_value_t = 0, requires = "network", value_parser = whole(0u64..=1 << 20))]
    router_delay: u64,
    /// Who goes first: first-come, first-come-drawn (if together), oldest-message
    #[arg(long, value_name = "WHO", default_value = "first-come", requires = "network", value_parser = arbitration)]
    arbitration: Arbitration,
    /// Which of two free ways a head takes: straight, drawn
    #[arg(long, value_name = "WAY", default_value = "straight", requires = "network", value_parser = choice)]
    choice: Choice,
    /// When a process that computes receives: at-once, between-computations
    #[arg(long, value_name = "WHEN", default_value = "at-once", requires = "network", value_parser = receives)]
    receives: Receives,

    /// Random placements of each point [default: as published, 8 or 16]
    #[arg(long, value_name = "N", conflicts_with_all = ["protocol", "scaling", "root_sync", "collective"], value_parser = whole(1u32..=10_000))]
    placements: Option<u32>,
    /// Coarse means in a short time
    #[arg(long, conflicts_with_all = ["protocol", "scaling", "root_sync", "collective"])]
    quick: bool,
    /// Also plot, as SVG [--mesh, --min, --scaling, --collective]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["protocol", "root_sync", "figure"])]
    pub svg: Option<PathBuf>,
    /// Draw one multicast of the first tree and load, as SVG: who held which channel when, in orange what stood still
    #[arg(long, value_name = "FILE", requires = "network")]
    trace: Option<PathBuf>,
    /// Write each figure there as JSON and SVG, and each point of Nupairoj's as it comes; those that are there are not measured again
    #[arg(long, value_name = "DIRECTORY", requires = "figure")]
    out: Option<PathBuf>,
}

/// The figures to simulate: all of the thesis, or one.
#[derive(Clone, Copy)]
pub enum Figures {
    All,
    One(&'static Figure),
    /// A figure of those who measured multicast.
    Told(&'static Published),
}

/// Loads, one after the other.
#[derive(Clone)]
struct Loads(Vec<f64>);

/// Runs `polycast simulate --mesh`, `--min` or `--figure`.
pub fn run(args: &super::Args) -> Outcome {
    match args.wormhole.network() {
        Some(topology) => report::run(args, topology),
        None => {
            args.wormhole.require_use(args)?;
            figures::run(args)
        }
    }
}

impl Args {
    /// True if wormhole networks are what is simulated.
    pub fn is_asked(&self) -> bool {
        self.network().is_some() || !self.figure.is_empty()
    }

    /// True if means are coarse, which a picture has to say.
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn network(&self) -> Option<Topology> {
        self.mesh.or(self.min)
    }

    /// An option that none of the figures asked for takes would change nothing.
    fn require_use(&self, all: &super::Args) -> Result<(), Box<dyn Error>> {
        let is_told = |figures: &Figures| matches!(figures, Figures::Told(_));
        let told = [
            ("--seed", all.seed.is_some()),
            ("--loss", all.loss.is_some()),
            ("--broadcasts", all.broadcasts.is_some()),
        ];
        let idle = match () {
            _ if !self.figure.iter().any(is_told) => told.into_iter().find(|(_, is_given)| *is_given),
            _ if self.figure.iter().all(is_told) => self.placements.map(|_| ("--placements", true)),
            _ => None,
        };
        idle.map_or(Ok(()), |(option, _)| {
            Err(wrong(format_args!("{option} changes nothing in these figures")))
        })
    }

    fn effort(&self) -> Effort {
        let effort = if self.quick { Effort::QUICK } else { Effort::FULL };
        Effort { placements: self.placements.unwrap_or(effort.placements), ..effort }
    }

    /// The experiments of a free one, by tree and load.
    fn experiments(
        &self,
        topology: Topology,
        bytes: Option<Bytes>,
        seed: u64,
    ) -> Result<Vec<Experiment>, Box<dyn Error>> {
        if let Some(bytes) = bytes.filter(|bytes| bytes.0 > LIMIT) {
            return Err(wrong(format_args!("--bytes {bytes}: expected {} or less", Bytes(LIMIT))));
        }
        let (members, nodes) = (u64::from(self.group) * u64::from(self.groups), topology.nodes());
        if members > u64::from(nodes) {
            return Err(wrong(format_args!(
                "--group {} --groups {}: {topology} has {nodes} nodes",
                self.group, self.groups
            )));
        }
        let trees = if self.tree.is_empty() { &MulticastTree::ALL[..] } else { &self.tree };
        let experiment = |tree: MulticastTree, load: f64| {
            let traffic = Traffic {
                tree,
                groups: self.groups,
                group_nodes: self.group,
                bytes: bytes.map_or(1 << 10, |bytes| bytes.0),
                interval: self.interval,
                local: self.local.map(f64::from),
                background: None,
                mean_bytes: 1 << 10,
                seed,
            };
            let mut experiment = Experiment::plain(topology, self.costs, traffic, self.effort());
            experiment.switching.buffer_flits = self.buffer;
            experiment.switching.router_delay = self.router_delay;
            experiment.switching.arbitration = self.arbitration;
            experiment.switching.choice = self.choice;
            experiment.nodes.receives = self.receives;
            experiment.under(load, self.background)
        };
        if self.load.0.iter().any(|load| *load > 0.0) && members + 2 > u64::from(nodes) {
            return Err(wrong(format_args!(
                "--load: {topology} has {nodes} nodes; expected 2 or more outside of groups"
            )));
        }
        Ok(trees.iter().flat_map(|tree| self.load.0.iter().map(|load| experiment(*tree, *load))).collect())
    }
}

fn figure(text: &str) -> Result<Figures, String> {
    if text == "all" {
        return Ok(Figures::All);
    }
    let figure = FIGURES.iter().find(|figure| figure.number == text).map(Figures::One);
    let told = || TOLD.iter().find(|figure| figure.number == text).map(Figures::Told);
    figure.or_else(told).ok_or_else(|| {
        let told = TOLD.iter().map(|figure| figure.number);
        let numbers: Vec<&str> = FIGURES.iter().map(|figure| figure.number).chain(told).collect();
        format!("expected all, or one of {}", numbers.join(" "))
    })
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.trim().parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "expected a number from 0 to 1, such as 0.05".to_owned())
}

/// `0,0.04,0.08`, or `0..0.1:8`.
fn loads(text: &str) -> Result<Loads, String> {
    let Some((range, count)) = text.split_once(':') else {
        return text.split(',').map(part).collect::<Result<_, _>>().map(Loads);
    };
    let ends = range.split_once("..").map(|(first, last)| (part(first), part(last)));
    let count = count.trim().parse::<u32>().ok().filter(|count| (2..=1000).contains(count));
    let (Some((first, last)), Some(count)) = (ends, count) else {
        return Err("expected numbers such as 0,0.05 or a range such as 0..0.1:8".to_owned());
    };
    let (first, last) = (first?, last?);
    let at = |number: u32| first + (last - first) * f64::from(number) / f64::from(count - 1);
    Ok(Loads((0..count).map(at).collect()))
}

fn hot_spot(text: &str) -> Result<f64, String> {
    match (text, text.strip_prefix("hotspot=")) {
        ("uniform", _) => Ok(0.0),
        (_, Some(percent)) => percentage(percent),
        _ => Err("expected uniform, or hotspot=1%".to_owned()),
    }
}

fn mesh(text: &str) -> Result<Topology, String> {
    format!("mesh:{text}")
        .parse()
        .map_err(|_| "expected a mesh such as 16x16, of 2 to 65536 nodes".to_owned())
}

fn min(text: &str) -> Result<Topology, String> {
    let problem = |_| "expected a power of two from 2 to 65536, such as 256".to_owned();
    format!("min:{text}").parse().map_err(problem)
}

fn one_of<T: Copy>(text: &str, named: &[(&str, T)]) -> Result<T, String> {
    let found = named.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        format!("expected {}", named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))
    })
}

fn costs(text: &str) -> Result<Costs, String> {
    let sets = [
        ("chapter-5", Costs::CHAPTER_5),
        ("baseline", Costs::BASELINE),
        ("fast-network", Costs::FAST_NETWORK),
        ("fast-software", Costs::FAST_SOFTWARE),
    ];
    one_of(text, &sets)
}

fn arbitration(text: &str) -> Result<Arbitration, String> {
    let who = [
        ("first-come", Arbitration::FirstCome),
        ("first-come-drawn", Arbitration::FirstComeOrDrawn),
        ("oldest-message", Arbitration::OldestMessage),
    ];
    one_of(text, &who)
}

fn choice(text: &str) -> Result<Choice, String> {
    one_of(text, &[("straight", Choice::Straight), ("drawn", Choice::Drawn)])
}

fn receives(text: &str) -> Result<Receives, String> {
    let when = [("at-once", Receives::AtOnce), ("between-computations", Receives::BetweenComputations)];
    one_of(text, &when)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_a_list_or_a_range() {
        assert_eq!(loads("0,0.04").unwrap().0, [0.0, 0.04]);
        assert_eq!(loads("0..0.1:3").unwrap().0, [0.0, 0.05, 0.1]);
        for wrong in ["", "0..2:3", "0..1:1", "0..1:", "0.1:3", "2"] {
            assert!(loads(wrong).is_err(), "{wrong}");
        }
        assert_eq!(hot_spot("uniform"), Ok(0.0));
        assert_eq!(hot_spot("hotspot=1%"), Ok(0.01));
        assert!(hot_spot("1%").is_err() && mesh("16").is_err() && min("12").is_err());
    }
}
