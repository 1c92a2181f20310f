//! The way to a decision, rule by rule.

use std::fmt;
use std::sync::Arc;

use super::chooser::Chooser;
use super::sums::WaysOfSums;
use super::{
    By, Call, Capabilities, Choice, Collective, CommunicatorShape, Condition, Decision, Policy, Property,
    Range, Rule, Rules, Table,
};
use crate::units::Bytes;

/// The decision about a call, and the rules that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The decision that a job's chooser takes.
    pub decision: Decision,
    /// The rules for the operation that were looked at, in their order; only the last can have matched. None if no table was asked.
    pub looked_at: Vec<LookedAt>,
}

/// A rule that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedAt {
    /// The line of the table at which the rule starts, from 1.
    pub line: usize,
    /// The choice that the rule would use.
    pub choice: Choice,
    /// The measurement or reason behind it.
    pub because: Option<String>,
    /// Whether the rule is for the call, and if not, why.
    pub verdict: Verdict,
    /// The distance of the call from what the rule is for.
    distance: Distance,
}

/// The distance of a call from a rule: how many of the rule's conditions do not hold, which counts
/// more, and by how many doublings the call's values would have to change, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    conditions: u32,
    doublings: u32,
}

/// Whether a rule was for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule is for the call, and decided if no rule before it did.
    Matches,
    /// The rule is for ranks of one node only.
    OneNode,
    /// The rule is for nodes of about as many ranks each.
    EvenNodes,
    /// The rule's way does not combine in the one order that sums have.
    OtherOrder,
    /// The rule uses what the communicator lacks.
    Lacks(Capabilities),
    /// The first condition that did not hold.
    Misses {
        /// The condition that the rule asks for.
        expected: Condition,
        /// The value that the call has; `None`: it is not known.
        found: Option<u64>,
    },
}

impl Explanation {
    /// Explains a call on a communicator of this shape that has the capabilities `there`, after
    /// `earlier_calls` earlier calls.
    pub fn new(
        rules: Rules<'_>,
        shape: CommunicatorShape,
        there: Capabilities,
        call: &Call,
        earlier_calls: u64,
    ) -> Explanation {
        let policy = Arc::new(Policy::new(rules, shape));
        let decision = Chooser::supposing(policy, there, earlier_calls).by_rules(call);
        let in_table = rules.table(call.collective).rules();
        let of_sums = rules.table_of_sums().map_or(&[][..], Table::rules);
        let (before, decided) = match decision.by {
            By::Forced | By::Sums => (&[][..], None),
            By::Rule(place) | By::Prediction(Some(place)) => (&in_table[..place], in_table.get(place)),
            By::Prediction(None) | By::Nobody => (in_table, None),
            By::RuleOfSums(place) => (in_table, of_sums.get(place)),
        };
        let of_operation = before.iter().filter(|rule| rule.collective == call.collective);
        let ways = WaysOfSums::new(rules.sums(), shape);
        let earlier_calls = if call.is_sum { ways.decided_after() } else { earlier_calls };
        let passed_over = of_operation.map(|rule| match call.is_sum && !ways.has(rule.choice) {
            true => LookedAt::new(rule, Verdict::OtherOrder, Distance { conditions: 1, doublings: 0 }),
            false => LookedAt::passed_over(rule, shape, there, call, earlier_calls),
        });
        let matched = decided.map(|rule| LookedAt::new(rule, Verdict::Matches, Distance::default()));
        Explanation { decision, looked_at: passed_over.chain(matched).collect() }
    }

    /// The rule that is nearest to serving the call by something else than the MPI, of those that
    /// are not for the call.
    pub fn nearest_miss(&self) -> Option<&LookedAt> {
        let missed = self.looked_at.iter().filter(|rule| {
            rule.verdict != Verdict::Matches && ![Choice::Stock, self.decision.choice].contains(&rule.choice)
        });
        missed.min_by_key(|rule| rule.distance)
    }

    /// The first rule that is for the call; `None` if there is none, or no table was asked.
    pub fn matching(&self) -> Option<&LookedAt> {
        self.looked_at.last().filter(|rule| rule.verdict == Verdict::Matches)
    }
}

