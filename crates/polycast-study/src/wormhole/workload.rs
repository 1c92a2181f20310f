//! The traffic of an experiment: groups that multicast, and a background that computes and sends
//! (Nupairoj 1998, §6.1.3).

use std::collections::VecDeque;

use polycast_core::tree::{DynamicTimes, Part};
use polycast_core::units::Nanos;

use super::{Costs, Do, Letter, Multicast, MulticastTree, Node, Program, Topology};
use crate::random::Random;

/// The traffic of nodes that are in no group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// Mean of the exponentially distributed times that a node computes between sends.
    pub mean_compute: f64,
    /// The part of the messages that goes to one node, which is drawn; 0 for uniform destinations.
    pub hot_spot: f64,
}

/// The traffic of an experiment: what its nodes do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// The tree by which the groups multicast.
    pub tree: MulticastTree,
    /// The number of groups that multicast at the same time.
    pub groups: u32,
    /// The number of nodes of each group, the root included; at least 2.
    pub group_nodes: u32,
    /// The length of each multicast.
    pub bytes: u64,
    /// The time between the calls of a root; `None`: the root calls when the last multicast is
    /// complete.
    pub interval: Option<u64>,
    /// Mean time that members of a group other than the root compute between messages to others of
    /// the group; `None`: they send none.
    pub local: Option<f64>,
    /// The traffic of all other nodes; `None`: they are idle.
    pub background: Option<Background>,
    /// Mean size of messages that are no multicasts; sizes are uniform from 1 byte.
    pub mean_bytes: u64,
    /// The seed of the placement and of all that is drawn.
    pub seed: u64,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A message between two nodes, of the background or of a group's members.
    Other,
    /// A message of a group's multicast.
    Multicast {
        /// The group's number.
        group: u32,
        /// The number of the multicast among the group's.
        number: u64,
        /// The part of the group that the receiver is answerable for.
        part: Part,
    },
}

/// A mean, while it is being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: f64,
    squares: f64,
    count: u64,
}

/// Counts of messages that are received after the start of counting.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The time at which counting started.
    pub since: u64,
    /// Bytes that background nodes have received.
    pub background_bytes: u64,
    /// The mean `t_hold` of background messages, with the time for which the sender was blocked.
    pub hold: Mean,
    /// The mean time from call to receipt of background messages.
    pub end: Mean,
    /// The mean `t_sq` of the messages of roots.
    pub root_queue: Mean,
    /// The mean `t_cont` of messages of multicasts.
    pub delayed: Mean,
}

/// The programs of an experiment.
#[derive(Debug)]
pub struct Workload {
    traffic: Traffic,
    costs: Costs,
    random: Random,
    roles: Vec<Role>,
    dynamic: Vec<DynamicTimes>,
    background: Vec<Node>,
    hot: Option<Node>,
    groups: Vec<Group>,
    /// The counts so far.
    pub counts: Counts,
    /// Messages of multicasts that have been received, if they are kept.
    pub letters: Option<Vec<Letter<Load>>>,
}

#[derive(Debug)]
struct Group {
    multicast: Multicast,
    members: Vec<Node>,
    under_way: VecDeque<UnderWay>,
    called: u64,
    due: u64,
    /// The latencies, from the call to the last receipt, of multicasts that are complete, in the
    /// order in which they became so.
    latencies: Vec<u64>,
}

#[derive(Debug)]
struct UnderWay {
    number: u64,
    called: u64,
    without: u32,
}

#[derive(Debug)]
enum Role {
    Background { computes: bool },
    Member { group: u32, forwards: VecDeque<(u64, Part)>, computes: bool },
    Idle,
}

impl Mean {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
        self.count += 1;
    }

    /// The mean; 0 if there are no values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The standard error of the mean; infinite with fewer than two values.
    pub fn standard_error(&self) -> f64 {
        if self.count < 2 {
            return f64::INFINITY;
        }
        let count = self.count as f64;
        let variance = (self.squares - self.sum * self.sum / count).max(0.0) / (count - 1.0);
        (variance / count).sqrt()
    }
}

impl Workload {
    /// Places the groups on a network.
    ///
    /// # Panics
    /// If there are not enough nodes.
    pub fn new(traffic: Traffic, topology: Topology, costs: Costs) -> Workload {
        let mut random = Random::new(traffic.seed);
        let mut nodes: Vec<Node> = (0..topology.nodes()).collect();
        let members = (traffic.groups * traffic.group_nodes) as usize;
        assert!(members <= nodes.len() && traffic.group_nodes >= 2, "{traffic:?} on {topology}");
        for place in 0..nodes.len() - 1 {
            let other = place + random.below((nodes.len() - place) as u64) as usize;
            nodes.swap(place, other);
        }
        let background = nodes.split_off(members);
        let mut roles: Vec<Role> = (0..topology.nodes()).map(|_| Role::Idle).collect();
        if traffic.background.is_some() && background.len() > 1 {
            background.iter().for_each(|node| roles[*node as usize] = Role::Background { computes: false });
        }
        let groups = nodes.chunks(traffic.group_nodes as usize).zip(0..).map(|(members, group)| {
            for member in members {
                roles[*member as usize] = Role::Member { group, forwards: VecDeque::new(), computes: false };
            }
            Group {
                multicast: Multicast::new(traffic.tree, topology, members, &costs, traffic.bytes),
                members: members.to_vec(),
                under_way: VecDeque::new(),
                called: 0,
                due: 0,
                latencies: Vec::new(),
            }
        });
        let groups = groups.collect();
        let hot = traffic
            .background
            .filter(|background| background.hot_spot > 0.0)
            .and(background.first().copied());
        Workload {
            traffic,
            costs,
            random,
            roles,
            dynamic: vec![DynamicTimes::default(); topology.nodes() as usize],
            background,
            hot,
            groups,
            counts: Counts::default(),
            letters: None,
        }
    }

