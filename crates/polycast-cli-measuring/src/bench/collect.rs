//! Puts the lines of all launches together: the surroundings first, then size after size.

use std::mem::take;

use super::figures::Measured;
use crate::jobs::record::{Clock, FORMAT_VERSION, Place, Record, Repetition, TimeFrom};

/// The measuring program's description of the job before it measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The library's name and version.
    pub mpi_version: String,
    /// The place of each rank, by rank.
    pub places: Vec<Place>,
    /// The common clock.
    pub clock: Option<Clock>,
    /// True if there are more ranks than cores under one kernel.
    pub oversubscribed: bool,
    /// The spread in ns with which ranks wake up, where receivers are to wait for the root.
    pub wake_up_ns: Option<u64>,
}

impl Header {
    /// Returns the call that times run from: the root's where receivers wait for it, else the
    /// first.
    pub fn time_from(&self) -> TimeFrom {
        if self.wake_up_ns.is_some() { TimeFrom::RootCall } else { TimeFrom::FirstCall }
    }
}

/// An event that can be reported now.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The header is complete.
    Ready,
    /// A block of this many repetitions of the present size is complete.
    Block(u64),
    /// The size with this position in the plan is done in this launch.
    SizeDone(usize),
    /// A line that is not the measuring program's.
    Foreign,
}

/// An error that lets no results be made of the lines.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The measuring program gave up.
    #[error("{0}")]
    Refused(String),
    /// The measuring program is of another version.
    #[error(
        "the measuring program writes format {0}, expected {FORMAT_VERSION}: build it again with `make doors`"
    )]
    Version(u32),
    /// A size that was not asked for.
    #[error("the measuring program measures {0} bytes, which was not asked for")]
    Size(u64),
}

/// The measurements so far.
#[derive(Debug, Default)]
pub struct Collector {
    /// The header of the last launch, and of the communicator that is measured.
    pub header: Header,
    /// The measurements by size, in the order of the plan.
    pub sizes: Vec<Measured>,
    current: usize,
    next: usize,
    ended: bool,
}

impl Collector {
    /// An empty collection for these message sizes, of each communicator.
    pub fn new(sizes: impl Iterator<Item = u64>) -> Collector {
        let sizes = sizes.map(|bytes| Measured { bytes, ..Measured::default() }).collect();
        Collector { sizes, ..Collector::default() }
    }

    /// Begins a launch, whose lines follow.
    pub fn begin_launch(&mut self) {
        self.header = Header::default();
        (self.current, self.next, self.ended) = (0, 0, false);
    }

    /// True if the present job said that it is through.
    pub fn launch_is_complete(&self) -> bool {
        self.ended
    }

    /// Takes in a line; returns an event when there is something to report.
    pub fn line(&mut self, line: &str) -> Result<Option<Event>, CollectError> {
        match Record::parse(line) {
            None => return Ok(Some(Event::Foreign)),
            Some(Record::Version(FORMAT_VERSION)) => {}
            Some(Record::Version(other)) => return Err(CollectError::Version(other)),
            Some(Record::Error(sentence)) => return Err(CollectError::Refused(sentence)),
            Some(Record::Mpi(version)) => self.header.mpi_version = version,
            Some(Record::Ranks(_)) => {
                self.header = Header { mpi_version: take(&mut self.header.mpi_version), ..Header::default() };
            }
            Some(Record::Rank(place)) => self.header.places.push(place),
            Some(Record::Clock(clock)) => self.header.clock = Some(clock),
            Some(Record::WakeUp(spread_ns)) => self.header.wake_up_ns = Some(spread_ns),
            Some(Record::Choice(variant, name)) => {
                if let Some(size) = self.sizes.get_mut(self.current) {
                    size.choices.insert(variant, name);
                }
            }
            Some(Record::Oversubscribed(oversubscribed)) => {
                self.header.oversubscribed = oversubscribed;
                return Ok(Some(Event::Ready));
            }
            Some(Record::Point(bytes)) => self.begin_size(bytes)?,
            Some(Record::Repetition(repetition)) => self.add(repetition),
            Some(Record::Block(repetitions, clock_error_ns)) => {
                if let Some(size) = self.sizes.get_mut(self.current) {
                    size.clock_error_ns = size.clock_error_ns.max(clock_error_ns);
                }
                return Ok(Some(Event::Block(repetitions)));
            }
            Some(Record::PointEnd { delay_ns, advance_ns, tolerance_ns }) => {
                if let Some(size) = self.sizes.get_mut(self.current) {
                    size.complete_launches += 1;
                    (size.delay_ns, size.advance_ns, size.tolerance_ns) =
                        (delay_ns, advance_ns, tolerance_ns);
                }
                return Ok(Some(Event::SizeDone(self.current)));
            }
            Some(Record::End) => self.ended = true,
        }
        Ok(None)
    }

