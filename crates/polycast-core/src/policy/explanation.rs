//! How a decision came about, rule by rule.

use std::fmt;

use super::{
    By, Call, Capabilities, Choice, Collective, CommunicatorShape, Condition, Decision, Policy, Rule, Rules,
};

/// Why a call is served by what serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What [`Policy::choose`] says.
    pub decision: Decision,
    /// The rules that were looked at, in their order; only the last can have matched. None if no table was asked.
    pub looked_at: Vec<LookedAt>,
}

/// A rule that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedAt {
    /// The line of the table at which the rule starts, from 1.
    pub line: usize,
    /// What it would use.
    pub choice: Choice,
    /// The measurement or reason behind it.
    pub because: Option<String>,
    /// Whether it was for this call.
    pub verdict: Verdict,
}

/// Whether a rule was for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It decided.
    Matches,
    /// It is for another operation.
    OtherCollective(Collective),
    /// It is for ranks of one node.
    OneNode,
    /// It is for nodes of about as many ranks each.
    EvenNodes,
    /// It uses what the communicator lacks.
    Lacks(Capabilities),
    /// The first condition that did not hold.
    Misses {
        /// What the rule asks for.
        expected: Condition,
        /// What the call has; `None`: it is not known.
        found: Option<u64>,
    },
}

impl Explanation {
    /// Of a call on a communicator of this shape that has this, after so many earlier calls.
    pub fn new(
        rules: Rules<'_>,
        shape: CommunicatorShape,
        there: Capabilities,
        call: &Call,
        earlier_calls: u64,
    ) -> Explanation {
        let policy = Policy::new(rules, shape);
        let decision = *policy.choose(call, there, policy.epoch(call.collective, earlier_calls));
        let in_table = rules.table(call.collective).rules();
        let (before, decided) = match decision.by {
            By::Forced => (&[][..], None),
            By::Rule(place) | By::Prediction(Some(place)) => (&in_table[..place], in_table.get(place)),
            By::Prediction(None) | By::Nobody => (in_table, None),
        };
        let verdict = |rule: &Rule| {
            let found = |condition: &Condition| condition.property.of(shape, call, earlier_calls);
            let holds =
                |condition: &Condition| found(condition).is_some_and(|found| condition.range.contains(found));
            let missed = rule.conditions.iter().find(|condition| !holds(condition));
            let lacking = rule.choice.needs().without(there);
            match missed {
                _ if rule.collective != call.collective => Verdict::OtherCollective(rule.collective),
                _ if !rule.choice.suits(shape) => match rule.choice {
                    Choice::Algorithm(algorithm) if algorithm.entry.is_padded => Verdict::EvenNodes,
                    _ => Verdict::OneNode,
                },
                _ if lacking != Capabilities::NONE => Verdict::Lacks(lacking),
                Some(&expected) => Verdict::Misses { expected, found: found(&expected) },
                None => Verdict::Matches,
            }
        };
        let passed_over = before.iter().map(|rule| LookedAt::new(rule, verdict(rule)));
        let matched = decided.map(|rule| LookedAt::new(rule, Verdict::Matches));
        Explanation { decision, looked_at: passed_over.chain(matched).collect() }
    }

    /// The first rule that is for the call; `None` if there is none, or no table was asked.
    pub fn matching(&self) -> Option<&LookedAt> {
        self.looked_at.last().filter(|rule| rule.verdict == Verdict::Matches)
    }
}

impl LookedAt {
    fn new(rule: &Rule, verdict: Verdict) -> LookedAt {
        LookedAt { line: rule.line, choice: rule.choice, because: rule.because.clone(), verdict }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Matches => f.pad("matches"),
            Verdict::OtherCollective(collective) => write!(f, "is for {collective}"),
            Verdict::OneNode => f.pad("is for ranks of one node"),
            Verdict::EvenNodes => f.pad("is for nodes of about as many ranks each"),
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
    use crate::policy::Table;
    use crate::units::Bytes;

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
        let call = Call { collective: Collective::Broadcast, bytes: Bytes(bytes) };
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
    fn what_is_forced_asks_no_table_as_long_as_the_communicator_can() {
        let flat = explain(1 << 20, Some("flat"));
        assert_eq!((flat.decision.by, flat.looked_at.len()), (By::Forced, 0));
        assert_eq!(explain(1 << 20, Some("multicast-pull")), explain(1 << 20, None));
    }
}
