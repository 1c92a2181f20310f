//! `polycast explain`.

mod challengers;
mod decision;
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
    self, Call, Capabilities, Choice, Collective, Epoch, Explanation, Policy, Prediction, Rules, Table,
};
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Nanos, Rank, Rate};
use serde::Serialize;

use self::challengers::Comparison;
use self::decision::{Decision, Later, Nearest};
use self::measured::TuneMeasurement;
use self::mixed::OnTwoLevels;
use self::placement::{Placement, Request};
use self::prediction::Reason;
use super::{Outcome, print};
use crate::numbers::whole;
use crate::place::MAX_RANKS;
use crate::settings::{Settings, read_parameters, read_table, read_topology};
use crate::terminal::{exact_size, paragraph};
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
POLYCAST_TOPOLOGY, POLYCAST_PARAMS, POLYCAST_SUMS, POLYCAST_MULTICAST and
POLYCAST_SHARED_MEMORY count here as they do in a job.")]
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

    /// A reduction that has the same bits in any order, as of integers and bits; by default what is combined are floating-point numbers
    #[arg(long)]
    exact: bool,

    /// The communicator has only some of the job's ranks; by default it has all of them
    #[arg(long)]
    subset: bool,

    /// Calls of the operation that the communicator has had before; by default it is said from which call on what serves
    #[arg(long, value_name = "N")]
    earlier_calls: Option<u64>,

    /// Decide by this table instead of the one in effect
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// List every rule for the operation that was passed over, and why
    #[arg(long, requires = "bytes")]
    all: bool,

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
        is_of_all: !args.subset,
    })?;
    let there = there(&args, &settings);
    if !placement.placed.unplaced_hosts.is_empty() {
        let unplaced_hosts = placement.placed.unplaced_hosts.join(", ");
        settings.notes.push(format!("not in the topology, so placed apart: {unplaced_hosts}"));
    }
    settings.notes.extend(
        args.bytes.into_iter().flat_map(|bytes| remembered::notes(&placement, args.collective, bytes)),
    );
    let answer = Answer::new(&args, &placement, there, &settings);
    let text =
        if args.json { serde_json::to_string_pretty(&answer)? + "\n" } else { answer.text(args.all)? };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The capabilities of the communicator, as a job with these settings finds them.
fn there(args: &Args, settings: &Settings) -> Capabilities {
    let lost = [
        (args.no_multicast || settings.is_multicast_off, Capabilities::MULTICAST),
        (settings.is_shared_memory_off, Capabilities::SHARED),
    ];
    lost.into_iter()
        .filter(|(is_lost, _)| *is_lost)
        .fold(Capabilities::ALL, |there, (_, lost)| there.without(lost))
}

/// The note on ways to find out what serves calls for which nothing better is known.
const TO_FIND_OUT: &str = "nothing faster than the MPI is known for such calls; `polycast tune` on these hosts finds out, \
                           or POLYCAST_TUNE=20s within a job";

/// The same where jobs compare challengers.
const TO_FIND_OUT_MORE: &str = "no rule knows what is faster than the MPI for such calls: jobs find out, within 2 % of the time of \
                                such calls, and the next one knows; `polycast tune` on these hosts, or POLYCAST_TUNE=20s within a job, finds \
                                it before";

