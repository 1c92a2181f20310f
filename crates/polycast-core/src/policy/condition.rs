//! The conditions of a rule: what it may ask about a call.

use std::fmt;

use super::{Call, CommunicatorShape};
use crate::units::{Bytes, Nanos, Rate};

/// The longest time that is written with a unit, as it can be read.
const A_DAY: Nanos = Nanos(86_400_000_000_000);

/// A number of a call that every rank knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// Ranks in the communicator.
    Ranks,
    /// Nodes that hold them.
    Nodes,
    /// Ranks on the node that holds most.
    RanksPerNode,
    /// Ranks of the job for each processor that they may run on, rounded up, where these are most; 1 where that is not known.
    RanksPerProcessor,
    /// Leaf switches that hold the nodes; 1 where the topology is not known.
    Switches,
    /// Bits per second of the MPI's messages between neighbours, as the job has measured.
    Rate,
    /// Nanoseconds that the shortest message takes between neighbours, one way.
    Latency,
    /// Rate of multicast in percent of the rate of the MPI's messages; 100 where that is not known.
    MulticastPercent,
    /// Bytes of the call in all.
    Bytes,
    /// Calls of the same operation that the communicator has had before.
    EarlierCalls,
}

impl Property {
    /// All properties, in the order in which tables are written.
    pub const ALL: [Property; 10] = [
        Property::Ranks,
        Property::Nodes,
        Property::RanksPerNode,
        Property::RanksPerProcessor,
        Property::Switches,
        Property::Rate,
        Property::Latency,
        Property::MulticastPercent,
        Property::Bytes,
        Property::EarlierCalls,
    ];

    /// The key in tables.
    pub fn name(self) -> &'static str {
        match self {
            Property::Ranks => "ranks",
            Property::Nodes => "nodes",
            Property::RanksPerNode => "ranks_per_node",
            Property::RanksPerProcessor => "ranks_per_processor",
            Property::Switches => "switches",
            Property::Rate => "rate",
            Property::Latency => "latency",
            Property::MulticastPercent => "multicast_percent",
            Property::Bytes => "bytes",
            Property::EarlierCalls => "earlier_calls",
        }
    }

    /// True if a job finds the value out by messages of its own.
    pub(super) fn is_of_network(self) -> bool {
        matches!(self, Property::Rate | Property::Latency | Property::MulticastPercent)
    }

    /// The value for a call that `earlier_calls` calls come before, on a communicator of `shape`.
    /// `None`: the value is not known, and no condition about it holds.
    pub fn of(self, shape: CommunicatorShape, call: &Call, earlier_calls: u64) -> Option<u64> {
        Some(match self {
            Property::Ranks => shape.ranks.into(),
            Property::Nodes => shape.nodes.into(),
            Property::RanksPerNode => shape.ranks_per_node.into(),
            Property::RanksPerProcessor => shape.ranks_per_processor.into(),
            Property::Switches => shape.switches.into(),
            Property::Rate => shape.network?.rate?.bits_per_second(),
            Property::Latency => shape.network?.latency?.0,
            Property::MulticastPercent => shape.network.unwrap_or_default().multicast_percent(),
            Property::Bytes => call.bytes.0,
            Property::EarlierCalls => earlier_calls,
        })
    }

    /// A value as people write it: `8KiB`, `16`.
    pub fn write(self, value: u64) -> String {
        match self {
            Property::Bytes => Bytes(value).to_string(),
            Property::Rate => {
                Rate::from_bits_per_second(value).map_or_else(|| value.to_string(), |rate| rate.to_string())
            }
            Property::Latency if value <= A_DAY.0 => Nanos(value).to_string(),
            _ => value.to_string(),
        }
    }

    /// True if values are written with their unit.
    pub(super) fn has_unit(self) -> bool {
        matches!(self, Property::Bytes | Property::Rate | Property::Latency)
    }

    /// The noun that follows a value, for one and for several; empty for values that carry their
    /// unit.
    fn nouns(self) -> (&'static str, &'static str) {
        match self {
            Property::Ranks => (" rank", " ranks"),
            Property::Nodes => (" node", " nodes"),
            Property::RanksPerNode => (" rank on the fullest node", " ranks on the fullest node"),
            Property::RanksPerProcessor => (" rank for each processor", " ranks for each processor"),
            Property::Switches => (" switch", " switches"),
            Property::Bytes | Property::Rate | Property::Latency => ("", ""),
            Property::MulticastPercent => (" percent by multicast", " percent by multicast"),
            Property::EarlierCalls => (" earlier call", " earlier calls"),
        }
    }

    fn read(self, text: &str) -> Option<u64> {
        let number = || text.trim().parse().ok();
        match self {
            Property::Bytes => text.parse::<Bytes>().ok().map(|bytes| bytes.0),
            Property::Rate => number().or_else(|| Some(text.parse::<Rate>().ok()?.bits_per_second())),
            Property::Latency => number().or_else(|| Some(text.parse::<Nanos>().ok()?.0)),
            _ => number(),
        }
    }

    /// An example of the property's ranges, for errors.
    fn example(self) -> &'static str {
        match self {
            Property::Bytes => {
                r#"a size such as "4KiB", or a range such as "64KiB..1MiB" (without 1MiB), "4KiB.." or "..4KiB""#
            }
            Property::Rate => {
                r#"a rate such as "1gbit", or a range such as "100mbit..1gbit" (without 1gbit), "1gbit.." or "..1gbit""#
            }
            Property::Latency => {
                r#"a time such as "20us", or a range such as "5us..50us" (without 50us), "50us.." or "..50us""#
            }
            _ => r#"a number such as 16, or a range such as "2..64" (without 64), "8.." or "..8""#,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Values from `first` to `last`, both inclusive, so that the largest value has its place; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// The range of every value.
    pub fn all() -> Range {
        Range { first: 0, last: u64::MAX }
    }

    /// The range of values from `first` to `last`, which counts as `first` if it is less.
    pub fn from_to(first: u64, last: u64) -> Range {
        Range { first, last: last.max(first) }
    }

    /// The range of one value.
    pub fn exactly(value: u64) -> Range {
        Range { first: value, last: value }
    }

    /// The smallest value of the range.
    pub fn first(self) -> u64 {
        self.first
    }

    /// The largest value of the range.
    pub fn last(self) -> u64 {
        self.last
    }

    /// Whether `value` is in the range.
    pub fn contains(self, value: u64) -> bool {
        (self.first..=self.last).contains(&value)
    }
}

