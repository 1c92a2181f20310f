//! Writes a table in its one form: keys in the order of docs/table.md, and comments above their rules.

use std::fmt::{self, Display, Formatter, Write};

use super::parse::VERSION;
use super::{Condition, Rule, Table};

impl Display for Table {
    /// Writes the text that [`Table::parse`] makes the same table of.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        comments(f, &self.head)?;
        if !self.head.is_empty() {
            f.write_char('\n')?;
        }
        writeln!(f, "version = {VERSION}")?;
        self.sums.iter().try_for_each(|sums| writeln!(f, "sums = {}", quoted(&sums.to_string())))?;
        for rule in &self.rules {
            write!(f, "\n{rule}")?;
        }
        if !self.end.is_empty() {
            f.write_char('\n')?;
        }
        comments(f, &self.end)
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        comments(f, &self.comments)?;
        writeln!(f, "[[rule]]\ncollective = {}", quoted(self.collective.name()))?;
        for condition in &self.conditions {
            writeln!(f, "{} = {}", condition.property, value(condition))?;
        }
        writeln!(f, "use = {}", quoted(&self.choice.to_string()))?;
        self.next.iter().try_for_each(|next| writeln!(f, "next = {}", quoted(&next.to_string())))?;
        self.because.iter().try_for_each(|because| writeln!(f, "because = {}", quoted(because)))
    }
}

fn comments(f: &mut Formatter<'_>, lines: &[String]) -> fmt::Result {
    lines.iter().try_for_each(|line| match line.as_str() {
        "" => writeln!(f, "#"),
        line => writeln!(f, "# {line}"),
    })
}

/// Writes the value of a condition: a single number of things as a number, everything else as text.
fn value(condition: &Condition) -> String {
    let range = condition.range;
    // TOML's numbers end there.
    let is_number = range.first() == range.last() && i64::try_from(range.last()).is_ok();
    match is_number && !condition.property.has_unit() {
        true => range.first().to_string(),
        false => quoted(&condition.written()),
    }
}

/// Quotes a text for TOML, whatever is in it: JSON's has the same form, but for one character that
/// TOML wants escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::{Property, SHIPPED_TEXT, ServedSums};

    /// Without the lines at which rules stand, which change when they are written again.
    fn without_lines(mut table: Table) -> Table {
        table.rules.iter_mut().for_each(|rule| rule.line = 0);
        table
    }

    /// What people and programs may write; few different characters, so that they meet.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[#\"'\\\\ \t\u{7f}\u{1}\né\r\\[=]{0,12}", "\\PC{0,20}"]
    }

    /// Lines as a table keeps them.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let line = "[#\"' \té\\[=a]{0,8}".prop_map(|line| line.trim_end().to_owned());
        prop::collection::vec(line, 0..3)
    }

    fn conditions() -> impl Strategy<Value = Vec<Condition>> {
        let number = || prop_oneof![0u64..5, Just(4096), any::<u64>(), Just(u64::MAX)];
        let range = (number(), number()).prop_map(|(a, b)| (a.min(b), a.max(b)));
        prop::collection::vec(prop::option::weighted(0.4, range), Property::ALL.len()).prop_map(|ranges| {
            let all = Property::ALL.into_iter().zip(ranges);
            all.filter_map(|(property, range)| Some(Condition::between(property, range?))).collect()
        })
    }

    prop_compose! {
        fn rule()(
            comments in lines(),
            conditions in conditions(),
            choice in prop::sample::select(&["stock", "chain:segment=8KiB,ready", "k-nomial:k=4", "multicast-pull:sync=50us"][..]),
            next in prop::option::of(prop::sample::select(&["stock", "binary:segment=4KiB"][..])),
            because in prop::option::of(text()),
        ) -> Rule {
            let (collective, choice) = ("bcast".parse().unwrap(), choice.parse().unwrap());
            let next = next.map(|next| next.parse().unwrap());
            Rule { line: 0, comments, collective, conditions, choice, next, because }
        }
    }

    prop_compose! {
        fn table()(
            head in lines(),
            sums in prop::option::of(prop::sample::select(&ServedSums::ALL[..])),
            rules in prop::collection::vec(rule(), 0..5),
            end in lines(),
        ) -> Table {
            Table { origin: "t".to_owned(), head, sums, rules, end }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(table in table()) {
            // Behind a table without rules, comments are those of the next thing, which is its end.
            let text = table.to_string();
            let again = Table::parse(&text, "t").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(again.to_string(), text);
            prop_assert_eq!(without_lines(again), table);
        }

        #[test]
        fn the_form_of_any_text_is_stable(
            parts in prop::collection::vec(prop::sample::select(&[
                "[[rule]]\ncollective = 'bcast'\nuse = \"stock\" # beside\n", "# above", "\n", "\r\n", "because = '''a # no\ncomment'''\n",
                "nodes = \"2\"\n", "bytes = 4096\n", "#\t\n", "ranks = \"0x\"", "  #   far\n", "[[rule]] # r\nuse='flat'\ncollective='MPI_Bcast'\n",
            ][..]), 0..9),
        ) {
            if let Ok(table) = Table::parse(&format!("version = 1\n{}", parts.concat()), "t") {
                let text = table.to_string();
                let again = Table::parse(&text, "t").unwrap();
                prop_assert_eq!(without_lines(again.clone()), without_lines(table), "{}", text);
                prop_assert_eq!(again.to_string(), text);
            }
        }
    }

    #[test]
    fn comments_stay_with_their_rules() {
        let text = "# head\nversion=1 # beside\n\n# above\n[[rule]]\nuse = 'flat' # why\n# inside\ncollective = 'bcast'\nnodes = \"3\"\n# end";
        let written = Table::parse(text, "t").unwrap().to_string();
        assert_eq!(
            written,
            "# head\n# beside\n\nversion = 1\n\n# above\n# why\n# inside\n[[rule]]\ncollective = \"bcast\"\nnodes = 3\nuse = \"flat\"\n\n# end\n"
        );
    }

    #[test]
    fn the_shipped_table_is_in_this_form() {
        assert_eq!(Table::shipped().to_string(), SHIPPED_TEXT);
    }
}
