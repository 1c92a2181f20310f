//! `polycast simulate --wormhole` and `--figure`: multicast trees on wormhole networks.

mod figures;
mod report;

use std::path::PathBuf;

use polycast_core::units::Bytes;
use polycast_sim::wormhole::{
    Arbitration, Choice, Costs, Effort, Experiment, FIGURES, Figure, MulticastTree, Receives, Topology,
    Traffic,
};

use crate::commands::Outcome;
use crate::numbers::whole;

/// What only `--wormhole` and `--figure` take.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Wormhole networks (docs/wormhole.md)")]
pub struct Args {
    /// Trees of messages on a wormhole network: mesh:16x16, min:256
    #[arg(long, value_name = "NETWORK", group = "what")]
    pub wormhole: Option<Topology>,
    /// Figures of Nupairoj 1998: 5.9 to 6.23, or all
    #[arg(long, value_name = "NUMBER", group = "what", value_delimiter = ',', value_parser = figure)]
    pub figure: Vec<Figures>,

    /// sequential, binomial, opt-tree, u, opt, dyn [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "wormhole", value_parser = MulticastTree::parse)]
    tree: Vec<MulticastTree>,
    /// Nodes of the group that multicasts, placed at random
    #[arg(long, value_name = "NODES", default_value_t = 64, requires = "wormhole", value_parser = whole(2u32..))]
    group: u32,
    /// Groups that multicast at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "wormhole", value_parser = whole(1u32..))]
    groups: u32,
    /// Traffic that the other nodes offer, in parts of what all channels into nodes carry: 0,0.04,0.08
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0", requires = "wormhole", value_parser = part)]
    load: Vec<f64>,
    /// Part of that traffic that goes to one node: 1%
    #[arg(long, value_name = "PERCENT", default_value = "0%", requires = "wormhole", value_parser = super::percentage)]
    hot_spot: f64,
    /// Units of time between multicasts; without, the next one begins when the last one is complete
    #[arg(long, value_name = "UNITS", requires = "wormhole", value_parser = whole(1u64..))]
    interval: Option<u64>,
    /// Mean units of time between messages of each member to others of its group
    #[arg(long, value_name = "UNITS", requires = "wormhole", value_parser = whole(1u32..))]
    local: Option<u32>,
    /// What messages cost: chapter-5, baseline, fast-network, fast-software
    #[arg(long, value_name = "SET", default_value = "baseline", requires = "wormhole", value_parser = costs)]
    costs: Costs,
    /// Flits that a channel's buffer holds
    #[arg(long, value_name = "FLITS", default_value_t = 1, requires = "wormhole", value_parser = whole(1u64..=1 << 20))]
    buffer: u64,
    /// Units of time that a head waits in each router
    #[arg(long, value_name = "UNITS", default_value_t = 0, requires = "wormhole", value_parser = whole(0u64..=1 << 20))]
    router_delay: u64,
    /// Who goes first: first-come, first-come-drawn (if together), oldest-message
    #[arg(long, value_name = "WHO", default_value = "first-come", requires = "wormhole", value_parser = arbitration)]
    arbitration: Arbitration,
    /// Which of two free ways a head takes: straight, drawn
    #[arg(long, value_name = "WAY", default_value = "straight", requires = "wormhole", value_parser = choice)]
    choice: Choice,
    /// When a process that computes receives: at-once, between-computations
    #[arg(long, value_name = "WHEN", default_value = "at-once", requires = "wormhole", value_parser = receives)]
    receives: Receives,

    /// Random placements of each point [default: as published, 8 or 16]
    #[arg(long, value_name = "N", value_parser = whole(1u32..=10_000))]
    placements: Option<u32>,
    /// Coarse means in a short time
    #[arg(long)]
    quick: bool,
    /// Also plot, as SVG
    #[arg(long, value_name = "FILE", requires = "wormhole")]
    svg: Option<PathBuf>,
    /// Write each figure there as JSON and SVG, and leave out those that are there
    #[arg(long, value_name = "DIRECTORY", requires = "figure")]
    out: Option<PathBuf>,
}

/// `all`, or one.
#[derive(Clone, Copy)]
pub enum Figures {
    All,
    One(&'static Figure),
}

/// Runs `polycast simulate --wormhole` or `--figure`.
pub fn run(args: &super::Args) -> Outcome {
    match args.wormhole.wormhole {
        Some(topology) => report::run(args, topology),
        None => figures::run(args),
    }
}

impl Args {
    /// Whether wormhole networks are what is simulated.
    pub fn is_asked(&self) -> bool {
        self.wormhole.is_some() || !self.figure.is_empty()
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
    ) -> Result<Vec<Experiment>, String> {
        let (members, nodes) = (u64::from(self.group) * u64::from(self.groups), topology.nodes());
        if members > u64::from(nodes) {
            return Err(format!(
                "--group {} --groups {}: {topology} has {nodes} nodes",
                self.group, self.groups
            ));
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
            experiment.under(load, self.hot_spot)
        };
        if self.load.iter().any(|load| *load > 0.0) && members + 2 > u64::from(nodes) {
            return Err(format!(
                "--load: {topology} has {nodes} nodes; expected 2 or more outside of groups"
            ));
        }
        Ok(trees.iter().flat_map(|tree| self.load.iter().map(|load| experiment(*tree, *load))).collect())
    }
}

fn figure(text: &str) -> Result<Figures, String> {
    if text == "all" {
        return Ok(Figures::All);
    }
    let figure = FIGURES.iter().find(|figure| figure.number == text);
    figure.map(Figures::One).ok_or_else(|| {
        let numbers: Vec<&str> = FIGURES.iter().map(|figure| figure.number).collect();
        format!("expected all, or one of {}", numbers.join(" "))
    })
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.trim().parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "expected a number from 0 to 1, such as 0.05".to_owned())
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