/// A property and the values of it that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The property that is looked at.
    pub property: Property,
    /// The values that the property may have.
    pub range: Range,
}

impl Condition {
    /// Reads `"64KiB..1MiB"` (from, inclusive, to, exclusive), `"4KiB.."`, `"..4KiB"` or `"4KiB"`. The error says
    /// what was expected and found.
    pub(super) fn parse(property: Property, text: &str) -> Result<Condition, String> {
        let unreadable = || format!("expected {}, found {text:?}", property.example());
        let value = |text: &str| property.read(text).ok_or_else(unreadable);
        let range = match text.split_once("..") {
            None => Range::exactly(value(text)?),
            Some((from, to)) => {
                let first = if from.trim().is_empty() { 0 } else { value(from)? };
                let last = match to.trim() {
                    "" => u64::MAX,
                    to => value(to)?.checked_sub(1).filter(|last| *last >= first).ok_or_else(|| {
                        format!(
                            "expected a range that holds something; {text:?} is empty, for its end is outside"
                        )
                    })?,
                };
                Range { first, last }
            }
        };
        Ok(Condition { property, range })
    }

    /// The condition that a property is between these values, both inclusive.
    #[cfg(test)]
    pub(super) fn between(property: Property, (first, last): (u64, u64)) -> Condition {
        Condition { property, range: Range { first, last } }
    }

    /// The range as tables write it: `64KiB..1MiB`, `16`, `2..`.
    pub(super) fn written(&self) -> String {
        let Condition { property, range: Range { first, last } } = *self;
        let end = last.checked_add(1).map_or_else(String::new, |end| property.write(end));
        match (first, last) {
            _ if first == last => property.write(first),
            (0, last) if last < u64::MAX => format!("..{end}"),
            _ => format!("{}..{end}", property.write(first)),
        }
    }

