use super::Found;
use crate::policy::{Choice, Collective, CommunicatorShape, Condition, Property, Range, Rule, Table};
use crate::units::Bytes;

/// Two sizes are near enough that nothing is measured between them.
const NEAR: u64 = 2;

/// The factor of the best way's time up to which trials compare another way with the best again.
const CLOSE: f64 = 1.1;

/// The size between two at which different ways are best, their geometric mean; `None` if they are near each other.
pub fn between(below: u64, above: u64) -> Option<u64> {
    let mean = Bytes(below).geometric_mean(Bytes(above)).round() as u64;
    (above / below.max(1) >= 2 * NEAR && below < mean && mean < above).then_some(mean)
}

/// Writes rules for what was found to serve a shape best: for the shape alone, from the first size
/// that was measured on. Between two sizes with different ways their geometric mean is the border;
/// neighbours with the same way are one rule. What wins at the largest size is taken for all longer
/// ones; that the MPI does says nothing of them, so they are left to the rules behind. `found`: by
/// rising bytes, as rules count them.
pub fn rules(collective: Collective, shape: CommunicatorShape, found: &[(u64, Found)]) -> Vec<Rule> {
    let mut rules: Vec<(u64, Choice, Option<Choice>, Vec<String>)> = Vec::new();
    for (index, (bytes, one)) in found.iter().enumerate() {
        let evidence = evidence(*bytes, one);
        match rules.last_mut() {
            Some((_, choice, next, because)) if *choice == one.best => {
                *next = next.or(next_of(one));
                because.push(evidence);
            }
            _ => {
                let before = index.checked_sub(1).map(|before| Bytes(found[before].0));
                let first = before.map_or(*bytes, |before| before.border(Bytes(*bytes)).0);
                rules.push((first, one.best, next_of(one), vec![evidence]));
            }
        }
    }
    let end = match found.last() {
        Some((bytes, one)) if one.best == Choice::Stock && *bytes > 0 => bytes.saturating_mul(NEAR) - 1,
        _ => u64::MAX,
    };
    let ends = rules.iter().skip(1).map(|(first, ..)| first - 1).chain([end]).collect::<Vec<_>>();
    let of_shape = [
        (Property::Ranks, shape.ranks),
        (Property::Nodes, shape.nodes),
        (Property::RanksPerNode, shape.ranks_per_node),
    ];
    let rule = |((first, choice, next, because), last): ((u64, Choice, Option<Choice>, Vec<String>), u64)| {
        let mut conditions: Vec<Condition> = of_shape
            .iter()
            .map(|(property, value)| Condition {
                property: *property,
                range: Range::exactly((*value).into()),
            })
            .collect();
        conditions.push(Condition { property: Property::Bytes, range: Range::from_to(first, last) });
        let because = Some(format!("measured: {}", because.join("; ")));
        Rule { line: 0, comments: Vec::new(), collective, conditions, choice, next, because }
    };
    rules.into_iter().zip(ends).map(rule).collect()
}

/// The way that trials are to compare with the best: one that was nearly as fast, or not measured
/// for long enough to tell. The MPI is always compared.
fn next_of(found: &Found) -> Option<Choice> {
    let (second, time) = found.second.zip(found.time).filter(|((choice, _), _)| *choice != Choice::Stock)?;
    let is_near = second.1.median_us <= CLOSE * time.median_us || !found.separates;
    (found.best != Choice::Stock && is_near).then_some(second.0)
}

impl Table {
    /// A table of these rules, and behind them those of another table, for all calls that these are
    /// not for. `head`: lines of comment above.
    pub fn of_rules(origin: &str, head: Vec<String>, rules: Vec<Rule>, behind: Table) -> Table {
        let rules = rules.into_iter().chain(behind.rules).collect();
        Table { origin: origin.to_owned(), head, sums: behind.sums, rules, end: behind.end }
    }
}

/// Writes times for a rule's reason: "64KiB in 1.23 ms (1.20 to 1.26), stock 3.40 ms (3.30 to
/// 3.60), next chain 1.25 ms".
fn evidence(bytes: u64, found: &Found) -> String {
    let time = |time: &super::Measured| {
        let (unit, of) = if time.median_us < 1000.0 { ("us", 1.0) } else { ("ms", 1e3) };
        let [median, low, high] =
            [time.median_us, time.low_us, time.high_us].map(|us| format!("{:.*}", digits(us / of), us / of));
        format!("{median} {unit} ({low} to {high})")
    };
    let mut text = Bytes(bytes).to_string();
    if let Some(own) = &found.time {
        text += &format!(" in {}", time(own));
    }
    if let Some(stock) = found.stock.filter(|_| found.best != Choice::Stock) {
        text += &format!(", stock {}", time(&stock));
    }
    if let Some((choice, second)) = found.second.filter(|(choice, _)| *choice != Choice::Stock) {
        let doubt = if found.separates { "" } else { ", which does not separate" };
        text += &format!(", next {choice} {}{doubt}", time(&second));
    }
    text
}

/// The number of digits behind the point that makes three in all.
fn digits(value: f64) -> usize {
    match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    }
}
