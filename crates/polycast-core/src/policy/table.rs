use super::parse::{self, TableError};
use super::{Choice, Collective, Condition};

/// The text of the table that polycast comes with.
pub const SHIPPED_TEXT: &str = include_str!("../../../../tuning/default.toml");

/// Rules in their order; the first that matches a call decides, and a call that none matches goes to stock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(super) origin: String,
    pub(super) rules: Vec<Rule>,
}

/// What to use for which calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The line of the table's text at which it starts, from 1.
    pub line: usize,
    /// The operation it is for.
    pub collective: Collective,
    /// What must all hold. A property that is not named may be anything.
    pub conditions: Vec<Condition>,
    /// What then serves the call.
    pub choice: Choice,
    /// The measurement or reason behind the rule.
    pub because: Option<String>,
}

impl Table {
    /// Reads a table. `origin` says where the text comes from, for errors and explanations; usually a file name.
    pub fn parse(text: &str, origin: &str) -> Result<Table, TableError> {
        parse::table(text, origin)
    }

    /// The table that polycast comes with.
    pub fn shipped() -> Table {
        Table::parse(SHIPPED_TEXT, "shipped tuning/default.toml").expect("a test parses the shipped table")
    }

    /// Where the text came from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The rules in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Call, Capabilities, CommunicatorShape, Epoch, Policy, Rules};

    fn choose(shape: CommunicatorShape, there: Capabilities, bytes: &str) -> Choice {
        let rules = Rules { forced: None, table: &Table::shipped(), prediction: None };
        let call = Call { collective: Collective::Broadcast, bytes: bytes.parse().unwrap() };
        Policy::new(rules, shape).choose(&call, there, Epoch::default()).choice
    }

    fn shipped(nodes: u32, bytes: &str) -> Choice {
        let shape = CommunicatorShape::new(nodes.max(16), nodes, None).unwrap();
        choose(shape, Capabilities::ALL, bytes)
    }

    fn shipped_without_multicast(nodes: u32, bytes: &str) -> Choice {
        let shape = CommunicatorShape::new(nodes.max(16), nodes, None).unwrap();
        choose(shape, Capabilities::PRIVATE, bytes)
    }

    fn is_multicast(choice: Choice) -> bool {
        matches!(choice, Choice::Multicast(_))
    }

    #[test]
    fn the_shipped_table_parses_and_gives_every_rule_a_reason() {
        let table = Table::shipped();
        assert!(!table.rules().is_empty());
        for rule in table.rules() {
            assert!(rule.because.is_some(), "line {}", rule.line);
        }
    }

    #[test]
    fn the_shipped_table_leaves_small_calls_and_single_nodes_to_stock() {
        for bytes in ["0", "1", "4KiB"] {
            assert_eq!(shipped_without_multicast(16, bytes), Choice::Stock, "{bytes}");
        }
        for bytes in ["1", "1MiB", "16GiB"] {
            assert_eq!(shipped(1, bytes), Choice::Stock, "{bytes}");
        }
    }

    #[test]
    fn the_shipped_table_leaves_medium_calls_on_few_nodes_to_stock() {
        for nodes in [2, 4, 7] {
            for bytes in ["8KiB", "16KiB", "32767"] {
                assert_eq!(shipped(nodes, bytes), Choice::Stock, "{nodes} nodes, {bytes}");
                assert_eq!(shipped_without_multicast(nodes, bytes), Choice::Stock, "{nodes} nodes, {bytes}");
            }
            assert_ne!(shipped(nodes, "32KiB"), Choice::Stock, "{nodes} nodes");
        }
        assert!(is_multicast(shipped(8, "8KiB")));
    }

    #[test]
    fn the_shipped_table_pipelines_large_calls_between_nodes() {
        for bytes in ["1MiB", "4MiB", "1GiB"] {
            let Choice::Algorithm(algorithm) = shipped_without_multicast(16, bytes) else {
                panic!("{bytes} goes to stock")
            };
            assert!(algorithm.segment.is_some(), "{bytes}: {algorithm}");
        }
    }

    #[test]
    fn the_shipped_table_multicasts_large_calls_where_it_can() {
        for (nodes, bytes) in [(16, "64KiB"), (4, "1MiB"), (1000, "1GiB")] {
            assert!(is_multicast(shipped(nodes, bytes)), "{nodes} nodes, {bytes}");
        }
        assert!(!is_multicast(shipped(2, "1MiB")), "two nodes have nobody to share a datagram with");
    }

    #[test]
    fn the_shipped_table_keeps_binary_trees_off_links_that_it_knows() {
        let choice = |switches, bytes: &str| {
            let shape = CommunicatorShape::new(16, 16, None).unwrap().on_switches(switches).unwrap();
            choose(shape, Capabilities::PRIVATE, bytes).to_string()
        };
        assert_eq!(choice(1, "16KiB"), "binary:segment=2KiB");
        assert_eq!(choice(2, "16KiB"), "contention-free-binary:segment=2KiB");
        assert_eq!(choice(2, "1MiB"), choice(1, "1MiB"), "a chain goes around the network anyway");
    }
}
