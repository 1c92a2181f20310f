//! `polycast lab list`.

use std::process::ExitCode;

use polycast_core::topology::hostlist;
use polycast_core::units::Bytes;
use polycast_lab::{Lab, Summary};
use serde::Serialize;

use crate::commands::{Outcome, print, print_json};
use crate::terminal::{count, table};

/// Arguments of `polycast lab list`.
#[derive(clap::Args)]
pub struct Args {
    /// Print a list of JSON objects with hosts, addresses, switches and rates
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    summary: Summary,
    alive: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let (mut labs, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for lab in Lab::all()? {
        match lab {
            Ok(lab) => labs.push(lab),
            Err(error) => {
                eprintln!("polycast: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    if args.json {
        let entries: Vec<Entry> =
            labs.into_iter().map(|summary| Entry { alive: summary.is_alive(), summary }).collect();
        print_json(&entries)?;
        return Ok(code);
    }
    if labs.is_empty() {
        eprintln!("no labs; make one with `polycast lab up`");
        return Ok(code);
    }
    let header = ["NAME", "BLOCKED", "STATE", "HOSTS", "SWITCHES", "RATE", "BURST", "LOSS", "KEEPER"];
    print(&table(header, labs.iter().map(row).collect(), 3))?;
    Ok(code)
}

fn row(lab: &Summary) -> Vec<String> {
    vec![
        lab.name.clone(),
        blocked(lab),
        state(lab).to_owned(),
        lab.plan.hosts.len().to_string(),
        lab.plan.switches.len().to_string(),
        rates(lab),
        Bytes(lab.plan.burst_bytes.into()).to_string(),
        loss(lab),
        lab.keeper_pid.to_string(),
    ]
}

/// A lab in half a line: `16 hosts on 1 switch, 20mbit, 1% loss, no multicast for h3`.
pub fn describe(lab: &Summary) -> String {
    let hosts = count(lab.plan.hosts.len(), "host", "hosts");
    let switches = count(lab.plan.switches.len(), "switch", "switches");
    let mut text = format!("{hosts} on {switches}, {}", rates(lab));
    if lab.plan.loss_per_million > 0 {
        text += &format!(", {} loss", loss(lab));
    }
    if lab.plan.hosts.iter().any(|host| host.blocks_multicast) {
        text += &format!(", no multicast for {}", blocked(lab));
    }
    text
}

/// The loss on each link in each direction, in percent.
fn loss(lab: &Summary) -> String {
    format!("{}%", f64::from(lab.plan.loss_per_million) / 10_000.0)
}

/// The hosts that get no multicast, `h[1-3]`, or `-`.
fn blocked(lab: &Summary) -> String {
    let blocked = lab.plan.hosts.iter().filter(|host| host.blocks_multicast);
    let names: Vec<&str> = blocked.map(|host| host.name.as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { hostlist(&names) }
}

fn state(lab: &Summary) -> &'static str {
    match (lab.is_alive(), lab.ready) {
        (true, true) => "up",
        (true, false) => "being made",
        (false, _) => "dead: polycast lab down --all",
    }
}

/// `20mbit`, or `20mbit-1gbit` if the links differ.
fn rates(lab: &Summary) -> String {
    let (slowest, fastest) = (lab.plan.slowest_rate(), lab.plan.fastest_rate());
    if slowest == fastest { slowest.to_string() } else { format!("{slowest}-{fastest}") }
}
