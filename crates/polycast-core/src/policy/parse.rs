//! The one decoder of table files: text in, a [`Table`] or an error with its place out.

use std::collections::BTreeSet;
use std::fmt;
use std::iter;
use std::ops;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use super::choose::borders;
use super::comments::{Comments, comments};
use super::{Choice, Collective, Condition, Property, Rule, ServedSums, Table};

/// The version of the format that this polycast reads.
pub(super) const VERSION: i64 = 1;

/// Rules that a table may have.
pub const MAX_RULES: usize = 1024;

/// Call numbers at which the rules for a collective may begin or end, call 0 among them: enough for all powers of two.
pub const MAX_EPOCHS: usize = 65;

/// Bytes that a table's text may have.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// Why a text is not a table. Written `FILE:LINE:COLUMN: problem`, both counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}:{column}: {problem}")]
pub struct TableError {
    /// The source of the text, such as a file name.
    pub origin: String,
    /// The line of the problem.
    pub line: usize,
    /// The column of the problem, in characters.
    pub column: usize,
    /// The problem: what was expected and what was found.
    pub problem: String,
}

/// A problem and the place of the text it is about.
type Located = (ops::Range<usize>, String);

/// A text with the offsets at which its lines start, so that places are found without reading it again.
struct Source<'a> {
    text: &'a str,
    origin: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str, origin: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Source { text, origin, line_starts: iter::once(0).chain(after_newlines).collect() }
    }

    /// The line of a byte, from 1.
    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    fn error(&self, (span, problem): Located) -> TableError {
        let line = self.line(span.start);
        let before = self.text.get(self.line_starts[line - 1]..span.start).unwrap_or_default();
        let column = before.chars().count() + 1;
        TableError { origin: self.origin.to_owned(), line, column, problem }
    }
}

/// A table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTable {
    version: Spanned<i64>,
    sums: Option<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Spanned<WrittenRule>>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    collective: Spanned<String>,
    ranks: Option<Spanned<WrittenRange>>,
    nodes: Option<Spanned<WrittenRange>>,
    ranks_per_node: Option<Spanned<WrittenRange>>,
    ranks_per_processor: Option<Spanned<WrittenRange>>,
    switches: Option<Spanned<WrittenRange>>,
    rate: Option<Spanned<WrittenRange>>,
    latency: Option<Spanned<WrittenRange>>,
    multicast_percent: Option<Spanned<WrittenRange>>,
    bytes: Option<Spanned<WrittenRange>>,
    earlier_calls: Option<Spanned<WrittenRange>>,
    #[serde(rename = "use")]
    choice: Spanned<String>,
    next: Option<Spanned<String>>,
    because: Option<String>,
}

/// A range: text, or a bare number for one exact value.
struct WrittenRange(String);

impl<'de> Deserialize<'de> for WrittenRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = WrittenRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or text with a range such as \"2..64\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<WrittenRange, E> {
                Ok(WrittenRange(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<WrittenRange, E> {
                Ok(WrittenRange(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Reads a table, refusing whatever it does not understand.
pub(super) fn table(text: &str, origin: &str) -> Result<Table, TableError> {
    if text.len() > MAX_TEXT_BYTES {
        let problem = format!("expected at most {MAX_TEXT_BYTES} bytes of text, found {}", text.len());
        return Err(Source::new("", origin).error((0..0, problem)));
    }
    let source = Source::new(text, origin);
    let error = |located| source.error(located);
    let written: WrittenTable = toml::from_str(text)
        .map_err(|toml| error((toml.span().unwrap_or_default(), toml.message().replace('\n', ", "))))?;
    if *written.version.get_ref() != VERSION {
        let problem = format!(
            "expected version = {VERSION}, which this polycast reads, found version = {}",
            written.version.get_ref()
        );
        return Err(error((written.version.span(), problem)));
    }
    let sums = written.sums.as_ref().map(|sums| {
        sums.get_ref()
            .parse::<ServedSums>()
            .map_err(|problem| error((sums.span(), format!("sums: {problem}"))))
    });
    let sums = sums.transpose()?;
    if let Some(first_too_many) = written.rule.get(MAX_RULES) {
        let problem = format!("expected at most {MAX_RULES} rules, found {}", written.rule.len());
        return Err(error((first_too_many.span(), problem)));
    }
    let starts: Vec<usize> = written.rule.iter().map(|rule| rule.span().start).collect();
    let Comments { head, of_rules, end } = comments(text, &starts);
    let (mut rules, mut epochs) = (Vec::new(), BTreeSet::new());
    for (written, comments) in written.rule.into_iter().zip(of_rules) {
        let span = written.span();
        let rule = rule(written, comments, &source).map_err(error)?;
        let collective = rule.collective;
        let of_calls = rule.conditions.iter().filter(|one| one.property == Property::EarlierCalls);
        epochs.extend(
            borders(of_calls.map(|one| one.range)).into_iter().map(|first| (collective as usize, first)),
        );
        if epochs.iter().filter(|(of, _)| *of == collective as usize).count() > MAX_EPOCHS {
            let problem = format!(
                "earlier_calls: expected rules for {collective} that change at most {MAX_EPOCHS} times, call 0 counted, found one more"
            );
            return Err(error((span, problem)));
        }
        rules.push(rule);
    }
    Ok(Table { origin: origin.to_owned(), head, sums, rules, end })
}

fn rule(written: Spanned<WrittenRule>, comments: Vec<String>, source: &Source) -> Result<Rule, Located> {
    let line = source.line(written.span().start);
    let written = written.into_inner();
    let conditions = [
        (Property::Ranks, written.ranks),
        (Property::Nodes, written.nodes),
        (Property::RanksPerNode, written.ranks_per_node),
        (Property::RanksPerProcessor, written.ranks_per_processor),
        (Property::Switches, written.switches),
        (Property::Rate, written.rate),
        (Property::Latency, written.latency),
        (Property::MulticastPercent, written.multicast_percent),
        (Property::Bytes, written.bytes),
        (Property::EarlierCalls, written.earlier_calls),
    ];
    let conditions = conditions.into_iter().filter_map(|(property, range)| Some((property, range?)));
    let conditions = conditions.map(|(property, range)| {
        Condition::parse(property, &range.get_ref().0)
            .map_err(|problem| (range.span(), format!("{property}: {problem}")))
    });
    let collective = Collective::named(written.collective.get_ref()).ok_or_else(|| {
        let names = Collective::ALL.map(Collective::name).join(", ");
        let problem =
            format!("collective: expected one of {names}, found {:?}", written.collective.get_ref());
        (written.collective.span(), problem)
    })?;
    let read = |key: &str, written: &Spanned<String>| {
        Choice::read(collective, written.get_ref())
            .map_err(|error| (written.span(), format!("{key}: {error}")))
    };
    let choice = read("use", &written.choice)?;
    let next = written.next.as_ref().map(|next| read("next", next)).transpose()?;
    Ok(Rule {
        line,
        comments,
        collective,
        conditions: conditions.collect::<Result<_, _>>()?,
        choice,
        next,
        because: written.because,
    })
}

#[cfg(test)]
mod tests;
