//! What can be said about an algorithm after its name.

use std::fmt;
use std::num::NonZeroU32;

use polycast_protocol::RootSync;

use crate::units::{Bytes, Nanos};

/// A parameter of an algorithm. Its value is a number above 0; 0 stands for one that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name as it is written: `k` in `k-ary:k=4`.
    pub name: &'static str,
    /// The meaning, in words.
    pub about: &'static str,
    /// The values that the parameter can have.
    pub domain: Domain,
    /// The need for the parameter: if it may be left out.
    pub need: Need,
    /// The value that holds where none is given, in words; empty if the parameter is required.
    pub default: &'static str,
    /// A value for examples, and where an algorithm needs one and nobody says which.
    pub typical: u64,
}

/// The values that a parameter can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A whole number from `least`, at least 1, to `most`; `u32::MAX` is no limit.
    Number {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// Nanoseconds, written `20us`.
    Time,
    /// Bytes, written `8KiB`.
    Size,
    /// Given or not: the name alone, or `=yes`, `=no`.
    Switch,
    /// The way in which the root of a multicast waits for receivers, written `none`, `50us`,
    /// `random`, `adaptive`.
    Wait,
    /// A word of this list; the first one holds where none is given.
    Word(&'static [&'static str]),
    /// Bytes, written `8KiB`, or `none`.
    SizeOrNone,
}

/// Whether a parameter may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The algorithm is not defined without it.
    Required,
    /// The parameter may be left out.
    Optional,
    /// The parameter may be left out if the one of this name is left out too.
    Beside(&'static str),
}

/// The segment sizes that are tried: Patarasuk et al. 2008 take those from 256 B to 32 KiB, which are within a factor of 2 of the
/// best one; faster networks want larger ones. Those below a packet are left out: in the stream in which `g` is measured TCP
/// puts them together, in a pipeline each goes with headers of its own (256 B took 1.2 to 1.6 times as long as 1 KiB).
pub const SEGMENTS: [u64; 10] =
    [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10];

/// The value of [`Domain::SizeOrNone`] that is none.
pub(crate) const NONE: u64 = u64::MAX;

/// The largest message; without it everything goes whole.
pub(super) const SEGMENT: Parameter = Parameter {
    name: "segment",
    about: "cut the data into segments of this size, which travel behind one another; without it the data goes whole",
    domain: Domain::Size,
    need: Need::Optional,
    default: "the whole message",
    typical: 8 << 10,
};

/// Children tell their parents that they have arrived.
pub(super) const READY: Parameter = Parameter::switch(
    "ready",
    "children say that they have arrived before any data is sent to them; bounds what piles up at a late rank",
);

impl Parameter {
    /// A number of at least `least`, without which the algorithm is not defined.
    pub const fn number(name: &'static str, about: &'static str, least: u32, typical: u64) -> Parameter {
        let domain = Domain::Number { least, most: u32::MAX };
        Parameter { name, about, domain, need: Need::Required, default: "", typical }
    }

    /// A switch: something that is done or, where nobody says so, not.
    pub const fn switch(name: &'static str, about: &'static str) -> Parameter {
        Parameter { name, about, domain: Domain::Switch, need: Need::Optional, default: "no", typical: 1 }
    }

    /// Limits a number to at most `most`.
    pub const fn at_most(self, most: u32) -> Parameter {
        match self.domain {
            Domain::Number { least, .. } => Parameter { domain: Domain::Number { least, most }, ..self },
            _ => self,
        }
    }

    /// A time of messages that may be left out together with another.
    pub const fn time(
        name: &'static str,
        about: &'static str,
        beside: &'static str,
        typical: Nanos,
    ) -> Parameter {
        let (domain, need) = (Domain::Time, Need::Beside(beside));
        Parameter { name, about, domain, need, default: "as measured", typical: typical.0 }
    }

    /// Lets the parameter be left out: `default` holds then.
    pub const fn or(self, default: &'static str) -> Parameter {
        Parameter { need: Need::Optional, default, ..self }
    }

    /// Reads a value; `None` if it is none of the domain.
    pub(super) fn read(&self, text: &str) -> Option<u64> {
        let above_0 = |value: u64| (value > 0).then_some(value);
        match self.domain {
            Domain::Number { least, most } => {
                let number = text.parse().ok().map(NonZeroU32::get);
                number.filter(|number| (least..=most).contains(number)).map(u64::from)
            }
            Domain::Time => text.parse().ok().and_then(|time: Nanos| above_0(time.0)),
            Domain::Size => text.parse().ok().and_then(|size: Bytes| above_0(size.0)),
            Domain::Switch => match text {
                "" | "yes" => Some(1),
                "no" => Some(0),
                _ => None,
            },
            Domain::Wait => text.parse().ok().map(value_of_wait),
            Domain::Word(words) => words.iter().position(|word| *word == text).map(|at| at as u64),
            Domain::SizeOrNone if text == "none" => Some(NONE),
            Domain::SizeOrNone => text.parse().ok().and_then(|size: Bytes| above_0(size.0)),
        }
    }

