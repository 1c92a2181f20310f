//! The search for one collective on one shape, with real jobs.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::HumanDuration;
use polycast_core::policy::tune::{Aim, Found, Known, Measured, Search, Task};
use polycast_core::policy::{Capabilities, Choice, CommunicatorShape};
use polycast_core::units::Bytes;

use super::{Args, sizes};
use crate::bench::operation::Operation;
use crate::bench::variant::{MAX_VARIANTS, Variant};
use crate::commands::one_launch::{On, measured};
use crate::jobs::Dialogue;
use crate::jobs::target::JobTarget;
use crate::mpi::Mpi;
use crate::tune::{Key, Record, Size, Store};

/// The measured times of ways; `None` for ways that cannot be had.
type Times = Vec<(Choice, Option<Measured>)>;

/// The search for one collective.
pub(super) struct Tuning<'a> {
    pub args: &'a Args,
    pub mpi: &'a Mpi,
    pub target: &'a JobTarget,
    pub program: &'a Path,
    pub variables: &'a [(String, String)],
    pub shape: CommunicatorShape,
    /// The predictions that leave out ways which cannot win.
    pub known: Option<&'a Known>,
    pub operation: Operation,
    pub key: Key,
    /// The time after which no race begins.
    pub ends: Option<Instant>,
    pub interrupted: &'a Arc<AtomicBool>,
    /// The job that measures on this shape, one task after the other: to start a job of many ranks
    /// takes as long as to compare a few ways.
    pub job: &'a RefCell<Option<Dialogue>>,
}

/// The size that is under way.
struct Now {
    bytes: u64,
    began: Instant,
    ends: Option<Instant>,
    is_measured: bool,
}

