use polycast_core::collective::Collective;

use super::FINALIZED;
use super::record::{Asked, Calls, Count, Found, Job, Record};
use super::sizes::{CLASSES, Carrier, bounds};
use super::untimed::{LEFT, UNSERVED};
use crate::machine;

/// Summary for the report when MPI ends: numbers of this rank, and sums over all ranks.
pub struct Summary {
    /// The job; `None` if its ranks never came together.
    pub job: Option<Job>,
    /// Calls of each collective, broadcasts first.
    pub calls: Vec<CallsOf>,
    /// Calls of operations that polycast does not serve.
    pub unserved: Vec<(&'static str, Count)>,
    /// Names and values of multicast's counters; `None` if multicast was neither used nor tried.
    pub multicast: Option<Vec<(&'static str, u64)>>,
    /// Reasons for which communicators did without multicast, with the number of communicators.
    pub without_multicast: Vec<(String, u64)>,
    pub choices: Vec<String>,
    pub asked: Vec<Asked>,
    /// Findings of trials, the latest last.
    pub found: Vec<Found>,
    pub attached: u64,
    pub released: u64,
    /// Notes on what else a reader of the report may want to know.
    pub notes: Vec<String>,
    /// What ended the program's MPI.
    pub ended_by: &'static str,
    /// Sums over all ranks; `None` if not all ranks take part. Then multicast's numbers are this
    /// rank's, too.
    pub all_ranks: Option<AllRanks>,
}

/// Calls of a collective.
pub struct CallsOf {
    pub collective: Collective,
    /// Calls that polycast served, by algorithm, in the order of the names.
    pub served: Vec<(String, Count)>,
    /// Calls that were left to the MPI, by reason; the most calls first.
    pub left: Vec<(String, Count)>,
    /// Calls by size, the smallest first.
    pub sizes: Vec<SizeClass>,
}

/// Calls of one class of sizes by polycast, or by the MPI.
pub struct SizeClass {
    pub first_bytes: u64,
    /// The smallest size above the class; `None`: there is none.
    pub above_bytes: Option<u64>,
    pub by: Carrier,
    pub count: Count,
    pub times: Times,
}

/// Times of single calls.
pub struct Times {
    pub median_nanos: u64,
    pub longest_nanos: u64,
}

/// Sums over all ranks: a call on four ranks counts four times.
pub struct AllRanks {
    /// Calls of each collective, broadcasts first: those that were served, and those left to the
    /// MPI.
    pub calls: Vec<[Count; 2]>,
    pub unserved: Count,
}

impl Summary {
    /// The summary of a record. `sum` is called if all ranks know that all do so.
    pub fn of(record: &Record, sum: impl FnOnce(&mut [u64]) -> bool) -> Summary {
        let unserved: Vec<_> = UNSERVED.counts().collect();
        let calls = Collective::ALL.map(|collective| CallsOf::new(collective, record));
        let named = record.multicast.named();
        let mine = AllRanks {
            calls: calls.iter().map(|calls| [calls.all_served(), calls.all_left()]).collect(),
            unserved: Count::sum(unserved.iter().map(|(_, count)| *count)),
        };
        let mut values = mine.to_values();
        values.extend(named.iter().map(|(_, value)| value));
        let is_sum = record.all_ranks_report && sum(&mut values);
        let (all_ranks, values) = AllRanks::from_values(&values);
        let multicast: Vec<_> = named.iter().zip(values).map(|((name, _), value)| (*name, *value)).collect();
        let was_tried = multicast.iter().any(|(_, value)| *value > 0) || !record.without_multicast.is_empty();
        Summary {
            job: record.job,
            calls: calls.into(),
            unserved,
            multicast: was_tried.then_some(multicast),
            without_multicast: record.without_multicast.clone().into_iter().collect(),
            choices: record.choices.iter().cloned().collect(),
            asked: record.asked.iter().cloned().collect(),
            found: record.found.iter().cloned().collect(),
            attached: record.attached,
            released: record.released,
            notes: alone_where_others_were_expected(record.world_ranks).into_iter().collect(),
            ended_by: FINALIZED,
            all_ranks: is_sum.then_some(all_ranks),
        }
    }

    /// The summary of this rank, which asks no other.
    pub fn alone(record: &Record, ended_by: &'static str) -> Summary {
        Summary { ended_by, ..Summary::of(record, |_| false) }
    }

    /// The broadcasts of this rank.
    pub fn broadcasts(&self) -> &CallsOf {
        &self.calls[Collective::Broadcast as usize]
    }

    /// Number of communicators that were to use multicast and did without.
    pub fn fallbacks(&self) -> u64 {
        self.without_multicast.iter().map(|(_, communicators)| communicators).sum()
    }

    /// The ranks whose numbers multicast's counters are: "all" or "this".
    pub fn ranks_of_multicast(&self) -> &'static str {
        if self.all_ranks.is_some() { "all" } else { "this" }
    }

    /// A counter of multicast; 0 if it was not tried.
    pub fn multicast(&self, name: &str) -> u64 {
        let named = self.multicast.iter().flatten().find(|(known, _)| *known == name);
        named.map_or(0, |(_, value)| *value)
    }
}

impl CallsOf {
    fn new(collective: Collective, record: &Record) -> CallsOf {
        let calls = &record.calls[collective as usize];
        let served = calls.served.iter().map(|(choice, count)| (choice.to_string(), *count));
        let timed = calls.left.iter().filter(|(_, count)| count.calls > 0).cloned();
        let untimed = LEFT[collective as usize].counts().map(|(reason, count)| (reason.to_owned(), count));
        let (mut served, mut left): (Vec<_>, Vec<_>) = (served.collect(), timed.chain(untimed).collect());
        served.sort_by(|one, other| one.0.cmp(&other.0));
        left.sort_by_key(|(_, count)| std::cmp::Reverse(count.calls));
        CallsOf { collective, served, left, sizes: sizes_of(calls) }
    }

