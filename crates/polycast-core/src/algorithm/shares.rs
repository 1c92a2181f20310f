//! A vector cut into shares of whole elements, one for each of so many ranks.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::collective::Call;

/// Shares whose sizes differ by at most one element, larger ones first, each in segments.
pub(super) struct Shares {
    element: u64,
    /// The size of a smaller share, in elements.
    smaller: u64,
    /// The number of shares that have one element more.
    larger: u64,
    /// The largest segment, in bytes of whole elements.
    segment: u64,
}

impl Shares {
    /// Cuts the data of a reduction into so many shares.
    pub fn new(call: &Call, shares: u32, segment: Option<NonZeroU64>) -> Shares {
        let element = call.element.get();
        let elements = call.bytes.0 / element;
        let segment = segment.map_or(u64::MAX, |segment| (segment.get() / element).max(1) * element);
        Shares {
            element,
            smaller: elements / u64::from(shares),
            larger: elements % u64::from(shares),
            segment,
        }
    }

    /// The bytes of consecutive shares.
    pub fn bytes(&self, shares: Range<u32>) -> Range<u64> {
        let before = |share: u32| {
            let share = u64::from(share);
            (share * self.smaller + share.min(self.larger)) * self.element
        };
        before(shares.start)..before(shares.end)
    }

    /// The segments of a share; none where there are fewer elements than shares.
    pub fn segments(&self, share: u32) -> Vec<Range<u64>> {
        let Range { mut start, end } = self.bytes(share..share + 1);
        let mut segments = Vec::new();
        while start < end {
            let next = start.saturating_add(self.segment).min(end);
            segments.push(start..next);
            start = next;
        }
        segments
    }
}
