//! A launch of the measuring program.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use polycast_core::policy::tune::Measured;
use polycast_core::units::Bytes;

use crate::bench::arrival::{Arrival, Pattern, Root};
use crate::bench::fidelity::Fidelity;
use crate::bench::operation::Operation;
use crate::bench::plan::{ClockMethod, Links, Method, Plan};
use crate::bench::point::Point;
use crate::bench::report::Report;
use crate::bench::session::Session;
use crate::bench::variant::Variant;
use crate::bench::view::Silent;
use crate::install::LD_PRELOAD;
use crate::jobs::target::JobTarget;
use crate::jobs::{Dialogue, PLANS};
use crate::mpi::Mpi;

/// The place of a measurement: hosts, MPI, and measuring program.
pub struct On<'a> {
    pub target: &'a JobTarget,
    pub mpi: &'a Mpi,
    pub program: &'a Path,
    /// The variables of the job; polycast is in the job if they preload it.
    pub variables: Vec<(String, String)>,
    pub interrupted: &'a Arc<AtomicBool>,
}

impl On<'_> {
    /// Measures by the clock, without a word on the terminal: in `job`, or in a launch of its own.
    pub fn measure(
        self,
        job: Option<&mut Dialogue>,
        operation: Operation,
        sizes: Vec<Bytes>,
        variants: Vec<Variant>,
        time: Duration,
    ) -> Result<Report, Box<dyn Error>> {
        let plan = Plan {
            rank_counts: Vec::new(),
            operation,
            sizes,
            variants,
            time,
            launches: 1,
            arrival: Arrival { pattern: Pattern::None, delay: None, file: None },
            root: Root::Rank(0),
            method: Method::Clock,
            cold: false,
            clock: ClockMethod::Auto,
            corrupt: None,
        };
        let mut report = Report::new(Box::new(Silent), None, None, 1)?;
        let session = Session {
            plan: &plan,
            target: self.target,
            mpi: self.mpi,
            program: self.program.to_owned(),
            preloaded: self.variables.iter().any(|(name, _)| name == LD_PRELOAD),
            variables: self.variables,
            links: Links::default(),
            fidelity: Fidelity::default(),
            rate_choice: None,
            is_last: true,
            interrupted: Arc::clone(self.interrupted),
        };
        session.run(job, &mut report)?;
        Ok(report)
    }

    /// Measures in `job`, which begins here if there is none yet.
    pub fn measure_in(
        self,
        job: &mut Option<Dialogue>,
        operation: Operation,
        sizes: Vec<Bytes>,
        variants: Vec<Variant>,
        time: Duration,
    ) -> Result<Report, Box<dyn Error>> {
        if job.is_none() {
            *job = Some(self.start()?);
        }
        self.measure(job.as_mut(), operation, sizes, variants, time)
    }

    /// A job there that takes plans.
    fn start(&self) -> Result<Dialogue, Box<dyn Error>> {
        let command = self.target.command(self.mpi, &self.variables, &[self.program.into(), PLANS.into()])?;
        Ok(Dialogue::start(command, Arc::clone(self.interrupted))?)
    }
}

/// The time that a point says for its way. `None` if another way served since this one cannot be
/// had, or if there is no time.
pub fn measured(point: &Point) -> Option<Measured> {
    let served = point.algorithm.as_deref().unwrap_or(&point.variant);
    let median_us = point.median_us.filter(|_| served == point.variant)?;
    // Where there is no interval, all samples.
    let (low, high) = (point.ci_low_us.or(point.min_us), point.ci_high_us.or(point.max_us));
    let [low_us, high_us] = [low, high].map(|end| end.unwrap_or(median_us));
    Some(Measured { median_us, low_us, high_us, samples: point.samples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_lie_as_far_apart_as_they_do() {
        let (variant, few) = ("stock".to_owned(), [Some(2.0), Some(1.0), Some(9.0)]);
        let [median_us, min_us, max_us] = few;
        let few = Point { variant, median_us, min_us, max_us, samples: 3, ..Point::default() };
        let of = |point: &Point| measured(point).map(|time| (time.low_us, time.high_us));
        assert_eq!(of(&few), Some((1.0, 9.0)));
        let many = Point { ci_low_us: Some(1.5), ci_high_us: Some(2.5), ..few.clone() };
        assert_eq!(of(&many), Some((1.5, 2.5)));
        assert_eq!(
            measured(&Point { algorithm: Some("chain".to_owned()), ..few }),
            None,
            "another one served"
        );
    }
}
