use super::parse::{self, TableError};
use super::{Choice, Collective, Condition, Property, Range, ServedSums};
use crate::collective::CombinationOrder;

/// The text of the table that polycast comes with. Under Miri, which would spend nearly all of its time on parsing it, it has no rules: jobs there say what
/// serves.
pub const SHIPPED_TEXT: &str =
    if cfg!(miri) { "version = 1\n" } else { include_str!("../../../../tuning/default.toml") };

/// The text of the table for sums for which no other one has a way.
const TEXT_OF_SUMS: &str =
    if cfg!(miri) { "version = 1\n" } else { include_str!("../../../../tuning/sums.toml") };

/// Rules in their order; the first that matches a call decides, and a call that none matches goes to stock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(super) origin: String,
    /// Lines of comment above the rules; those below are in `end`.
    pub(super) head: Vec<String>,
    /// The sums that are served, if the table says so.
    pub(super) sums: Option<ServedSums>,
    pub(super) rules: Vec<Rule>,
    pub(super) end: Vec<String>,
}

/// A choice for the calls that meet some conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The line of the table's text at which the rule starts, from 1.
    pub line: usize,
    /// Lines of comment above the rule, without `#`: the measurements behind it, for example.
    pub comments: Vec<String>,
    /// The operation that the rule is for.
    pub collective: Collective,
    /// Conditions that must all hold, in the order of [`Property::ALL`]. A property that is not
    /// named may be anything.
    pub conditions: Vec<Condition>,
    /// The choice that then serves the call.
    pub choice: Choice,
    /// A choice that may serve the call as well: trials compare the two.
    pub next: Option<Choice>,
    /// The measurement or reason behind the rule.
    pub because: Option<String>,
}

impl Rule {
    /// Whether the rule's algorithm is for ranks of one node, and whether it is for nodes of about
    /// as many ranks each, as one node is.
    fn is_for_one_or_even_nodes(&self) -> (bool, bool) {
        match self.choice {
            Choice::Algorithm(algorithm) => (algorithm.entry.is_on_one_node(), algorithm.entry.is_padded),
            Choice::Stock => (false, false),
        }
    }

    /// Whether the rule's way keeps the order of sums wherever the other one's may.
    fn keeps_as_much_as(&self, other: &Rule) -> bool {
        let keeps = |rule: &Rule, are_parts| match rule.choice {
            Choice::Algorithm(algorithm) => algorithm.keeps_in(2, are_parts) == CombinationOrder::Tree,
            Choice::Stock => true,
        };
        !self.collective.combines()
            || keeps(self, false)
            || !keeps(other, true)
            || other.choice == Choice::Stock
    }

