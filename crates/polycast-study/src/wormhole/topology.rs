//! The channels of a network, and those of them that a head can take next.
//!
//! A mesh has a router at every node; messages go along x, then along y. A multistage network of 2 × 2 switches has a channel
//! up and one down between any two stages, on each of its lines; stage `i` joins two lines that differ in bit `i`:
//!
//! ```text
//!   nodes   level 0   stage 0   level 1   stage 1   level 2   stage 2
//!     x ═════════════ bit 0 ═══════════ bit 1 ═══════════ bit 2        s → d, t = highest bit in which s and d differ:
//!                                                                      up at stages 0 … t-1: either line, turn at stage t,
//!                                                                      down at stages t-1 … 0: bit i becomes d's
//! ```
//!
//! (Nupairoj 1998, §5.2 and §5.3; the turnaround routing of Xu et al. 1994.)

use std::fmt;
use std::str::FromStr;

/// A node of a network.
pub type Node = u32;

/// A channel in one direction.
pub type Channel = u32;

/// A network of nodes with one channel in and one out each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Routers in rows; node `x + y * width`. Written `mesh:16x16`.
    Mesh {
        /// Routers along x.
        width: u32,
        /// Routers along y.
        height: u32,
    },
    /// `2^stages` nodes. Written `min:256`.
    Multistage {
        /// The number of stages.
        stages: u32,
    },
}

/// The channels that a head can take next; the first is the straight one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// The only channel.
    One(Channel),
    /// Two channels of which either is as near.
    Two(Channel, Channel),
}

impl Ways {
    /// The channels, the straight one first.
    pub fn channels(self) -> impl Iterator<Item = Channel> {
        let (first, second) = match self {
            Ways::One(only) => (only, None),
            Ways::Two(straight, other) => (straight, Some(other)),
        };
        [first].into_iter().chain(second)
    }
}

/// The place in the network that a channel stands for; see [`Topology::name`].
enum Place {
    Injection(Node),
    Consumption(Node),
    /// A channel to the router of this node.
    Link(Node),
    Up {
        level: u32,
        line: u32,
    },
    Down {
        level: u32,
        line: u32,
    },
}

/// The number of directions of a mesh: east, west, north, south.
const DIRECTIONS: u32 = 4;

impl Topology {
    /// The most nodes that a network can have here.
    pub const MAX_NODES: u32 = 65_536;

    /// The number of nodes.
    pub fn nodes(self) -> u32 {
        match self {
            Topology::Mesh { width, height } => width * height,
            Topology::Multistage { stages } => 1 << stages,
        }
    }

    /// The number of channels; some at the rim of a mesh are never used.
    pub fn channels(self) -> u32 {
        match self {
            Topology::Mesh { .. } => (2 + DIRECTIONS) * self.nodes(),
            Topology::Multistage { stages } => 2 * stages * self.nodes(),
        }
    }

    /// The channel from a node into the network.
    pub fn injection(self, node: Node) -> Channel {
        node
    }

    /// The channel out of the network to a node.
    pub fn consumption(self, node: Node) -> Channel {
        self.nodes() + node
    }

    /// The ways that a head which has come over `channel` can go on towards `destination`; `None`
    /// if it has arrived.
    pub fn next(self, channel: Channel, destination: Node) -> Option<Ways> {
        Some(match self.place(channel) {
            Place::Consumption(_) | Place::Down { level: 0, .. } => return None,
            Place::Injection(node) | Place::Link(node) => Ways::One(self.mesh_step(node, destination)),
            Place::Up { level, line } => {
                if (line ^ destination) >> level > 1 {
                    Ways::Two(self.up(level + 1, line), self.up(level + 1, line ^ 1 << level))
                } else {
                    Ways::One(self.down(level, with_bit(line, level, destination)))
                }
            }
            Place::Down { level, line } => {
                Ways::One(self.down(level - 1, with_bit(line, level - 1, destination)))
            }
        })
    }

    /// The number of channels that a message from one node to another crosses.
    pub fn distance(self, from: Node, to: Node) -> u32 {
        match self {
            Topology::Mesh { width, .. } => {
                2 + (from % width).abs_diff(to % width) + (from / width).abs_diff(to / width)
            }
            Topology::Multistage { .. } => (from ^ to).checked_ilog2().map_or(2, |turn| 2 * (turn + 1)),
        }
    }

    /// The key that nodes are sorted by, so that messages of ordered trees keep apart: on a mesh
    /// the coordinate that is routed along first, then the other (Nupairoj 1998, §5.2); on a
    /// multistage network the address (§5.3).
    pub fn key(self, node: Node) -> (u32, u32) {
        match self {
            Topology::Mesh { width, .. } => (node % width, node / width),
            Topology::Multistage { .. } => (node, 0),
        }
    }

