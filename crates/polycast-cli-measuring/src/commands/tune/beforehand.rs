//! The measurement before the search: messages between hosts, and sharing among ranks of a host, with
//! little time. It leaves out ways that cannot win.
//!
//! ```text
//!   --params FILE ───────────────────────┐
//!   FILE.params.json, of an earlier run ─┼─▶ Parameters ─▶ Known, for each shape ─▶ the search
//!   measured now, and written there ─────┘
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polycast_core::model::{ClassParameters, LinkClass, Parameters, Provenance};
use polycast_core::network::Network;
use polycast_core::policy::CommunicatorShape;
use polycast_core::policy::tune::Known;
use polycast_core::topology::Topology;
use polycast_core::units::{Bytes, Nanos};

use super::{Args, place};
use crate::bench::operation::Operation;
use crate::commands::measure::sharing::{Effort, Learning};
use crate::commands::measure::{as_note, hosts, measure, parameters_of, progress, start};
use crate::commands::{beside, write_file};
use crate::jobs::ARGUMENT;
use crate::jobs::target::JobTarget;
use crate::measure::doubt;
use crate::measure::pairs;
use crate::measure::size::Figures;
use crate::measure::sizes::SizesPlan;
use crate::mpi::Mpi;
use crate::network::Variables;
use crate::settings::{PARAMETERS, ReadError, TOPOLOGY, read_parameters, read_topology};
use crate::terminal::nanoseconds;
use crate::time_stamp::time_stamp;

/// The divisor of the budget for this part: a twentieth. The step that is under way is not cut
/// short.
const PART_OF_BUDGET: u32 = 20;
/// The least time for which measuring is worth it: with less nothing is measured.
const LEAST: Duration = Duration::from_secs(2);
/// Messages that are measured, as far as the network is fast enough for the larger ones.
const MESSAGES: [u64; 5] = [1, 1 << 10, 8 << 10, 64 << 10, 512 << 10];
/// The size in bytes below which messages do not tell the rate.
const TELLS_RATE: u64 = 8 << 10;
/// The sizes, in bytes, that ranks of a host share.
const SHARED: [u64; 4] = [1 << 10, 16 << 10, 128 << 10, 1 << 20];
/// The latency of a short message in a lab where nothing was measured.
const LAB_LATENCY: Nanos = Nanos::from_micros(50);

/// The measurement before the search, with all that it needs.
pub(super) struct Beforehand<'a> {
    pub args: &'a Args,
    pub mpi: &'a Mpi,
    pub program: &'a Path,
    /// The variables of the ranks.
    pub variables: &'a Variables,
    pub interrupted: &'a Arc<AtomicBool>,
}

/// The knowledge of the network of all hosts.
pub(super) struct KnownNetwork {
    parameters: Option<Parameters>,
    topology: Option<Topology>,
}

/// The switches as the user has them, else the lab's; before a lab tells its ranks of a file that only they see.
pub(super) fn topology(variables: &Variables, target: &JobTarget) -> Result<Option<Topology>, ReadError> {
    match variables.iter().find(|(name, _)| name == TOPOLOGY) {
        None => Ok(target.topology()),
        Some(_) => value(variables, TOPOLOGY).map(read_topology).transpose(),
    }
}

/// The file that a variable names.
fn value<'a>(variables: &'a Variables, of: &str) -> Option<&'a Path> {
    let value = variables.iter().find(|(name, _)| name == of).map(|(_, value)| Path::new(value));
    value.filter(|value| *value != Path::new("off"))
}

