//! The time that ranks of one host take to share: measured by jobs of their own, on one host and on
//! two, with polycast, when the network is known.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use polycast_core::algorithm::Registry;
use polycast_core::model::{Curve, LinkClass, Parameters, Sharing};
use polycast_core::policy::Choice;
use polycast_core::units::Bytes;

use crate::bench::operation::Operation;
use crate::bench::variant::Variant;
use crate::commands::one_launch::{On, measured};
use crate::install::Installation;
use crate::job_args::JobArgs;
use crate::jobs::Dialogue;
use crate::jobs::target::JobTarget;
use crate::measure::estimate::Estimate;
use crate::measure::sharing::{self, ALONE, SEGMENTS};
use crate::mpi::{Abi, Mpi};
use crate::network;
use crate::terminal::paragraph;

/// The most times that sizes whose intervals are too wide are measured again, all in one job.
const MAX_AGAIN: u32 = 2;

/// The operations and sizes to measure, and the time for them.
pub struct Effort {
    /// The operations that ranks of a host carry out by themselves, the broadcast first.
    pub operations: &'static [Operation],
    pub sizes: Vec<Bytes>,
    /// The time for a size.
    pub time: Duration,
    /// True if what is hardly known is kept, too.
    pub force: bool,
    /// The most segments whose penalty is measured.
    pub most_penalties: usize,
}

/// The measurement of sharing, which comes when all else has been measured, with all that it needs.
pub struct Learning<'a> {
    pub job: &'a JobArgs,
    pub effort: Effort,
    pub target: &'a mut JobTarget,
    pub mpi: &'a Mpi,
    pub program: &'a Path,
    /// The hosts of the ranks, by rank.
    pub hosts: &'a [String],
    pub parameters: &'a Parameters,
    pub progress: &'a ProgressBar,
    pub interrupted: &'a Arc<AtomicBool>,
}

/// A size, a way and what it took.
type Timed = (u64, String, Estimate);

