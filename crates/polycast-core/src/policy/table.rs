use super::broadcast_choices;
use super::parse::{self, TableError};
use super::{BroadcastChoices, Choice, Collective, CommunicatorShape, Condition, Explanation, Prediction};
use crate::units::Bytes;

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

impl Rule {
    /// Whether a call of `bytes` on a communicator of `shape` is one that the rule is for.
    pub fn matches(&self, collective: Collective, shape: CommunicatorShape, bytes: Bytes) -> bool {
        self.collective == collective
            && self.is_possible(shape)
            && self.conditions.iter().all(|condition| condition.holds(shape, bytes))
    }

    /// Whether the network has what the rule uses; where it has not, the next rule is asked.
    pub(super) fn is_possible(&self, shape: CommunicatorShape) -> bool {
        shape.has_multicast || !self.choice.needs_multicast()
    }
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

    /// What serves the broadcasts of one communicator, prepared so that each call is decided in nanoseconds.
    pub fn broadcast_rules(&self, shape: CommunicatorShape) -> BroadcastChoices {
        BroadcastChoices::from_rules(&self.rules, shape)
    }

    /// The same where predictions choose among trees. The rules for stock and multicast stand: predictions know of neither.
    pub fn broadcast_rules_and(&self, shape: CommunicatorShape, prediction: &Prediction) -> BroadcastChoices {
        let (predicted, from) = (prediction.choices(), prediction.first());
        BroadcastChoices::from_rules_and(&self.rules, shape, &predicted, from)
    }

    /// Which rule decides about broadcasts of which sizes on communicators of this shape: intervals over all sizes by their
    /// first sizes, rising from 0. `None`: no rule is for them, which means stock.
    pub fn deciding_rules(&self, shape: CommunicatorShape) -> Vec<(Bytes, Option<&Rule>)> {
        let by_rule = broadcast_choices::by_rule(&self.rules, shape).into_iter();
        by_rule.map(|(first, rule)| (Bytes(first), rule)).collect()
    }

    /// How the decision about one call comes about.
    pub fn explain(&self, collective: Collective, shape: CommunicatorShape, bytes: Bytes) -> Explanation {
        Explanation::of(self, collective, shape, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(nodes: u32, bytes: &str) -> Choice {
        let shape = CommunicatorShape::new(nodes.max(16), nodes, None).unwrap();
        *Table::shipped().broadcast_rules(shape).choose(bytes.parse().unwrap())
    }

    fn shipped_without_multicast(nodes: u32, bytes: &str) -> Choice {
        let shape = CommunicatorShape::new(nodes.max(16), nodes, None).unwrap().without_multicast();
        *Table::shipped().broadcast_rules(shape).choose(bytes.parse().unwrap())
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
        assert!(shipped(8, "8KiB").needs_multicast());
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
            assert!(shipped(nodes, bytes).needs_multicast(), "{nodes} nodes, {bytes}");
        }
        assert!(!shipped(2, "1MiB").needs_multicast(), "two nodes have nobody to share a datagram with");
    }

    #[test]
    fn the_shipped_table_keeps_binary_trees_off_links_that_it_knows() {
        let choice = |switches, bytes: &str| {
            let shape = CommunicatorShape::new(16, 16, None)
                .unwrap()
                .on_switches(switches)
                .unwrap()
                .without_multicast();
            Table::shipped().broadcast_rules(shape).choose(bytes.parse().unwrap()).to_string()
        };
        assert_eq!(choice(1, "16KiB"), "binary:segment=2KiB");
        assert_eq!(choice(2, "16KiB"), "contention-free-binary:segment=2KiB");
        assert_eq!(choice(2, "1MiB"), choice(1, "1MiB"), "a chain goes around the network anyway");
    }
}
