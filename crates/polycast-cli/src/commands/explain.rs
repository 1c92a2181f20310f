//! `polycast explain`.

mod measured;
mod mixed;
mod placement;
mod prediction;
mod remembered;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use polycast_core::collective;
use polycast_core::network::Network;
use polycast_core::policy::{
    self, By, Call, Capabilities, Choice, Collective, Explanation, LookedAt, Policy, Prediction, Rules,
    Table, Verdict,
};
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Nanos, Rank, Rate};
use serde::Serialize;

use self::measured::Measured;
use self::mixed::OnTwoLevels;
use self::placement::{Placement, Request};
use self::prediction::Reason;
use super::predict::MAX_RANKS;
use super::{Outcome, print};
use crate::numbers::whole;
use crate::settings::{Settings, read_parameters, read_table, read_topology};
use crate::terminal::{exact_size, hanging, paragraph};
use crate::times::{self, Times};

/// Arguments of `polycast explain`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  polycast explain --collective bcast --ranks 16 --nodes 16 --bytes 1MiB
  polycast explain --collective allreduce --ranks 16 --bytes 64KiB
  polycast explain --ranks 64 --nodes 4           what each size would get
  polycast explain --ranks 64 --nodes 4 --no-multicast          as in a cloud
  polycast explain --ranks 16 --rate 10gbit --latency 20us     on such a network
  polycast explain --ranks 64 --nodes 4 --bytes 64KiB --table mine.toml --json
  polycast explain --hosts n0,n1,n16,n17 --topology cluster.conf --no-multicast
  polycast explain --ranks 32 --topology cluster.conf --params measured.json \\
    --no-multicast --bytes 1MiB

POLYCAST, POLYCAST_BCAST (POLYCAST_ALLREDUCE, …), POLYCAST_TABLE,
POLYCAST_TOPOLOGY, POLYCAST_PARAMS and POLYCAST_MULTICAST count here as they do
in a job.")]
pub struct Args {
    /// The operation, named as its MPI function
    #[arg(long, value_name = "NAME", default_value = "bcast")]
    collective: Collective,

    /// Ranks in the communicator
    #[arg(long, value_name = "N", required_unless_present = "hosts", value_parser = whole(1..=MAX_RANKS))]
    ranks: Option<u32>,

    /// Nodes that hold them; by default one for each rank, as far as the topology has hosts
    #[arg(long, value_name = "N", value_parser = whole(1u32..))]
    nodes: Option<u32>,

    /// Ranks on the node that holds most; by default they are spread evenly
    #[arg(long, value_name = "N", value_parser = whole(1u32..))]
    ranks_per_node: Option<u32>,

    /// Ranks of the job for each processor that they may run on, rounded up; by default each has its own
    #[arg(long, value_name = "N", value_parser = whole(1u32..))]
    ranks_per_processor: Option<u32>,

    /// The hosts of the ranks, in their order, instead of the first of the topology: a:2,n[0-7]
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["nodes", "ranks_per_node"])]
    hosts: Option<String>,

    /// The switches that join the hosts: a file of Slurm's, or what `polycast topology` writes
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,

    /// Choose among trees by prediction, from parameters that `polycast measure` has written
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,

    /// The network between the nodes does not carry multicast (`polycast doctor` tells)
    #[arg(long)]
    no_multicast: bool,

    /// Rate of the MPI's messages between neighbours, which a job measures itself
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// How long the shortest message takes there, one way
    #[arg(long, value_name = "TIME")]
    latency: Option<Nanos>,

    /// How fast multicast is where it is slower than --rate, on a network of its own, or held up by receive buffers
    #[arg(long, value_name = "RATE", requires = "rate")]
    multicast_rate: Option<Rate>,

    /// Bytes of the call, such as 64KiB; without it, every size is shown
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,

    /// Calls of the operation that the communicator has had before [default: 0; without --bytes, all are shown]
    #[arg(long, value_name = "N")]
    earlier_calls: Option<u64>,

    /// Decide by this table instead of the one in effect
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let mut settings = Settings::from_environment();
    if let Some(file) = &args.table {
        settings.table = Some(read_table(file)?);
        settings.notes.push(format!("--table {}: in place of any other table", file.display()));
    }
    if let Some(file) = &args.topology {
        settings.topology = Some(read_topology(file)?);
        settings.notes.push(format!("--topology {}: the switches and hosts", file.display()));
    }
    if let Some(file) = &args.params {
        settings.parameters = Some((read_parameters(file)?, file.display().to_string()));
    }
    let network = Network { rate: args.rate, latency: args.latency, multicast_rate: args.multicast_rate };
    let placement = Placement::new(&Request {
        ranks: args.ranks,
        nodes: args.nodes,
        ranks_per_node: args.ranks_per_node,
        ranks_per_processor: args.ranks_per_processor.unwrap_or(1),
        hosts: args.hosts.as_deref(),
        topology: settings.topology.as_ref(),
        network,
    })?;
    let has_multicast = !args.no_multicast && !settings.is_multicast_off;
    let there = if has_multicast { Capabilities::ALL } else { Capabilities::PRIVATE };
    if !placement.placed.unplaced_hosts.is_empty() {
        let unplaced_hosts = placement.placed.unplaced_hosts.join(", ");
        settings.notes.push(format!("not in the topology, so placed apart: {unplaced_hosts}"));
    }
    settings.notes.extend(
        args.bytes.into_iter().flat_map(|bytes| remembered::notes(&placement, args.collective, bytes)),
    );
    let answer = Answer::new(&args, &placement, there, &settings);
    let text = if args.json { serde_json::to_string_pretty(&answer)? + "\n" } else { answer.text()? };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that is said, as `--json` says it.