    /// Writes the condition for sentences: `1 node`, `fewer than 3 ranks`, `2 to 15 nodes`, `2 or
    /// more nodes`, `less than 8KiB`, `64KiB to less than 1MiB`.
    pub fn in_words(&self) -> String {
        let Condition { property, range: Range { first, last } } = *self;
        let (one, several) = property.nouns();
        let counted = |value: u64| property.write(value) + if value == 1 { one } else { several };
        match (first, last) {
            _ if first == last => counted(first),
            (first, u64::MAX) => format!("{} or more{several}", property.write(first)),
            (0, last) if property.has_unit() => format!("less than {}", property.write(last + 1)),
            (first, last) if property.has_unit() => {
                format!("{} to less than {}", property.write(first), property.write(last + 1))
            }
            (0, last) => format!("fewer than {}", counted(last + 1)),
            (first, last) => format!("{first} to {}", counted(last)),
        }
    }
}

impl fmt::Display for Condition {
    /// Writes property and range: `bytes 64KiB..1MiB`, `ranks 16`, `nodes 2..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.property, self.written())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<(u64, u64), String> {
        Condition::parse(Property::Bytes, text).map(|c| (c.range.first, c.range.last))
    }

    #[test]
    fn ranges_take_their_start_and_leave_their_end() {
        assert_eq!(bytes("64KiB..1MiB"), Ok((65536, (1 << 20) - 1)));
        assert_eq!(bytes("4KiB.."), Ok((4096, u64::MAX)));
        assert_eq!(bytes("..4KiB"), Ok((0, 4095)));
        assert_eq!(bytes(" 1 .. 2 "), Ok((1, 1)));
        assert_eq!(bytes(".."), Ok((0, u64::MAX)));
        assert_eq!(bytes("0"), Ok((0, 0)));
        assert_eq!(bytes("18446744073709551615"), Ok((u64::MAX, u64::MAX)));
    }

    #[test]
    fn a_range_is_said_in_words() {
        for (property, text, words) in [
            (Property::Ranks, "..3", "fewer than 3 ranks"),
            (Property::Nodes, "1", "1 node"),
            (Property::Nodes, "2..16", "2 to 15 nodes"),
            (Property::RanksPerNode, "4..", "4 or more ranks on the fullest node"),
            (Property::RanksPerProcessor, "2..", "2 or more ranks for each processor"),
            (Property::Switches, "2..", "2 or more switches"),
            (Property::Bytes, "..8KiB", "less than 8KiB"),
            (Property::Bytes, "64KiB..1MiB", "64KiB to less than 1MiB"),
            (Property::Bytes, "4KiB..", "4KiB or more"),
            (Property::Rate, "100mbit..1gbit", "100mbit to less than 1gbit"),
            (Property::Rate, "1gbit..", "1gbit or more"),
            (Property::Latency, "..5us", "less than 5us"),
            (Property::MulticastPercent, "50..", "50 or more percent by multicast"),
        ] {
            assert_eq!(Condition::parse(property, text).unwrap().in_words(), words);
        }
    }

    #[test]
    fn empty_and_unreadable_ranges_are_refused() {
        for text in ["4KiB..4KiB", "8KiB..4KiB", "..0"] {
            assert!(bytes(text).unwrap_err().contains("is empty"), "{text}");
        }
        for text in ["", "x", "1...2", "1-2", "4KiB..8Kib..", "-1"] {
            assert!(bytes(text).unwrap_err().contains("\"64KiB..1MiB\""), "{text}");
        }
        let error = Condition::parse(Property::Ranks, "4KiB").unwrap_err();
        assert!(error.contains("\"2..64\"") && error.contains("found \"4KiB\""), "{error}");
    }

    #[test]
    fn what_is_printed_is_what_tables_say() {
        for text in ["64KiB..1MiB", "4KiB..", "..4KiB", "100", "0..", "0"] {
            let condition = Condition::parse(Property::Bytes, text).unwrap();
            assert_eq!(condition.to_string(), format!("bytes {text}"));
        }
        assert_eq!(Condition::parse(Property::Nodes, "1024..").unwrap().to_string(), "nodes 1024..");
    }
}
