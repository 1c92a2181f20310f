//! What there is to know about every algorithm, in one entry each.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::build::{Build, Builder, OnNodes};
use super::parameter::{READY, SEGMENT};
use super::plan::Plan;
use super::{Algorithm, Domain, Need, Parameter, broadcast};
use super::{
    allgather, allreduce, alltoall, barrier, cells, contention_free, direct, exchange, gather, reduce, scatter,
    two_level,
};
use crate::collective::{Call, Collective, Order};
use crate::tree::{PlannedShape, Tree};
use crate::units::Rank;
use polycast_protocol as protocol;

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

/// An entry of the registry: an algorithm before its parameters have values.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name as it is written: `k-ary`. No other entry for one of its collectives has it.
    pub name: &'static str,
    /// The collectives that the algorithm serves.
    pub collectives: &'static [Collective],
    /// The way of the data, in words.
    pub about: &'static str,
    /// The authors who described the algorithm, year, section.
    pub source: &'static str,
    /// The algorithm's own parameters; at most [`super::Values::MOST`].
    pub parameters: &'static [Parameter],
    /// The common parameters, of `segment` and `ready`, that the algorithm understands beside its
    /// own.
    pub common: &'static [Parameter],
    /// A value of the first parameter, and the name of another algorithm: with this value it is
    /// that one, and is written so.
    pub same_as: Option<(u64, &'static str)>,
    /// True if the algorithm is among those that are compared where nobody says which. Left out:
    /// what is like another wherever the topology is known, and what depends on numbers that nobody
    /// has measured.
    pub is_compared: bool,
    /// The order in which the algorithm combines contributions where that matters
    /// ([`Call::order`]): others than those of ranks are for operations that commute.
    pub keeps: Order,
    /// True if senders find out on the way who is next: the schedules are those of a network that
    /// nobody else uses.
    pub is_dynamic: bool,
    /// True if as much goes between nodes for each node as for the one with most ranks: where nodes
    /// have very different numbers of ranks, most of it is nothing.
    pub is_padded: bool,
    /// The function from which schedules come, or the form of the multicast.
    pub(super) build: Build,
}

/// The form that predictions assume of an algorithm's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A tree, down which each rank is sent this part of the data: 2 for a half.
    Tree {
        /// The number of parts of the data.
        parts: u8,
    },
    /// Blocks are scattered, then they go around a ring.
    ScatterRing,
    /// Blocks are scattered, then they are exchanged over doubling distances.
    ScatterDoubling,
}

impl Entry {
    /// An algorithm for any collectives. It understands neither `segment` nor `ready`.
    pub const fn any(
        collectives: &'static [Collective],
        name: &'static str,
        about: &'static str,
        source: &'static str,
        schedule: Builder,
    ) -> Entry {
        Entry::of(collectives, name, about, source, Build::Any(schedule))
    }

    /// An algorithm that uses the memory that the ranks of a node share. Not compared: nobody has
    /// measured that memory.
    pub const fn on_nodes(
        collectives: &'static [Collective],
        name: &'static str,
        about: &'static str,
        source: &'static str,
        schedule: OnNodes,
    ) -> Entry {
        Entry::of(collectives, name, about, source, Build::OnNodes(schedule)).not_compared()
    }

    /// An algorithm for communicators whose ranks are on one node, through the memory that they
    /// share. Not compared: nobody has measured that memory.
    pub const fn on_one_node(
        collectives: &'static [Collective],
        name: &'static str,
        about: &'static str,
        source: &'static str,
        schedule: Builder,
    ) -> Entry {
        Entry::of(collectives, name, about, source, Build::OnOneNode(schedule)).not_compared()
    }

    /// A broadcast that is no more than a tree by position.
    pub const fn tree(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        tree: fn(&Algorithm) -> Tree,
    ) -> Entry {
        Entry::broadcast(name, about, source, Build::Tree(tree))
    }

    /// A broadcast that is no more than a tree planned for the site.
    pub const fn planned(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        shape: fn(&Algorithm, Call, &broadcast::Planner) -> PlannedShape,
    ) -> Entry {
        Entry::broadcast(name, about, source, Build::Planned(shape))
    }

    /// A scatter, gather or reduction that is no more than a tree planned for the site, and whose
    /// messages can be cut into segments.
    pub(super) const fn planned_for(
        collectives: &'static [Collective],
        [name, about, source]: [&'static str; 3],
        shape: fn(&Algorithm, Call, &broadcast::Planner) -> PlannedShape,
    ) -> Entry {
        Entry::of(collectives, name, about, source, Build::Planned(shape)).in_segments()
    }

    /// A broadcast with lanes of its own. `form` is what predictions take them for.
    pub(super) const fn lanes(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        form: Form,
        plan: fn(&Algorithm, Call, Rank) -> Plan,
    ) -> Entry {
        Entry::broadcast(name, about, source, Build::Lanes(plan, form))
    }

    /// A broadcast by multicast, which has no schedule.
    pub(super) const fn multicast(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        form: protocol::Form,
    ) -> Entry {
        let entry = Entry::broadcast(name, about, source, Build::Multicast(form));
        Entry { common: &[], ..entry }
    }

    const fn broadcast(name: &'static str, about: &'static str, source: &'static str, build: Build) -> Entry {
        let entry = Entry::of(&[Collective::Broadcast], name, about, source, build);
        Entry { common: &[SEGMENT, READY], ..entry }
    }

    const fn of(
        collectives: &'static [Collective],
        name: &'static str,
        about: &'static str,
        source: &'static str,
        build: Build,
    ) -> Entry {
        let [parameters, common]: [&[Parameter]; 2] = [&[]; 2];
        let (same_as, is_compared, is_dynamic, is_padded) = (None, true, false, false);
        Entry {
            name,
            collectives,
            about,
            source,
            parameters,
            common,
            same_as,
            is_compared,
            keeps: Order::Ranks,
            is_dynamic,
            is_padded,
            build,
        }
    }

    /// Marks an algorithm whose senders find out on the way who is next, so messages are whole and
    /// nobody knows from whom to expect them.
    pub const fn dynamic(self) -> Entry {
        Entry { common: &[], is_dynamic: true, ..self.not_compared() }
    }

    /// Marks an algorithm that pads what goes between nodes.
    pub const fn padded(self) -> Entry {
        Entry { is_padded: true, ..self }
    }

    /// Marks an algorithm that can cut the data into segments.
    pub const fn in_segments(self) -> Entry {
        Entry { common: &[SEGMENT], ..self }
    }

    /// The algorithm's own parameters and the common ones that it understands.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().chain(self.common)
    }

