use std::iter;

use super::{Choice, Collective, CommunicatorShape, Property, Range, Rule};
use crate::units::Bytes;

/// What serves the broadcasts of one communicator, by their bytes.
///
/// The rules that this communicator's shape satisfies are laid out once as disjoint intervals over all sizes:
///
/// ```text
/// first_bytes:  0          8192             65536                        2^64
///               ├── stock ──┼── binomial ────┼── chain:segment=2KiB ── … ──┤
/// ```
///
/// Invariants: `first_bytes[0]` is 0, `first_bytes` rises strictly, both lists have the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastChoices {
    first_bytes: Box<[u64]>,
    choices: Box<[Choice]>,
}

impl BroadcastChoices {
    /// One choice for every size.
    pub fn always(choice: Choice) -> Self {
        BroadcastChoices { first_bytes: [0].into(), choices: [choice].into() }
    }

    /// What serves a broadcast of `bytes`. Does not allocate.
    pub fn choose(&self, bytes: Bytes) -> &Choice {
        let after = self.first_bytes.partition_point(|first| *first <= bytes.0);
        &self.choices[after - 1]
    }

    /// The intervals in rising order: their first size and what serves it and all sizes up to the next.
    pub fn intervals(&self) -> impl Iterator<Item = (Bytes, &Choice)> {
        self.first_bytes.iter().copied().map(Bytes).zip(&self.choices)
    }

    /// These intervals: their first sizes, rising from 0, and what serves them.
    pub(super) fn of(intervals: impl IntoIterator<Item = (u64, Choice)>) -> Self {
        let mut intervals: Vec<(u64, Choice)> = intervals.into_iter().collect();
        intervals.dedup_by_key(|(_, choice)| *choice);
        let (first_bytes, choices): (Vec<u64>, Vec<Choice>) = intervals.into_iter().unzip();
        BroadcastChoices { first_bytes: first_bytes.into(), choices: choices.into() }
    }

    pub(super) fn from_rules(rules: &[Rule], shape: CommunicatorShape) -> Self {
        let by_rule = by_rule(rules, shape).into_iter();
        BroadcastChoices::of(
            by_rule.map(|(first, rule)| (first, rule.map_or(Choice::Stock, |rule| rule.choice))),
        )
    }

    /// The rules for stock and multicast stand; in place of a tree, and where no rule matches, `predicted` decides from
    /// `from` on.
    pub(super) fn from_rules_and(
        rules: &[Rule],
        shape: CommunicatorShape,
        predicted: &BroadcastChoices,
        from: Bytes,
    ) -> Self {
        let by_rule = by_rule(rules, shape);
        let mut starts: Vec<u64> = by_rule.iter().map(|(first, _)| *first).collect();
        starts.extend(predicted.first_bytes.iter().filter(|first| **first > from.0));
        starts.push(from.0);
        starts.sort_unstable();
        starts.dedup();
        BroadcastChoices::of(starts.into_iter().map(|first| {
            let by_rule = by_rule[by_rule.partition_point(|(start, _)| *start <= first) - 1].1;
            let choice = match by_rule.map(|rule| rule.choice) {
                None | Some(Choice::Algorithm(_)) if first >= from.0 => *predicted.choose(Bytes(first)),
                by_rule => by_rule.unwrap_or(Choice::Stock),
            };
            (first, choice)
        }))
    }
}

/// Disjoint intervals over all sizes, with the first rule that matches in each.
pub(super) fn by_rule(rules: &[Rule], shape: CommunicatorShape) -> Vec<(u64, Option<&Rule>)> {
    let relevant: Vec<(Range, &Rule)> = rules
        .iter()
        .filter(|rule| rule.collective == Collective::Broadcast && rule.is_possible(shape))
        .filter_map(|rule| Some((sizes(rule, shape)?, rule)))
        .collect();
    let mut starts: Vec<u64> = relevant
        .iter()
        .flat_map(|(range, _)| [Some(range.first()), range.last().checked_add(1)])
        .flatten()
        .chain(iter::once(0))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    // Between two neighbours of `starts` no rule begins or ends, so the first size decides for all.
    let first_match = |first| relevant.iter().find(|(range, _)| range.contains(first));
    starts.into_iter().map(|first| (first, first_match(first).map(|(_, rule)| *rule))).collect()
}