    /// The channel's name for people.
    pub fn name(self, channel: Channel) -> String {
        let node = |node: Node| match self {
            Topology::Mesh { width, .. } => format!("({},{})", node % width, node / width),
            Topology::Multistage { .. } => format!("{node}"),
        };
        match self.place(channel) {
            Place::Injection(from) => format!("{} in", node(from)),
            Place::Consumption(to) => format!("{} out", node(to)),
            Place::Link(to) => {
                let direction = ["east", "west", "north", "south"][(channel % DIRECTIONS) as usize];
                format!("{direction} to {}", node(to))
            }
            Place::Up { level, line } => format!("up {level} line {line}"),
            Place::Down { level, line } => format!("down {level} line {line}"),
        }
    }

    /// The part of the network that a channel belongs to, for lists in their order: the row of a mesh from which it leads, or the level of a
    /// multistage network and its direction.
    pub fn part(self, channel: Channel) -> (u32, String) {
        let nodes = self.nodes();
        match (self, self.place(channel)) {
            (_, Place::Up { level, .. }) => (level, format!("up, level {level}")),
            (_, Place::Down { level, .. }) => (u32::MAX - level, format!("down, level {level}")),
            (Topology::Mesh { width, .. }, Place::Injection(node) | Place::Consumption(node)) => {
                (node / width, format!("row {}", node / width))
            }
            (Topology::Mesh { width, .. }, Place::Link(_)) => {
                let row = (channel - 2 * nodes) / DIRECTIONS / width;
                (row, format!("row {row}"))
            }
            (Topology::Multistage { .. }, _) => unreachable!("links between nodes are of meshes"),
        }
    }

    fn place(self, channel: Channel) -> Place {
        let nodes = self.nodes();
        match self {
            _ if channel < nodes && matches!(self, Topology::Mesh { .. }) => Place::Injection(channel),
            Topology::Mesh { .. } if channel < 2 * nodes => Place::Consumption(channel - nodes),
            Topology::Mesh { width, .. } => {
                let from = (channel - 2 * nodes) / DIRECTIONS;
                let to = match (channel - 2 * nodes) % DIRECTIONS {
                    0 => from + 1,
                    1 => from.wrapping_sub(1),
                    2 => from + width,
                    _ => from.wrapping_sub(width),
                };
                Place::Link(to)
            }
            Topology::Multistage { .. } => {
                let (level, line) = (channel / nodes / 2, channel % nodes);
                if (channel / nodes).is_multiple_of(2) {
                    Place::Up { level, line }
                } else {
                    Place::Down { level, line }
                }
            }
        }
    }

    fn mesh_step(self, at: Node, destination: Node) -> Channel {
        let Topology::Mesh { width, .. } = self else { unreachable!("links are of meshes") };
        let (x, y) = (at % width, at / width);
        let (to_x, to_y) = (destination % width, destination / width);
        let direction = match (to_x.cmp(&x), to_y.cmp(&y)) {
            (std::cmp::Ordering::Greater, _) => 0,
            (std::cmp::Ordering::Less, _) => 1,
            (_, std::cmp::Ordering::Greater) => 2,
            (_, std::cmp::Ordering::Less) => 3,
            _ => return self.consumption(at),
        };
        2 * self.nodes() + DIRECTIONS * at + direction
    }

    fn up(self, level: u32, line: u32) -> Channel {
        2 * level * self.nodes() + line
    }

    fn down(self, level: u32, line: u32) -> Channel {
        (2 * level + 1) * self.nodes() + line
    }

    /// Channels each of which a message could hold while it waits for the next, in a circle; `None` if there are no such, so that
    /// no deadlock can be (Dally and Seitz 1987).
    pub fn dependency_cycle(self) -> Option<Vec<Channel>> {
        cycle(&self.dependencies())
    }

    /// The channels that a message which holds a channel may wait for, for each channel.
    fn dependencies(self) -> Vec<Vec<Channel>> {
        let mut after = vec![Vec::new(); self.channels() as usize];
        let mut visited = vec![Node::MAX; self.channels() as usize];
        for destination in 0..self.nodes() {
            let mut pending: Vec<Channel> = (0..self.nodes()).map(|node| self.injection(node)).collect();
            while let Some(channel) = pending.pop() {
                if std::mem::replace(&mut visited[channel as usize], destination) == destination {
                    continue;
                }
                for next in self.next(channel, destination).into_iter().flat_map(Ways::channels) {
                    pending.push(next);
                    if !after[channel as usize].contains(&next) {
                        after[channel as usize].push(next);
                    }
                }
            }
        }
        after
    }
}

fn with_bit(line: u32, bit: u32, of: u32) -> u32 {
    line & !(1 << bit) | of & 1 << bit
}

