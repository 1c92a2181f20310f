//! One launch of the measuring program.

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
use crate::commands::bench::PRELOAD;
use crate::jobs::target::JobTarget;
use crate::mpi::Mpi;

/// Where something is measured.
pub struct On<'a> {
    pub target: &'a JobTarget,
    pub mpi: &'a Mpi,
    pub program: &'a Path,
    /// Of the job; polycast is in it if they preload it.
    pub variables: Vec<(String, String)>,
    pub interrupted: &'a Arc<AtomicBool>,
}

impl On<'_> {
    /// In one launch, by the clock, without a word on the terminal.
    pub fn measure(
        self,
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
            preloaded: self.variables.iter().any(|(name, _)| name == PRELOAD),
            variables: self.variables,
            links: Links::default(),
            fidelity: Fidelity::default(),
            rate_choice: None,
            is_last: true,
            interrupted: Arc::clone(self.interrupted),
        };
        session.run(&mut report)?;
        Ok(report)
    }
}

/// What a point says of a way; `None` if another one served, where this one cannot be had, or there is no time.
pub fn measured(point: &Point) -> Option<Measured> {
    let served = point.algorithm.as_deref().unwrap_or(&point.variant);
    let median_us = point.median_us.filter(|_| served == point.variant)?;
    let (low, high) = (point.ci_low_us.unwrap_or(median_us), point.ci_high_us.unwrap_or(median_us));
    Some(Measured { median_us, low_us: low, high_us: high, samples: point.samples })
}