    /// Sum of all calls that polycast served.
    pub fn all_served(&self) -> Count {
        Count::sum(self.served.iter().map(|(_, count)| *count))
    }

    /// Sum of all calls that were left to the MPI.
    pub fn all_left(&self) -> Count {
        Count::sum(self.left.iter().map(|(_, count)| *count))
    }

    /// True if this rank made any calls.
    pub fn were_any(&self) -> bool {
        !self.served.is_empty() || !self.left.is_empty()
    }
}

/// Variables in which launchers tell how many processes they have started for the job.
const STARTED: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NPROCS"];

/// A note if this process is alone in its MPI_COMM_WORLD though its launcher has started several:
/// each of them does the whole work then.
fn alone_where_others_were_expected(world_ranks: usize) -> Option<String> {
    let value = |name: &&str| machine::variable(name)?.to_str()?.parse::<usize>().ok();
    let (name, started) = STARTED.iter().find_map(|name| Some((name, value(name)?)))?;
    (world_ranks == 1 && started > 1).then(|| {
        format!(
            "MPI_COMM_WORLD has one rank, and {name} says {started}: each of {started} processes is alone and does \
             the whole work, unless that is meant. The launcher does not fit the MPI: take the MPI's own mpiexec, \
             or with Slurm srun --mpi=pmix or --mpi=pmi2"
        )
    })
}

fn sizes_of(calls: &Calls) -> Vec<SizeClass> {
    let all = (0..CLASSES).flat_map(|index| Carrier::ALL.map(|by| (index, by)));
    let known = all.filter_map(|(index, by)| {
        let class = calls.sizes.class(by, index)?;
        let (first_bytes, above_bytes) = bounds(index);
        let times = Times { median_nanos: class.median_nanos(), longest_nanos: class.longest_nanos };
        Some(SizeClass { first_bytes, above_bytes, by, count: class.count, times })
    });
    known.collect()
}

impl AllRanks {
    /// The counts as values for the sum: as many on all ranks.
    fn to_values(&self) -> Vec<u64> {
        let of = |count: Count| [count.calls, count.bytes, count.nanos];
        let all = self.calls.as_flattened().iter().chain([&self.unserved]);
        all.flat_map(|count| of(*count)).collect()
    }

    /// Undoes [`AllRanks::to_values`]; returns also the values that follow.
    fn from_values(values: &[u64]) -> (AllRanks, &[u64]) {
        const OF_CALLS: usize = 6 * Collective::ALL.len();
        let count = |values: &[u64]| Count { calls: values[0], bytes: values[1], nanos: values[2] };
        let (of_calls, rest) = values.split_at(OF_CALLS);
        let calls = of_calls.chunks_exact(6).map(|values| [count(values), count(&values[3..])]).collect();
        (AllRanks { calls, unserved: count(rest) }, &rest[3..])
    }
}
