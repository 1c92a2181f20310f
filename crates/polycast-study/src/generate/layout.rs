//! The places of a routine's ranks: hosts in depth-first order, and the binary trees over them.
//!
//! ```text
//!   hosts    a   b     c   d          in the order of the site's ring, so that any rotation is a contention-free chain
//!   ranks    2   2     2   1
//!   places  0 1 2 3   4 5  6          a place is a rank's position in that order
//!           └──┬──┘   └┬┘  │
//!            leaf0     leaf1          alike: hosts next to each other, on one switch, with as many ranks.
//!                                     One tree serves all of their ranks as roots, because no link can tell them apart.
//! ```

use std::num::NonZeroU32;

use polycast_core::topology::{Placed, Topology};
use polycast_core::tree::{PlannedShape, PlannedTree, Site};
use polycast_core::units::Rank;

/// The trees of routines.
pub const BINARY: PlannedShape = PlannedShape::ContentionFreeKAry(NonZeroU32::new(2).unwrap());

/// A host with ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedHost {
    pub name: String,
    /// An index into the switches of the topology.
    pub switch: usize,
    pub ranks: usize,
}

/// Hosts next to each other that a link cannot tell apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Alike {
    /// The place of their first rank.
    pub first: usize,
    pub hosts: usize,
    pub ranks_per_host: usize,
}

impl Alike {
    /// Whether the place is a rank's on one of these hosts.
    pub fn holds(&self, place: usize) -> bool {
        (self.first..self.first + self.hosts * self.ranks_per_host).contains(&place)
    }
}

/// A tree for all roots on hosts that are alike.
#[derive(Debug, PartialEq, Eq)]
pub struct RootedTree {
    /// The places at which the tree can begin. The tree is drawn as it begins at the first of these
    /// places.
    pub roots: Alike,
    /// Parent and two children of each place, as places.
    pub at: Vec<[Option<usize>; 3]>,
}

/// The ranks of a communicator in the order of the routine.
#[derive(Debug)]
pub struct Layout {
    pub topology: Topology,
    pub site: Site,
    pub hosts: Vec<PlannedHost>,
}

impl Layout {
    /// Orders ranks that have been placed.
    ///
    /// # Panics
    /// If there is no rank.
    pub fn new(placed: Placed) -> Layout {
        let site = Site::new(&placed);
        let Placed { topology, host_of, .. } = placed;
        let of_ring: Vec<usize> = site.ring().iter().map(|rank| host_of[rank.index()]).collect();
        let hosts = of_ring.chunk_by(|one, next| one == next).map(|ranks| {
            let host = &topology.hosts[ranks[0]];
            PlannedHost { name: host.name.clone(), switch: host.switch, ranks: ranks.len() }
        });
        Layout { hosts: hosts.collect(), site, topology }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.site.ranks() as usize
    }

    /// The place of a rank: its position in the order above.
    pub fn place_of(&self, rank: usize) -> usize {
        self.site.ring_position(Rank(rank as u32)) as usize
    }

    /// All hosts, in groups of those that are alike.
    pub fn alike(&self) -> Vec<Alike> {
        let mut first = 0;
        let groups = self.hosts.chunk_by(|one, next| (one.switch, one.ranks) == (next.switch, next.ranks));
        let groups = groups.map(|group| {
            let alike = Alike { first, hosts: group.len(), ranks_per_host: group[0].ranks };
            first += alike.hosts * alike.ranks_per_host;
            alike
        });
        groups.collect()
    }

    /// The contention-free binary tree for some roots.
    pub fn tree(&self, roots: Alike) -> RootedTree {
        let root = self.site.ring()[roots.first];
        let tree = BINARY.plan(&self.site, root);
        let at = self.site.ring().iter().map(|rank| self.neighbours(&tree, *rank)).collect();
        RootedTree { roots, at }
    }

    fn neighbours(&self, tree: &PlannedTree, rank: Rank) -> [Option<usize>; 3] {
        let place = |rank: Rank| self.site.ring_position(rank) as usize;
        let mut children = tree.children(rank).iter().map(|child| place(*child));
        [tree.parent(rank).map(place), children.next(), children.next()]
    }
}
