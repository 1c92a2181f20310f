use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use polycast_core::network::{Alike, Links, Network};
use polycast_core::policy::{Call, Choice, Collective};
use polycast_core::protocol;
use polycast_core::topology::hostlist;
use serde::Serialize;

use super::sizes::{Carrier, SizeClasses};
use super::witness::Witness;

/// Calls that were treated alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub calls: u64,
    pub bytes: u64,
    /// Time that the calls took in all, in nanoseconds; 0 for calls that are not timed.
    pub nanos: u64,
}

impl Count {
    pub fn add(&mut self, bytes: u64, took: Duration) {
        let nanos = nanos(took);
        self.merge(Count { calls: 1, bytes, nanos });
    }

    pub fn merge(&mut self, other: Count) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    pub fn sum(counts: impl IntoIterator<Item = Count>) -> Count {
        counts.into_iter().fold(Count::default(), |mut sum, count| {
            sum.merge(count);
            sum
        })
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The job to which this process belongs.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub ranks: usize,
    pub nodes: usize,
    /// Time at which the job's ranks came together, in nanoseconds since 1970.
    pub began_1970_ns: u64,
}

/// Datagrams that were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Datagrams of another job or program, cut off, or too short to tell.
    pub foreign: u64,
    /// Datagrams of this job with a wrong tag: damaged, or forged.
    pub forged: u64,
    /// Datagrams for no communicator of this process, for a full inbox, or of a kind that this
    /// version does not know.
    pub unclaimed: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub by_kernel: u64,
    /// Failures of the device below, if the datagrams do not come by a socket.
    pub failures: u64,
}

impl Dropped {
    /// Adds the drops of another group.
    pub fn add(&mut self, other: &Dropped) {
        self.foreign += other.foreign;
        self.forged += other.forged;
        self.unclaimed += other.unclaimed;
        self.by_kernel += other.by_kernel;
        self.failures += other.failures;
    }
}

/// Counts of multicast: of one ring of nodes, or of all rings that are gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct MulticastCounts {
    pub protocol: protocol::Counters,
    pub dropped: Dropped,
    pub send_errors: u64,
    /// Rings that left multicast in mid-job, and that came back to it.
    pub died: u64,
    pub returned: u64,
    /// Rings whose datagrams went over verbs in the end.
    pub verbs: u64,
}

impl MulticastCounts {
    /// Adds the counts of one ring.
    pub fn add(&mut self, ring: &MulticastCounts) {
        self.protocol.add(&ring.protocol);
        self.dropped.add(&ring.dropped);
        self.send_errors += ring.send_errors;
        self.died += ring.died;
        self.returned += ring.returned;
        self.verbs += ring.verbs;
    }

    /// Name and value of each count, in the order of the report.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let Dropped { foreign, forged, unclaimed, by_kernel, failures } = self.dropped;
        let dropped = [
            ("foreign", foreign),
            ("forged", forged),
            ("unclaimed", unclaimed),
            ("buffer_drops", by_kernel),
            ("send_errors", self.send_errors),
            ("died", self.died),
            ("returned", self.returned),
            ("verbs", self.verbs),
            ("verbs_failures", failures),
        ];
        self.protocol.named().into_iter().chain(dropped).collect()
    }
}

/// The finding of a trial.
#[derive(Clone, Debug)]
pub struct Found {
    pub collective: Collective,
    /// Smallest calls that the finding is about, in bytes; the largest are less than twice as long.
    pub first_bytes: u64,
    pub ranks: u32,
    /// The ways that were compared, each with the nanoseconds of its median call, the mean of the ranks but the root.
    pub times: Vec<(Choice, u64)>,
    pub stays: Choice,
    /// True if ways were measured apart from the program's calls.
    pub is_tuned: bool,
    /// True if an earlier job found it.
    pub is_remembered: bool,
}

/// Most trials that a report names: the last ones.
const MAX_FOUND: usize = 64;

/// Most ways to choose, and most networks, that a report names: each communicator may have its own.
const MAX_CHOICES: usize = 16;

