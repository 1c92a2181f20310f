//! The choice for a call, and its reasons: the answer first, then its reason, then what came
//! nearest to another one.

use std::fmt::Write;
use std::iter;

use polycast_core::policy::{self, By, Explanation, LookedAt, Verdict};
use polycast_core::units::Bytes;
use serde::Serialize;

use super::measured::TuneMeasurement;
use super::mixed::OnTwoLevels;
use super::prediction::Reason;
use crate::terminal::hanging;
use crate::times::Times;

/// The choice for a call and its reasons, as `--json` says them.
#[derive(Serialize)]
pub struct Decision {
    pub bytes: u64,
    pub choice: String,
    /// `environment`, or the table that was asked.
    pub decided_by: String,
    /// The line of the table that decided.
    pub line: Option<usize>,
    pub because: Option<String>,
    /// The choices for later calls of the same size, where they are other ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Later>,
    /// The rule that came nearest to serving it, and all later calls, in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    pub looked_at: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Reason>,
    /// The times that the tree of the choice is planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// The measurements of a tuning, where the table is one that the tuning wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<TuneMeasurement>,
    /// The measured parameters' word on two levels, where nodes have several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_level: Option<OnTwoLevels>,
}

#[derive(Serialize)]
pub struct Rule {
    line: usize,
    choice: String,
    matches: bool,
    verdict: String,
}

/// The choice for a call after so many others.
#[derive(Serialize)]
pub struct Later {
    earlier_calls: u64,
    choice: String,
    line: Option<usize>,
    because: Option<String>,
}

/// A rule that is not for a call, and what kept it from being so.
#[derive(Serialize)]
pub struct Nearest {
    line: usize,
    choice: String,
    verdict: String,
    because: Option<String>,
}

impl Decision {
    /// `table`, `table_of_sums`: where rules come from. `reason` takes what the table alone would use.
    pub fn new(
        explanation: &Explanation,
        table: &str,
        table_of_sums: &str,
        bytes: Bytes,
        reason: impl FnOnce(String) -> Option<Reason>,
    ) -> Decision {
        let policy::Decision { choice, by } = explanation.decision;
        let matching = explanation.matching();
        let deciding = matching.filter(|_| matches!(by, By::Rule(_) | By::RuleOfSums(_)));
        let prediction = matches!(by, By::Prediction(_)).then(|| match matching {
            Some(rule) => format!("{table}, line {}, would use {}", rule.line, rule.choice),
            None => format!("{table} has no rule for this call"),
        });
        Decision {
            bytes: bytes.0,
            choice: choice.to_string(),
            decided_by: match by {
                By::Forced | By::Sums => "environment",
                By::RuleOfSums(_) => table_of_sums,
                By::Prediction(_) => "prediction",
                By::Rule(_) | By::Nobody => table,
            }
            .to_owned(),
            line: deciding.map(|rule| rule.line),
            because: deciding.and_then(|rule| rule.because.clone()),
            prediction: prediction.and_then(reason),
            times: None,
            measured: None,
            two_level: None,
            later: Vec::new(),
            nearest: None,
            looked_at: explanation.looked_at.iter().map(Rule::new).collect(),
        }
    }

    /// Writes all of the decision but its heading; with the rules that were looked at if
    /// `lists_rules`.
    pub fn write(&self, out: &mut String, lists_rules: bool) -> std::fmt::Result {
        if let Some(times) = &self.times {
            writeln!(out, "{}", hanging("  planned for ", "    ", &times.to_string()))?;
        }
        if let Some(two_level) = &self.two_level {
            two_level.write(out)?;
        }
        match &self.prediction {
            Some(prediction) => prediction.write(out)?,
            None => self.write_reason(out)?,
        }
        self.later.iter().try_for_each(|later| later.write(out))?;
        self.nearest.iter().try_for_each(|nearest| nearest.write(out))?;
        self.write_rules(out, lists_rules)?;
        self.measured.iter().try_for_each(|measured| measured.write(out))
    }

    /// The choices for the call, and for later ones.
    pub fn choices(&self) -> impl Iterator<Item = &String> {
        iter::once(&self.choice).chain(self.later.iter().map(|later| &later.choice))
    }

