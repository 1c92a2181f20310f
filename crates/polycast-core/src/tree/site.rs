//! The ranks of a communicator on the network: what trees that know the network are made from.

use std::collections::HashMap;

use super::lists::Lists;
use super::traversal::{Traversal, Visits};
use crate::model::LinkClass;
use crate::topology::{Edge, Link, Locality, Paths, Placed, Topology, by_locality};
use crate::units::{Nanos, Rank};

/// The ranks of a communicator on the switches and hosts that carry them, made once per communicator.
///
/// ```text
///          core                    nodes: switches, then hosts; those without ranks below are not visited
///        ╱      ╲
///     leaf0     leaf1              every link between two of them is two directed edges
///     ╱   ╲       │
///    a     b      c                the link of a host with one rank is left out of all counts of contention:
///    │     │    ╱   ╲              nobody but that rank uses it, and a rank sends one message at a time
///    0     1   2     3
/// ```
#[derive(Clone, Debug)]
pub struct Site {
    /// The network below the ranks; nodes are numbered as in [`Edge`].
    paths: Paths,
    /// The children of each node that have ranks below, in the order of their first ranks.
    children: Lists<u32>,
    /// The ranks on each host, as a walk meets them: rising where it is not known which ranks are
    /// near each other.
    ranks: Lists<Rank>,
    /// The number of ranks at or below each node.
    ranks_below: Vec<u32>,
    /// All ranks, as a walk from rank 0 meets them.
    ring: Vec<Rank>,
    ring_position: Vec<u32>,
    /// The locality of each rank; empty where nothing is known.
    localities: Vec<Locality>,
    moved: u32,
}

impl Site {
    /// The site of ranks that have been placed on a topology.
    ///
    /// # Panics
    /// If there is no rank, or the topology breaks its invariants.
    pub fn new(placed: &Placed) -> Site {
        assert!(!placed.host_of.is_empty(), "a communicator has at least one rank");
        let paths = Paths::new(placed);
        let hosts = || (0..paths.ranks()).map(Rank).map(|rank| (paths.node_of(rank), rank));
        let mut ranks_below = vec![0; paths.nodes()];
        let mut children = Vec::new();
        for (mut below, _) in hosts() {
            ranks_below[below] += 1;
            while let Some(parent) = paths.parent(below) {
                if ranks_below[below] == 1 {
                    children.push((parent, below as u32));
                }
                ranks_below[parent] += 1;
                below = parent;
            }
        }
        let children = Lists::new(paths.nodes(), children.into_iter());
        let ranks = Lists::new(paths.nodes(), hosts());
        let (ring, ring_position, localities) = (Vec::new(), vec![0; placed.host_of.len()], Vec::new());
        let mut site =
            Site { paths, children, ranks, ranks_below, ring, ring_position, localities, moved: 0 };
        site.find_ring();
        site
    }

    /// Reorders each host's ranks so that ranks near each other follow each other: a walk then
    /// changes from one NUMA node or cache to the next as rarely as possible. `localities` has an
    /// entry per rank, or none where nothing is known. The first rank of a host stays the first.
    pub fn with_localities(mut self, localities: Vec<Locality>) -> Site {
        if localities.is_empty() {
            return self;
        }
        for node in 0..self.paths.nodes() {
            by_locality(self.ranks.of_mut(node), &localities);
        }
        debug_assert_eq!(localities.len() as u32, self.ranks());
        self.localities = localities;
        let before = self.ring_position.clone();
        self.find_ring();
        self.moved =
            before.iter().zip(&self.ring_position).filter(|(one, other)| one != other).count() as u32;
        self
    }

    /// The site of these ranks of one host alone, renumbered from 0.
    pub fn alone(&self, ranks: &[Rank]) -> Site {
        let known = ranks.iter().filter_map(|rank| self.localities.get(rank.index()));
        let localities = known.copied().collect();
        Site::by_host(&vec![0; ranks.len()]).with_localities(localities)
    }

    /// The number of ranks whose place on the ring changed because of where on their hosts they
    /// run.
    pub fn moved(&self) -> u32 {
        self.moved
    }

    fn find_ring(&mut self) {
        self.ring = self.from_root(Rank(0)).ranks().to_vec();
        for (position, rank) in (0..).zip(&self.ring) {
            self.ring_position[rank.index()] = position;
        }
    }

