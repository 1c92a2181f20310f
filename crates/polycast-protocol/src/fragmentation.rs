use std::ops::Range;

/// The cut of a message into fragments, the payloads of datagrams: all of the same size, the last
/// may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragmentation {
    message_bytes: u64,
    payload_bytes: u32,
    fragments: u32,
}

impl Fragmentation {
    /// The cut of a message; `None` for an empty message, an empty payload, or more than 2³² − 1
    /// fragments.
    pub fn new(message_bytes: u64, payload_bytes: u32) -> Option<Fragmentation> {
        let fragments =
            message_bytes.checked_next_multiple_of(payload_bytes.into())? / u64::from(payload_bytes);
        let fragments = u32::try_from(fragments).ok().filter(|fragments| *fragments > 0)?;
        usize::try_from(message_bytes).ok()?;
        Some(Fragmentation { message_bytes, payload_bytes, fragments })
    }

    /// Bytes of the message.
    pub fn message_bytes(self) -> u64 {
        self.message_bytes
    }

    /// Bytes of every fragment but the last.
    pub fn payload_bytes(self) -> u32 {
        self.payload_bytes
    }

    /// The number of fragments, at least 1.
    pub fn fragments(self) -> u32 {
        self.fragments
    }

    /// True if no fragment follows this one.
    pub fn is_last(self, fragment: u32) -> bool {
        fragment + 1 == self.fragments
    }

    /// The number of fragments that lie within the first `bytes` bytes of the message.
    pub fn whole_fragments(self, bytes: u64) -> u32 {
        if bytes >= self.message_bytes {
            self.fragments
        } else {
            (bytes / u64::from(self.payload_bytes)) as u32
        }
    }

    /// The bytes of a fragment within the message; `None` beyond the last one.
    pub fn range(self, fragment: u32) -> Option<Range<usize>> {
        let start = u64::from(fragment) * u64::from(self.payload_bytes);
        let end = (start + u64::from(self.payload_bytes)).min(self.message_bytes);
        (fragment < self.fragments).then_some(start as usize..end as usize)
    }

    /// The bytes of a run of fragments within the message; `None` for an empty run and beyond the
    /// last fragment.
    pub fn run_range(self, run: Run) -> Option<Range<usize>> {
        let last = run.first.checked_add(run.count.checked_sub(1)?)?;
        Some(self.range(run.first)?.start..self.range(last)?.end)
    }
}

/// Consecutive fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first fragment.
    pub first: u32,
    /// The number of fragments.
    pub count: u32,
}

impl Run {
    /// The fragments of the run. None are lost to overflow: a run that came from outside may claim anything.
    pub fn fragments(self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }

    /// Appends the run as it stands in messages and datagrams.
    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
    }
}

/// Appends a fragment to the last run if it follows that, else as a run of its own.
pub(super) fn push_to_runs(runs: &mut Vec<Run>, fragment: u32) {
    match runs.last_mut() {
        Some(last) if last.first + last.count == fragment => last.count += 1,
        _ => runs.push(Run { first: fragment, count: 1 }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn impossible_cuts_are_refused() {
        assert_eq!(Fragmentation::new(0, 1440), None);
        assert_eq!(Fragmentation::new(1 << 33, 1), None);
        assert_eq!(Fragmentation::new(u64::MAX, 1440), None);
        assert_eq!(Fragmentation::new(1, 1440).unwrap().fragments(), 1);
        assert_eq!(Fragmentation::new(u64::from(u32::MAX), 1).unwrap().fragments(), u32::MAX);
    }

    proptest! {
        #[test]
        fn fragments_cover_the_message_without_overlap(bytes in 1u64..100_000, payload in 1u32..2000) {
            let cut = Fragmentation::new(bytes, payload).unwrap();
            let mut end = 0;
            for fragment in 0..cut.fragments() {
                let range = cut.range(fragment).unwrap();
                prop_assert_eq!(range.start, end);
                prop_assert!(!range.is_empty() && range.len() <= payload as usize);
                end = range.end;
            }
            prop_assert_eq!(end as u64, bytes);
            prop_assert_eq!(cut.range(cut.fragments()), None);
            prop_assert_eq!(cut.run_range(Run { first: 0, count: cut.fragments() }), Some(0..end));
            prop_assert_eq!(cut.run_range(Run { first: 1, count: cut.fragments() }), None);
            prop_assert_eq!(cut.run_range(Run { first: 0, count: 0 }), None);
            prop_assert_eq!(cut.run_range(Run { first: u32::MAX, count: u32::MAX }), None);
        }
    }
}
