use crate::network::Network;

/// The spread of a communicator's ranks over nodes, and the network between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommunicatorShape {
    /// Ranks in all, at least 1.
    pub ranks: u32,
    /// Nodes that hold at least one of them.
    pub nodes: u32,
    /// Ranks on the node that holds most.
    pub ranks_per_node: u32,
    /// Ranks of the job for each processor that they may run on, rounded up, where these are most: 1 where each has its own, or nobody knows.
    pub ranks_per_processor: u32,
    /// Leaf switches that hold at least one of the nodes; 1 where the topology is not known.
    pub switches: u32,
    /// True if each node has a part of the tree by which contributions are combined, as
    /// [`Nodes::are_parts_of_the_tree`](crate::schedule::Nodes::are_parts_of_the_tree) says.
    pub are_parts: bool,
    /// True if the ranks are all of the job's.
    pub is_of_all: bool,
    /// The network between the nodes, as it was measured; `None`: it has not been measured yet.
    pub network: Option<Network>,
}

/// Numbers that no communicator can have together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommunicatorShapeError {
    /// Fewer ranks than nodes, or none.
    #[error("{ranks} ranks on {nodes} nodes: expected at least one node, and one rank or more on each")]
    EmptyNode {
        /// Ranks asked for.
        ranks: u32,
        /// Nodes asked for.
        nodes: u32,
    },
    /// The fullest node cannot hold that many.
    #[error(
        "{ranks} ranks on {nodes} nodes: expected {smallest} to {largest} ranks on the fullest node, \
         found {found}"
    )]
    RanksPerNode {
        /// Ranks asked for.
        ranks: u32,
        /// Nodes asked for.
        nodes: u32,
        /// Ranks on the fullest node if they are spread evenly.
        smallest: u32,
        /// Ranks on the fullest node if every other node has one.
        largest: u32,
        /// Ranks on the fullest node, as they were asked for.
        found: u32,
    },
    /// More switches than nodes, or none: every switch has a node.
    #[error("{nodes} nodes on {found} switches: expected 1 to {nodes} switches")]
    Switches {
        /// Nodes asked for.
        nodes: u32,
        /// Switches asked for.
        found: u32,
    },
}

impl CommunicatorShape {
    /// A shape whose fullest node has `ranks_per_node` ranks; `None` spreads them evenly. Its nodes
    /// are on one switch, have ranks that follow one another, and together all of the job.
    pub fn new(
        ranks: u32,
        nodes: u32,
        ranks_per_node: Option<u32>,
    ) -> Result<CommunicatorShape, CommunicatorShapeError> {
        if nodes == 0 || ranks < nodes {
            return Err(CommunicatorShapeError::EmptyNode { ranks, nodes });
        }
        let (smallest, largest) = (ranks.div_ceil(nodes), ranks - (nodes - 1));
        let found = ranks_per_node.unwrap_or(smallest);
        if !(smallest..=largest).contains(&found) {
            return Err(CommunicatorShapeError::RanksPerNode { ranks, nodes, smallest, largest, found });
        }
        Ok(CommunicatorShape {
            nodes,
            ranks_per_node: found,
            // Nodes of as many ranks are, if these are 2^k (`nodes_are_subtrees`).
            are_parts: nodes == 1
                || ranks.is_multiple_of(nodes) && smallest.is_power_of_two() && found == smallest,
            ..CommunicatorShape::on_one_node(ranks)
        })
    }

    /// The shape of all ranks of a job on one node, each with a processor of its own; of one rank at least.
    pub fn on_one_node(ranks: u32) -> CommunicatorShape {
        let (ranks, [nodes, ranks_per_processor, switches]) = (ranks.max(1), [1; 3]);
        let [are_parts, is_of_all] = [true; 2];
        CommunicatorShape {
            ranks,
            nodes,
            ranks_per_node: ranks,
            ranks_per_processor,
            switches,
            are_parts,
            is_of_all,
            network: None,
        }
    }

    /// Returns the shape with so many ranks for each processor, at least 1.
    pub fn on_processors(self, ranks_per_processor: u32) -> CommunicatorShape {
        CommunicatorShape { ranks_per_processor: ranks_per_processor.max(1), ..self }
    }

    /// True if the nodes have about as many ranks each: if all had as many as the fullest, there
    /// would be no more than twice as many ranks. What is padded to that takes so much more memory
    /// and time, and no limit holds it: 16 nodes of which one has 64 ranks and the others one each
    /// would carry 13 times the data.
    pub fn is_even(&self) -> bool {
        u64::from(self.nodes) * u64::from(self.ranks_per_node) <= 2 * u64::from(self.ranks)
    }

    /// Returns the shape with its nodes on so many leaf switches, at least 1 and at most one for
    /// each node.
    pub fn on_switches(self, switches: u32) -> Result<CommunicatorShape, CommunicatorShapeError> {
        match (1..=self.nodes).contains(&switches) {
            true => Ok(CommunicatorShape { switches, ..self }),
            false => Err(CommunicatorShapeError::Switches { nodes: self.nodes, found: switches }),
        }
    }

    /// Returns the shape with nodes that are parts of the tree of combinations, or are not.
    pub fn with_parts(self, are_parts: bool) -> CommunicatorShape {
        CommunicatorShape { are_parts, ..self }
    }

    /// Returns the shape of a communicator that has all ranks of the job, or some only.
    pub fn of_all(self, is_of_all: bool) -> CommunicatorShape {
        CommunicatorShape { is_of_all, ..self }
    }

    /// Returns the shape with what was measured of the network between its nodes.
    pub fn on_network(self, network: Network) -> CommunicatorShape {
        CommunicatorShape { network: Some(network), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_spread_evenly_unless_said_otherwise() {
        assert_eq!(CommunicatorShape::new(17, 16, None).unwrap().ranks_per_node, 2);
        assert_eq!(CommunicatorShape::new(17, 2, Some(16)).unwrap().ranks_per_node, 16);
        assert_eq!(CommunicatorShape::new(1, 1, None).unwrap().ranks_per_node, 1);
    }

    #[test]
    fn nodes_are_even_up_to_twice_the_ranks() {
        let is_even =
            |ranks, nodes, fullest| CommunicatorShape::new(ranks, nodes, Some(fullest)).unwrap().is_even();
        assert!(is_even(16, 4, 4) && is_even(13, 4, 4) && is_even(8, 4, 4) && is_even(5, 1, 5));
        assert!(!is_even(7, 4, 4) && !is_even(79, 16, 64));
        assert!(is_even(u32::MAX, 1, u32::MAX));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (ranks, nodes, per_node, expected) in [
            (0, 0, None, "at least one node"),
            (0, 1, None, "one rank or more"),
            (4, 5, None, "4 ranks on 5 nodes"),
            (8, 4, Some(1), "expected 2 to 5"),
            (8, 4, Some(6), "found 6"),
        ] {
            let error = CommunicatorShape::new(ranks, nodes, per_node).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let shape = CommunicatorShape::new(8, 4, None).unwrap();
        assert_eq!(shape.on_switches(4).unwrap().switches, 4);
        for found in [0, 5] {
            let error = shape.on_switches(found).unwrap_err().to_string();
            assert!(error.contains("expected 1 to 4 switches"), "{error}");
        }
    }
}