    /// The site of hosts on one switch, for use where nothing is known of the network. `host_of`
    /// has an entry per rank, the same for ranks on the same host.
    pub fn by_host(host_of: &[u64]) -> Site {
        let mut known = HashMap::new();
        let index_of = |host| {
            let next = known.len();
            *known.entry(host).or_insert(next)
        };
        let host_of: Vec<usize> = host_of.iter().map(index_of).collect();
        let topology = Topology::flat((0..known.len()).map(|host| host.to_string()));
        Site::new(&Placed { topology, host_of, unplaced_hosts: Vec::new() })
    }

    /// The site of `ranks` ranks, each on a host of its own, all on one switch.
    pub fn flat(ranks: u32) -> Site {
        Site::by_host(&(0..ranks.into()).collect::<Vec<u64>>())
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.paths.ranks()
    }

    /// The most ranks that are on one host.
    pub fn most_ranks_on_a_host(&self) -> u32 {
        (0..self.paths.nodes()).map(|node| self.ranks.of(node).len()).max().unwrap_or(1) as u32
    }

    /// The host of each rank, as a number.
    pub fn hosts(&self) -> Vec<u64> {
        (0..self.ranks()).map(|rank| self.paths.node_of(Rank(rank)) as u64).collect()
    }

    /// The class of the link between two ranks: same node, same switch or across switches.
    pub fn class(&self, a: Rank, b: Rank) -> LinkClass {
        let [a, b] = [a, b].map(|rank| self.paths.node_of(rank));
        if a == b {
            LinkClass::SameNode
        } else if self.paths.parent(a) == self.paths.parent(b) {
            LinkClass::SameSwitch
        } else {
            LinkClass::AcrossSwitches
        }
    }

    /// All ranks once around the network: messages from each to the next, and from the last to the first, use every
    /// directed edge at most once (Patarasuk et al. 2008, §4.1.1, Lemma 1). So a chain that begins anywhere on the ring is contention-free.
    pub fn ring(&self) -> &[Rank] {
        &self.ring
    }

    /// The position of a rank on the [ring](Site::ring).
    pub fn ring_position(&self, rank: Rank) -> u32 {
        self.ring_position[rank.index()]
    }

    /// The ranks in depth-first order from `root` (Patarasuk et al. 2008, §4.1.1, Algorithm 1): its host, its switch, then the switches
    /// around, each with its machines first. Of several ways onward the one with the fewest ranks beyond is taken first,
    /// which makes binary trees lower: what comes last can begin anywhere in the order.
    pub fn from_root(&self, root: Rank) -> Traversal {
        self.walk(root, Onward::size)
    }

    /// The depth-first order of [`Site::from_root`], but with the ranks behind the costliest link
    /// visited last: a walk does not come back from there.
    pub(super) fn costliest_last(&self, root: Rank, cost: impl Fn(Link) -> Nanos) -> Traversal {
        self.walk(root, |onward| (cost(onward.link), onward.size()))
    }

    /// Walks depth-first from `root`; of several ways onward those with the lowest key first.
    fn walk<K: Ord>(&self, root: Rank, key: impl Fn(&Onward) -> K) -> Traversal {
        let start = self.paths.node_of(root);
        let mut visits = Visits::new(self.ranks() as usize);
        let ranks_of = |node: usize, visits: &mut Visits| {
            let ranks = self.ranks.of(node);
            if node == start {
                let others = ranks.iter().copied().filter(|rank| *rank != root);
                let mut ranks: Vec<Rank> = std::iter::once(root).chain(others).collect();
                if !self.localities.is_empty() {
                    by_locality(&mut ranks, &self.localities);
                }
                visits.ranks(ranks);
            } else {
                visits.ranks(ranks.iter().copied());
            }
        };
        // What remains to be done, the next on top. Not recursive: switches can form a long line.
        enum Pending {
            Enter(Onward),
            Leave,
        }
        ranks_of(start, &mut visits);
        let mut pending: Vec<Pending> = Vec::new();
        let go_on = |node, from, pending: &mut Vec<Pending>| {
            let mut onward = self.onward(node, from);
            onward.sort_by_key(&key);
            pending.extend(onward.into_iter().rev().map(Pending::Enter));
        };
        go_on(start, None, &mut pending);
        while let Some(next) = pending.pop() {
            match next {
                Pending::Leave => visits.leave(),
                Pending::Enter(step) => {
                    visits.enter();
                    ranks_of(step.node, &mut visits);
                    pending.push(Pending::Leave);
                    go_on(step.node, Some(step.from), &mut pending);
                }
            }
        }
        visits.finish()
    }

