use std::collections::BTreeMap;
use std::sync::Arc;

use polycast_core::policy::chooser::Why;
use polycast_core::policy::{By, Choice, Collective, Rule, ServedSums};
use polycast_core::variables::{FORCED, PARAMETERS, SUMS};

use super::record::ReasonId;
use super::with_record;
use crate::settings::Settings;

/// The reasons for which a communicator leaves calls to the MPI.
pub struct Reasons {
    settings: Arc<Settings>,
    /// Numbers of the reasons that were met.
    known: BTreeMap<(usize, Why), ReasonId>,
}

impl Reasons {
    pub fn new(settings: &Arc<Settings>) -> Reasons {
        Reasons { settings: settings.clone(), known: BTreeMap::new() }
    }

    /// The settings by which choices are made here.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of the reason for a call that is left because of `why`.
    pub fn of(&mut self, collective: Collective, why: Why) -> ReasonId {
        let Reasons { settings, known } = self;
        let new = || with_record(|record| record.reason(collective, &text(settings, collective, why)));
        *known.entry((collective as usize, why)).or_insert_with(new)
    }
}

/// Text for a trace on why `choice` was made.
pub fn told(settings: &Settings, collective: Collective, choice: Choice, why: Why) -> String {
    match (why, choice) {
        (_, Choice::Stock) => text(settings, collective, why),
        (Why::Compared, _) => "to compare it with other ways".to_owned(),
        (Why::Faster, _) => "it was the fastest when it was compared".to_owned(),
        (Why::Rules(By::Forced), _) => FORCED[collective as usize].to_owned(),
        (Why::Rules(By::Prediction(_)), _) => format!("predicted from {PARAMETERS}"),
        (Why::Rules(_) | Why::OwnOperation | Why::LittleMemory | Why::SumAhead, _) => {
            text(settings, collective, why)
        }
    }
}

fn text(settings: &Settings, collective: Collective, why: Why) -> String {
    let table = settings.rules(None).table(collective);
    let by = match why {
        Why::Rules(by) => by,
        Why::Compared => return "to compare polycast with it".to_owned(),
        Why::OwnOperation => {
            return format!(
                "nobody knows how long the program's own operation takes ({}=WAY serves it)",
                FORCED[collective as usize]
            );
        }
        Why::LittleMemory => {
            return format!(
                "the memory of a rank is limited, and so long a call may need a copy of its data ({}=WAY serves it)",
                FORCED[collective as usize]
            );
        }
        Why::SumAhead => {
            return "sums are served in calls that are waited for: whether they are must be known before the first one".to_owned();
        }
        Why::Faster => return "it was not slower when polycast was compared with it".to_owned(),
    };
    match by {
        By::Forced => format!("{}=stock", FORCED[collective as usize]),
        By::Rule(place) => because(table.origin(), &table.rules()[place]),
        By::Sums => format!("{SUMS}={}", ServedSums::Mpi),
        By::RuleOfSums(place) => {
            let rules = settings.rules(None);
            let table = rules.table_of_sums().unwrap_or(table);
            because(table.origin(), &table.rules()[place])
        }
        By::Prediction(_) | By::Nobody if collective.combines() => {
            format!("no rule of {} is for it, or has a way that keeps the order of sums", table.origin())
        }
        By::Prediction(_) | By::Nobody => format!("no rule of {} is for it", table.origin()),
    }
}

fn because(origin: &str, rule: &Rule) -> String {
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
    use polycast_core::policy::{Call, Capabilities, CommunicatorShape, Epoch, Policy};
    use polycast_core::units::Bytes;

    use super::*;
    use crate::settings::ServiceRules;

    /// Why the smallest broadcast on 16 ranks is left to the MPI.
    fn reason(settings: &Settings, nodes: u32) -> String {
        let policy = Policy::new(settings.rules(None), CommunicatorShape::new(16, nodes, None).unwrap());
        let call = Call::new(Collective::Broadcast, Bytes(1));
        let decision = policy.choose(&call, Capabilities::PRIVATE, Epoch::default());
        assert_eq!(decision.choice, Choice::Stock);
        text(settings, Collective::Broadcast, Why::Rules(decision.by))
    }

    #[test]
    fn the_shipped_table_says_why() {
        let one_node = reason(&Settings::default(), 1);
        assert!(one_node.starts_with("within a node: short"), "{one_node}");
        assert!(one_node.contains("(the rule for nodes 1 in line "), "{one_node}");
        let small = reason(&Settings::default(), 16);
        assert!(small.contains("the rule for bytes ..") && small.contains("shipped"), "{small}");
    }

    #[test]
    fn what_the_user_forced_is_the_reason() {
        let settings = Settings {
            rules: ServiceRules {
                forced: vec![(Collective::Broadcast, Choice::Stock)],
                ..ServiceRules::default()
            },
            ..Settings::default()
        };
        assert_eq!(reason(&settings, 2), "POLYCAST_BCAST=stock");
        let of_barrier = text(&settings, Collective::Barrier, Why::Rules(By::Nobody));
        assert_eq!(of_barrier, "no rule of shipped tuning/default.toml is for it");
    }
}
