//! What bytes are, without the bytes.

use std::fmt;
use std::rc::Rc;

use crate::collective::{Call, CombinationOrder, CombinationTree};

/// The combination of what these ranks contribute. Runs of ranks `first..end`, rising, that do not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contributors(Rc<[(u32, u32)]>);

impl Contributors {
    pub fn run((first, end): (u32, u32)) -> Contributors {
        Contributors(Rc::new([(first, end)]))
    }

    /// Returns `self ∘ right`; `None` if somebody would contribute twice, or, where order matters,
    /// if `right` does not begin with the rank after the last of `self`, or the two are not what the
    /// call's tree combines. Where each combination so far was one of the tree, consecutive ranks
    /// are combined as their subtree says.
    pub fn combine(&self, right: &Contributors, call: &Call) -> Option<Contributors> {
        let order = call.order.among(call.ranks);
        if let ([left], [right]) = (&*self.0, &*right.0)
            && left.1 == right.0
        {
            let is_split = || CombinationTree::new(call.ranks).split(&(left.0..right.1)) == Some(right.0);
            return (order < CombinationOrder::Tree || is_split())
                .then(|| Contributors::run((left.0, right.1)));
        }
        if order > CombinationOrder::Any {
            return None;
        }
        let mut runs = [&*self.0, &*right.0].concat();
        runs.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(runs.len());
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.1 > run.0 => return None,
                Some(last) if last.1 == run.0 => last.1 = run.1,
                _ => joined.push(run),
            }
        }
        Some(Contributors(joined.into()))
    }
}

impl fmt::Display for Contributors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, end)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match end - first {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", end - 1)?,
            }
        }
        Ok(())
    }
}

/// The contents of a byte, and of the bytes after it, whose offsets count on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub contributors: Contributors,
    /// The offset of the byte in each contribution.
    pub offset: u64,
}

impl Value {
    pub fn skip(&self, bytes: u64) -> Value {
        Value { contributors: self.contributors.clone(), offset: self.offset + bytes }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of {}", self.offset, self.contributors)
    }
}

/// Bytes, as lengths and values.
pub(super) type Run = Vec<(u64, Value)>;

/// `bytes` bytes of `run` from byte `first` on.
pub(super) fn part(run: &Run, first: u64, bytes: u64) -> Run {
    let (mut found, mut start) = (Run::new(), 0);
    for (length, value) in run {
        let (from, end) = (first.max(start), (first + bytes).min(start + length));
        if from < end {
            found.push((end - from, value.skip(from - start)));
        }
        start += length;
    }
    found
}
