use std::time::Duration;

use super::record::{Count, nanos};

/// Number of classes of sizes: the first holds 0 to 3 bytes, the next 4 to 15, each four times the
/// one before.
pub const CLASSES: usize = 32;

/// The library that carried a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Polycast,
    Mpi,
}

impl Carrier {
    pub const ALL: [Carrier; 2] = [Carrier::Polycast, Carrier::Mpi];

    pub fn name(self) -> &'static str {
        match self {
            Carrier::Polycast => "polycast",
            Carrier::Mpi => "mpi",
        }
    }
}

/// Calls of a collective by their sizes.
#[derive(Default)]
pub struct SizeClasses {
    /// The classes, by library and index; empty ones take no memory.
    classes: [[Option<Box<Class>>; CLASSES]; 2],
}

/// Calls of one class of sizes.
pub struct Class {
    pub count: Count,
    pub longest_nanos: u64,
    times: [u32; BUCKETS],
}

impl SizeClasses {
    pub fn add(&mut self, by: Carrier, bytes: u64, took: Duration) {
        let class = &mut self.classes[by as usize][class_of(bytes)];
        class.get_or_insert_with(Class::empty).add(bytes, took);
    }

    /// The class of this index, if it has any calls.
    pub fn class(&self, by: Carrier, index: usize) -> Option<&Class> {
        self.classes[by as usize][index].as_deref()
    }
}

/// The smallest size of a class, and the smallest size above it, in bytes.
pub fn bounds(class: usize) -> (u64, Option<u64>) {
    let first = |class: usize| 4u64.checked_pow(class as u32);
    (if class == 0 { 0 } else { first(class).unwrap_or(u64::MAX) }, first(class + 1))
}

fn class_of(bytes: u64) -> usize {
    bytes.max(1).ilog2() as usize / 2
}

impl Class {
    fn empty() -> Box<Class> {
        Box::new(Class { count: Count::default(), longest_nanos: 0, times: [0; BUCKETS] })
    }

    fn add(&mut self, bytes: u64, took: Duration) {
        self.count.add(bytes, took);
        self.longest_nanos = self.longest_nanos.max(nanos(took));
        let bucket = &mut self.times[bucket_of(nanos(took))];
        *bucket = bucket.saturating_add(1);
    }

    /// Median time of the calls in nanoseconds; off by an eighth at most.
    pub fn median_nanos(&self) -> u64 {
        let all: u64 = self.times.iter().map(|count| u64::from(*count)).sum();
        let mut below = 0;
        let is_reached = |(_, count): &(usize, &u32)| {
            below += u64::from(**count);
            below * 2 >= all
        };
        let bucket = self.times.iter().enumerate().find(is_reached).map_or(0, |(bucket, _)| bucket);
        middle_of(bucket).min(self.longest_nanos)
    }
}

/// Number of buckets into which times are sorted, four for each doubling.
const BUCKETS: usize = 252;

fn bucket_of(nanos: u64) -> usize {
    match nanos.checked_ilog2() {
        Some(power) if power >= 2 => (4 * (power - 1)) as usize + (nanos >> (power - 2) & 3) as usize,
        _ => nanos as usize,
    }
}

/// The time in the middle of a bucket, in nanoseconds.
fn middle_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let width = 1 << (bucket / 4 - 1);
    (4 + bucket as u64 % 4) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_the_class_that_its_bounds_say() {
        for power in 0..64 {
            for bytes in [1u64 << power, (1 << power) - 1, (1 << power) + 1, u64::MAX] {
                let class = class_of(bytes);
                let (first, above) = bounds(class);
                assert!(first <= bytes && above.is_none_or(|above| bytes < above), "{bytes}: class {class}");
            }
        }
        assert_eq!((bounds(0), bounds(8)), ((0, Some(4)), (65536, Some(262_144))));
        assert_eq!(bounds(CLASSES - 1).1, None);
    }

    #[test]
    fn a_bucket_holds_what_is_near_its_middle() {
        for power in 0..64 {
            for nanos in [1u64 << power, (1 << power) - 1, 3 << power >> 1, u64::MAX] {
                let bucket = bucket_of(nanos);
                assert!(bucket < BUCKETS);
                let middle = middle_of(bucket);
                assert!(middle.abs_diff(nanos) <= nanos / 8 + 1, "{nanos} ns: {middle} ns");
            }
        }
    }

    #[test]
    fn the_median_leaves_the_odd_one_out() {
        let mut sizes = SizeClasses::default();
        for micros in [100, 101, 102, 99, 5000] {
            sizes.add(Carrier::Mpi, 70_000, Duration::from_micros(micros));
        }
        let class = sizes.class(Carrier::Mpi, 8).unwrap();
        assert_eq!((class.count.calls, class.count.bytes, class.longest_nanos), (5, 350_000, 5_000_000));
        assert!((90_000..=112_000).contains(&class.median_nanos()), "{}", class.median_nanos());
        assert!(sizes.class(Carrier::Polycast, 8).is_none());
    }
}
