//! A whole measurement: launch after launch, every result reported as soon as it is complete.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use polycast_core::units::Bytes;

use super::collect::{Collector, Event, Header};
use super::environment::{self, Environment, Machine};
use super::fidelity::Fidelity;
use super::figures::{self, Context};
use super::plan::{Links, Method, Plan};
use super::point::Point;
use super::report::Report;
use crate::jobs::Dialogue;
use crate::jobs::record::{Span, TimeFrom, TimeTo};
use crate::jobs::run::{self, Ending, Heard};
use crate::jobs::target::JobTarget;
use crate::mpi::Mpi;

/// Everything that a measurement needs.
pub struct Session<'a> {
    /// The plan of the measurement.
    pub plan: &'a Plan,
    /// The hosts to measure on.
    pub target: &'a JobTarget,
    /// The MPI to measure with.
    pub mpi: &'a Mpi,
    /// The measuring program.
    pub program: PathBuf,
    /// Variables for the ranks, the preloaded library among them.
    pub variables: Vec<(String, String)>,
    /// True if polycast is preloaded.
    pub preloaded: bool,
    /// The facts known about the network.
    pub links: Links,
    /// The range that the lab can show.
    pub fidelity: Fidelity,
    /// True if no other operation is measured after this one.
    pub is_last: bool,
    /// The reason for the rate of the lab's links, where it was chosen here.
    pub rate_choice: Option<String>,
    /// Set when the user has had enough.
    pub interrupted: Arc<AtomicBool>,
}

/// Sizes that all launches have measured to their end.
fn complete(collector: &Collector, launches: u32) -> usize {
    collector.sizes.iter().filter(|size| size.complete_launches == launches as usize).count()
}

fn interruption(measured: usize, sizes: usize) -> String {
    let size = if sizes == 1 { "size" } else { "sizes" };
    format!(
        "interrupted: {measured} of {sizes} {size} measured to the end; what else there is of samples counts, too"
    )
}

