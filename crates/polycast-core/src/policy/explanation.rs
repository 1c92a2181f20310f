//! How a decision came about, rule by rule.

use std::fmt;

use super::{Choice, Collective, CommunicatorShape, Condition, Table};
use crate::units::Bytes;

/// Why a call is served by what serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Where the table came from.
    pub origin: String,
    /// The rules that were looked at, in their order; only the last can have matched.
    pub looked_at: Vec<LookedAt>,
    /// What serves the call.
    pub choice: Choice,
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
    /// It uses multicast, which the network does not carry.
    NoMulticast,
    /// The first condition that did not hold.
    Misses {
        /// What the rule asks for.
        expected: Condition,
        /// What the call has.
        found: u64,
    },
}

impl Explanation {
    /// The rule that decided; `None` if no rule matched, which means stock.
    pub fn winner(&self) -> Option<&LookedAt> {
        self.looked_at.last().filter(|rule| rule.verdict == Verdict::Matches)
    }

    pub(super) fn of(
        table: &Table,
        collective: Collective,
        shape: CommunicatorShape,
        bytes: Bytes,
    ) -> Explanation {
        let mut looked_at = Vec::new();
        for rule in table.rules() {
            let missed = rule.conditions.iter().find(|condition| !condition.holds(shape, bytes));
            let verdict = match missed {
                _ if rule.collective != collective => Verdict::OtherCollective(rule.collective),
                _ if !rule.is_possible(shape) => Verdict::NoMulticast,
                Some(&expected) => Verdict::Misses { expected, found: expected.property.of(shape, bytes) },
                None => Verdict::Matches,
            };
            looked_at.push(LookedAt {
                line: rule.line,
                choice: rule.choice,
                because: rule.because.clone(),
                verdict,
            });
            if verdict == Verdict::Matches {
                break;
            }
        }
        let mut explanation =
            Explanation { origin: table.origin().to_owned(), looked_at, choice: Choice::Stock };
        if let Some(winner) = explanation.winner() {
            explanation.choice = winner.choice;
        }
        explanation
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Matches => f.pad("matches"),
            Verdict::OtherCollective(collective) => write!(f, "is for {collective}"),
            Verdict::NoMulticast => f.pad("needs a network with multicast"),
            Verdict::Misses { expected, found } => {
                write!(f, "is for {}, not {}", expected.in_words(), expected.property.write(*found))
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
bytes = "8KiB..1GiB"
use = "chain:segment=8KiB"
because = "measured"
"#;

    fn explain(bytes: u64) -> Explanation {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        Table::parse(TABLE, "t").unwrap().explain(Collective::Broadcast, shape, Bytes(bytes))
    }

    #[test]
    fn every_rule_up_to_the_winner_says_why() {
        let explanation = explain(1 << 20);
        let said: Vec<_> =
            explanation.looked_at.iter().map(|rule| (rule.line, rule.verdict.to_string())).collect();
        assert_eq!(
            said,
            [
                (2, "is for 1 node, not 16".to_owned()),
                (6, "is for less than 8KiB, not 1MiB".to_owned()),
                (10, "matches".to_owned()),
            ]
        );
        assert_eq!(explanation.winner().unwrap().because.as_deref(), Some("measured"));
        assert_eq!(explanation.choice.to_string(), "chain:segment=8KiB");
    }

    #[test]
    fn without_a_match_it_is_stock_and_nobody_won() {
        let explanation = explain(1 << 30);
        assert_eq!((explanation.winner(), explanation.choice), (None, Choice::Stock));
        assert_eq!(explanation.looked_at.len(), 3);
    }
}