    fn write_reason(&self, out: &mut String) -> std::fmt::Result {
        let decided_by = match self.line {
            Some(line) => format!("{}, line {line}", self.decided_by),
            None if self.decided_by == "environment" => "the environment".to_owned(),
            None => format!("{}: no rule matches, so the MPI below serves it", self.decided_by),
        };
        writeln!(out, "{}", hanging("  decided by ", "    ", &decided_by))?;
        match &self.because {
            Some(because) => writeln!(out, "{}", hanging("  because ", "    ", because)),
            None => Ok(()),
        }
    }

    fn write_rules(&self, out: &mut String, lists_rules: bool) -> std::fmt::Result {
        let passed_over = self.looked_at.iter().filter(|rule| !rule.matches).count();
        if !lists_rules && passed_over > 1 {
            let text = format!("{passed_over} rules were passed over; --all lists them");
            return writeln!(out, "{}", hanging("  ", "    ", &text));
        }
        if !lists_rules || self.looked_at.is_empty() {
            return Ok(());
        }
        out.push_str("\nrules looked at\n");
        let width = self.looked_at.iter().map(|rule| rule.choice.len()).max().unwrap_or(0);
        for rule in &self.looked_at {
            let Rule { line, choice, verdict, .. } = rule;
            let text = format!("line {line:<4} {choice:<width$}   {verdict}");
            writeln!(out, "{}", hanging("  ", "      ", &text))?;
        }
        Ok(())
    }
}

impl Later {
    /// The choice by an explanation for calls after `earlier_calls` others.
    pub fn new(explanation: &Explanation, earlier_calls: u64) -> Later {
        let by = explanation.decision.by;
        let deciding = explanation.matching().filter(|_| matches!(by, By::Rule(_) | By::RuleOfSums(_)));
        Later {
            earlier_calls,
            choice: explanation.decision.choice.to_string(),
            line: deciding.map(|rule| rule.line),
            because: deciding.and_then(|rule| rule.because.clone()),
        }
    }

    /// `, from the 33rd call on two-level`
    pub fn in_short(&self) -> String {
        format!(", {} {}", from_call(self.earlier_calls), self.choice)
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Later { earlier_calls, choice, line, because } = self;
        let place = line.map_or(String::new(), |line| format!(", line {line}"));
        let because = because.as_ref().map_or(String::new(), |because| format!(", because {because}"));
        let text = format!("{choice}{place}{because}");
        writeln!(out, "{}", hanging(&format!("  {}: ", from_call(*earlier_calls)), "    ", &text))
    }
}

/// The call from which on a choice after so many earlier calls holds, in words: `from the 33rd call
/// on`.
pub fn from_call(earlier_calls: u64) -> String {
    let call = earlier_calls.saturating_add(1);
    let ending = match (call % 10, call % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("from the {call}{ending} call on")
}

impl Nearest {
    pub fn new(rule: &LookedAt) -> Nearest {
        Nearest {
            line: rule.line,
            choice: rule.choice.to_string(),
            verdict: rule.verdict.to_string(),
            because: rule.because.clone(),
        }
    }

    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let Nearest { line, choice, verdict, because } = self;
        let because = because.as_ref().map_or(String::new(), |because| format!(" ({because})"));
        let text = format!("line {line}, {choice}, {verdict}{because}");
        writeln!(out, "{}", hanging("  nearest miss: ", "    ", &text))
    }
}
impl Rule {
    fn new(rule: &LookedAt) -> Rule {
        Rule {
            line: rule.line,
            choice: rule.choice.to_string(),
            matches: rule.verdict == Verdict::Matches,
            verdict: rule.verdict.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::from_call;

    #[test]
    fn calls_are_counted_as_people_do() {
        for (earlier_calls, said) in
            [(0, "1st"), (1, "2nd"), (2, "3rd"), (3, "4th"), (10, "11th"), (32, "33rd")]
        {
            assert_eq!(from_call(earlier_calls), format!("from the {said} call on"));
        }
        assert_eq!(from_call(111), "from the 112th call on");
    }
}