impl Session<'_> {
    /// Runs all launches with several MPIs, which differ in nothing else: the first of each, the second of each, and so on, so that what slows
    /// the machine down for a while slows all of them down. What was measured is reported together at the end.
    pub fn run_in_turn(sessions: &[Session], report: &mut Report) -> Result<(), Box<dyn Error>> {
        let Some(first) = sessions.first() else { return Ok(()) };
        let mut collectors: Vec<Collector> = sessions.iter().map(Session::collector).collect();
        let outcome = Session::launches_in_turn(sessions, &mut collectors, report);
        let mut environment = first.environment(&collectors[0].header);
        let join = |of: &dyn Fn(&Session) -> String, by| sessions.iter().map(of).collect::<Vec<_>>().join(by);
        environment.mpi = join(&|session| session.mpi.family().name().to_owned(), ",");
        environment.launcher = join(&|session| session.mpi.to_string(), ", ");
        environment.mpis = sessions.iter().map(|session| session.mpi.title()).collect();
        let versions = collectors.iter().map(|collector| collector.header.mpi_version.clone());
        environment.mpi_version = versions.collect::<Vec<_>>().join(", ");
        report.begin(&environment)?;
        for size in 0..collectors[0].sizes.len() {
            let of = |(session, collector): (&Session, &Collector)| session.points(&collector.sizes[size]);
            let measured = sessions.iter().zip(&collectors).filter(|(_, collector)| {
                collector.sizes[size].launches.iter().any(|launch| !launch.is_empty())
            });
            let points: Vec<Point> = measured.flat_map(of).collect();
            if !points.is_empty() {
                report.size(&points)?;
            }
        }
        report.end(first.is_last)?;
        outcome
    }

    fn launches_in_turn(
        sessions: &[Session],
        collectors: &mut [Collector],
        report: &mut Report,
    ) -> Result<(), Box<dyn Error>> {
        for launch in 0..sessions[0].plan.launches {
            for (session, collector) in sessions.iter().zip(&mut *collectors) {
                if session.interrupted.load(Ordering::Relaxed) {
                    return Ok(());
                }
                // Nothing is reported before all have been measured.
                session.launch(launch, None, collector, report, &mut usize::MAX.clone())?;
            }
        }
        Ok(())
    }

    fn collector(&self) -> Collector {
        let sizes = self.plan.sizes.iter().map(|size| size.0);
        let of_all = (0..self.plan.communicators()).flat_map(|_| sizes.clone());
        Collector::new(of_all)
    }

    /// Runs all launches, or as many plans in a job that is there and takes them. What was measured is reported even if one of them fails. That a
    /// job of others was interrupted is theirs to say.
    pub fn run(&self, mut job: Option<&mut Dialogue>, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let mut collector = self.collector();
        let mut reported = 0;
        let mut outcome = Ok(());
        for launch in 0..self.plan.launches {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            outcome = self.launch(launch, job.as_deref_mut(), &mut collector, report, &mut reported);
            if outcome.is_err() {
                break;
            }
        }
        self.report_up_to(collector.sizes.len(), &collector, report, &mut reported)?;
        report.end(self.is_last)?;
        if job.is_none() && self.interrupted.load(Ordering::Relaxed) {
            eprintln!(
                "polycast: {}",
                interruption(complete(&collector, self.plan.launches), collector.sizes.len())
            );
        }
        outcome
    }

    fn launch(
        &self,
        launch: u32,
        job: Option<&mut Dialogue>,
        collector: &mut Collector,
        report: &mut Report,
        reported: &mut usize,
    ) -> Result<(), Box<dyn Error>> {
        collector.begin_launch();
        let is_last = launch + 1 == self.plan.launches;
        let operation = self.plan.operation;
        report.doing(format!("{operation}, launch {} of {}: starting", launch + 1, self.plan.launches));
        report.raw(&format!("launch {launch} {operation}"))?;
        let words = self.plan.program(&self.program, &self.links);
        let (mut repetitions, mut size) = (0, 0);
        let on_line = |line: &str| -> Result<Heard, Box<dyn Error>> {
            let event = collector.line(line)?;
            match event {
                Some(Event::Foreign) => report.foreign(line),
                _ => report.raw(line)?,
            }
            match event {
                Some(Event::Ready) if (launch, size, *reported) == (0, 0, 0) => {
                    report.begin(&self.environment(&collector.header))?;
                }
                Some(Event::Block(more)) => {
                    repetitions += more;
                    let bytes = Bytes(collector.sizes.get(size).map_or(0, |size| size.bytes));
                    let ranks = collector.header.places.len();
                    report
                        .doing(format!("{operation} of {bytes} on {ranks} ranks: {repetitions} repetitions"));
                    report.flush_raw()?;
                }
                Some(Event::SizeDone(position)) => {
                    (repetitions, size) = (0, position + 1);
                    report.step();
                    if is_last {
                        self.report_up_to(position + 1, collector, report, reported)?;
                    }
                }
                _ => {}
            }
            Ok(if collector.launch_is_complete() { Heard::Last } else { Heard::More })
        };
        let ending = match job {
            Some(job) => {
                let words: Vec<_> = words[1..].iter().map(|word| word.to_string_lossy()).collect();
                job.say(&words.join(" "));
                let heard = job.hear(on_line);
                return if self.interrupted.load(Ordering::Relaxed) { Ok(()) } else { heard };
            }
            None => {
                let command = self.target.command(self.mpi, &self.variables, &words)?;
                run::run(command, &self.interrupted, on_line)?
            }
        };
        let status = match ending {
            _ if self.interrupted.load(Ordering::Relaxed) => return Ok(()),
            Ending::Hung if collector.launch_is_complete() => {
                report.foreign(&format!("polycast: {}", run::HUNG));
                return Ok(());
            }
            Ending::Hung => "it stayed without a word and was ended".to_owned(),
            Ending::Exited(status) if status.success() && collector.launch_is_complete() => return Ok(()),
            Ending::Exited(status) => status.to_string(),
        };
        Err(format!(
            "{} ended before the measurement was through ({status}); what it said stands above",
            self.mpi.path().display()
        )
        .into())
    }

    /// Reports the sizes before `end` that are not reported yet and of which something was measured.
    fn report_up_to(
        &self,
        end: usize,
        collector: &Collector,
        report: &mut Report,
        reported: &mut usize,
    ) -> Result<(), Box<dyn Error>> {
        while *reported < end {
            let (index, measured) = (*reported, &collector.sizes[*reported]);
            *reported += 1;
            if measured.launches.iter().all(Vec::is_empty) {
                continue;
            }
            if index > 0 && index % self.plan.sizes.len() == 0 {
                // The next communicator.
                report.end(false)?;
                report.begin(&self.environment(&measured.header))?;
            }
            report.size(&self.points(measured))?;
        }
        Ok(())
    }

    fn points(&self, measured: &figures::Measured) -> Vec<Point> {
        let (_, host_of) = environment::hosts(&measured.header.places);
        let has_root = self.plan.operation.collective().has_root();
        let context = Context {
            operation: self.plan.operation,
            variants: &self.plan.variants,
            host_of: &host_of,
            root: &if has_root { self.plan.root.to_string() } else { "none".to_owned() },
            arrival: &self.plan.arrival.pattern.to_string(),
            rate_bits_per_second: self.links.rate_bits_per_second,
            span: self.span(&measured.header),
            time_limit: self.plan.time,
        };
        let mut points = figures::summarise(&context, measured);
        for point in &mut points {
            point.mpi = self.mpi.title();
            self.fidelity.judge(point);
        }
        points
    }

    fn time_from(&self, header: &Header) -> TimeFrom {
        match self.plan.method {
            Method::Clock => header.time_from(),
            Method::Loop => TimeFrom::CallsInARow,
            Method::Responder => TimeFrom::RootCallByAnswers,
        }
    }

    fn span(&self, header: &Header) -> Span {
        let to = match self.plan.operation.ends_at_root() {
            true => TimeTo::RootReturn,
            false => TimeTo::LastReturn,
        };
        Span { from: self.time_from(header), to }
    }

    fn environment(&self, header: &Header) -> Environment {
        let (hosts, _) = environment::hosts(&header.places);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Environment {
            polycast: env!("CARGO_PKG_VERSION"),
            command: crate::command_line::words(),
            started_unix_s: since_1970.as_secs(),
            machine: Machine::here(),
            mpi: self.mpi.family().name().to_owned(),
            mpi_version: header.mpi_version.clone(),
            launcher: self.mpi.to_string(),
            mpis: Vec::new(),
            preloaded: self.preloaded,
            ranks: header.places.len(),
            nodes: hosts.len(),
            hosts,
            oversubscribed: header.oversubscribed,
            time_limit_s: self.plan.time.as_secs_f64(),
            launches: self.plan.launches as usize,
            clock: header.clock.as_ref().map(Into::into),
            time_from: self.time_from(header),
            cold: self.plan.cold,
            span: self.span(header),
            operation: self.plan.operation,
            wake_up_spread_us: header.wake_up_ns.map(|ns| ns as f64 / 1e3),
            tolerance: environment::tolerance_rule(header.oversubscribed, self.time_from(header)),
            rate_bits_per_second: self.links.rate_bits_per_second,
            rate_choice: self.rate_choice.clone(),
            lab: self.fidelity.description().cloned(),
        }
    }
}