    /// True if the algorithm understands a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.all_parameters().any(|parameter| parameter.name == name)
    }

    /// The parameter for the number that the algorithm's tree has to have: children of a rank, or
    /// ports.
    pub fn radix(&self) -> Option<&'static Parameter> {
        let is_radix = |parameter: &&Parameter| {
            matches!(parameter.domain, Domain::Number { .. }) && parameter.need == Need::Required
        };
        self.parameters.iter().find(is_radix)
    }

    /// Marks an algorithm that is for operations that commute only.
    pub const fn only_commuting(self) -> Entry {
        Entry { keeps: Order::Any, ..self }
    }

    /// Marks an algorithm that combines contributions by the [tree](crate::collective::CombinationTree)
    /// of their ranks.
    pub const fn by_the_tree(self) -> Entry {
        Entry { keeps: Order::Tree, ..self }
    }

    /// True if the algorithm is for this call: its collective, and an order that the algorithm keeps.
    pub fn can_serve(&self, call: &Call) -> bool {
        self.serves(call.collective) && call.order.among(call.ranks) <= self.keeps
    }

    /// True if the algorithm is for this collective.
    pub fn serves(&self, collective: Collective) -> bool {
        self.collectives.contains(&collective)
    }

    /// Gives the algorithm these parameters of its own.
    pub const fn with(self, parameters: &'static [Parameter]) -> Entry {
        Entry { parameters, ..self }
    }

    /// Returns the form that predictions assume of the algorithm's messages.
    pub fn form(&self) -> Form {
        match self.build {
            Build::Lanes(_, form) => form,
            _ => Form::Tree { parts: 1 },
        }
    }

    /// Returns the form of the protocol if the algorithm is a multicast: what the ring of nodes
    /// does.
    pub(super) fn multicast_form(&self) -> Option<protocol::Form> {
        match self.build {
            Build::Multicast(form) => Some(form),
            _ => None,
        }
    }

    /// True if a schedule carries the algorithm out: messages, local work and what the ranks of a
    /// node share. The others are multicasts.
    pub fn has_schedules(&self) -> bool {
        self.multicast_form().is_none()
    }

    /// True if ranks of a node use memory that they share.
    pub fn shares_memory(&self) -> bool {
        matches!(self.build, Build::OnNodes(_) | Build::OnOneNode(_))
    }

    /// True if the algorithm is nothing but messages between ranks, by a schedule, which is what
    /// predictions know of.
    pub fn is_of_messages(&self) -> bool {
        self.has_schedules() && !self.shares_memory()
    }

    /// True if the algorithm is for communicators whose ranks are all on one node.
    pub fn is_on_one_node(&self) -> bool {
        matches!(self.build, Build::OnOneNode(_))
    }

    /// Marks an algorithm that predictions leave out where nobody names it.
    pub const fn not_compared(self) -> Entry {
        Entry { is_compared: false, ..self }
    }

    /// True if the algorithm's tree depends on where the ranks are.
    pub fn is_planned(&self) -> bool {
        matches!(self.build, Build::Planned(_))
    }

    /// The algorithm with typical values of the parameters that it needs, and no others.
    pub fn typical(&'static self) -> Algorithm {
        let needed = |parameter: &Parameter| match parameter.need {
            Need::Required => parameter.typical,
            _ => 0,
        };
        Algorithm::new(self, self.parameters.iter().map(needed))
    }

    /// The algorithm with typical values of all its parameters.
    pub fn complete(&'static self) -> Algorithm {
        Algorithm::new(self, self.parameters.iter().map(|parameter| parameter.typical))
    }

    /// The algorithm with each combination of the values that a search tries on `ranks` ranks, not
    /// cut.
    pub fn tried(&'static self, ranks: u32) -> Vec<Algorithm> {
        let mut found = vec![Vec::new()];
        for parameter in self.parameters {
            let values = parameter.tried(ranks, 0);
            found = found
                .iter()
                .flat_map(|before: &Vec<u64>| values.iter().map(|value| [&before[..], &[*value]].concat()))
                .collect();
        }
        let algorithms = found.into_iter().map(|values| Algorithm::new(self, values));
        algorithms.filter(|algorithm| algorithm.entry == self).collect()
    }

    /// For tests: the algorithm with all that a search tries on 4 ranks, and with all parameters
    /// that may be left out.
    pub fn samples(&'static self) -> impl Iterator<Item = Algorithm> {
        let tried = self.tried(4);
        let is_new = !tried.contains(&self.complete());
        tried.into_iter().chain(is_new.then(|| self.complete()))
    }
}

impl PartialEq for Entry {
    /// Entries are statics: each is its own.
    fn eq(&self, other: &Entry) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

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
