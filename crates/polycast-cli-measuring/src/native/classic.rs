//! Numbers, one behind the other, with comments from `#` to the end of a line (ompi/mca/coll/tuned/coll_tuned_dynamic_file.c of 4.1):
//!
//! ```text
//! 1            collectives
//!   7          a collective
//!   1          sizes of communicators
//!     16       from so many ranks on
//!     2        rules
//!       0 6 0 0            bytes, algorithm, fan, segment
//!       65536 3 0 16384
//! ```

use super::names::{collective_of, number_of};
use super::{OfCollective, OfRanks, Placement, Rule, Rules, Way};

/// The most things of one kind in a file.
const MOST: u64 = 10_000;
/// The first words of files of a later version, whose rules may have a fifth number.
pub const VERSION: &str = "rule-file-version-";

struct Numbers<'a> {
    left: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    line: usize,
}

impl Numbers<'_> {
    fn next(&mut self, what: &str, most: u64) -> Result<u64, String> {
        let Some((line, word)) = self.left.next() else {
            return Err(format!("line {}: expected {what}, found the end", self.line));
        };
        self.line = line;
        let number = word.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| format!("line {line}: expected {what}, a number up to {most}, found {word:?}"))
    }
}

pub fn parse(text: &str) -> Result<Rules, String> {
    if let Some(version) = text.trim_start().strip_prefix(VERSION) {
        let version = version.split_whitespace().next().unwrap_or_default();
        return Err(format!(
            "expected a file without {VERSION}…, whose rules have four numbers, found version {version}"
        ));
    }
    let words = text.lines().enumerate().flat_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().map(move |word| (index + 1, word))
    });
    let mut numbers = Numbers { left: Box::new(words), line: 1 };
    let mut rules = Rules::default();
    for _ in 0..numbers.next("how many collectives", MOST)? {
        let number = numbers.next("the number of a collective", MOST)?;
        let collective = collective_of(number).ok_or_else(|| {
            format!("line {}: collective {number} is none that is known here", numbers.line)
        })?;
        let mut communicators = Vec::new();
        for _ in 0..numbers.next("how many sizes of communicators", MOST)? {
            let ranks = numbers.next("a number of ranks", u32::MAX.into())? as u32;
            let mut of_ranks = OfRanks::new(ranks, Vec::new());
            for _ in 0..numbers.next("how many rules", MOST)? {
                let bytes = numbers.next("bytes", u64::MAX)?;
                let algorithm = numbers.next("an algorithm", MOST)? as u32;
                let (fan, segment) =
                    (numbers.next("a fan-out", MOST)? as u32, numbers.next("a segment", u64::MAX)?);
                let way = Way::new(collective, algorithm, fan, segment).ok_or_else(|| {
                    format!(
                        "line {}: {collective} has no algorithm {algorithm} that is known here",
                        numbers.line
                    )
                })?;
                of_ranks.rules.push(Rule { bytes, way, because: None });
            }
            communicators.push(of_ranks);
        }
        rules.collectives.push(OfCollective { collective, communicators });
    }
    match numbers.left.next() {
        None => Ok(rules),
        Some((line, word)) => Err(format!("line {line}: expected the end, found {word:?}")),
    }
}

pub fn write(rules: &Rules, head: &[String]) -> Result<String, String> {
    let mut text: String = head.iter().map(|line| format!("# {line}\n")).collect();
    text += &format!("{} # collectives\n", rules.collectives.len());
    for OfCollective { collective, communicators } in &rules.collectives {
        text += &format!(
            "{} # {collective}\n{} # sizes of communicators\n",
            number_of(*collective),
            communicators.len()
        );
        for OfRanks { placement, ranks, rules } in communicators {
            if *placement != Placement::Any {
                return Err(format!(
                    "{collective} has rules for ranks that are {}, of which a file in numbers knows nothing: choose another format",
                    placement.name()
                ));
            }
            text += &format!(
                "{ranks} # ranks and more\n{} # rules: bytes, algorithm, fan-out, segment\n",
                rules.len()
            );
            for Rule { bytes, way, because } in rules {
                let because = because.as_ref().map_or_else(String::new, |because| format!("; {because}"));
                text += &format!("{bytes} {} {} {} # {way}{because}\n", way.algorithm, way.fan, way.segment);
            }
        }
    }
    Ok(text)
}
