//! `polycast doctor`: why multicast does not work here, and whether polycast would use it.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::ProgressBar;
use polycast_cli_console::settings::variable;
use polycast_net::{Family, InterfaceChoice};

use super::{Outcome, print};
use crate::doctor::checks::settings;
use crate::doctor::examination::{Request, examine};
use crate::doctor::host_list::parse_hosts;
use crate::fleet::Fleet;
use crate::numbers::whole;
use crate::reach::Agent;
use crate::terminal::Paint;
use crate::usage::wrong;

const EXAMPLES: &str = "\
Examples:
  polycast doctor                              this machine
  polycast doctor --hosts a,b,c              hosts and the network between them;
                                             needs ssh without password
  polycast doctor --hosts a,b --watch 300    does a switch forget group members?
  polycast doctor --lab hosts=4,rate=1gbit   an emulated cluster, for comparison

Exit status: 0 if a job would use multicast, 1 if not, 2 if the command line is
wrong.";

/// Arguments of `polycast doctor`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Examine these hosts and send between them [default: this machine alone]
    #[arg(long, value_name = "HOSTS", value_parser = parse_host_list)]
    hosts: Option<HostList>,
    /// Examine the hosts of a lab: its name, or hosts=4,rate=1gbit for one that is made and removed again
    #[arg(long, value_name = "LAB", conflicts_with = "hosts")]
    lab: Option<String>,
    /// The interface, as POLYCAST_NET has it: eth (begins with), =eth0 (exactly), ^docker (not)
    #[arg(long, value_name = "SPEC", value_parser = parse_interface)]
    interface: Option<String>,
    /// IPv4 or IPv6 [default: as POLYCAST_MULTICAST says, else ipv4]
    #[arg(long, value_enum)]
    family: Option<FamilyName>,
    /// Datagrams that each host sends
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole(1u32..=10_000))]
    datagrams: u32,
    /// Go on for so long after the probe, to catch a switch that forgets
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = whole(0u64..=86_400))]
    watch: u64,
    /// A command in place of ssh, called as COMMAND HOST words…
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    launch_agent: Option<String>,
    /// Where polycast is on the other hosts [default: where it is here]
    #[arg(long, value_name = "FILE", requires = "hosts")]
    remote_tool: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A value of `--hosts`; clap takes a Vec for an option that may be repeated.
#[derive(Clone)]
struct HostList(Vec<String>);

fn parse_host_list(text: &str) -> Result<HostList, String> {
    parse_hosts(text).map(HostList)
}

fn parse_interface(text: &str) -> Result<String, String> {
    text.parse::<InterfaceChoice>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, ValueEnum)]
enum FamilyName {
    Ipv4,
    Ipv6,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let fleet = fleet(&args)?;
    let request = Request {
        family: match args.family {
            Some(FamilyName::Ipv4) => Family::V4,
            Some(FamilyName::Ipv6) => Family::V6,
            None => settings::family(variable),
        },
        interface: args.interface.or_else(|| variable(settings::NET)),
        datagrams: args.datagrams,
        watch: Duration::from_secs(args.watch),
    };
    // Drawn on standard error, and only where that is a terminal.
    let progress = ProgressBar::new_spinner();
    let mut report = examine(&fleet, &request, &|doing| {
        progress.set_message(doing);
        progress.tick();
    })?;
    progress.finish_and_clear();
    for finding in settings::check(variable) {
        report.add::<&str>(&[], finding);
    }
    let text = if args.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        report.text(Paint::of_standard_output())?
    };
    print(&text)?;
    Ok(if report.multicast_would_be_used { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn fleet(args: &Args) -> Result<Fleet, Box<dyn Error>> {
    Ok(match (&args.hosts, &args.lab) {
        (Some(HostList(hosts)), _) => {
            let agent = args.launch_agent.as_deref().map(|text| Agent::named("--launch-agent", text));
            let agent = agent.transpose().map_err(wrong)?;
            Fleet::remote(hosts.clone(), agent, args.remote_tool.clone())
        }
        (None, Some(lab)) => Fleet::emulated(lab)?,
        (None, None) => Fleet::here(),
    })
}