#[derive(Serialize)]
struct Answer {
    collective: &'static str,
    ranks: u32,
    nodes: u32,
    ranks_per_node: u32,
    ranks_per_processor: u32,
    switches: u32,
    /// As assumed by `--rate` and the like; a job measures it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// Without a size: what each range of sizes gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<Size>,
    /// What the environment and options changed, one line each.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Decision {
    bytes: u64,
    choice: String,
    /// `environment`, or the table that was asked.
    decided_by: String,
    /// The line of the table that decided.
    line: Option<usize>,
    because: Option<String>,
    looked_at: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prediction: Option<Reason>,
    /// What the tree of the choice is planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Times>,
    /// What a tuning has measured for it, where the table is one that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    /// What parameters say of two levels, where nodes have several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_level: Option<OnTwoLevels>,
}

#[derive(Serialize)]
struct Rule {
    line: usize,
    choice: String,
    matches: bool,
    verdict: String,
}

#[derive(Serialize)]
struct Size {
    /// From this many earlier calls on; 0 says nothing.
    #[serde(skip_serializing_if = "is_zero")]
    earlier_calls: u64,
    from_bytes: u64,
    choice: String,
    /// What the tree of the choice is planned for, for messages of `from_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Times>,
}

impl Answer {
    fn new(args: &Args, placement: &Placement, there: Capabilities, settings: &Settings) -> Answer {
        let Placement { shape, placed } = placement;
        let off = Collective::ALL.map(|collective| (collective, Choice::Stock));
        let forced = if settings.is_off { &off[..] } else { &settings.forced };
        let shipped = Table::shipped();
        let prediction =
            settings.parameters.as_ref().map(|(parameters, _)| Prediction::new(placed, parameters));
        let rules = Rules::new(forced, settings.table.as_ref(), &shipped, prediction.as_ref());
        let collective = args.collective;
        let planner = times::planner(Site::new(placed), settings.parameters.as_ref().map(|(read, _)| read));
        let times = |choice: &Choice, bytes| match choice {
            Choice::Algorithm(algorithm) => {
                let call = collective::Call::new(args.collective, shape.ranks, Rank(0), bytes);
                planner.made_for(algorithm, call).map(Times::from)
            }
            _ => None,
        };
        let mut notes = settings.notes.clone();
        let decision = args.bytes.map(|bytes| {
            let call = Call { collective, bytes };
            let explanation = Explanation::new(rules, *shape, there, &call, args.earlier_calls.unwrap_or(0));
            let reason = |table| {
                let (parameters, file) = settings.parameters.as_ref()?;
                Reason::new(rules.prediction(collective)?, placed, (parameters, file), bytes, table)
            };
            let times = times(&explanation.decision.choice, bytes);
            let table = rules.table(collective).origin();
            let measured = Measured::read(table, *shape, collective, bytes);
            let choice = &explanation.decision.choice;
            let parameters = settings.parameters.as_ref();
            let two_level =
                parameters.map(|(read, _)| OnTwoLevels::new(collective, choice, placed, read, bytes));
            let two_level = two_level.and_then(|found| found.map_err(|why| notes.extend(why)).ok());
            Decision { times, measured, two_level, ..Decision::new(explanation, table, bytes, reason) }
        });
        let policy = Policy::new(rules, *shape);
        let epochs = match args.earlier_calls {
            Some(earlier_calls) => vec![(earlier_calls, policy.epoch(collective, earlier_calls))],
            None => policy.epochs(collective).collect(),
        };
        let sizes = |(earlier_calls, epoch)| {
            let sizes = policy.sizes(collective, there, epoch).into_iter();
            sizes.map(move |(first, choice)| Size {
                earlier_calls,
                from_bytes: first.0,
                choice: choice.to_string(),
                times: times(&choice, first),
            })
        };
        let sizes: Vec<Size> =
            if decision.is_some() { vec![] } else { epochs.into_iter().flat_map(sizes).collect() };
        for size in &sizes {
            let assumed = size.times.as_ref().filter(|times| times.is_assumed());
            let note = assumed.map(|times| format!("{}: {}", size.choice, times.source()));
            notes.extend(note.filter(|note| !notes.contains(note)));
        }
        Answer {
            collective: collective.name(),
            ranks: shape.ranks,
            nodes: shape.nodes,
            ranks_per_node: shape.ranks_per_node,
            ranks_per_processor: shape.ranks_per_processor,
            switches: shape.switches,
            rate: args.rate.map(|rate| rate.to_string()),
            latency: args.latency.map(|latency| latency.to_string()),
            multicast_percent: args
                .multicast_rate
                .and(shape.network)
                .map(|network| network.multicast_percent()),
            sizes,
            decision,
            notes,
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        let Answer { collective, ranks, nodes, ranks_per_node, ranks_per_processor, switches, .. } = self;
        let mut on =
            format!("ranks {ranks}, nodes {nodes}, ranks_per_node {ranks_per_node}, switches {switches}");
        let network = [
            ("ranks_per_processor", (*ranks_per_processor > 1).then(|| ranks_per_processor.to_string())),
            ("rate", self.rate.clone()),
            ("latency", self.latency.clone()),
            ("multicast_percent", self.multicast_percent.map(|percent| percent.to_string())),
        ];
        for (name, value) in network {
            value.iter().try_for_each(|value| write!(on, ", {name} {value}"))?;
        }
        match &self.decision {
            Some(decision) => {
                let Decision { bytes, choice, .. } = decision;
                let heading = format!("{collective} of {}, {on}: {choice}", exact_size(*bytes));
                writeln!(out, "{}", paragraph(&heading))?;
                decision.write(&mut out)?;
            }
            None => {
                writeln!(out, "{}", paragraph(&format!("{collective}, {on}")))?;
                for (index, size) in self.sizes.iter().enumerate() {
                    if index > 0 && size.from_bytes == 0 {
                        writeln!(out, "after {} earlier calls", size.earlier_calls)?;
                    }
                    writeln!(out, "  from {:>8}   {}", Bytes(size.from_bytes), size.choice)?;
                }
            }
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            writeln!(out, "{}", paragraph(note))?;
        }
        Ok(out)
    }
}

impl Decision {
    /// `reason` takes what the table alone would use.
    fn new(
        explanation: Explanation,
        table: &str,
        bytes: Bytes,
        reason: impl FnOnce(String) -> Option<Reason>,
    ) -> Decision {
        let policy::Decision { choice, by } = explanation.decision;
        let matching = explanation.matching();
        let deciding = matching.filter(|_| matches!(by, By::Rule(_)));
        let prediction = matches!(by, By::Prediction(_)).then(|| match matching {
            Some(rule) => format!("{table}, line {}, would use {}", rule.line, rule.choice),
            None => format!("{table} has no rule for this call"),
        });
        Decision {
            bytes: bytes.0,
            choice: choice.to_string(),
            decided_by: match by {
                By::Forced => "environment",
                By::Prediction(_) => "prediction",
                By::Rule(_) | By::Nobody => table,
            }
            .to_owned(),
            line: deciding.map(|rule| rule.line),
            because: deciding.and_then(|rule| rule.because.clone()),
            prediction: prediction.and_then(reason),
            times: None,
            measured: None,
            two_level: None,
            looked_at: explanation.looked_at.iter().map(Rule::new).collect(),
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(times) = &self.times {
            writeln!(out, "{}", hanging("  planned for ", "    ", &times.to_string()))?;
        }
        if let Some(two_level) = &self.two_level {
            two_level.write(out)?;
        }
        if let Some(prediction) = &self.prediction {
            return prediction.write(out);
        }
        let decided_by = match self.line {
            Some(line) => format!("{}, line {line}", self.decided_by),
            None if self.decided_by == "environment" => "the environment".to_owned(),
            None => format!("{}: no rule matches, so the MPI below serves it", self.decided_by),
        };
        writeln!(out, "{}", hanging("  decided by ", "    ", &decided_by))?;
        if let Some(because) = &self.because {
            writeln!(out, "{}", hanging("  because ", "    ", because))?;
        }
        if !self.looked_at.is_empty() {
            out.push_str("\nrules looked at\n");
        }
        let width = self.looked_at.iter().map(|rule| rule.choice.len()).max().unwrap_or(0);
        for rule in &self.looked_at {
            let Rule { line, choice, verdict, .. } = rule;
            let text = format!("line {line:<4} {choice:<width$}   {verdict}");
            writeln!(out, "{}", hanging("  ", "      ", &text))?;
        }
        self.measured.iter().try_for_each(|measured| measured.write(out))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Rule {
    fn new(rule: &LookedAt) -> Rule {
        Rule {
            line: rule.line,
            choice: rule.choice.to_string(),
            matches: rule.verdict == Verdict::Matches,
            verdict: rule.verdict.to_string(),
        }
    }
}