/// Everything that is said, as `--json` says it.
#[derive(Serialize)]
struct Answer {
    collective: &'static str,
    ranks: u32,
    nodes: u32,
    ranks_per_node: u32,
    ranks_per_processor: u32,
    switches: u32,
    /// The rate, latency and share of multicast as `--rate` and the like assume them; a job
    /// measures them.
    /// The sums that are served, where the call is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    sums: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// The choice for each range of sizes, where no size was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<SizeRange>,
    /// The rule that came nearest to serving any size, where the MPI serves all.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Nearest>,
    /// The ways that jobs compare with the MPI where no rule says what serves: for calls of the
    /// size that was given, or of some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<Comparison>,
    /// The changes by the environment and by options, one line each.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct SizeRange {
    /// The number of earlier calls from which on the choice holds; left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    earlier_calls: u64,
    from_bytes: u64,
    choice: String,
    /// The times that the tree of the choice is planned for, for messages of `from_bytes`.
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
        let of_sums = Table::of_sums();
        let rules = Rules::new(forced, settings.table.as_ref(), &shipped, prediction.as_ref())
            .with_sums(settings.sums_in_force(), &of_sums);
        let collective = args.collective;
        let is_sum = collective.combines() && !args.exact;
        let planner = times::planner(Site::new(placed), settings.parameters.as_ref().map(|(read, _)| read));
        let times = |choice: &Choice, bytes| match choice {
            Choice::Algorithm(algorithm) => {
                let call = collective::Call::new(args.collective, shape.ranks, Rank(0), bytes);
                planner.made_for(algorithm, call).map(Times::from)
            }
            _ => None,
        };
        let mut notes = settings.notes.clone();
        let policy = Policy::new(rules, *shape);
        let epochs: Vec<(u64, Epoch)> = match args.earlier_calls {
            _ if is_sum => vec![(0, Epoch::FIRST)],
            Some(earlier_calls) => vec![(earlier_calls, policy.epoch(collective, earlier_calls))],
            None => policy.epochs(collective).collect(),
        };
        let decision = args.bytes.map(|bytes| {
            let call = Call { is_sum, ..Call::new(collective, bytes) };
            let explain = |(earlier_calls, _): &(u64, Epoch)| {
                (*earlier_calls, Explanation::new(rules, *shape, there, &call, *earlier_calls))
            };
            let mut stages: Vec<(u64, Explanation)> = epochs.iter().map(explain).collect();
            let last =
                stages.last().and_then(|(_, explanation)| explanation.nearest_miss()).map(Nearest::new);
            stages.dedup_by_key(|(_, explanation)| explanation.decision.choice);
            let explanation = &stages[0].1;
            let reason = |table| {
                let (parameters, file) = settings.parameters.as_ref()?;
                Reason::new(rules.prediction(collective)?, placed, (parameters, file), bytes, table)
            };
            let times = times(&explanation.decision.choice, bytes);
            let table = rules.table(collective).origin();
            let measured = TuneMeasurement::read(table, *shape, collective, bytes);
            let choice = &explanation.decision.choice;
            let parameters = settings.parameters.as_ref();
            let two_level =
                parameters.map(|(read, _)| OnTwoLevels::new(collective, choice, placed, read, bytes));
            let two_level = two_level.and_then(|found| found.map_err(|why| notes.extend(why)).ok());
            let later = stages[1..].iter().map(|(calls, explanation)| Later::new(explanation, *calls));
            let decision = Decision::new(explanation, table, of_sums.origin(), bytes, reason);
            Decision { times, measured, two_level, later: later.collect(), nearest: last, ..decision }
        });
        let sizes = |(earlier_calls, epoch)| {
            let kind = Call { is_sum, ..Call::new(collective, Bytes(0)) };
            let sizes = policy.sizes(&kind, there, epoch).into_iter();
            sizes.map(move |(first, choice)| SizeRange {
                earlier_calls,
                from_bytes: first.0,
                choice: choice.to_string(),
                times: times(&choice, first),
            })
        };
        let sizes: Vec<SizeRange> =
            if decision.is_some() { vec![] } else { epochs.into_iter().flat_map(sizes).collect() };
        let is_stock = |choice: &String| *choice == Choice::Stock.to_string();
        let finds_nothing = rules.forced(collective).is_none()
            && sizes
                .iter()
                .map(|size| &size.choice)
                .chain(decision.iter().flat_map(Decision::choices))
                .all(is_stock);
        let challenging = Policy::new(rules.with_challengers(!settings.are_trials_off), *shape);
        let compared = match args.bytes {
            // Trials would change the order of sums.
            _ if is_sum => Vec::new(),
            Some(bytes) => Comparison::of(&challenging, collective, there, bytes).into_iter().collect(),
            None => Comparison::of_some(&challenging, collective, there),
        };
        if finds_nothing {
            notes.push(if compared.is_empty() { TO_FIND_OUT } else { TO_FIND_OUT_MORE }.to_owned());
        }
        let nearest = (finds_nothing && decision.is_none())
            .then(|| policy::nearest_rule(rules, *shape, there, collective))
            .flatten();
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
            sums: is_sum.then(|| rules.sums().to_string()),
            rate: args.rate.map(|rate| rate.to_string()),
            latency: args.latency.map(|latency| latency.to_string()),
            multicast_percent: args
                .multicast_rate
                .and(shape.network)
                .map(|network| network.multicast_percent()),
            sizes,
            nearest: nearest.as_ref().map(Nearest::new),
            decision,
            compared,
            notes,
        }
    }

    /// `lists_rules`: with every rule that was passed over.
    fn text(&self, lists_rules: bool) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        let Answer { collective, ranks, nodes, ranks_per_node, ranks_per_processor, switches, .. } = self;
        let mut on =
            format!("ranks {ranks}, nodes {nodes}, ranks_per_node {ranks_per_node}, switches {switches}");
        let network = [
            ("ranks_per_processor", (*ranks_per_processor > 1).then(|| ranks_per_processor.to_string())),
            ("sums", self.sums.clone()),
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
                let later: String = decision.later.iter().map(Later::in_short).collect();
                let heading = format!("{collective} of {}, {on}: {choice}{later}", exact_size(*bytes));
                writeln!(out, "{}", paragraph(&heading))?;
                self.compared.iter().try_for_each(|compared| compared.write(&mut out))?;
                decision.write(&mut out, lists_rules)?;
            }
            None => {
                writeln!(out, "{}", paragraph(&format!("{collective}, {on}")))?;
                for (index, size) in self.sizes.iter().enumerate() {
                    if index > 0 && size.from_bytes == 0 {
                        writeln!(out, "after {} earlier calls", size.earlier_calls)?;
                    }
                    writeln!(out, "  from {:>8}   {}", Bytes(size.from_bytes), size.choice)?;
                }
                self.nearest.iter().try_for_each(|nearest| nearest.write(&mut out))?;
                Comparison::write_all(&self.compared, &mut out)?;
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

fn is_zero(number: &u64) -> bool {
    *number == 0
}