    /// The latencies of a group's multicasts, in the order in which they became complete.
    pub fn latencies(&self, group: u32) -> &[u64] {
        &self.groups[group as usize].latencies
    }

    /// The tree of a group.
    pub fn multicast(&self, group: u32) -> &Multicast {
        &self.groups[group as usize].multicast
    }

    /// Begins to count anew.
    pub fn count_from(&mut self, now: u64) {
        self.counts = Counts { since: now, ..Counts::default() };
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.random.unit()).ln()) as u64
    }

    fn other_message(&mut self, to: Node) -> Do<Load> {
        let bytes = self.random.within(1, (2 * self.traffic.mean_bytes).saturating_sub(1).max(1));
        Do::Send { to, bytes, load: Load::Other }
    }

    fn background_message(&mut self, node: Node) -> Do<Load> {
        let hot_spot = self.traffic.background.map_or(0.0, |background| background.hot_spot);
        let hot = self.hot.filter(|hot| *hot != node && self.random.chance(hot_spot));
        let to = hot.unwrap_or_else(|| another(&mut self.random, &self.background, node));
        self.other_message(to)
    }
}

/// Draws one of `nodes` other than `node`.
fn another(random: &mut Random, nodes: &[Node], node: Node) -> Node {
    loop {
        let drawn = random.one_of(nodes);
        if drawn != node {
            return drawn;
        }
    }
}

impl Program for Workload {
    type Load = Load;

    fn urgent(&mut self, node: Node, _: u64) -> Option<Do<Load>> {
        let Role::Member { group, forwards, .. } = &mut self.roles[node as usize] else { return None };
        let multicast = &self.groups[*group as usize].multicast;
        let idle = self.costs.idle(self.traffic.bytes);
        while let Some((number, part)) = forwards.front_mut() {
            if let Some(given) = multicast.next(part, &self.dynamic[node as usize], idle) {
                let load = Load::Multicast { group: *group, number: *number, part: given };
                return Some(Do::Send { to: multicast.source(given), bytes: self.traffic.bytes, load });
            }
            forwards.pop_front();
        }
        None
    }

    fn next(&mut self, node: Node, now: u64) -> Do<Load> {
        match &mut self.roles[node as usize] {
            Role::Idle => Do::Wait,
            Role::Background { computes } => {
                *computes = !*computes;
                if !*computes {
                    return self.background_message(node);
                }
                let mean = self.traffic.background.map_or(0.0, |background| background.mean_compute);
                Do::Compute(self.exponential(mean))
            }
            Role::Member { group, forwards, computes } => {
                let state = &mut self.groups[*group as usize];
                if node == state.multicast.source(state.multicast.all()) {
                    if let Some(interval) = self.traffic.interval {
                        if now < state.due {
                            return Do::Compute(state.due - now);
                        }
                        state.due += interval;
                    } else if !state.under_way.is_empty() {
                        return Do::Wait;
                    }
                    let without = state.members.len() as u32 - 1;
                    state.under_way.push_back(UnderWay { number: state.called, called: now, without });
                    forwards.push_back((state.called, state.multicast.all()));
                    state.called += 1;
                    return Do::Again;
                }
                let Some(mean) = self.traffic.local else { return Do::Wait };
                *computes = !*computes;
                if *computes {
                    return Do::Compute(self.exponential(mean));
                }
                let to = another(&mut self.random, &state.members, node);
                self.other_message(to)
            }
        }
    }

    fn left(&mut self, letter: &Letter<Load>) {
        let t_as = Nanos(letter.left - letter.called);
        self.dynamic[letter.from as usize].left(t_as, self.costs.idle(letter.bytes));
    }

    fn received(&mut self, letter: &Letter<Load>) -> Option<Node> {
        let counts = &mut self.counts;
        match letter.load {
            Load::Other => {
                if matches!(self.roles[letter.to as usize], Role::Background { .. }) {
                    counts.background_bytes += letter.bytes;
                    counts.hold.add((letter.queued - letter.called) as f64);
                    counts.end.add((letter.received - letter.called) as f64);
                }
                None
            }
            Load::Multicast { group, number, part } => {
                if let Some(letters) = &mut self.letters {
                    letters.push(*letter);
                }
                let state = &mut self.groups[group as usize];
                counts.delayed.add(letter.delayed as f64);
                let root = state.multicast.source(state.multicast.all());
                if letter.from == root {
                    counts.root_queue.add((letter.started - letter.queued) as f64);
                }
                if let Role::Member { forwards, .. } = &mut self.roles[letter.to as usize] {
                    forwards.push_back((number, part));
                }
                let place = state.under_way.iter().position(|multicast| multicast.number == number)?;
                let multicast = &mut state.under_way[place];
                multicast.without -= 1;
                if multicast.without > 0 {
                    return None;
                }
                state.latencies.push(letter.received - multicast.called);
                state.under_way.remove(place);
                Some(root)
            }
        }
    }
}
