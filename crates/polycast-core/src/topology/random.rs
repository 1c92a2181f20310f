use super::{Host, Link, Switch, Topology};

impl Topology {
    /// A random cluster as in Patarasuk et al. 2008, §4.1.2 (its Figure 5): random links are added between switches, except those that would
    /// close a cycle, until all are connected; then each machine goes to a random switch, so that a switch may have none.
    ///
    /// `below(n)` gives a random number below `n`, all equally likely.
    ///
    /// # Panics
    /// If there is no switch.
    pub fn random(switches: usize, hosts: usize, mut below: impl FnMut(usize) -> usize) -> Topology {
        let mut group: Vec<usize> = (0..switches).collect();
        let mut links = Vec::new();
        while links.len() + 1 < switches {
            let (a, b) = (below(switches), below(switches));
            let (from, to) = (group[a], group[b]);
            if from != to {
                group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                links.push((a, b));
            }
        }
        random_hosts(switches, &links, hosts, below)
    }

    /// A random cluster whose switches are one tree at any time while it grows: each new switch is linked to a random one
    /// of those before it. The other reading of Patarasuk et al. 2008, §4.1.2; such trees are less deep than those of
    /// [`Topology::random`], where trees are joined anywhere.
    ///
    /// # Panics
    /// If there is no switch.
    pub fn random_grown(switches: usize, hosts: usize, mut below: impl FnMut(usize) -> usize) -> Topology {
        let links: Vec<_> = (1..switches).map(|switch| (below(switch), switch)).collect();
        random_hosts(switches, &links, hosts, below)
    }
}

/// Hosts on random switches, which `links` connect as a tree.
fn random_hosts(
    switches: usize,
    links: &[(usize, usize)],
    hosts: usize,
    mut below: impl FnMut(usize) -> usize,
) -> Topology {
    assert!(switches > 0, "hosts need a switch");
    let mut neighbours = vec![Vec::new(); switches];
    for &(a, b) in links {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let switch = |(index, parent)| Switch { name: format!("s{index}"), parent, uplink: Link::default() };
    let host = |index| Host { name: format!("n{index}"), switch: below(switches), link: Link::default() };
    Topology {
        switches: parents(&neighbours).into_iter().enumerate().map(switch).collect(),
        hosts: (0..hosts).map(host).collect(),
        notes: Vec::new(),
    }
}

/// The parent of each switch if the tree is hung up at its first switch.
fn parents(neighbours: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut parents = vec![None; neighbours.len()];
    let mut pending = vec![0];
    while let Some(switch) = pending.pop() {
        let above = parents[switch];
        for &other in neighbours[switch].iter().filter(|other| Some(**other) != above) {
            parents[other] = Some(switch);
            pending.push(other);
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect_one_tree(cluster: &Topology, switches: usize) {
        assert_eq!((cluster.hosts.len(), cluster.switches.len()), (40, switches));
        assert_eq!(cluster.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
        for start in 0..switches {
            let up = std::iter::successors(Some(start), |switch| cluster.switches[*switch].parent);
            assert_eq!(up.take(switches + 1).last(), Some(0), "every switch leads up to the first");
        }
    }

    #[test]
    fn a_random_cluster_is_one_tree() {
        let mut random = fastrand::Rng::with_seed(1);
        for switches in [1, 2, 3, 50] {
            expect_one_tree(&Topology::random(switches, 40, |n| random.usize(..n)), switches);
            expect_one_tree(&Topology::random_grown(switches, 40, |n| random.usize(..n)), switches);
        }
    }
}