/// A circle in a graph.
fn cycle(after: &[Vec<Channel>]) -> Option<Vec<Channel>> {
    let mut before = vec![0_u32; after.len()];
    after.iter().flatten().for_each(|next| before[*next as usize] += 1);
    let mut pending: Vec<usize> = (0..after.len()).filter(|channel| before[*channel] == 0).collect();
    while let Some(channel) = pending.pop() {
        for next in after[channel].iter().map(|next| *next as usize) {
            before[next] -= 1;
            if before[next] == 0 {
                pending.push(next);
            }
        }
    }
    // What is left lies on circles or behind them; going backwards ends on one.
    let left = |channel: usize| before[channel] > 0;
    let behind = |channel: usize| {
        (0..after.len()).find(|from| left(*from) && after[*from].contains(&(channel as Channel)))
    };
    let mut way = vec![(0..after.len()).find(|channel| left(*channel))?];
    loop {
        let from = behind(*way.last()?)?;
        if let Some(first) = way.iter().position(|channel| *channel == from) {
            return Some(way[first..].iter().rev().map(|channel| *channel as Channel).collect());
        }
        way.push(from);
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Mesh { width, height } => write!(f, "mesh:{width}x{height}"),
            Topology::Multistage { stages } => write!(f, "min:{}", 1 << stages),
        }
    }
}

impl FromStr for Topology {
    type Err = String;

    fn from_str(text: &str) -> Result<Topology, String> {
        let topology = match text.split_once(':') {
            Some(("mesh", size)) => size.split_once('x').and_then(|(width, height)| {
                let (width, height) = (width.parse::<u32>().ok()?, height.parse::<u32>().ok()?);
                (width > 0 && height > 0).then_some(Topology::Mesh { width, height })
            }),
            Some(("min", nodes)) => nodes.parse::<u32>().ok().and_then(|nodes| {
                nodes.is_power_of_two().then(|| Topology::Multistage { stages: nodes.ilog2() })
            }),
            _ => None,
        };
        let nodes = |topology: &Topology| match topology {
            Topology::Mesh { width, height } => u64::from(*width) * u64::from(*height),
            Topology::Multistage { stages } => 1 << stages,
        };
        topology.filter(|it| (2..=u64::from(Topology::MAX_NODES)).contains(&nodes(it))).ok_or_else(|| {
            format!(
                "network {text:?}: expected a mesh such as mesh:16x16 or a multistage network of a power of two nodes such as \
                 min:256, of 2 to {} nodes",
                Topology::MAX_NODES
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(topology: Topology, from: Node, to: Node) -> Vec<Channel> {
        let mut path = vec![topology.injection(from)];
        while let Some(ways) = topology.next(*path.last().unwrap(), to) {
            path.extend(ways.channels().take(1));
        }
        path
    }

    #[test]
    fn every_message_arrives_after_as_many_channels_as_its_distance() {
        for topology in ["mesh:5x3", "mesh:1x7", "min:2", "min:32"] {
            let topology: Topology = topology.parse().unwrap();
            for (from, to) in
                (0..topology.nodes()).flat_map(|from| (0..topology.nodes()).map(move |to| (from, to)))
            {
                if from == to {
                    continue;
                }
                let path = path(topology, from, to);
                assert_eq!(path.len() as u32, topology.distance(from, to), "{topology} {from} {to}");
                assert_eq!(path.last(), Some(&topology.consumption(to)));
                assert!(path.iter().all(|channel| *channel < topology.channels()));
            }
        }
    }

    /// Nupairoj 1998, Figure 5.1: two messages of an optimal tree in a careless order share a channel.
    #[test]
    fn the_papers_messages_that_share_a_channel() {
        let network: Topology = "min:16".parse().unwrap();
        let shared = |one: (Node, Node), other: (Node, Node)| -> Vec<String> {
            let other = path(network, other.0, other.1);
            let one = path(network, one.0, one.1);
            one.into_iter()
                .filter(|channel| other.contains(channel))
                .map(|channel| network.name(channel))
                .collect()
        };
        assert_eq!(shared((0b0011, 0b0111), (0b0001, 0b0110)), ["down 1 line 7"]);
        assert!(shared((0b0011, 0b1100), (0b0001, 0b0110)).is_empty());
        assert_eq!(shared((0b0111, 0b1100), (0b0011, 0b1101)), ["down 2 line 15", "down 1 line 13"]);
    }

    #[test]
    fn no_message_waits_for_itself() {
        for topology in ["mesh:6x5", "min:64", "min:2", "mesh:2x1"] {
            assert_eq!(topology.parse::<Topology>().unwrap().dependency_cycle(), None, "{topology}");
        }
        let ring = [vec![1], vec![2, 4], vec![3], vec![1], vec![]];
        assert_eq!(cycle(&ring).map(|ring| ring.len()), Some(3));
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["mesh:16x16", "min:256", "mesh:1x2"] {
            assert_eq!(name.parse::<Topology>().unwrap().to_string(), name);
        }
        for name in
            ["mesh:0x4", "min:12", "min:1", "mesh:1x1", "mesh:300x300", "min:131072", "ring:4", "mesh:4"]
        {
            assert!(name.parse::<Topology>().is_err(), "{name}");
        }
    }
}
