//! `make conformance`: mpi4py's own collective and communicator tests on several MPIs, on one node and across the hosts of a lab,
//! with each algorithm, with multicast for every size, with two ranks on each host, and again where the network loses one datagram in twenty.
//!
//! A run has a broadcast, after which it is called, and an algorithm for each other collective: all of them have a turn. It counts only if each of
//! these served calls. What fails or hangs without polycast, too, is not held against it.
//!
//! ```text
//! make conformance                                   every row; three quarters of an hour on two cores
//! make conformance ONLY="mpich-5 lab multicast"      the rows whose names have all these words
//! ```

#[path = "../lab/cluster.rs"]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod mpi;
mod row;

use std::collections::BTreeMap;
use std::process::ExitCode;

use cluster::Labs;
use mpi::Mpi4py;
use polycast_core::algorithm::Registry;
use polycast_core::collective::Collective;
use row::{Forced, HOSTS, LAB, Network, Outcome, Row};

/// Both forms, and both with parity.
const MULTICAST: [&str; 4] =
    ["multicast-pull", "multicast-push", "multicast-pull:parity", "multicast-push:parity"];

/// Where the subject is not the algorithm.
const FEW: [&str; 2] = ["chain:segment=1KiB", "binomial"];

/// Where ranks of a host share memory and hosts do not.
const ON_TWO_LEVELS: [&str; 2] = ["two-level:between=chain,segment=1KiB", "multicast-pull"];

/// The broadcasts that are forced on a network.
fn broadcasts_on(network: Network) -> Vec<String> {
    let algorithms = Registry::BUILT_IN.samples(Collective::Broadcast);
    match network {
        Network::Node => algorithms.iter().map(ToString::to_string).collect(),
        Network::Lab => MULTICAST.into_iter().chain(FEW).map(str::to_owned).collect(),
        Network::LabOfPairs => ON_TWO_LEVELS.map(str::to_owned).into(),
        Network::LossyLab => MULTICAST.map(str::to_owned).into(),
    }
}

/// What the collective may be served by there.
fn algorithms_on(network: Network, collective: Collective) -> Vec<String> {
    let mut all = Registry::BUILT_IN.samples(collective);
    match network {
        Network::Node => all.extend(Registry::BUILT_IN.samples_on_one_node(collective)),
        Network::Lab | Network::LossyLab => all.retain(|algorithm| !algorithm.entry.shares_memory()),
        Network::LabOfPairs => all.retain(|algorithm| {
            // Of the ways that a node does it each alone, and all that may be said together.
            let is_plain = algorithm.shares_memory() && algorithm.given("overlap").is_none();
            algorithm.entry.shares_memory() && (is_plain || *algorithm == algorithm.entry.complete())
        }),
    }
    all.iter().map(ToString::to_string).collect()
}

/// With this broadcast, and of each other collective the algorithm whose turn it is.
fn forced(network: Network, broadcast: String, turn: usize) -> Forced {
    let other = |collective| {
        let all = algorithms_on(network, collective);
        (collective, all[turn % all.len()].clone())
    };
    let others = Collective::ALL.into_iter().skip(1).map(other);
    [(Collective::Broadcast, broadcast)].into_iter().chain(others).collect()
}

/// Of each MPI and network the bare library first.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for network in [Network::Node, Network::Lab, Network::LabOfPairs, Network::LossyLab] {
        // Where an MPI has few rows the next one goes on.
        let mut turns = 0..;
        for mpi in Mpi4py::ALL {
            rows.push(Row { mpi, network, forced: None });
            for (broadcast, turn) in broadcasts_on(network).into_iter().zip(&mut turns) {
                rows.push(Row { mpi, network, forced: Some(forced(network, broadcast, turn)) });
            }
        }
    }
    rows
}

/// A lab of its own for each network, which stays until another is wanted.
fn lab(network: Network) -> Labs {
    let labs = Labs::new();
    if network == Network::Node {
        return labs;
    }
    let hosts = HOSTS.to_string();
    assert!(labs.up(&[LAB, "--hosts", &hosts, "--rate", "1gbit", "--burst", "64KiB"]), "labs can be made");
    if network == Network::LossyLab {
        let rule = "meta l4proto udp numgen random mod 100 < 5 drop";
        for host in 0..HOSTS {
            let table = format!("table ip t {{ chain c {{ type filter hook input priority 0; {rule}; }}; }}");
            labs.exec(LAB, &format!("h{host}"), &format!("nft '{table}'"));
        }
    }
    labs
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |row: &Row| words.iter().all(|word| row.to_string().contains(word.as_str()));
    if let Err(reason) = mpi::prepare() {
        eprintln!("conformance: {reason}");
        return ExitCode::FAILURE;
    }
    // The bare library runs wherever something is compared with it.
    let wanted: Vec<Row> = rows().into_iter().filter(is_wanted).collect();
    let mut stock: BTreeMap<(&str, Network), Outcome> = BTreeMap::new();
    let mut there: Option<(Network, Labs)> = None;
    let (mut served, mut tests, mut failed, mut left_out) = (0, 0, 0, 0);
    for row in &wanted {
        if there.as_ref().is_none_or(|(network, _)| *network != row.network) {
            drop(there.take());
            there = Some((row.network, lab(row.network)));
        }
        let (_, labs) = there.as_ref().expect("it was made");
        let bare = Row { forced: None, ..row.clone() };
        let stock = stock.entry((row.mpi.name, row.network)).or_insert_with(|| bare.run(labs));
        if row.forced.is_some() && !stock.ended {
            println!("{:<60} left out: the MPI alone does not come to its end there", row.to_string());
            left_out += 1;
            continue;
        }
        let outcome = if row.forced.is_none() { stock.clone() } else { row.run(labs) };
        let problem = row.forced.as_ref().and_then(|_| outcome.problem(stock));
        let verdict = problem.as_deref().unwrap_or(if outcome.ended { "ok" } else { "does not end" });
        println!(
            "{:<60} {:>4} tests {:>6} served {:>4.0} s  {verdict}",
            row.to_string(),
            outcome.tests,
            outcome.served,
            outcome.seconds
        );
        if problem.is_some() {
            failed += 1;
            println!("{:?}", row.forced);
            println!("{}", outcome.tail());
        }
        (served, tests) = (served + outcome.served, tests + outcome.tests);
    }
    let runs = wanted.len() - left_out;
    println!("{runs} runs, {tests} tests, {served} calls served, {failed} runs failed, {left_out} left out");
    if failed > 0 || wanted.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