impl Learning<'_> {
    /// The curves of the fullest host, and what the file is to say of them. What stands in the way is said, and leaves the parameters of the
    /// network as they are.
    pub fn run(mut self) -> Option<(Vec<Sharing>, String)> {
        match self.learn() {
            Ok(learned) => Some(learned),
            Err(_) if self.interrupted.load(Ordering::Relaxed) => None,
            Err(reason) => {
                let said = format!("what ranks of a host share is not measured: {reason}");
                eprintln!("polycast: {}", paragraph(&said));
                None
            }
        }
    }

    fn learn(&mut self) -> Result<(Vec<Sharing>, String), Box<dyn Error>> {
        let on = |host: &String| self.hosts.iter().filter(|other| *other == host).count();
        let ranks = self.hosts.iter().map(on).max().unwrap_or(0);
        if ranks < 2 {
            return Err(
                "each host has one rank; give hosts several, as --hosts a:4,b:4 or --ranks-per-host 4".into(),
            );
        }
        let all = self.target.hosts().len();
        if all == 0 && ranks < self.hosts.len() {
            return Err("which hosts there are must be said, by --hosts or --hostfile".into());
        }
        let variables = self.variables()?;
        if all > 0 {
            self.target.narrow_to_fullest(1)?;
        }
        let mut job = None;
        let (mut all_sharing, mut how) = (Vec::new(), String::new());
        for operation in self.effort.operations {
            let what = format!("{operation} on {ranks} ranks of a host");
            self.says(&what);
            let measured = self.alone(&mut job, &variables, (*operation, self.effort.sizes.clone()));
            let curve = measured.and_then(|alone| self.curve(&alone));
            match curve {
                Ok((cost, doubts)) => {
                    let (collective, ranks) = (operation.collective(), ranks as u32);
                    all_sharing.push(Sharing { collective, ranks, cost, penalty: None });
                    let separator = if how.is_empty() { "" } else { "; " };
                    how += &format!("{separator}{operation} by {ALONE} on {ranks} ranks of a host{doubts}");
                }
                // Without the first the others do not follow; of these each is good for something by itself.
                Err(reason) if all_sharing.is_empty() || self.interrupted.load(Ordering::Relaxed) => {
                    return Err(reason);
                }
                Err(reason) => how += &format!("; {what} not measured: {reason}"),
            }
        }
        let is_wanted = all > 1 && self.effort.most_penalties > 0;
        let penalty = match if is_wanted { self.penalty(job, &variables) } else { finish(job).map(|()| None) }
        {
            Err(reason) if self.interrupted.load(Ordering::Relaxed) => return Err(reason),
            Err(reason) => {
                how += &format!(", the penalty for messages not measured: {reason}");
                None
            }
            Ok(None) if is_wanted => {
                how += ", the penalty for messages not known: their times scatter by more";
                None
            }
            Ok(penalty) => penalty,
        };
        all_sharing[0].penalty = penalty;
        Ok((all_sharing, how))
    }

    /// `smcc(m)`, and what is to be said of it.
    fn curve(&self, alone: &[(u64, Estimate)]) -> Result<(Curve, String), Box<dyn Error>> {
        let (cost, doubts) = sharing::cost(alone, self.effort.force)?;
        let doubts = doubts.join(", ");
        let cost = cost.ok_or_else(|| format!("intervals reach too far: {doubts}"))?;
        let said = match doubts.is_empty() {
            true => String::new(),
            false => format!(", left out with intervals that reach too far: {doubts}"),
        };
        Ok((cost, said))
    }

    /// Measures the penalty on two hosts, for segments of which four pass in a part of the time for
    /// a size; leaves out what is not known well. `job` is the job on one host.
    fn penalty(
        &mut self,
        mut job: Option<Dialogue>,
        variables: &[(String, String)],
    ) -> Result<Option<Curve>, Box<dyn Error>> {
        let gap = &self.parameters.class(LinkClass::SameSwitch).gap;
        let limit_ns = self.effort.time.as_secs_f64() * 1e9 / 4.0;
        let mut segments = sharing::penalty_segments(|bytes| gap.at(bytes), limit_ns);
        segments.truncate(self.effort.most_penalties);
        let sizes: BTreeSet<u64> =
            segments.iter().flat_map(|segment| [*segment, segment * SEGMENTS]).collect();
        let sizes = sizes.into_iter().map(Bytes).collect();
        let alone = self.alone(&mut job, variables, (Operation::Bcast, sizes))?;
        // Its ranks are not to look for work beside the next one.
        finish(job.take())?;
        let alone = |bytes: u64| alone.iter().find(|(of, _)| *of == bytes).map(|(_, estimate)| *estimate);
        self.target.narrow_to_fullest(2)?;
        let mut points = Vec::new();
        for segment in segments {
            let bytes = segment * SEGMENTS;
            self.says(&format!("bcast of {} beside messages of two hosts", Bytes(segment)));
            let what = (Operation::Bcast, vec![Bytes(bytes)]);
            let both = self.measure(&mut job, variables, what, &sharing::ways(segment))?;
            let of = |name: &str| both.iter().find(|(_, way, _)| way == name).map(|(.., estimate)| *estimate);
            let [together, apart] = sharing::ways(segment).map(|way| of(&way));
            let (Some((together, apart)), Some((one, all))) =
                (together.zip(apart), alone(segment).zip(alone(bytes)))
            else {
                continue;
            };
            let penalty = sharing::penalty(together, apart, one, all);
            if self.effort.force || sharing::is_known(penalty, one) {
                points.push(penalty.at(segment));
            }
        }
        finish(job)?;
        Ok(if points.is_empty() { None } else { Some(Curve::new(points)?) })
    }

    /// `smcc(m)`; what is doubtful is measured again, and the narrowest intervals count.
    fn alone(
        &self,
        job: &mut Option<Dialogue>,
        variables: &[(String, String)],
        (operation, mut sizes): (Operation, Vec<Bytes>),
    ) -> Result<Vec<(u64, Estimate)>, Box<dyn Error>> {
        let mut best: BTreeMap<u64, Estimate> = BTreeMap::new();
        for _ in 0..=MAX_AGAIN {
            if sizes.is_empty() {
                break;
            }
            let what = (operation, sizes.clone());
            for (bytes, _, estimate) in self.measure(job, variables, what, &[ALONE.to_string()])? {
                let width = |estimate: &Estimate| (estimate.high - estimate.low) / estimate.ns;
                let narrowest = best.entry(bytes).or_insert(estimate);
                if width(&estimate) < width(narrowest) {
                    *narrowest = estimate;
                }
            }
            sizes.retain(|bytes| best.get(&bytes.0).is_none_or(|estimate| !sharing::is_narrow(estimate)));
        }
        Ok(best.into_iter().collect())
    }

    fn says(&self, what: &str) {
        self.progress.set_message(what.to_owned());
        self.progress.inc(1);
    }

    /// Measures each size with each of the ways, in `job`, which begins with the first.
    fn measure(
        &self,
        job: &mut Option<Dialogue>,
        variables: &[(String, String)],
        (operation, sizes): (Operation, Vec<Bytes>),
        ways: &[String],
    ) -> Result<Vec<Timed>, Box<dyn Error>> {
        let read = |way: &String| {
            let algorithm = Registry::BUILT_IN.read(operation.collective(), way)?;
            Ok::<_, Box<dyn Error>>(Choice::Algorithm(algorithm).into())
        };
        let variants: Vec<Variant> = ways.iter().map(read).collect::<Result<_, _>>()?;
        let on = On {
            target: self.target,
            mpi: self.mpi,
            program: self.program,
            variables: variables.to_vec(),
            interrupted: self.interrupted,
        };
        let report = on.measure_in(job, operation, sizes, variants, self.effort.time)?;
        if report.wrong {
            return Err("a rank had wrong data after a call".into());
        }
        let served = report.points.iter().filter(|point| measured(point).is_some());
        let times: Vec<_> = served
            .filter_map(|point| Some((point.bytes, point.variant.clone(), sharing::estimate(point)?)))
            .collect();
        match times.is_empty() {
            true => Err(format!("{} did not serve", ways.join(", ")).into()),
            false => Ok(times),
        }
    }

    /// The variables of ranks with polycast but without multicast, which nothing here needs.
    fn variables(&self) -> Result<network::Variables, Box<dyn Error>> {
        let installation = Installation::find()?;
        installation.require_door(Abi::from(self.mpi.family()))?;
        let job = self.job;
        let mut variables = job.stock_variables(self.mpi)?;
        variables.push(("POLYCAST_MULTICAST".to_owned(), "off".to_owned()));
        job.prefer_wanted(&mut variables);
        installation.preload_in(&mut variables)?;
        network::forget(&mut variables);
        self.target.lab().into_iter().for_each(|lab| network::tell_of_lab(&mut variables, lab));
        Ok(variables)
    }
}

fn finish(job: Option<Dialogue>) -> Result<(), Box<dyn Error>> {
    Ok(job.map_or(Ok(()), Dialogue::shutdown)?)
}