impl Beforehand<'_> {
    /// Reads the parameters, or measures them. If something stands in the way of measuring, that is
    /// said, and the search tries more ways.
    pub fn network(
        &self,
        target: &mut JobTarget,
        topology: Option<Topology>,
    ) -> Result<KnownNetwork, Box<dyn Error>> {
        let parameters = match value(self.variables, PARAMETERS) {
            Some(file) => Some(read_parameters(file)?),
            None => self.earlier_or_measured(target, topology.as_ref()),
        };
        Ok(KnownNetwork { parameters, topology })
    }

    fn earlier_or_measured(&self, target: &mut JobTarget, topology: Option<&Topology>) -> Option<Parameters> {
        // All ways are measured anyway, or nothing is predicted.
        let is_for_it =
            target.hosts().len() > 1 && target.ranks() <= Known::MAX_RANKS && !self.args.exhaustive;
        let allowed = self.args.budget / PART_OF_BUDGET;
        if !is_for_it || allowed < LEAST {
            return None;
        }
        let file = beside(&self.args.output, ".params.json");
        let place = as_note(format!("{}, {}", place(target), self.mpi));
        let earlier = read_parameters(&file).ok().filter(|earlier| earlier.measured().place == place);
        if let Some(earlier) = earlier {
            eprintln!(
                "polycast: messages and what hosts share: as measured on {}, in {}",
                earlier.measured().when,
                file.display()
            );
            return Some(earlier);
        }
        let began = Instant::now();
        let measured = self.measure(target, topology, place, allowed);
        target.widen();
        match measured {
            Ok(parameters) => {
                eprintln!(
                    "polycast: measured beforehand, {:.0} s: {}",
                    began.elapsed().as_secs_f64(),
                    told(&parameters)
                );
                if let Err(problem) = write_file(&file, parameters.to_json()) {
                    eprintln!("polycast: {problem}; the next run measures messages again");
                }
                Some(parameters)
            }
            Err(_) if self.interrupted.load(Ordering::Relaxed) => None,
            Err(problem) => {
                eprintln!("polycast: messages are not measured, so more ways are tried: {problem}");
                None
            }
        }
    }

    fn measure(
        &self,
        target: &mut JobTarget,
        topology: Option<&Topology>,
        place: String,
        allowed: Duration,
    ) -> Result<Parameters, Box<dyn Error>> {
        let (args, mpi, interrupted, program) = (self.args, self.mpi, self.interrupted, self.program);
        let began = Instant::now();
        let stock = args.job.stock_variables(mpi)?;
        let command = target.command(mpi, &stock, &[program.into(), ARGUMENT.into()])?;
        let mut job = start(command, interrupted)?.ok_or("interrupted")?;
        let hosts = hosts(&job);
        let pairs = pairs::choose(&hosts, topology);
        let limit_ns = 2.0 * args.time.as_secs_f64() * 1e9;
        let plan = SizesPlan { sizes: MESSAGES.to_vec(), may_stop: true, most: MESSAGES.len(), limit_ns };
        let progress = progress()?;
        let figures = measure(&mut job, &pairs, &hosts, &plan, &progress)?;
        job.shutdown()?;
        let has_rate = |figures: &Vec<Figures>| figures.last().is_some_and(|last| last.bytes >= TELLS_RATE);
        let known = |(class, figures)| Some((class, doubt::known(figures).filter(has_rate)?));
        let classes: BTreeMap<LinkClass, _> =
            figures.iter().filter_map(|(class, figures)| known((*class, figures))).collect();
        if classes.keys().all(|class| *class == LinkClass::SameNode) {
            return Err(
                "the times of messages between hosts scatter by more than half, or of 8 KiB are too long"
                    .into(),
            );
        }
        let how = format!(
            "{}; polycast {} tune, {:?} for a size",
            mpi.title(),
            env!("CARGO_PKG_VERSION"),
            args.time
        );
        let measured = Provenance { when: time_stamp(), place, how };
        let parameters = parameters_of(&classes, measured)?;
        let has_several = target.hosts().iter().any(|(_, ranks)| *ranks > 1);
        if !has_several || began.elapsed() > allowed {
            return Ok(parameters);
        }
        let most_penalties = usize::from(began.elapsed() < allowed / 2);
        let sizes = SHARED.map(Bytes).to_vec();
        let operations = &[Operation::Bcast];
        let effort = Effort { operations, sizes, time: args.time, force: false, most_penalties };
        let (job, hosts, progress) = (&args.job, &hosts[..], &progress);
        let learning = Learning {
            job,
            effort,
            target,
            mpi,
            program,
            hosts,
            parameters: &parameters,
            progress,
            interrupted,
        };
        Ok(match learning.run() {
            Some((sharing, _)) => parameters.clone().with_sharing(sharing)?,
            None => parameters,
        })
    }
}

