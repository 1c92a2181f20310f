//! What there is to know about one algorithm.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::build::{Build, Builder, OnNodes};
use super::formulas::{Formulas, Stages};
use super::parameter::{READY, SEGMENT};
use super::plan::Plan;
use super::{Algorithm, Domain, Need, Parameter, broadcast};
use crate::collective::{Call, Collective, CombinationOrder};
use crate::tree::{PlannedShape, Tree};
use crate::units::Rank;
use polycast_protocol as protocol;

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
    /// The algorithm's own parameters; at most [`super::ParameterValues::MOST`].
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
    /// ([`Call::order`]), wherever the ranks are.
    pub keeps: CombinationOrder,
    /// True if senders find out on the way who is next: the schedules are those of a network that
    /// nobody else uses.
    pub is_dynamic: bool,
    /// True if as much goes between nodes for each node as for the one with most ranks: where nodes
    /// have very different numbers of ranks, most of it is nothing.
    pub is_padded: bool,
    /// True if blocks go around all ranks, one in each round.
    pub is_around_ring: bool,
    /// True if calls of few bytes are measured with the algorithm whatever is predicted of it.
    pub is_tried_if_short: bool,
    /// The ways on nodes of several ranks, or on many nodes, that a race between ways begins with.
    pub raced: &'static [Raced],
    /// What a tree is made for.
    pub made_for: MadeFor,
    /// The formulas that papers have for the algorithm's time.
    pub formulas: Option<Formulas>,
    /// The function from which schedules come, or the form of the multicast.
    pub(super) build: Build,
}

/// A way that a race between ways begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raced {
    /// The algorithm's parameters as they are written behind its name; empty for none.
    pub parameters: &'static str,
    /// The fewest nodes on which the way is tried.
    pub least_nodes: u32,
}

impl Raced {
    /// The algorithm without parameters, on one node, too.
    pub const PLAIN: Raced = Raced { parameters: "", least_nodes: 1 };

    /// An algorithm with parameters that say what goes on between nodes.
    pub(super) const fn between_nodes(parameters: &'static str) -> Raced {
        Raced { parameters, least_nodes: 2 }
    }
}

/// What a tree is made for, from what every job knows to what few do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MadeFor {
    /// The number of ranks alone.
    Positions,
    /// The number of ranks on each host.
    Hosts,
    /// The times of a message.
    Times,
    /// The links between switches.
    Links,
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
        Entry::broadcast(name, about, source, Build::Planned(shape)).made_for(MadeFor::Links)
    }

    /// A scatter, gather or reduction that is no more than a tree planned for the site, and whose
    /// messages can be cut into segments.
    pub(super) const fn planned_for(
        collectives: &'static [Collective],
        [name, about, source]: [&'static str; 3],
        shape: fn(&Algorithm, Call, &broadcast::Planner) -> PlannedShape,
    ) -> Entry {
        let entry = Entry::of(collectives, name, about, source, Build::Planned(shape));
        entry.made_for(MadeFor::Links).in_segments()
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
        let (is_around_ring, is_tried_if_short, raced, formulas) = (false, false, &[], None);
        Entry {
            name,
            collectives,
            about,
            source,
            parameters,
            common,
            same_as,
            is_compared,
            keeps: CombinationOrder::Ranks,
            is_dynamic,
            is_padded,
            is_around_ring,
            is_tried_if_short,
            raced,
            made_for: MadeFor::Positions,
            formulas,
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

    /// Marks an algorithm whose blocks go around all ranks, one in each round.
    pub const fn around_ring(self) -> Entry {
        Entry { is_around_ring: true, ..self }
    }

    /// Marks an algorithm with which calls of few bytes are measured whatever is predicted: a few
    /// short messages pass a link at once, whatever its rate, so no rate tells that a root which
    /// sends them in a row is slow.
    pub const fn tried_if_short(self) -> Entry {
        Entry { is_tried_if_short: true, ..self }
    }

    /// Gives the algorithm the ways that a race between ways begins with.
    pub const fn raced(self, raced: &'static [Raced]) -> Entry {
        Entry { raced, ..self }
    }

    /// Says what the algorithm's tree is made for.
    pub const fn made_for(self, made_for: MadeFor) -> Entry {
        Entry { made_for, ..self }
    }

    /// Gives a broadcast the formulas that papers have for its time.
    pub const fn by(self, formulas: Formulas) -> Entry {
        Entry { formulas: Some(formulas), ..self }
    }

    /// Gives an algorithm the terms of Hockney's model on a number of ranks, at least 2.
    pub const fn in_stages(self, stages: fn(u32) -> Option<Stages>) -> Entry {
        self.by(Formulas::Stages(stages))
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
        Entry { keeps: CombinationOrder::Any, ..self }
    }

    /// Marks an algorithm that combines contributions by the [tree](crate::collective::CombinationTree)
    /// of their ranks.
    pub const fn by_the_tree(self) -> Entry {
        Entry { keeps: CombinationOrder::Tree, ..self }
    }

    /// True if the algorithm is for this call: its collective, and an order that the algorithm keeps
    /// wherever the ranks are.
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

    /// True if the algorithm serves on two levels: between nodes, and on each of them.
    pub fn is_on_two_levels(&self) -> bool {
        matches!(self.build, Build::OnNodes(_))
    }

    /// True if all data goes along one tree, which is known before.
    pub fn is_one_tree(&self) -> bool {
        matches!(self.build, Build::Tree(_) | Build::Planned(_)) && !self.is_dynamic
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
