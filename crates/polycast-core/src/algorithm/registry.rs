//! The algorithms that there are, in one [`Entry`] each.

use super::{Algorithm, Entry, Raced};
use super::{
    allgather, allreduce, alltoall, barrier, broadcast, cells, contention_free, direct, exchange, gather,
    reduce, scatter, two_level,
};
use crate::collective::Collective;

/// The files of each collective, and those of several, in the order in which they are listed.
static FILES: [&[&[Entry]]; Collective::ALL.len() + 1] = [
    broadcast::ENTRIES,
    scatter::ENTRIES,
    gather::ENTRIES,
    allgather::ENTRIES,
    alltoall::ENTRIES,
    barrier::ENTRIES,
    reduce::ENTRIES,
    allreduce::ENTRIES,
    &[&exchange::ENTRIES, &contention_free::ENTRIES, &two_level::ENTRIES, &cells::ENTRIES, &direct::ENTRIES],
];

/// The algorithms that there are.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    more: &'static [Entry],
}

impl Registry {
    /// The algorithms of polycast.
    pub const BUILT_IN: Registry = Registry { more: &[] };

    /// The algorithms of polycast, and these.
    pub const fn with(more: &'static [Entry]) -> Registry {
        Registry { more }
    }

    /// All entries, in the order in which they are listed.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        FILES.iter().copied().flatten().copied().flatten().chain(self.more)
    }

    /// The entries that serve a collective.
    pub fn of(self, collective: Collective) -> impl Iterator<Item = &'static Entry> {
        self.entries().filter(move |entry| entry.serves(collective))
    }

    /// The entry of this name that serves a collective.
    pub fn find(self, collective: Collective, name: &str) -> Option<&'static Entry> {
        self.of(collective).find(|entry| entry.name == name)
    }

    /// The names of all algorithms that serve a collective, separated by commas.
    pub fn names(self, collective: Collective) -> String {
        self.of(collective).map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    }

    /// The algorithms for a collective that are compared where nobody says which, each with typical values of the parameters that it needs. A
    /// chain visits the ranks around the network, so it is free of contention wherever the topology is known.
    pub fn compared(self, collective: Collective) -> Vec<Algorithm> {
        self.of(collective).filter(|entry| entry.is_compared).map(Entry::typical).collect()
    }

    /// The algorithms of [`Registry::compared`] without those that are like another by rank around
    /// a single switch; those of the broadcast are told apart by predictions.
    pub fn compared_on(self, collective: Collective, switches: u32) -> impl Iterator<Item = Algorithm> {
        let is_other = move |algorithm: &Algorithm| {
            switches > 1 || collective == Collective::Broadcast || !algorithm.entry.is_planned()
        };
        self.compared(collective).into_iter().filter(is_other)
    }

    /// The algorithms of [`Registry::compared`] that have schedules: what predictions choose among.
    pub fn compared_schedules(self, collective: Collective) -> Vec<Algorithm> {
        self.compared(collective).into_iter().filter(|algorithm| algorithm.entry.has_schedules()).collect()
    }

    /// The ways on nodes of several ranks, or on many nodes, that a race between ways for a
    /// collective begins with; those through the memory of the only node first.
    pub fn raced(self, collective: Collective) -> Vec<(&'static Raced, Algorithm)> {
        let mut entries: Vec<&Entry> = self.of(collective).filter(|entry| !entry.raced.is_empty()).collect();
        entries.sort_by_key(|entry| (!entry.is_on_one_node(), !entry.shares_memory()));
        let ways = |entry: &'static Entry| {
            entry.raced.iter().map(|raced| {
                let text = format!("{}:{}", entry.name, raced.parameters);
                let read = self.read(collective, text.trim_end_matches(':'));
                (raced, read.unwrap_or_else(|error| panic!("{text} in the registry: {error}")))
            })
        };
        entries.into_iter().flat_map(ways).collect()
    }

    /// For tests: the samples of every algorithm for a collective that has schedules, wherever its ranks are.
    pub fn samples(self, collective: Collective) -> Vec<Algorithm> {
        let is_one = |entry: &&Entry| entry.has_schedules() && !entry.is_on_one_node();
        self.of(collective).filter(is_one).flat_map(Entry::samples).collect()
    }

    /// For tests: the samples of every algorithm for a collective whose ranks are all on one node.
    pub fn samples_on_one_node(self, collective: Collective) -> Vec<Algorithm> {
        self.of(collective).filter(|entry| entry.is_on_one_node()).flat_map(Entry::samples).collect()
    }
}

/// Declares the files of algorithms below a collective, in the order in which they are listed. `cargo fmt` does not see
/// these files; scripts/lint.sh checks them.
macro_rules! files {
    ($($vis:vis mod $file:ident;)*) => {
        $($vis mod $file;)*
        /// The entries of each file.
        pub(in crate::algorithm) static ENTRIES: &[&[$crate::algorithm::Entry]] = &[$(&$file::ENTRIES),*];
    };
}
pub(super) use files;
