use super::Evidence;

/// The tree while it grows: no root, for quartets do not tell which way is up.
///
/// # Invariants
/// 1. A node has at least three *branches*: its hosts, and its neighbours with all that is behind them. (With fewer than
///    three hosts in all there is one node.)
/// 2. An edge has at least two hosts on either side.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

#[derive(Default)]
pub(super) struct Node {
    pub hosts: Vec<usize>,
    /// The neighbours of the node, each with what speaks for the link to it, the same at both ends.
    pub neighbours: Vec<(usize, Evidence)>,
}

impl Tree {
    /// A tree with all hosts on one node.
    pub fn of_one_node(hosts: impl IntoIterator<Item = usize>) -> Tree {
        Tree { nodes: vec![Node { hosts: hosts.into_iter().collect(), neighbours: Vec::new() }] }
    }

    /// Finds a host behind the edge from `from` to `node`; any one of them.
    pub fn host_behind(&self, from: usize, node: usize) -> usize {
        let mut to_visit = vec![(from, node)];
        while let Some((from, node)) = to_visit.pop() {
            if let Some(host) = self.nodes[node].hosts.first() {
                return *host;
            }
            let further = self.nodes[node].neighbours.iter().map(|(next, _)| *next);
            to_visit.extend(further.filter(|next| *next != from).map(|next| (node, next)));
        }
        unreachable!("invariant 2: hosts are behind every edge")
    }

    /// Two hosts in different branches of `node`, neither of them behind `neighbour` nor `host`: by invariant 1 there are
    /// such, if not both are left out.
    pub fn two_apart(
        &self,
        node: usize,
        neighbour: Option<usize>,
        host: Option<usize>,
    ) -> Option<[usize; 2]> {
        let Node { hosts, neighbours } = &self.nodes[node];
        let own = hosts.iter().copied().filter(|own| Some(*own) != host);
        let others = neighbours.iter().map(|(next, _)| *next).filter(|next| Some(*next) != neighbour);
        let mut branches = own.chain(others.map(|next| self.host_behind(node, next)));
        Some([branches.next()?, branches.next()?])
    }

    /// The node that a host is attached to.
    pub fn node_of(&self, host: usize) -> Option<usize> {
        self.nodes.iter().position(|node| node.hosts.contains(&host))
    }

    /// Takes a host out. Returns false, and leaves it, where fewer than three branches would be left.
    pub fn take_out(&mut self, node: usize, host: usize) -> bool {
        let Node { hosts, neighbours } = &mut self.nodes[node];
        let can_go = hosts.len() + neighbours.len() > 3;
        if can_go {
            hosts.retain(|other| *other != host);
        }
        can_go
    }

    /// Adds what speaks for the edge between two nodes.
    pub fn support(&mut self, a: usize, b: usize, more: Evidence) {
        for (node, other) in [(a, b), (b, a)] {
            for (next, evidence) in &mut self.nodes[node].neighbours {
                if *next == other {
                    evidence.yes += more.yes;
                    evidence.no += more.no;
                }
            }
        }
    }

    /// Moves `host` from `node` to a new node beside it, together with `newcomer`.
    pub fn split_off(&mut self, node: usize, host: usize, newcomer: usize, evidence: Evidence) {
        let new = self.nodes.len();
        self.nodes[node].hosts.retain(|other| *other != host);
        self.nodes[node].neighbours.push((new, evidence));
        self.nodes.push(Node { hosts: vec![host, newcomer], neighbours: vec![(node, evidence)] });
    }

    /// Puts `newcomer` on a new node in the middle of the edge between `a` and `b`; the evidence is for both halves, that
    /// toward `a` first.
    pub fn split_edge(&mut self, a: usize, b: usize, newcomer: usize, evidence: [Evidence; 2]) {
        let new = self.nodes.len();
        for (node, other, evidence) in [(a, b, evidence[0]), (b, a, evidence[1])] {
            for next in self.nodes[node].neighbours.iter_mut().filter(|next| next.0 == other) {
                *next = (new, evidence);
            }
        }
        self.nodes.push(Node { hosts: vec![newcomer], neighbours: vec![(a, evidence[0]), (b, evidence[1])] });
    }

    /// Takes the edge between two nodes away, as if both were one: `a`. `b` stays without hosts and neighbours.
    pub fn merge(&mut self, a: usize, b: usize) {
        let Node { hosts, neighbours } = std::mem::take(&mut self.nodes[b]);
        self.nodes[a].hosts.extend(hosts);
        self.nodes[a].neighbours.retain(|(next, _)| *next != b);
        for (next, evidence) in neighbours.into_iter().filter(|(next, _)| *next != a) {
            self.nodes[a].neighbours.push((next, evidence));
            for back in self.nodes[next].neighbours.iter_mut().filter(|back| back.0 == b) {
                back.0 = a;
            }
        }
    }

    /// Every edge once.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let of = |node: usize| self.nodes[node].neighbours.iter().map(move |(next, _)| (node, *next));
        (0..self.nodes.len()).flat_map(of).filter(|(node, next)| node < next).collect()
    }

    /// A node in the middle: the longest way from it to another is as short as may be.
    pub fn middle(&self) -> usize {
        let is_used = |node: &usize| {
            let Node { hosts, neighbours } = &self.nodes[*node];
            !hosts.is_empty() || !neighbours.is_empty()
        };
        (0..self.nodes.len())
            .filter(is_used)
            .min_by_key(|node| self.walk(*node).last().map_or(0, |last| last.2))
            .unwrap_or(0)
    }

    /// All nodes as a walk from `root` meets them, breadth first: the node, the one before it, and how far it is.
    pub fn walk(&self, root: usize) -> Vec<(usize, Option<usize>, usize)> {
        let mut walk = vec![(root, None, 0)];
        let mut next = 0;
        while let Some(&(node, before, distance)) = walk.get(next) {
            let further = self.nodes[node].neighbours.iter().map(|(next, _)| *next);
            walk.extend(
                further.filter(|next| Some(*next) != before).map(|next| (next, Some(node), distance + 1)),
            );
            next += 1;
        }
        walk
    }
}