    /// Whether the rule is for every call that the other one is for.
    fn covers(&self, other: &Rule) -> bool {
        let of_other = |property| other.conditions.iter().find(|condition| condition.property == property);
        let (needs_one, needs_even) = self.is_for_one_or_even_nodes();
        let (has_one, has_even) = other.is_for_one_or_even_nodes();
        let has_one = has_one || of_other(Property::Nodes).is_some_and(|nodes| nodes.range.last() < 2);
        self.collective == other.collective
            && self.keeps_as_much_as(other)
            && (has_one || !needs_one)
            && (has_one || has_even || !needs_even)
            && other.choice.needs().has(self.choice.needs())
            && self.conditions.iter().all(|condition| {
                let other = of_other(condition.property);
                let range = other.map_or(Range::all(), |other| other.range);
                // A value that is not known meets no condition.
                let is_known = !matches!(condition.property, Property::Rate | Property::Latency);
                (is_known || other.is_some())
                    && condition.range.contains(range.first())
                    && condition.range.contains(range.last())
            })
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

    /// The table that says, where all sums are served, how those are for which no other one has a
    /// way.
    pub fn of_sums() -> Table {
        Table::parse(TEXT_OF_SUMS, "shipped tuning/sums.toml").expect("a test parses the table of sums")
    }

    /// The source of the text, usually a file name.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The rules in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Rules that decide about no call, each with one before it that is for all its calls.
    pub fn idle_rules(&self) -> impl Iterator<Item = (&Rule, &Rule)> {
        self.rules.iter().enumerate().filter_map(|(place, rule)| {
            let before = self.rules[..place].iter().find(|before| before.covers(rule))?;
            Some((rule, before))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;
    use crate::policy::{Call, Capabilities, CommunicatorShape, Epoch, Policy, Rules};
    use crate::units::Bytes;

    fn policy(shape: CommunicatorShape) -> Policy {
        Policy::new(Rules::new(&[], None, &Table::shipped(), None), shape)
    }

    /// Of ranks on nodes whose job has asked the network.
    fn policy_on(network: Network, (ranks, nodes): (u32, u32)) -> Policy {
        let shape = CommunicatorShape::new(ranks, nodes, None).unwrap();
        policy(CommunicatorShape { network: Some(network), ..shape })
    }

    fn choose(shape: CommunicatorShape, there: Capabilities, bytes: &str) -> Choice {
        let call = Call::new(Collective::Broadcast, bytes.parse().unwrap());
        policy(shape).choose(&call, there, Epoch::default()).choice
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
        choice.is_by_multicast()
    }

    #[test]
    fn the_shipped_table_parses_and_gives_every_rule_a_reason() {
        let table = Table::shipped();
        assert!(!table.rules().is_empty());
        for rule in table.rules().iter().chain(Table::of_sums().rules()) {
            assert!(rule.because.is_some(), "line {}", rule.line);
        }
    }

    #[test]
    fn no_rule_of_the_shipped_tables_is_idle() {
        for table in [Table::shipped(), Table::of_sums()] {
            let idle: Vec<_> = table.idle_rules().map(|(rule, before)| (rule.line, before.line)).collect();
            assert_eq!(idle, [], "{}", table.origin());
        }
    }

    #[test]
    fn a_rule_is_idle_behind_one_that_is_for_all_its_calls() {
        let rules = [
            ("bytes = \"8KiB..\"", "multicast-pull"),
            ("bytes = \"8KiB..1MiB\"\nnodes = 2", "chain"),
            ("bytes = \"16KiB..1MiB\"\nnodes = 2", "flat"),
            ("bytes = \"8KiB..1MiB\"", "multicast-push"),
        ];
        let rules = rules.map(|(conditions, choice)| {
            format!("[[rule]]\ncollective = \"bcast\"\n{conditions}\nuse = \"{choice}\"\n")
        });
        let table = Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap();
        let idle: Vec<_> = table.idle_rules().map(|(rule, before)| (rule.line, before.line)).collect();
        assert_eq!(idle, [(11, 6), (16, 2)], "where there is no multicast, line 6 decides");
    }

    /// `cells` is for one node, and `two-level` passes over nodes of very different numbers of ranks.
    /// Rates are not always known.
    #[test]
    fn a_rule_is_not_idle_behind_one_that_asks_the_network() {
        for condition in ["rate", "latency", "bytes"] {
            let text = format!(
                "version = 1\n[[rule]]\ncollective = \"bcast\"\n{condition} = \"..\"\nuse = \"chain\"\n\
                 [[rule]]\ncollective = \"bcast\"\nuse = \"binomial\"\n"
            );
            let idle = Table::parse(&text, "t").unwrap().idle_rules().count();
            assert_eq!(idle, usize::from(condition == "bytes"), "{condition}");
        }
    }

    #[test]
    fn a_rule_is_not_idle_where_the_one_before_it_cannot_be_had() {
        let idle = |rules: [(&str, &str); 2]| {
            let rules = rules.map(|(conditions, choice)| {
                format!("[[rule]]\ncollective = \"allgather\"\n{conditions}\nuse = \"{choice}\"\n")
            });
            Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap().idle_rules().count()
        };
        for (rules, expected) in [
            ([("", "cells"), ("", "two-level")], 0),
            ([("", "cells"), ("nodes = 1", "two-level")], 1),
            ([("", "cells"), ("", "direct")], 1),
            ([("", "two-level"), ("", "two-level:segment=4KiB")], 1),
            ([("", "two-level"), ("", "direct")], 1),
        ] {
            assert_eq!(idle(rules), expected, "{rules:?}");
        }
    }

    /// Where that was measured: several ranks on each of some nodes, and one rank on each.
    #[test]
    fn the_shipped_table_serves_some_collectives_on_two_levels() {
        let chosen = |collective, placed, rate: &str, bytes| {
            let policy =
                policy_on(Network { rate: Some(rate.parse().unwrap()), ..Network::default() }, placed);
            let call = Call::new(collective, Bytes(bytes));
            policy.choose(&call, Capabilities::ALL, Epoch::default()).choice.to_string()
        };
        let slow = "100mbit";
        assert_eq!(chosen(Collective::Allgather, (8, 4), slow, 8 << 10), "two-level:segment=16KiB");
        assert_eq!(chosen(Collective::Gather, (32, 8), slow, 32 << 10), "two-level:between=flat");
        assert_eq!(chosen(Collective::Reduce, (32, 8), slow, 64 << 10), "two-level:segment=3KiB");
        assert_eq!(chosen(Collective::Reduce, (32, 8), slow, 1 << 20), "two-level:segment=8KiB");
        assert_eq!(chosen(Collective::Allreduce, (12, 3), slow, 1 << 20), "two-level:segment=8KiB");
        assert_eq!(chosen(Collective::Allreduce, (32, 8), slow, 1 << 20), "two-level:segment=16KiB");
        for (collective, bytes, expected) in [
            (Collective::Allgather, 32 << 10, "ring:segment=16KiB"),
            (Collective::Reduce, 64 << 10, "contention-free-chain:segment=3KiB"),
            (Collective::Allreduce, 128 << 10, "ring:segment=16KiB"),
        ] {
            assert_eq!(chosen(collective, (8, 8), slow, bytes), expected);
            assert_eq!(chosen(collective, (8, 8), slow, bytes / 2), "stock");
        }
        let fast = "1gbit";
        for (collective, placed, bytes, expected) in [
            (Collective::Reduce, (8, 4), 64 << 10, "two-level:segment=32KiB"),
            (Collective::Allreduce, (32, 8), 64 << 10, "two-level:segment=16KiB"),
            (Collective::Alltoall, (16, 4), 16 << 10, "pairwise:segment=32KiB"),
            (Collective::Scatter, (16, 4), 256 << 10, "two-level:between=flat"),
            (Collective::Reduce, (8, 8), 64 << 10, "contention-free-chain:segment=32KiB"),
            (Collective::Allreduce, (8, 8), 512 << 10, "ring:segment=16KiB"),
            (Collective::Allgather, (8, 8), 64 << 10, "ring:segment=16KiB"),
        ] {
            assert_eq!(chosen(collective, placed, fast, bytes), expected);
            assert_eq!(chosen(collective, placed, fast, bytes / 2), "stock", "{collective} {placed:?}");
        }
        // One node, two; short; fast links; more nodes and ranks than were measured; what stock does as well.
        for (collective, placed, rate, bytes) in [
            (Collective::Allgather, (8, 8), slow, 8 << 10),
            (Collective::Reduce, (8, 1), slow, 1 << 20),
            (Collective::Allreduce, (8, 2), slow, 1 << 20),
            (Collective::Allgather, (8, 4), slow, 1 << 10),
            (Collective::Reduce, (8, 4), "10gbit", 1 << 20),
            (Collective::Allreduce, (8, 4), "10gbit", 64 << 10),
            (Collective::Reduce, (160, 8), "1gbit", 1 << 20),
            (Collective::Alltoall, (6, 3), "1gbit", 64 << 10),
            (Collective::Allreduce, (8, 4), slow, 64 << 10),
            (Collective::Gather, (32, 8), slow, 1 << 10),
            (Collective::Gather, (32, 8), slow, 1 << 20),
            (Collective::Gather, (16, 8), slow, 8 << 10),
            (Collective::Gather, (32, 8), "1gbit", 8 << 10),
            (Collective::Alltoall, (8, 4), slow, 1 << 20),
            (Collective::Barrier, (8, 4), slow, 0),
        ] {
            assert_eq!(chosen(collective, placed, rate, bytes), "stock", "{collective} {placed:?}");
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

    /// Verbs or the like with a slow Ethernet beside them.
    #[test]
    fn the_shipped_table_sends_nothing_by_multicast_that_is_slower_than_the_mpi() {
        let is_any = |multicast: &str, placed| {
            let [rate, multicast_rate] = ["100gbit", multicast].map(|rate| rate.parse().ok());
            let policy = policy_on(Network { rate, multicast_rate, ..Network::default() }, placed);
            let late = policy.epoch(Collective::Broadcast, 1 << 20);
            (3..27).map(|power| 1 << power).any(|bytes| {
                let call = Call::new(Collective::Broadcast, Bytes(bytes));
                is_multicast(policy.choose(&call, Capabilities::ALL, late).choice)
            })
        };
        for nodes in [2, 3, 4, 16, 31, 32, 300] {
            for ranks in [nodes, 2 * nodes, 8 * nodes] {
                assert!(!is_any("1gbit", (ranks, nodes)), "{ranks} ranks on {nodes} nodes");
            }
        }
        assert!(is_any("100gbit", (32, 32)));
    }

    /// Where the network was asked and carries no multicast.
    #[test]
    fn the_shipped_table_pipelines_medium_broadcasts_on_slow_links_and_on_nodes_that_share_memory() {
        let chosen = |placed, rate: &str, bytes| {
            let policy =
                policy_on(Network { rate: Some(rate.parse().unwrap()), ..Network::default() }, placed);
            let call = Call::new(Collective::Broadcast, Bytes(bytes));
            let can = Capabilities::PRIVATE | Capabilities::SHARED;
            policy.choose(&call, can, Epoch::default()).choice.to_string()
        };
        for (placed, rate, bytes, expected) in [
            ((4, 4), "100mbit", 8 << 10, "chain:segment=3KiB"),
            ((16, 16), "100mbit", 16 << 10, "chain:segment=3KiB"),
            ((16, 16), "100mbit", 64 << 10, "chain:segment=3KiB,ready"),
            ((16, 4), "100mbit", 64 << 10, "two-level:between=chain,segment=3KiB"),
            ((8, 8), "1gbit", 64 << 10, "chain:segment=32KiB,ready"),
            ((16, 4), "1gbit", 64 << 10, "two-level:between=chain,segment=32KiB"),
            ((4, 4), "1gbit", 32 << 10, "stock"),
            ((4, 4), "10gbit", 1 << 20, "stock"),
            ((64, 64), "10gbit", 64 << 10, "binary:segment=8KiB,ready"),
            ((64, 64), "10gbit", 16 << 20, "chain:segment=8KiB,ready"),
            ((64, 64), "10gbit", 32 << 10, "stock"),
            ((4, 4), "25gbit", 1 << 20, "chain:segment=32KiB,ready"),
            ((16, 16), "25gbit", 1 << 20, "binary:segment=16KiB,ready"),
            ((3, 3), "25gbit", 64 << 10, "stock"),
            ((16, 16), "100gbit", 64 << 10, "binary:segment=32KiB,ready"),
            ((256, 256), "100gbit", 4 << 20, "binary:segment=64KiB,ready"),
        ] {
            assert_eq!(chosen(placed, rate, bytes), expected, "{placed:?} {rate} {bytes}");
        }
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
