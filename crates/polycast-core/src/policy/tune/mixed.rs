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

/// How the two levels get along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sharing a segment takes longer than the next one needs to come.
    Overlapping,
    /// All sharing but that of the last segment is hidden.
    Complete,
    /// The two hinder each other.
    Penalty,
}

/// What is known of a message of two levels; times in µs.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// Bytes.
    pub bytes: u64,
    /// Nodes, at least 2.
    pub nodes: u32,
    /// What sharing so many bytes on the fullest node takes.
    pub shared_us: &'a dyn Fn(u64) -> f64,
}

/// One size of segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Bytes.
    pub segment: u64,
    /// The whole message between nodes alone.
    pub between_us: f64,
    /// From one segment to the next, g.
    pub gap_us: f64,
    /// What of it the sender is busy, os.
    pub send_us: f64,
}

/// Filter 1: the overlaps of a column that may gain something, the largest first. Less than a quarter of the message gains nothing.
pub fn overlaps(segment: u64) -> [u64; 3] {
    [segment, segment / 2, segment / 4]
}

/// Filter 2: the columns of which the way between nodes alone takes no longer than the best that was measured without overlap.
pub fn within(columns: &[Column], best_without_overlap_us: f64) -> Vec<Column> {
    columns.iter().copied().filter(|column| column.between_us <= best_without_overlap_us).collect()
}

impl Message<'_> {
    /// What the message takes in a mode, of a chain of nodes: Wu's (4.3), (4.4) and, with the largest penalty, (4.6).
    pub fn predicted_us(&self, mode: Mode, column: &Column, overlap: u64) -> f64 {
        let segments = (self.bytes / column.segment).max(1);
        let rest = self.bytes.saturating_sub(overlap * segments);
        let shared = |bytes: u64| if bytes == 0 { 0.0 } else { (self.shared_us)(bytes) };
        let least = column.between_us + shared(overlap) + shared(rest);
        match mode {
            Mode::Complete => least,
            Mode::Overlapping => {
                let late_us = (column.send_us + shared(overlap) - column.gap_us).max(0.0);
                least + late_us * (segments - 1) as f64
            }
            Mode::Penalty => {
                let places = 2 * segments - 1 + u64::from(self.nodes.saturating_sub(2));
                least + shared(overlap) * places as f64
            }
        }
    }

    /// The mode whose prediction is nearest to what was measured; of those that predict the same the milder one.
    fn mode_of(&self, column: &Column, overlap: u64, measured_us: f64) -> Mode {
        let off = |mode: &Mode| (self.predicted_us(*mode, column, overlap) - measured_us).abs();
        let modes = [Mode::Complete, Mode::Overlapping, Mode::Penalty];
        modes.into_iter().min_by(|one, other| off(one).total_cmp(&off(other))).expect("three")
    }
}

/// One place of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixEntry {
    /// Bytes.
    pub segment: u64,
    /// Bytes of it that are shared at once; 0: all is shared at the end.
    pub overlap: u64,
    /// What it takes.
    pub time_us: f64,
    /// And is not predicted.
    pub is_measured: bool,
}

/// Filter 3: goes through the columns that are left.
pub struct Walk<'a> {
    message: Message<'a>,
    columns: Vec<Column>,
    at: usize,
    entries: Vec<MatrixEntry>,
}

impl<'a> Walk<'a> {
    /// `without`: the best that was measured without overlap; `columns`: all, by rising segments.
    pub fn new(message: Message<'a>, columns: &[Column], without: MatrixEntry) -> Walk<'a> {
        let mut columns = within(columns, without.time_us);
        columns.retain(|column| column.segment <= message.bytes);
        Walk { message, columns, at: 0, entries: vec![without] }
    }

    /// Segment and overlap that are to be measured next; `None`: it is over.
    pub fn next(&self) -> Option<(u64, u64)> {
        match self.columns.get(self.at) {
            Some(column) => Some((column.segment, column.segment)),
            None => {
                Some(self.best()).filter(|best| !best.is_measured).map(|best| (best.segment, best.overlap))
            }
        }
    }

    /// What that took.
    pub fn took(&mut self, time_us: f64) {
        let Some((segment, overlap)) = self.next() else { return };
        let measured = MatrixEntry { segment, overlap, time_us, is_measured: true };
        self.entries.retain(|entry| (entry.segment, entry.overlap) != (segment, overlap));
        self.entries.push(measured);
        let Some(column) = self.columns.get(self.at).copied() else { return };
        let mode = self.message.mode_of(&column, overlap, time_us);
        for overlap in &overlaps(segment)[1..] {
            let time_us = self.message.predicted_us(mode, &column, *overlap);
            self.entries.push(MatrixEntry { segment, overlap: *overlap, time_us, is_measured: false });
        }
        self.at = if mode == Mode::Penalty { self.columns.len() } else { self.at + 1 };
    }

    /// Everything that was measured or predicted.
    pub fn entries(&self) -> &[MatrixEntry] {
        &self.entries
    }

    /// The fastest of them.
    pub fn best(&self) -> MatrixEntry {
        let fastest = self.entries.iter().min_by(|one, other| one.time_us.total_cmp(&other.time_us));
        *fastest.expect("one without overlap")
    }
}

#[cfg(test)]
mod tests;