impl KnownNetwork {
    /// The predictions for the hosts that a job uses now.
    pub fn known(&self, target: &JobTarget, shape: CommunicatorShape) -> Option<Known> {
        let Some(parameters) = &self.parameters else {
            let rate = target.lab()?.plan().slowest_rate().to_string().parse().ok();
            let network = Network { rate, latency: Some(LAB_LATENCY), multicast_rate: None };
            return Known::assumed(shape, network);
        };
        let hosts = target.hosts();
        let flat = || Topology::flat(hosts.iter().map(|(name, _)| name.clone()));
        let topology = self.topology.clone().unwrap_or_else(flat);
        let ranks = hosts.iter().flat_map(|(name, ranks)| vec![name.clone(); *ranks]);
        Known::measured(parameters.clone(), &topology, &ranks.collect::<Vec<_>>())
    }
}

/// A sentence on the parameters. For each class: the time of the shortest message, the rate of long
/// ones, and the size that takes as long at that rate as the shortest one takes: from there on the
/// rate counts, not the latency. Then what a node takes to share.
fn told(parameters: &Parameters) -> String {
    let class = |(class, of): (LinkClass, &ClassParameters)| {
        let (latency_ns, long) = (of.end_ns(1), of.gap.points().last().expect("a curve has points"));
        let bytes_per_ns = long.bytes as f64 / long.ns;
        let turns_at = Bytes((latency_ns * bytes_per_ns).round() as u64);
        format!(
            "{class} {}, {:.0} Mb/s, which counts from {turns_at} on",
            nanoseconds(latency_ns),
            8e3 * bytes_per_ns
        )
    };
    let mut said: Vec<String> = parameters.classes().map(class).collect();
    said.extend(parameters.sharing().iter().map(|sharing| {
        let [short, long] = [1 << 10, 1 << 20].map(|bytes| nanoseconds(sharing.cost_ns(bytes)));
        format!("{} ranks of a node share 1 KiB in {short}, 1 MiB in {long}", sharing.ranks)
    }));
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use polycast_core::collective::Collective;
    use polycast_core::model::{Curve, Point, Sharing};

    use super::*;

    #[test]
    fn what_was_measured_is_said_in_a_line() {
        let curve = |at_1: f64, at_64_kib: f64| {
            Curve::new(vec![Point::exact(1, at_1), Point::exact(64 << 10, at_64_kib)]).unwrap()
        };
        // 100 Mb/s: 80 ns a byte.
        let class = ClassParameters {
            end: Some(curve(40_000.0, 5_300_000.0)),
            ..ClassParameters::new(curve(0.0, 0.0), curve(9_000.0, 80.0 * 65536.0))
        };
        let classes = BTreeMap::from([(LinkClass::SameSwitch, class)]);
        let parameters = Parameters::new(Provenance::default(), classes).unwrap();
        assert_eq!(told(&parameters), "same-switch 40.0 µs, 100 Mb/s, which counts from 500 on");
        let cost =
            Curve::new(vec![Point::exact(1 << 10, 10_000.0), Point::exact(1 << 20, 300_000.0)]).unwrap();
        let sharing = Sharing { collective: Collective::Broadcast, ranks: 4, cost, penalty: None };
        let said = told(&parameters.with_sharing(vec![sharing]).unwrap());
        assert!(said.ends_with("; 4 ranks of a node share 1 KiB in 10.0 µs, 1 MiB in 300 µs"), "{said}");
    }
}