    /// Begins a size. Sizes come in the order of the plan, in which a size may stand twice.
    fn begin_size(&mut self, bytes: u64) -> Result<(), CollectError> {
        match self.sizes.get_mut(self.next) {
            Some(size) if size.bytes == bytes => {
                size.launches.push(Vec::new());
                size.header = self.header.clone();
            }
            _ => return Err(CollectError::Size(bytes)),
        }
        self.current = self.next;
        self.next += 1;
        Ok(())
    }

    /// Adds a repetition, unless it lacks the time of a rank: then it is none of ours.
    fn add(&mut self, repetition: Repetition) {
        let ranks = self.header.places.len();
        let launch = self.sizes.get_mut(self.current).and_then(|size| size.launches.last_mut());
        if let Some(launch) = launch.filter(|_| repetition.times_ns.len() == ranks && repetition.root < ranks)
        {
            launch.push(repetition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "polycast-bench 3
mpi Some MPI 1.0
rank 0 host h0 kernel 0 cores 2
rank 1 host h1 kernel 0 cores 2
clock shared 1 0 0
wake-up 700000
oversubscribed 1
point 8
repetition 1 0 0 ok 0 0 10 0 20
hello from the launcher
block 1 5
choice 0 chain:segment=8KiB
point-end 8 0 700000 50000
point 16
repetition 1 0 0 late 0 0 10 0 20
repetition 1 0 0 ok 0 0 10
point-end 16 0 800000 50000
end
";

    fn feed(collector: &mut Collector, text: &str) -> Vec<Event> {
        collector.begin_launch();
        text.lines().filter_map(|line| collector.line(line).unwrap()).collect()
    }

    #[test]
    fn a_job_and_its_repetition() {
        let mut collector = Collector::new([8, 16].into_iter());
        let events = feed(&mut collector, JOB);
        assert_eq!(
            events,
            [Event::Ready, Event::Foreign, Event::Block(1), Event::SizeDone(0), Event::SizeDone(1)]
        );
        assert!(collector.launch_is_complete());
        feed(&mut collector, JOB);
        assert_eq!(collector.header.places.len(), 2);
        assert_eq!((collector.sizes[0].launches.len(), collector.sizes[0].complete_launches), (2, 2));
        assert_eq!((collector.sizes[0].clock_error_ns, collector.sizes[0].tolerance_ns[0]), (5, 50_000));
        assert_eq!(collector.sizes[1].launches[1].len(), 1);
        assert_eq!(collector.header.time_from(), TimeFrom::RootCall);
        assert_eq!(collector.sizes[0].choices[&0], "chain:segment=8KiB");
    }

    #[test]
    fn a_job_that_was_cut_off_keeps_what_it_had() {
        let mut collector = Collector::new([8, 16].into_iter());
        feed(&mut collector, &JOB[..JOB.find("hello").unwrap()]);
        assert!(!collector.launch_is_complete());
        assert_eq!(collector.sizes[0].launches[0].len(), 1);
        assert!(collector.sizes[1].launches.is_empty());
        assert_eq!(collector.sizes[0].complete_launches, 0);
    }

    #[test]
    fn refusals_are_errors() {
        let mut collector = Collector::new([8].into_iter());
        assert_eq!(collector.line("error no door").unwrap_err().to_string(), "no door");
        assert!(collector.line("polycast-bench 1").unwrap_err().to_string().contains("make doors"));
        assert!(collector.line("point 9").is_err());
    }
}
