//! A buffer during a call: what is in it, who wrote it and who has read it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::clock::Clock;
use super::value::{Run, Value};
use crate::schedule::LaneIndex;

/// A step of a rank: its lane, and its index there.
pub(super) type StepOfRank = (LaneIndex, u64);

#[derive(Clone, Debug, Default)]
struct MemoryPart {
    end: u64,
    value: Option<Value>,
    writer: Option<StepOfRank>,
    readers: Vec<StepOfRank>,
}

/// The reason why bytes may not be read or written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// No value is there, or the step that writes it may not be done.
    NotThere,
    /// The bytes hold the same value already.
    Twice,
    /// The named step may not be done with the bytes.
    InUse(StepOfRank),
}

/// The contents of a buffer: parts by their starts, without gaps.
#[derive(Debug, Default)]
pub(super) struct CheckedMemory {
    parts: BTreeMap<u64, MemoryPart>,
    size: u64,
}

impl CheckedMemory {
    pub fn new(size: u64) -> CheckedMemory {
        let whole = MemoryPart { end: size, ..MemoryPart::default() };
        CheckedMemory { parts: [(0, whole)].into_iter().filter(|(_, part)| part.end > 0).collect(), size }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts a value into `bytes` before the call.
    pub fn fill(&mut self, bytes: &Range<u64>, value: &Value) {
        self.split(bytes);
        for (start, part) in self.parts.range_mut(bytes.clone()) {
            part.value = Some(value.skip(start - bytes.start));
        }
    }

    /// Returns the contents of `bytes` for a step with this knowledge, and remembers that the step
    /// has read them.
    pub fn read(&mut self, bytes: &Range<u64>, step: StepOfRank, clock: &Clock) -> Result<Run, Denied> {
        self.split(bytes);
        let mut run = Run::new();
        for (start, part) in self.parts.range_mut(bytes.clone()) {
            let is_known = part.writer.is_none_or(|writer| clock.knows(writer));
            let value = part.value.as_ref().filter(|_| is_known).ok_or(Denied::NotThere)?;
            run.push((part.end - start, value.clone()));
            part.readers.push(step);
        }
        Ok(run)
    }

    /// Writes `run` from byte `at` on, if a step with this knowledge may do that.
    pub fn write(&mut self, at: u64, run: Run, step: StepOfRank, clock: &Clock) -> Result<(), Denied> {
        let bytes = at..at + run.iter().map(|(length, _)| length).sum::<u64>();
        self.split(&bytes);
        let mut start = at;
        for (length, value) in &run {
            for (at, part) in self.parts.range(start..start + length) {
                if part.value.as_ref() == Some(&value.skip(at - start)) {
                    return Err(Denied::Twice);
                }
            }
            start += length;
        }
        for (_, part) in self.parts.range(bytes.clone()) {
            let mut before = part.writer.iter().chain(&part.readers);
            if let Some(other) = before.find(|other| **other != step && !clock.knows(**other)) {
                return Err(Denied::InUse(*other));
            }
        }
        if let (Some(part), [(_, value)]) = (self.parts.get_mut(&at), &*run)
            && part.end == bytes.end
        {
            *part = MemoryPart {
                end: bytes.end,
                value: Some(value.clone()),
                writer: Some(step),
                readers: Vec::new(),
            };
            return Ok(());
        }
        // What was there goes, in one piece or in many.
        let gone: Vec<u64> = self.parts.range(bytes).map(|(start, _)| *start).collect();
        gone.into_iter().for_each(|start| drop(self.parts.remove(&start)));
        let mut start = at;
        for (length, value) in run {
            let (value, writer) = (Some(value), Some(step));
            self.parts.insert(start, MemoryPart { end: start + length, value, writer, readers: Vec::new() });
            start += length;
        }
        Ok(())
    }

    /// Returns the position and the contents of the first of these bytes that is not what `value`,
    /// counted on from their start, says.
    pub fn first_other(&self, bytes: &Range<u64>, value: &Value) -> Option<(u64, Option<&Value>)> {
        let mut at = bytes.start;
        while at < bytes.end {
            let (start, part) = self.parts.range(..=at).next_back()?;
            let found = part.value.as_ref();
            if found.map(|found| found.skip(at - start)) != Some(value.skip(at - bytes.start)) {
                return Some((at, found));
            }
            at = part.end;
        }
        None
    }

    /// Lets parts begin and end where `bytes` do.
    fn split(&mut self, bytes: &Range<u64>) {
        for at in [bytes.start, bytes.end] {
            let Some((start, part)) = self.parts.range_mut(..at).next_back() else { continue };
            if part.end > at {
                let value = part.value.as_ref().map(|value| value.skip(at - start));
                let rest = MemoryPart { value, ..part.clone() };
                part.end = at;
                self.parts.insert(at, rest);
            }
        }
    }
}