/// The sizes for which `rule` matches on communicators of `shape`; `None` if the shape rules it out.
fn sizes(rule: &Rule, shape: CommunicatorShape) -> Option<Range> {
    let mut sizes = Range::all();
    for condition in &rule.conditions {
        match condition.property {
            Property::Bytes => sizes = condition.range,
            property if condition.range.contains(property.of(shape, Bytes(0))) => {}
            _ => return None,
        }
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Table;

    /// The definition that the intervals must agree with.
    fn first_match(table: &Table, shape: CommunicatorShape, bytes: Bytes) -> Choice {
        let rule = table.rules().iter().find(|rule| rule.matches(Collective::Broadcast, shape, bytes));
        rule.map_or(Choice::Stock, |rule| rule.choice)
    }

    fn range() -> impl Strategy<Value = String> {
        // Few different numbers, so that rules meet, overlap and hide each other.
        let number = || prop_oneof![0u64..20, Just(u64::MAX - 1), Just(u64::MAX)];
        prop_oneof![
            number().prop_map(|n| n.to_string()),
            number().prop_map(|n| format!("{n}..")),
            number().prop_map(|n| format!("..{}", n.max(1))),
            (number(), number()).prop_filter("empty", |(a, b)| a < b).prop_map(|(a, b)| format!("{a}..{b}")),
        ]
    }

    fn rule() -> impl Strategy<Value = String> {
        let keys = ["ranks", "nodes", "ranks_per_node", "switches", "bytes"].map(|key| {
            prop::option::weighted(0.4, range()).prop_map(move |range| {
                range.map_or_else(String::new, |range| format!("{key} = \"{range}\"\n"))
            })
        });
        let choice =
            prop_oneof![Just("stock"), Just("binomial"), Just("chain:segment=2KiB"), Just("multicast-pull")];
        (keys, choice).prop_map(|(keys, choice)| {
            format!("[[rule]]\ncollective = \"bcast\"\n{}use = \"{choice}\"\n", keys.concat())
        })
    }

    proptest! {
        #[test]
        fn intervals_decide_as_the_first_matching_rule_does(
            rules in prop::collection::vec(rule(), 0..12),
            (nodes, more, switches, has_multicast) in (1u32..8, 0u32..12, 1u32..9, any::<bool>()),
            sizes in prop::collection::vec(prop_oneof![0u64..24, any::<u64>(), Just(u64::MAX)], 1..30),
        ) {
            let table = Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap();
            let shape = CommunicatorShape::new(nodes + more, nodes, None).unwrap();
            let shape = CommunicatorShape { has_multicast, ..shape.on_switches(switches.min(nodes)).unwrap() };
            let choices = table.broadcast_rules(shape);
            for bytes in sizes.into_iter().map(Bytes) {
                prop_assert_eq!(*choices.choose(bytes), first_match(&table, shape, bytes));
                let explanation = table.explain(Collective::Broadcast, shape, bytes);
                let deciding = table.deciding_rules(shape);
                let (_, rule) = deciding[deciding.partition_point(|(first, _)| *first <= bytes) - 1];
                prop_assert_eq!(rule.map(|rule| rule.line), explanation.winner().map(|rule| rule.line));
                prop_assert_eq!(*choices.choose(bytes), explanation.choice);
                prop_assert!(has_multicast || !explanation.choice.needs_multicast());
            }
        }
    }

    #[test]
    fn predictions_decide_among_trees_and_where_no_rule_is() {
        let rule = |bytes: &str, choice: &str| {
            format!("[[rule]]\ncollective = \"bcast\"\nbytes = \"{bytes}\"\nuse = \"{choice}\"\n")
        };
        let text = [
            "version = 1\n".to_owned(),
            rule("..8", "stock"),
            rule("8..64", "binomial"),
            rule("100..200", "multicast-pull"),
        ]
        .concat();
        let table = Table::parse(&text, "t").unwrap();
        let [flat, chain]: [Choice; 2] = ["flat", "chain"].map(|name| name.parse().unwrap());
        let predicted = BroadcastChoices::of([(0, flat), (32, chain)]);
        let shape = CommunicatorShape::new(4, 4, None).unwrap();
        let written = |shape, from| {
            let choices = BroadcastChoices::from_rules_and(table.rules(), shape, &predicted, Bytes(from));
            choices.intervals().map(|(first, choice)| format!("{} {choice}", first.0)).collect::<Vec<_>>()
        };
        assert_eq!(written(shape, 4), ["0 stock", "8 flat", "32 chain", "100 multicast-pull", "200 chain"]);
        assert_eq!(written(shape.without_multicast(), 0), ["0 stock", "8 flat", "32 chain"]);
        assert_eq!(written(shape.without_multicast(), 50), ["0 stock", "8 binomial", "50 chain"]);
    }

    #[test]
    fn a_forced_choice_serves_every_size() {
        let chain: Choice = "chain:segment=8KiB".parse().unwrap();
        let choices = BroadcastChoices::always(chain);
        for bytes in [0, 1, 8192, u64::MAX] {
            assert_eq!(*choices.choose(Bytes(bytes)), chain);
        }
    }

    #[test]
    fn neighbours_with_the_same_choice_are_one_interval() {
        let rule = |bytes: &str, choice: &str| {
            format!("[[rule]]\ncollective = \"bcast\"\nbytes = \"{bytes}\"\nuse = \"{choice}\"\n")
        };
        let text = ["version = 1\n".to_owned(), rule("4..8", "chain"), rule("8..16", "chain")].concat();
        let choices =
            Table::parse(&text, "t").unwrap().broadcast_rules(CommunicatorShape::new(2, 2, None).unwrap());
        let intervals: Vec<(u64, String)> =
            choices.intervals().map(|(first, choice)| (first.0, choice.to_string())).collect();
        assert_eq!(intervals, [(0, "stock".into()), (4, "chain".into()), (16, "stock".into())]);
    }
}
