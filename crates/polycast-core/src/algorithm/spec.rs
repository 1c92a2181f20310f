//! An algorithm with its parameters: `chain:segment=8KiB`, `k-nomial:k=4`, `scatter-ring`.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use super::parameter::{READY, SEGMENT};
use super::{Entry, Registry};
use crate::tree::SendTimes;
use crate::units::Nanos;

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    /// The algorithm's entry in the registry.
    pub entry: &'static Entry,
    /// The values of the algorithm's own parameters.
    pub values: ParameterValues,
    /// The largest message; `None` sends everything whole.
    pub segment: Option<NonZeroU64>,
    /// Children tell their parents that they have arrived, before any data is sent. Bounds the memory that early
    /// data takes at a late rank, and costs nothing when the root is the last to arrive.
    pub ready: bool,
}

/// The values of an entry's parameters, in their order; 0 for what is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParameterValues([u64; ParameterValues::MOST]);

impl ParameterValues {
    /// The most parameters of its own that an algorithm can have.
    pub const MOST: usize = 4;
}

impl Algorithm {
    /// An algorithm that needs no parameters, not cut.
    pub(super) const fn plain(entry: &'static Entry) -> Algorithm {
        Algorithm { entry, values: ParameterValues([0; ParameterValues::MOST]), segment: None, ready: false }
    }

    /// An algorithm with the values of its parameters in their order, not cut.
    pub(super) fn new(entry: &'static Entry, values: impl IntoIterator<Item = u64>) -> Algorithm {
        let mut all = ParameterValues::default();
        all.0.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        let same = entry.same_as.filter(|(value, _)| *value == all.0[0]);
        match same.and_then(|(_, name)| Registry::BUILT_IN.find(entry.collectives[0], name)) {
            Some(same) => Algorithm::plain(same),
            None => Algorithm { values: all, ..Algorithm::plain(entry) },
        }
    }

    /// The algorithm without segments, and without waiting for anybody: the way of the data alone.
    pub fn whole(self) -> Algorithm {
        Algorithm { segment: None, ready: false, ..self }
    }

    /// Returns the algorithm with this value of one of its own parameters; `None` if it has none of
    /// that name.
    pub fn with_value(self, name: &str, value: u64) -> Option<Algorithm> {
        let at = self.entry.parameters.iter().position(|parameter| parameter.name == name)?;
        let mut values = self.values.0;
        values[at] = value;
        let Algorithm { segment, ready, .. } = self;
        Some(Algorithm { segment, ready, ..Algorithm::new(self.entry, values) })
    }

    /// Returns the algorithm with each radix that a search tries on `ranks` ranks, rising;
    /// unchanged, if it has none.
    pub fn radices(self, ranks: u32) -> Vec<Algorithm> {
        let Some(radix) = self.entry.radix() else { return vec![self] };
        let values = radix.tried(ranks, 0).into_iter();
        let all = values.filter_map(|value| self.with_value(radix.name, value));
        // With one of them it may be another algorithm, which is there by its own name.
        all.filter(|other| other.entry == self.entry).collect()
    }

    /// Returns the value of one of the algorithm's own parameters, if it is given.
    pub fn given(&self, name: &str) -> Option<u64> {
        let at = self.entry.parameters.iter().position(|parameter| parameter.name == name)?;
        Some(self.values.0[at]).filter(|value| *value > 0)
    }

    /// Returns the value of one of the algorithm's own parameters as a number, if it is given.
    pub fn given_number(&self, name: &str) -> Option<NonZeroU32> {
        self.given(name).and_then(|value| u32::try_from(value).ok()).and_then(NonZeroU32::new)
    }

    /// Returns the value of a parameter that the algorithm needs, as a number.
    ///
    /// # Panics
    /// If it has no such parameter, or that may be left out.
    pub fn number(&self, name: &str) -> NonZeroU32 {
        self.given_number(name).unwrap_or_else(|| panic!("{} without {name}", self.entry.name))
    }

    /// The times of a message, if they are given: `hold` and `end`.
    pub fn times(&self) -> Option<SendTimes> {
        Some(SendTimes { hold: Nanos(self.given("hold")?), end: Nanos(self.given("end")?) })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let common = [(&SEGMENT, self.segment.map_or(0, NonZeroU64::get)), (&READY, self.ready.into())];
        let common = common.into_iter().filter(|(parameter, _)| self.entry.common.contains(parameter));
        let own = self.entry.parameters.iter().zip(self.values.0);
        let written: Vec<String> = own
            .chain(common)
            .filter(|(_, value)| *value > 0)
            .map(|(parameter, value)| parameter.written(value))
            .collect();
        let separator = if written.is_empty() { "" } else { ":" };
        f.pad(&format!("{}{separator}{}", self.entry.name, written.join(",")))
    }
}
