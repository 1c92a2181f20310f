use polycast_core::policy::{Choice, CommunicatorShape, Rule, Table};
use polycast_core::variables::BROADCAST;

use super::record::ReasonId;
use super::with_record;
use crate::settings::{Rules, Settings};

/// Why a communicator leaves sizes to the MPI: intervals over all sizes, by their first sizes, the first of which is 0.
pub struct Reasons(Vec<(u64, ReasonId)>);

impl Reasons {
    pub fn new(settings: &Settings, shape: CommunicatorShape) -> Reasons {
        let texts = texts(settings, shape);
        Reasons(with_record(|record| {
            texts.into_iter().map(|(first, text)| (first, record.reason(&text))).collect()
        }))
    }

    pub fn of(&self, bytes: u64) -> ReasonId {
        self.0[self.0.partition_point(|(first, _)| *first <= bytes) - 1].1
    }
}

/// Where no rule leaves a size to the MPI, the text is never used.
fn texts(settings: &Settings, shape: CommunicatorShape) -> Vec<(u64, String)> {
    let by_table = |table: &Table| {
        let deciding = table.deciding_rules(shape).into_iter();
        deciding.map(|(first, rule)| (first.0, because(table.origin(), rule))).collect()
    };
    match &settings.rules {
        Rules::Forced(Choice::Stock) => vec![(0, format!("{BROADCAST}=stock"))],
        Rules::Table(table) => by_table(&table.content),
        Rules::Shipped | Rules::Forced(_) => by_table(&Table::shipped()),
    }
}

fn because(origin: &str, rule: Option<&Rule>) -> String {
    let Some(rule) = rule else { return format!("no rule of {origin} is for it") };
    let conditions: Vec<String> = rule.conditions.iter().map(ToString::to_string).collect();
    let conditions = if conditions.is_empty() { "all".to_owned() } else { conditions.join(", ") };
    let rule_text = format!("the rule for {conditions} in line {} of {origin}", rule.line);
    match &rule.because {
        Some(because) => format!("{because} ({rule_text})"),
        None => rule_text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(nodes: u32) -> Vec<(u64, String)> {
        texts(&Settings::default(), CommunicatorShape::new(16, nodes, None).unwrap().without_multicast())
    }

    #[test]
    fn the_shipped_table_says_why() {
        let one_node = reasons(1);
        assert_eq!(one_node[0].0, 0);
        for (_, reason) in one_node {
            assert!(reason.starts_with("within a node data moves through shared memory"), "{reason}");
            assert!(reason.contains("(the rule for nodes 1 in line "), "{reason}");
        }
        let small = &reasons(16)[0].1;
        assert!(small.contains("the rule for bytes ..") && small.contains("shipped"), "{small}");
    }

    #[test]
    fn what_the_user_forced_is_the_reason() {
        let settings = Settings { rules: Rules::Forced(Choice::Stock), ..Settings::default() };
        let found = texts(&settings, CommunicatorShape::new(2, 2, None).unwrap());
        assert_eq!(found, [(0, "POLYCAST_BCAST=stock".to_owned())]);
    }
}