    /// The steps that a walk can take from `node`, having come `from` there. Children without ranks
    /// below are left out; the parent is kept even if there are no ranks beyond.
    fn onward(&self, node: usize, from: Option<usize>) -> Vec<Onward> {
        let up = self.paths.parent(node).map(|parent| (parent, node, self.ranks() - self.ranks_below[node]));
        let down = self.children.of(node).iter().map(|&child| child as usize);
        let down = down.map(|child| (child, child, self.ranks_below[child]));
        down.chain(up)
            .filter(|(other, ..)| Some(*other) != from)
            .map(|(other, lower, ranks_beyond)| Onward {
                node: other,
                from: node,
                link: self.paths.link(Edge { node: lower, is_up: true }),
                is_host: self.paths.is_host(other),
                ranks_beyond,
            })
            .collect()
    }

    /// The ways between the ranks.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The link of a rank's host.
    pub(super) fn host_link(&self, rank: Rank) -> Link {
        self.paths.link(Edge { node: self.paths.node_of(rank), is_up: true })
    }

    /// The links with ranks at both ends, which every broadcast uses.
    pub(super) fn links(&self) -> impl Iterator<Item = Link> {
        let used = |node: &usize| (1..self.ranks()).contains(&self.ranks_below[*node]);
        (0..self.paths.nodes()).filter(used).map(|node| self.paths.link(Edge { node, is_up: true }))
    }
}

/// A step that a walk can take, over one link.
struct Onward {
    node: usize,
    from: usize,
    link: Link,
    is_host: bool,
    ranks_beyond: u32,
}

impl Onward {
    /// The sort key that puts hosts before switches: hosts in the order of their first ranks,
    /// switches by the ranks beyond.
    fn size(&self) -> (bool, u32) {
        if self.is_host { (false, 0) } else { (true, self.ranks_beyond) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_topology_ranks_go_host_by_host_in_the_order_of_their_first_ranks() {
        let site = Site::by_host(&[7, 5, 7, 9, 5]);
        assert_eq!(site.ring(), [0, 2, 1, 4, 3].map(Rank));
        assert_eq!([0, 1, 2, 3, 4].map(|rank| site.ring_position(Rank(rank))), [0, 2, 1, 4, 3]);
        assert_eq!(site.most_ranks_on_a_host(), 2);
        assert_eq!(site.from_root(Rank(4)).ranks(), [4, 1, 0, 2, 3].map(Rank));
    }

    /// Two hosts whose ranks go to two sockets by turns.
    #[test]
    fn ranks_of_a_socket_stand_together() {
        let socket = Locality::from_bits;
        let site = Site::by_host(&[0, 0, 0, 0, 1, 1, 1, 1]);
        let near = site.clone().with_localities([7, 5, 7, 5, 7, 5, 7, 5].map(socket).to_vec());
        assert_eq!(near.ring(), [0, 2, 1, 3, 4, 6, 5, 7].map(Rank));
        assert_eq!([0, 1, 2, 3].map(|rank| near.ring_position(Rank(rank))), [0, 2, 1, 3]);
        assert_eq!((site.moved(), near.moved()), (0, 4));
        assert_eq!(near.from_root(Rank(3)).ranks(), [3, 1, 0, 2, 4, 6, 5, 7].map(Rank));
        let in_order = site.clone().with_localities([7, 7, 5, 5, 7, 7, 5, 5].map(socket).to_vec());
        assert_eq!((in_order.ring(), in_order.moved()), (site.ring(), 0));
        assert_eq!(in_order.from_root(Rank(2)).ranks(), [2, 3, 0, 1, 4, 5, 6, 7].map(Rank));
        assert_eq!(site.clone().with_localities(Vec::new()).ring(), site.ring());
        let host = [4, 5, 6, 7].map(Rank);
        assert_eq!(near.alone(&host).ring(), [0, 2, 1, 3].map(Rank));
        assert_eq!(site.alone(&host).ring(), [0, 1, 2, 3].map(Rank));
    }

    #[test]
    fn a_flat_site_is_in_the_order_of_its_ranks() {
        assert_eq!(Site::flat(3).ring(), [0, 1, 2].map(Rank));
        assert_eq!(Site::flat(1).ring(), [Rank(0)]);
        assert_eq!(Site::flat(3).from_root(Rank(1)).ranks(), [1, 0, 2].map(Rank));
    }
}