/// The totals of this process.
#[derive(Default)]
pub struct Record {
    pub job: Option<Job>,
    /// Ranks in MPI_COMM_WORLD; 0: MPI has not begun.
    pub world_ranks: usize,
    pub attached: u64,
    pub released: u64,
    /// True if all ranks of MPI_COMM_WORLD make a report, and know that of each other.
    pub all_ranks_report: bool,
    /// Calls by collective.
    pub calls: [Calls; Collective::ALL.len()],
    pub multicast: MulticastCounts,
    /// Number of communicators that do without multicast, by reason.
    pub without_multicast: BTreeMap<String, u64>,
    /// Sources of choices, if they are more than the table that is built in.
    pub choices: BTreeSet<String>,
    /// Networks that were measured, as the report tells them.
    pub asked: BTreeSet<Asked>,
    pub found: VecDeque<Found>,
    /// The witness of rank 0, if a report is wanted.
    pub witness: Option<Witness>,
}

/// Calls of a collective.
#[derive(Default)]
pub struct Calls {
    pub served: Vec<(Choice, Count)>,
    /// Calls that were left to the MPI, by reason. Calls name a reason by its index, so none is
    /// ever removed.
    pub left: Vec<(String, Count)>,
    pub sizes: SizeClasses,
}

/// The measured network between a number of nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Asked {
    pub nodes: u32,
    /// Rate and latency as tables write them; `None` if they are not known.
    pub rate: Option<String>,
    pub latency: Option<String>,
    pub multicast_percent: u64,
    /// Classes of links, if some links are much slower than most: the slowest first, the class of
    /// most nodes last.
    pub links: Vec<AlikeLinks>,
}

/// Links of one class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AlikeLinks {
    pub rate: String,
    /// Hosts of the class, as a hostlist.
    pub hosts: String,
    #[serde(skip)]
    pub bits_per_second: u64,
}

/// A reason by its index in [`Calls::left`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonId(usize);

impl Record {
    pub fn served(&mut self, call: &Call, choice: Choice, took: Duration) {
        let (Calls { served, sizes, .. }, bytes) = (&mut self.calls[call.collective as usize], call.bytes.0);
        sizes.add(Carrier::Polycast, bytes, took);
        match served.iter_mut().find(|(known, _)| *known == choice) {
            Some((_, count)) => count.add(bytes, took),
            None => served.push((choice, Count { calls: 1, bytes, nanos: nanos(took) })),
        }
    }

    /// Counts a call that was left to the MPI, for a reason of its collective.
    pub fn left(&mut self, call: &Call, ReasonId(reason): ReasonId, took: Duration) {
        let (Calls { left, sizes, .. }, bytes) = (&mut self.calls[call.collective as usize], call.bytes.0);
        sizes.add(Carrier::Mpi, bytes, took);
        left[reason].1.add(bytes, took);
    }

    pub fn reason(&mut self, collective: Collective, text: &str) -> ReasonId {
        let left = &mut self.calls[collective as usize].left;
        let known = left.iter().position(|(known, _)| known == text);
        ReasonId(known.unwrap_or_else(|| {
            left.push((text.to_owned(), Count::default()));
            left.len() - 1
        }))
    }

    pub fn found(&mut self, found: Found) {
        if self.found.len() == MAX_FOUND {
            self.found.pop_front();
        }
        self.found.push_back(found);
    }

    pub fn asked(&mut self, nodes: u32, network: Network, links: &Links, host: impl Fn(usize) -> String) {
        let alike = |alike: Alike| AlikeLinks {
            rate: alike.rate.to_string(),
            hosts: hostlist(&alike.nodes.into_iter().map(&host).collect::<Vec<_>>()),
            bits_per_second: alike.rate.bits_per_second(),
        };
        if self.asked.len() < MAX_CHOICES {
            self.asked.insert(Asked {
                nodes,
                rate: network.rate.map(|rate| rate.to_string()),
                latency: network.latency.map(|latency| latency.to_string()),
                multicast_percent: network.multicast_percent(),
                links: links.classes().into_iter().map(alike).collect(),
            });
        }
    }

    pub fn choices(&mut self, by: String) {
        if self.choices.len() < MAX_CHOICES {
            self.choices.insert(by);
        }
    }
}
