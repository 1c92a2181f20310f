//! `polycast simulate`: collectives in virtual time.

mod cluster;
mod collectives;
mod picture;
mod protocol;
mod recorded;
mod root_sync;
mod scaling;
mod wormhole;

use std::error::Error;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use polycast_core::collective::Collective;
use polycast_core::units::Bytes;

use super::Outcome;
use crate::numbers::{percentage, whole};
use crate::usage::wrong;

/// Arguments of `polycast simulate`.
#[derive(clap::Args)]
#[command(
    override_usage = "polycast simulate --protocol|--scaling|--root-sync [OPTIONS]
       polycast simulate --collective NAME [OPTIONS]
       polycast simulate --mesh WxH|--min NODES|--figure NUMBER [OPTIONS]",
    after_help = "\
Examples:
  polycast simulate --protocol --seeds 100000        faults of every kind
  polycast simulate --protocol --seed 42 --verbose   one of these, step by step
  polycast simulate --scaling                        from 16 to 8192 nodes
  polycast simulate --scaling --cluster infiniband --bytes 2 --nodes 2,116
  polycast simulate --root-sync --bytes 256KiB       does waiting for ranks pay?
  polycast simulate --root-sync --arrival job.arrivals
  polycast simulate --collective allreduce --nodes 16,64 --bytes 1KiB,1MiB
  polycast simulate --collective bcast --algorithms binomial,chain:segment=8KiB
  polycast simulate --collective allreduce --cluster 25gbe --svg allreduce.svg
  polycast simulate --collective bcast --rate 40gbit --latency 5us
  polycast simulate --collective gather --topology topology.conf
  polycast simulate --collective allgather --nodes 8 --ranks-per-host 4
  polycast simulate --mesh 16x16 --load 0..0.08:3 --quick
  polycast simulate --figure 6.7 --out figures       a published figure, anew

Exit status: 0 if everything held, 1 if not. docs/simulation.md and
docs/wormhole.md say what is simulated, and what is checked.",
    group(clap::ArgGroup::new("what").required(true).args(["protocol", "scaling", "root_sync", "collective"])),
    // Clap does not ask for what an argument requires where that may not stand beside another one.
    group(clap::ArgGroup::new("of_protocol").multiple(true).args(["seeds", "first_seed", "verbose"])
        .conflicts_with_all(["scaling", "root_sync", "collective", "network", "figure"])),
    group(clap::ArgGroup::new("of_collective").multiple(true).args(["algorithms", "ranks_per_host", "topology"])
        .requires("collective").conflicts_with_all(["protocol", "scaling", "root_sync", "network", "figure"])),
    group(clap::ArgGroup::new("of_networks").multiple(true).args(wormhole::OPTIONS)
        .conflicts_with_all(["protocol", "scaling", "root_sync", "collective", "figure"])),
)]
pub struct Args {
    /// Run the multicast protocol while everything goes wrong, and check every step
    #[arg(long)]
    protocol: bool,
    /// Show how the time of a small broadcast grows with the number of nodes
    #[arg(long)]
    scaling: bool,
    /// Compare what a root can do about receivers that are late
    #[arg(long)]
    root_sync: bool,
    /// Run this collective, named as its MPI function, with its data, by the schedules that jobs run
    #[arg(long, value_name = "NAME")]
    collective: Option<Collective>,
    /// What is compared with the first of them, as in chain,binary:segment=4KiB [--collective] [default: all]
    #[arg(long, value_name = "LIST")]
    algorithms: Option<String>,
    /// Ranks on each node [--collective] [default: 1]
    #[arg(long, value_name = "K", value_parser = whole(1u32..=1024))]
    ranks_per_host: Option<u32>,
    /// The switches and hosts; --nodes then are the first of these [--collective] [default: one switch]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,