    /// The parameter with this value as it is written: `k=4`, `segment=8KiB`, `ready`.
    pub fn written(&self, value: u64) -> String {
        let name = self.name;
        match self.domain {
            Domain::Number { .. } => format!("{name}={value}"),
            Domain::Time => format!("{name}={}", Nanos(value)),
            Domain::SizeOrNone if value == NONE => format!("{name}=none"),
            Domain::Size | Domain::SizeOrNone => format!("{name}={}", Bytes(value)),
            Domain::Word(words) => format!("{name}={}", words.get(value as usize).unwrap_or(&"")),
            Domain::Switch => name.to_owned(),
            Domain::Wait => format!("{name}={}", wait_of_value(value)),
        }
    }

    /// The values that a search tries on `ranks` ranks for messages of `bytes`, 0 for none. Of numbers the two smallest and the
    /// powers of two up to the number of ranks; of sizes those of [`SEGMENTS`] that cut the
    /// message. Times are measured, not
    /// searched, and a switch that costs nothing has nothing to be searched.
    pub fn tried(&self, ranks: u32, bytes: u64) -> Vec<u64> {
        let absent = (self.need != Need::Required).then_some(0);
        let powers = (0..u64::BITS).map(|power| 1 << power);
        let values: Vec<u64> = match self.domain {
            Domain::Number { least, most } => {
                let [least, most] = [least, most].map(u64::from);
                let numbers =
                    [least, least + 1].into_iter().chain(powers.skip_while(|power| *power <= least + 1));
                numbers.take_while(|n| *n <= most && (*n < u64::from(ranks) || *n == least)).collect()
            }
            Domain::Size => SEGMENTS.into_iter().take_while(|size| *size < bytes).collect(),
            Domain::SizeOrNone => vec![NONE],
            Domain::Word(words) => (1..words.len() as u64).collect(),
            Domain::Time | Domain::Switch | Domain::Wait => Vec::new(),
        };
        absent.into_iter().chain(values).collect()
    }
}

/// Writes the words that stand behind "expected" where a value cannot be read.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number { least, most: u32::MAX } => write!(f, "a whole number of at least {least}"),
            Domain::Number { least, most } => write!(f, "a whole number from {least} to {most}"),
            Domain::Time => f.pad("a time above 0 such as 20us"),
            Domain::Size => f.pad("a size above 0 such as 8KiB"),
            Domain::Switch => f.pad("yes or no"),
            Domain::Wait => f.pad("none, random, adaptive or a delay such as 50us"),
            Domain::Word(words) => f.pad(&words.join(", ")),
            Domain::SizeOrNone => f.pad("a size above 0 such as 8KiB, or none"),
        }
    }
}

/// Waits as values of [`Domain::Wait`]: what is not given is adaptive; delays stand behind the others.
const WAITS: [RootSync; 3] = [RootSync::Adaptive, RootSync::None, RootSync::Random];

pub(super) fn value_of_wait(sync: RootSync) -> u64 {
    match (WAITS.iter().position(|wait| *wait == sync), sync) {
        (None, RootSync::Delay(delay)) => delay.0.saturating_add(WAITS.len() as u64),
        (at, _) => at.unwrap_or(0) as u64,
    }
}

pub(super) fn wait_of_value(value: u64) -> RootSync {
    let delay = || RootSync::Delay(Nanos(value - WAITS.len() as u64));
    WAITS.get(value as usize).copied().unwrap_or_else(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_tries_what_makes_a_difference() {
        let k = Parameter::number("k", "", 2, 4);
        assert_eq!(k.tried(16, 0), [2, 3, 4, 8]);
        assert_eq!(k.tried(2, 0), [2], "what needs a value gets one");
        assert_eq!(k.at_most(4).tried(16, 0), [2, 3, 4]);
        assert_eq!(Parameter::number("block", "", 1, 4).or("none").tried(5, 0), [0, 1, 2, 4]);
        assert_eq!(SEGMENT.tried(4, 4 << 10), [0, 1 << 10, 2 << 10]);
        assert_eq!(SEGMENT.tried(4, 1 << 40).len(), 11);
        assert_eq!(Parameter::time("hold", "", "end", Nanos(1)).tried(4, 1), [0]);
    }
}
