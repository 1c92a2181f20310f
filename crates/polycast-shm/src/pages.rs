//! Places in a bitmap that several processes share: runs of bits that are free, taken and given back without a lock, so that a process
//! that dies meanwhile stops nobody. Loom proves in `tests` that no bit is ever taken twice.

use std::ops::Range;

use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};

/// Bits of a word of the bitmap.
pub const WORD: usize = u64::BITS as usize;

/// A bitmap with a bit for each place, set if it is taken.
pub struct Places<'a>(pub &'a [AtomicU64]);

/// The bits of a run of `count` in a word, at most all of it.
fn run(first: usize, count: usize) -> u64 {
    (u64::MAX >> (WORD - count)) << first
}

/// The first bit of the first `count` zeros in a row, up to a word of them.
fn zeros(word: u64, count: usize) -> Option<usize> {
    let (mut free, mut length) = (!word, 1);
    // Bit i of `free`: so many zeros begin there.
    while length < count {
        let more = length.min(count - length);
        free &= free >> more;
        length += more;
    }
    // What comes from beyond the last bit is taken.
    (free != 0).then(|| free.trailing_zeros() as usize)
}

impl Places<'_> {
    /// Takes `count` places in a row, the first that are free; `None` if there are none. More than a
    /// word of them take whole words.
    pub fn take(&self, count: usize) -> Option<Range<usize>> {
        if count > WORD {
            return self.take_words(count.div_ceil(WORD)).map(|first| first..first + count);
        }
        self.0.iter().enumerate().find_map(|(index, word)| {
            let mut now = word.load(Relaxed);
            loop {
                let first = zeros(now, count.max(1))?;
                // Acquire: with the release in `give_back`.
                match word.compare_exchange_weak(now, now | run(first, count.max(1)), AcqRel, Relaxed) {
                    Ok(_) => return Some(index * WORD + first..index * WORD + first + count.max(1)),
                    Err(other) => now = other,
                }
            }
        })
    }

    fn take_words(&self, count: usize) -> Option<usize> {
        let mut first = 0;
        while first + count <= self.0.len() {
            let is_taken =
                |index: usize| self.0[index].compare_exchange(0, u64::MAX, AcqRel, Acquire).is_ok();
            let mut taken = first..first;
            while taken.len() < count && is_taken(taken.end) {
                taken.end += 1;
            }
            if taken.len() == count {
                return Some(first * WORD);
            }
            first = taken.end + 1;
            for index in taken {
                self.clear(index, u64::MAX);
            }
        }
        None
    }

    /// Gives back places as they were taken. Returns the words in which nothing is taken now.
    pub fn give_back(&self, places: Range<usize>) -> Range<usize> {
        let (index, first) = (places.start / WORD, places.start % WORD);
        if places.len() > WORD {
            let words = index..index + places.len().div_ceil(WORD);
            for index in words.clone() {
                self.clear(index, u64::MAX);
            }
            return words;
        }
        if self.clear(index, run(first, places.len())) == 0 { index..index + 1 } else { index..index }
    }

    /// Takes a whole word, if nothing of it is taken.
    pub fn take_word(&self, index: usize) -> bool {
        self.0[index].compare_exchange(0, u64::MAX, AcqRel, Relaxed).is_ok()
    }

    /// Clears bits of a word; returns what is set then.
    pub fn clear(&self, index: usize, bits: u64) -> u64 {
        // Release: with the acquire in `take`.
        self.0[index].fetch_and(!bits, AcqRel) & !bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))]
    #[test]
    fn runs_are_found_wherever_they_are() {
        assert_eq!(zeros(0, 64), Some(0));
        assert_eq!(zeros(1, 64), None);
        assert_eq!(zeros(0b1011, 1), Some(2));
        assert_eq!(zeros(0b1011, 60), Some(4));
        assert_eq!(zeros(0b1011, 61), None, "none behind the last");
        assert_eq!(zeros(u64::MAX, 1), None);
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let places = Places(&words);
        assert_eq!(places.take(40), Some(0..40));
        assert_eq!(places.take(40), Some(64..104), "not across words");
        assert_eq!(places.take(24), Some(40..64));
        assert_eq!(places.take(100), Some(128..228), "whole words");
        assert_eq!(places.take(65), None);
        assert_eq!(places.give_back(0..40), 0..0);
        assert_eq!(places.give_back(40..64), 0..1);
        assert_eq!(places.give_back(64..104), 1..2);
        assert_eq!(places.take(129), None);
        assert_eq!(places.give_back(128..228), 2..4);
        assert_eq!(places.take(256), Some(0..256));
        assert_eq!(places.take(1), None);
        places.give_back(0..256);
        assert!(places.take_word(3) && !places.take_word(3));
    }

    /// Two who take at a time, one of whom gives back: never the same place.
    #[cfg(loom)]
    #[test]
    fn no_place_is_taken_twice() {
        use std::sync::Arc;
        for (one, other) in [(1, 64), (64, 65), (65, 1), (40, 40)] {
            loom::model(move || {
                let words = Arc::new([AtomicU64::new(0), AtomicU64::new(u64::MAX >> 1), AtomicU64::new(0)]);
                let theirs = words.clone();
                let thread = loom::thread::spawn(move || {
                    let places = Places(&*theirs);
                    if let Some(taken) = places.take(other) {
                        places.give_back(taken);
                    }
                    // As who gives a block's memory back.
                    if places.take_word(2) {
                        places.clear(2, u64::MAX);
                    }
                    places.take(other)
                });
                let mine = Places(&*words).take(one);
                let theirs = thread.join().unwrap();
                if let (Some(mine), Some(theirs)) = (&mine, &theirs) {
                    assert!(mine.end <= theirs.start || theirs.end <= mine.start, "{mine:?} {theirs:?}");
                }
            });
        }
    }
}