    /// Runs, each of another seed [--protocol]
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole(1u64..))]
    seeds: u64,
    /// The seed of the first run [--protocol]
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = whole(0u64..))]
    first_seed: u64,
    /// Only the run of this seed; for the others, the seed of what is drawn
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first_seed", "collective"], value_parser = whole(0u64..))]
    seed: Option<u64>,
    /// Say what is run and what happens, step by step
    #[arg(long, requires = "seed", requires = "protocol")]
    verbose: bool,

    /// Nodes: a range for --protocol (2..64), a list for --scaling (16,128,1024,8192) and --collective (16), a number for --root-sync (16)
    #[arg(long, value_name = "NODES", conflicts_with_all = ["network", "figure"])]
    nodes: Option<String>,
    /// When the nodes call: as the ranks of a job did, of which `polycast report --arrivals` has written the file [--root-sync]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "protocol", "scaling", "collective", "network", "figure"])]
    arrival: Option<PathBuf>,
    /// Length of the message, or of a block of scatter, gather, allgather and alltoall; for --scaling and --collective a list
    /// [--scaling: 8KiB, --root-sync: 256KiB, --collective: 64KiB, --mesh, --min: 1KiB]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', conflicts_with_all = ["protocol", "figure"])]
    bytes: Vec<Bytes>,
    /// Broadcasts that are measured for each figure [--scaling, --root-sync, --figure s…] [default: 100]
    #[arg(long, value_name = "N", conflicts_with_all = ["protocol", "collective", "network"], value_parser = whole(2u32..=1_000_000))]
    broadcasts: Option<u32>,
    /// Datagrams that each receiver misses, in percent [--scaling, --figure s…] [default: 0.1%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, conflicts_with_all = ["protocol", "root_sync", "collective", "network"])]
    loss: Option<f64>,

    #[command(flatten)]
    cluster: cluster::Args,

    #[command(flatten)]
    wormhole: wormhole::Args,

    /// Print one JSON object
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    if args.bytes.contains(&Bytes(0)) {
        return Err(wrong("--bytes 0: expected at least 1"));
    }
    if args.bytes.len() > 1 && !args.scaling && args.collective.is_none() {
        return Err(wrong("--bytes: expected one size; --scaling and --collective take a list"));
    }
    if args.wormhole.is_asked() {
        wormhole::run(args)
    } else if args.scaling {
        scaling::run(args)
    } else if args.root_sync {
        root_sync::run(args)
    } else if let Some(collective) = args.collective {
        collectives::run(args, collective)
    } else {
        protocol::run(args)
    }
}

impl Args {
    fn broadcasts(&self) -> u32 {
        self.broadcasts.unwrap_or(100)
    }

    fn loss(&self) -> f64 {
        self.loss.unwrap_or(0.001)
    }

    /// The numbers of nodes that `--nodes` lists, or else `default`.
    fn node_counts(&self, default: &str) -> Result<Vec<u32>, Box<dyn Error>> {
        self.nodes.as_deref().unwrap_or(default).split(',').map(node_count).collect()
    }
}

/// The most bytes that the buffers of all nodes together may hold.
const MAX_BYTES: u64 = 16 << 30;

fn require_memory(bytes: Bytes, ranks: u32) -> Result<(), Box<dyn Error>> {
    require_room(bytes, ranks, bytes.0.checked_mul(ranks.into()))
}

fn require_room(bytes: Bytes, ranks: u32, all: Option<u64>) -> Result<(), Box<dyn Error>> {
    match all {
        Some(0..=MAX_BYTES) => Ok(()),
        _ => Err(wrong(format_args!(
            "--bytes {bytes}: expected {} or less for all {ranks} ranks together",
            Bytes(MAX_BYTES)
        ))),
    }
}

/// Nodes that a ring can have here: a run of more takes more memory than it is worth.
const NODES: RangeInclusive<u32> = 2..=65_536;

fn node_count(text: &str) -> Result<u32, Box<dyn Error>> {
    let nodes = text.trim().parse().ok().filter(|nodes| NODES.contains(nodes));
    nodes.ok_or_else(|| {
        wrong(format_args!("--nodes {text}: expected a number from {} to {}", NODES.start(), NODES.end()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_possible_is_refused() {
        assert_eq!(node_count("2").unwrap(), 2);
        require_memory(Bytes(1 << 20), 16_384).unwrap();
        assert!(
            require_memory(Bytes(u64::MAX), 2).is_err() && require_memory(Bytes((8 << 30) + 1), 2).is_err()
        );
        assert!(node_count("1").is_err() && node_count("65537").is_err());
    }
}