impl Tuning<'_> {
    /// Searches all sizes; returns everything that was found, now or earlier, by rising bytes.
    pub fn run(&self, store: &mut Store) -> Result<Vec<Size>, Box<dyn Error>> {
        let collective = self.operation.collective();
        let sizes = sizes(self.args, self.operation);
        let block = |bytes: u64| self.operation.block_bytes(bytes, self.shape.ranks as usize);
        let aim = Aim {
            collective,
            shape: self.shape,
            there: Capabilities::ALL,
            known: self.known,
            block: &block,
            is_exhaustive: self.args.exhaustive,
        };
        let of_record = |record: &&Record| Some((record.bytes, record.found(collective)?));
        let known = store.of(&self.key).iter().filter_map(of_record).collect();
        let mut search = Search::new(aim, &sizes, known);
        let mut now: Option<Now> = None;
        loop {
            let is_over = self.is_over();
            let task = if is_over { None } else { search.task() };
            if let Some(task) = &task {
                let one = now.get_or_insert_with(|| self.begin(task.bytes, search.left()));
                if !(one.is_measured && one.ends.is_some_and(|ends| Instant::now() > ends)) {
                    let times = self.measure(task)?;
                    // Of a launch that was interrupted some are missing, stock perhaps.
                    if !self.interrupted.load(Ordering::Relaxed) {
                        search.took(&times);
                        one.is_measured = true;
                    }
                }
            }
            let is_late = |one: &Now| is_over || one.ends.is_some_and(|ends| Instant::now() > ends);
            if let Some(one) = now.take_if(|one| one.is_measured) {
                match search.finished(is_late(&one)) {
                    Some((bytes, found)) if !found.all.is_empty() => {
                        let took = one.began.elapsed();
                        // The next run would take what there is for all.
                        if !self.interrupted.load(Ordering::Relaxed) {
                            let size = (bytes, block(bytes));
                            store.add(Record::new(&self.key, size, &found, took.as_secs_f64()))?;
                        }
                        self.tell(one.bytes, &found, took, search.left());
                    }
                    Some(_) => {}
                    None => now = Some(one),
                }
            }
            if task.is_none() {
                break;
            }
        }
        let found = search.found().filter(|(_, found)| !found.all.is_empty() || found.time.is_some());
        Ok(found
            .map(|(bytes, found)| Size { bytes, block_bytes: block(bytes), found: found.clone() })
            .collect())
    }

    /// A size has its part of the time that is left.
    fn begin(&self, bytes: u64, left: usize) -> Now {
        let began = Instant::now();
        let share = |ends: Instant| began + ends.saturating_duration_since(began) / (left + 1) as u32;
        Now { bytes, began, ends: self.ends.map(share), is_measured: false }
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ends.is_some_and(|ends| Instant::now() > ends)
    }

    fn measure(&self, task: &Task) -> Result<Times, Box<dyn Error>> {
        let Task { bytes, ways, .. } = task;
        let left = self.ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let time = time_for_each(task, self.args.time, left);
        let mut times = Vec::new();
        let mut job = self.job.borrow_mut();
        for some in ways.chunks(MAX_VARIANTS) {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let on = On {
                target: self.target,
                mpi: self.mpi,
                program: self.program,
                variables: self.variables.to_vec(),
                interrupted: self.interrupted,
            };
            let variants = some.iter().map(|choice| Variant::from(*choice)).collect();
            let report = on.measure_in(&mut job, self.operation, vec![Bytes(*bytes)], variants, time)?;
            if report.wrong {
                return Err(format!(
                    "a rank had wrong data after a {} of {}: no table is written; `polycast bench --collective {} --sizes {bytes} \
                     --variants …` says which way it was",
                    self.operation,
                    Bytes(*bytes),
                    self.operation.name()
                )
                .into());
            }
            if let Some(found) = report.points.first().map(|point| point.nodes)
                && found != self.shape.nodes as usize
            {
                return Err(format!(
                    "--hosts: expected a job on as many nodes as the rules would be for, {}, found one on {found}: name the hosts",
                    self.shape.nodes
                )
                .into());
            }
            let time = |choice: &Choice| {
                let name = Variant::from(*choice).to_string();
                (*choice, report.points.iter().find(|point| point.variant == name).and_then(measured))
            };
            times.extend(some.iter().map(time));
        }
        // What could not be had may be had again by a job that has not seen it fail.
        if times.iter().any(|(_, time)| time.is_none())
            && let Some(job) = job.take()
        {
            job.shutdown()?;
        }
        Ok(times)
    }

    fn tell(&self, bytes: u64, found: &Found, took: Duration, left: usize) {
        let gain = found.time.zip(found.stock).map(|(time, stock)| stock.median_us / time.median_us);
        let gain = gain
            .filter(|_| found.best != Choice::Stock)
            .map_or_else(String::new, |gain| format!(", {gain:.2} × stock"));
        let time_left = self.ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let time_left =
            time_left.map_or_else(String::new, |left| format!(", {} at most", HumanDuration(left)));
        eprintln!(
            "{} {}: {}{gain} ({} ways, {:.0} s); {left} more {}{time_left}",
            self.operation,
            Bytes(bytes),
            found.best,
            found.measured,
            took.as_secs_f64(),
            if left == 1 { "size" } else { "sizes" }
        );
    }
}

/// No longer than there is time, but for the shortest that says something.
fn time_for_each(task: &Task, shortest: Duration, left: Option<Duration>) -> Duration {
    let wanted = (shortest * task.effort.0).max(Duration::from_secs_f64(task.least_us / 1e6));
    let share = left.map(|left| left / task.ways.len().max(1) as u32);
    share.map_or(wanted, |share| wanted.min(share.max(shortest)))
}

#[cfg(test)]
mod tests {
    use polycast_core::policy::tune::Effort;

    use super::*;

    #[test]
    fn no_way_is_measured_for_longer_than_there_is_time() {
        let task = |least_us| Task { bytes: 8, ways: vec![Choice::Stock; 2], effort: Effort(4), least_us };
        let [short, ten, hour] = [1, 10, 3600].map(Duration::from_secs);
        assert_eq!(time_for_each(&task(0.0), short, Some(hour)), 4 * short);
        assert_eq!(time_for_each(&task(60e6), short, Some(hour)), 6 * ten);
        assert_eq!(time_for_each(&task(60e6), short, None), 6 * ten);
        assert_eq!(time_for_each(&task(60e6), short, Some(ten)), ten / 2);
        assert_eq!(time_for_each(&task(60e6), short, Some(Duration::ZERO)), short);
    }
}