/// The rule that is nearest to serving calls of a collective, of some size and after some others,
/// by something else than the MPI, of those rules that serve none.
pub fn nearest_rule(
    rules: Rules<'_>,
    shape: CommunicatorShape,
    there: Capabilities,
    collective: Collective,
) -> Option<LookedAt> {
    let of_operation = rules.table(collective).rules().iter().filter(|rule| rule.collective == collective);
    let looked_at = of_operation.map(|rule| {
        let condition = |of| rule.conditions.iter().find(|condition| condition.property == of);
        let of_call = [Property::Bytes, Property::EarlierCalls].map(condition);
        let [bytes, earlier_calls] = of_call.map(|condition| condition.map_or(0, |of| of.range.first()));
        let call = Call::new(collective, Bytes(bytes));
        let is_of_all_calls = of_call.iter().all(Option::is_none);
        (LookedAt::passed_over(rule, shape, there, &call, earlier_calls), is_of_all_calls)
    });
    // Behind a rule that decides about all calls no other rule decides.
    let may_decide =
        |(rule, is_of_all_calls): &(LookedAt, bool)| !(rule.verdict == Verdict::Matches && *is_of_all_calls);
    let missed = looked_at.take_while(may_decide).map(|(rule, _)| rule);
    let missed = missed.filter(|rule| rule.verdict != Verdict::Matches && rule.choice != Choice::Stock);
    missed.min_by_key(|rule| rule.distance)
}

impl LookedAt {
    fn new(rule: &Rule, verdict: Verdict, distance: Distance) -> LookedAt {
        LookedAt { line: rule.line, choice: rule.choice, because: rule.because.clone(), verdict, distance }
    }

    /// Describes a rule that did not decide.
    fn passed_over(
        rule: &Rule,
        shape: CommunicatorShape,
        there: Capabilities,
        call: &Call,
        earlier_calls: u64,
    ) -> LookedAt {
        let found = |condition: &Condition| condition.property.of(shape, call, earlier_calls);
        let holds =
            |condition: &&Condition| found(condition).is_some_and(|found| condition.range.contains(found));
        let missed: Vec<&Condition> = rule.conditions.iter().filter(|condition| !holds(condition)).collect();
        let (suits, lacking) = (rule.choice.suits(shape), rule.choice.needs().without(there));
        let verdict = match missed.first() {
            _ if !suits => match rule.choice {
                Choice::Algorithm(algorithm) if algorithm.entry.is_padded => Verdict::EvenNodes,
                _ => Verdict::OneNode,
            },
            _ if lacking != Capabilities::NONE => Verdict::Lacks(lacking),
            Some(&&expected) => Verdict::Misses { expected, found: found(&expected) },
            None => Verdict::Matches,
        };
        // What the communicator lacks, no other call on it will have.
        let beyond = [!suits, lacking != Capabilities::NONE].into_iter().filter(|is_so| *is_so).count();
        // One node is another world than several: what lies between ranks is another.
        let is_alone = |found: Option<u64>| found == Some(1);
        let worlds = missed.iter().filter(|condition| {
            condition.property == Property::Nodes && is_alone(found(condition)) != condition.range.contains(1)
        });
        let distance = Distance {
            conditions: (missed.len() + beyond + 2 * worlds.count()) as u32,
            doublings: missed.iter().map(|condition| doublings(condition.range, found(condition))).sum(),
        };
        LookedAt::new(rule, verdict, distance)
    }
}

