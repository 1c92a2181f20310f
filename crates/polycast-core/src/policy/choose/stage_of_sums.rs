//! Who serves sums: one stage, since no call number may change their bits.

use super::super::sums::WaysOfSums;
use super::super::{Choice, Collective, CommunicatorShape, Range, Rules, ServedSums};
use super::{By, Decision, Interval, Relevant, Stage, relevant};

impl Stage {
    /// Builds the one stage of sums.
    pub(super) fn of_sums(
        rules: Rules<'_>,
        collective: Collective,
        shape: CommunicatorShape,
        ways: WaysOfSums,
    ) -> Stage {
        let forced =
            rules.forced(collective).filter(|choice| choice.suits(shape) && ways.has_forced(*choice));
        let mut all: Vec<Relevant> = match ways.served {
            ServedSums::Mpi => return Stage::of_mpi(),
            _ => relevant(rules.table(collective), collective, shape).collect(),
        };
        if let Some(table) = rules.table_of_sums() {
            let further = relevant(table, collective, shape);
            all.extend(further.map(|rule| Relevant { by: By::RuleOfSums, ..rule }));
        }
        all.retain(|rule| rule.calls.contains(ways.decided_after()) && ways.has(rule.choice));
        for rule in &mut all {
            rule.calls = Range::all();
            rule.next = rule.next.filter(|next| ways.has(*next));
        }
        Stage::new(forced, &[], &all, &[], 0)
    }

    /// The stage of sums that are all the MPI's because the user says so.
    pub(super) fn of_mpi() -> Stage {
        let options = [Decision { choice: Choice::Stock, by: By::Sums }].into();
        let all = Interval { options, runner_up: None, asks: false, is_challenged: false };
        Stage { first_call: 0, first_bytes: [0].into(), intervals: [all].into() }
    }
}
