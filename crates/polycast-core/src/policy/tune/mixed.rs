//! Two levels, segments between nodes and how much of each is handed on within a node while the next one comes: which of these are worth
//! measuring (Wu 2005, §4.5, §4.6).
//!
//! ```text
//!               segment  16K  32K  64K  128K …             filter 1  the three largest overlaps of each column
//!   overlap  4K           x    .    .    .                 filter 2  no column whose way between nodes alone takes longer than the best
//!            8K           x    x    .    .                           without overlap
//!           16K           x    x    x    .                 filter 3  the bottom of each column is measured, from the left; its mode
//!           32K                x    x    x                           predicts the other two; behind a penalty nothing is measured
//! ```

use crate::cost::mixed::{BetweenNodes, MixedForm, MixedMessage};

/// Filter 1: the overlaps of a column that may gain something, the largest first. Less than a quarter of the message gains nothing.
pub fn overlaps(segment: u64) -> [u64; 3] {
    [segment, segment / 2, segment / 4]
}

/// Filter 2: the columns of which the way between nodes alone takes no longer than the best that was measured without overlap.
pub fn within(columns: &[BetweenNodes], best_without_overlap_us: f64) -> Vec<BetweenNodes> {
    columns.iter().copied().filter(|column| column.whole_ns <= best_without_overlap_us * 1e3).collect()
}

/// An entry of the matrix of segments and overlaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixEntry {
    /// Bytes of a segment.
    pub segment: u64,
    /// Bytes of the segment that are shared at once; 0: all is shared at the end.
    pub overlap: u64,
    /// The time of a call, in µs.
    pub time_us: f64,
    /// True if the time was measured, false if it is predicted.
    pub is_measured: bool,
}

/// Filter 3: goes through the columns that are left.
pub struct Walk<'a> {
    message: MixedMessage<'a>,
    columns: Vec<BetweenNodes>,
    at: usize,
    entries: Vec<MatrixEntry>,
}

impl<'a> Walk<'a> {
    /// `without`: the best that was measured without overlap; `columns`: all, by rising segments.
    pub fn new(message: MixedMessage<'a>, columns: &[BetweenNodes], without: MatrixEntry) -> Walk<'a> {
        let mut columns = within(columns, without.time_us);
        columns.retain(|column| column.segment <= message.bytes);
        Walk { message, columns, at: 0, entries: vec![without] }
    }

    /// Segment and overlap that are to be measured next, in bytes; `None`: the walk is over.
    pub fn next(&self) -> Option<(u64, u64)> {
        match self.columns.get(self.at) {
            Some(column) => Some((column.segment, column.segment)),
            None => {
                Some(self.best()).filter(|best| !best.is_measured).map(|best| (best.segment, best.overlap))
            }
        }
    }

    /// Notes the time of what [`Walk::next`] named, in µs.
    pub fn took(&mut self, time_us: f64) {
        let Some((segment, overlap)) = self.next() else { return };
        let measured = MatrixEntry { segment, overlap, time_us, is_measured: true };
        self.entries.retain(|entry| (entry.segment, entry.overlap) != (segment, overlap));
        self.entries.push(measured);
        let Some(column) = self.columns.get(self.at).copied() else { return };
        let form = self.message.nearest(&column, overlap, time_us * 1e3);
        for overlap in &overlaps(segment)[1..] {
            let Some(ns) = self.message.time_ns(form, &column, *overlap) else { continue };
            let time_us = ns / 1e3;
            self.entries.push(MatrixEntry { segment, overlap: *overlap, time_us, is_measured: false });
        }
        self.at = if form == MixedForm::LargestPenalty { self.columns.len() } else { self.at + 1 };
    }

    /// All entries that were measured or predicted.
    pub fn entries(&self) -> &[MatrixEntry] {
        &self.entries
    }

    /// The fastest entry.
    pub fn best(&self) -> MatrixEntry {
        let fastest = self.entries.iter().min_by(|one, other| one.time_us.total_cmp(&other.time_us));
        *fastest.expect("one without overlap")
    }
}

#[cfg(test)]
mod tests;