/// The number of times that a value must be doubled, or halved, to be in a range; for a value that
/// is not known 64, which is more than any number needs.
fn doublings(range: Range, found: Option<u64>) -> u32 {
    let Some(found) = found else { return u64::BITS };
    let nearest = found.clamp(range.first(), range.last());
    (nearest.max(1).ilog2()).abs_diff(found.max(1).ilog2())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Matches => f.pad("matches"),
            Verdict::OneNode => f.pad("is for ranks of one node"),
            Verdict::EvenNodes => f.pad("is for nodes of about as many ranks each"),
            Verdict::OtherOrder => f.pad("does not combine in the order that sums have"),
            Verdict::Lacks(lacking) => write!(f, "needs {lacking}"),
            Verdict::Misses { expected, found: Some(found) } => {
                write!(f, "is for {}, not {}", expected.in_words(), expected.property.write(*found))
            }
            Verdict::Misses { expected, found: None } => {
                write!(f, "is for {}; the {} is not known", expected.in_words(), expected.property)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const TABLE: &str = r#"version = 1
[[rule]]
collective = "bcast"
nodes = 1
use = "stock"
[[rule]]
collective = "bcast"
bytes = "..8KiB"
use = "stock"
[[rule]]
collective = "bcast"
use = "multicast-pull"
[[rule]]
collective = "bcast"
earlier_calls = "100.."
use = "flat"
[[rule]]
collective = "bcast"
bytes = "8KiB..1GiB"
use = "chain:segment=8KiB"
because = "measured"
"#;

    fn explain(bytes: u64, forced: Option<&str>) -> Explanation {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let table = Table::parse(TABLE, "t").unwrap();
        let forced = forced.map(|choice| (Collective::Broadcast, choice.parse().unwrap()));
        let call = Call::new(Collective::Broadcast, Bytes(bytes));
        let there = Capabilities::PRIVATE;
        Explanation::new(Rules::new(forced.as_slice(), None, &table, None), shape, there, &call, 0)
    }

    #[test]
    fn every_rule_up_to_the_one_that_decides_says_why() {
        let explanation = explain(1 << 20, None);
        let said: Vec<_> =
            explanation.looked_at.iter().map(|rule| (rule.line, rule.verdict.to_string())).collect();
        assert_eq!(
            said,
            [
                (2, "is for 1 node, not 16".to_owned()),
                (6, "is for less than 8KiB, not 1MiB".to_owned()),
                (10, "needs a network with multicast".to_owned()),
                (13, "is for 100 or more earlier calls, not 0".to_owned()),
                (17, "matches".to_owned()),
            ]
        );
        assert_eq!(explanation.matching().unwrap().because.as_deref(), Some("measured"));
        assert_eq!(explanation.decision.choice.to_string(), "chain:segment=8KiB");
        assert_eq!(explanation.decision.by, By::Rule(4));
    }

    #[test]
    fn without_a_match_it_is_stock_and_nobody_decided() {
        let explanation = explain(1 << 30, None);
        assert_eq!((explanation.matching(), explanation.decision), (None, Decision::STOCK));
        assert_eq!(explanation.looked_at.len(), 5);
    }

    #[test]
    fn the_nearest_miss_lacks_least() {
        let table = "version = 1\n\
            [[rule]]\ncollective = \"allreduce\"\nuse = \"two-level\"\n\
            [[rule]]\ncollective = \"bcast\"\nranks = \"64..\"\nbytes = \"1GiB..\"\nuse = \"flat\"\n\
            [[rule]]\ncollective = \"bcast\"\nranks = \"2..5\"\nuse = \"chain\"\n\
            [[rule]]\ncollective = \"bcast\"\nranks = \"2..9\"\nuse = \"binary\"\nbecause = \"so\"\n\
            [[rule]]\ncollective = \"bcast\"\nrate = \"1gbit..\"\nuse = \"binomial\"\n\
            [[rule]]\ncollective = \"bcast\"\nranks = 16\nuse = \"stock\"\n";
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let table = Table::parse(table, "t").unwrap();
        let call = Call::new(Collective::Broadcast, Bytes(1 << 20));
        let explanation =
            Explanation::new(Rules::new(&[], None, &table, None), shape, Capabilities::ALL, &call, 0);
        assert_eq!(explanation.looked_at.len(), 5, "none for other operations");
        let nearest = explanation.nearest_miss().unwrap();
        assert_eq!(
            (nearest.choice.to_string().as_str(), nearest.verdict.to_string().as_str()),
            ("binary", "is for 2 to 8 ranks, not 16")
        );
        assert_eq!(explain(1 << 20, Some("flat")).nearest_miss(), None);
    }

    #[test]
    fn what_is_forced_asks_no_table_as_long_as_the_communicator_can() {
        let flat = explain(1 << 20, Some("flat"));
        assert_eq!((flat.decision.by, flat.looked_at.len()), (By::Forced, 0));
        assert_eq!(explain(1 << 20, Some("multicast-pull")), explain(1 << 20, None));
    }
}
