use std::num::NonZeroU64;

use super::mixed;
use crate::algorithm::{Algorithm, NONE, SEGMENTS};
use crate::policy::Choice;

/// Bytes of the smallest buffer that is tried: on a node less at a time gains nothing.
const LEAST_BUFFER: u64 = 4 << 10;

/// The largest power of two that is not larger than `size`; 0 for 0.
fn power_of_two(size: u64) -> u64 {
    if size == 0 { 0 } else { 1 << size.ilog2() }
}

/// The segment size that cuts `bytes` into about so many parts, a power of two in the range of
/// [`SEGMENTS`].
pub(super) fn segment_in(parts: u64, bytes: u64) -> u64 {
    power_of_two(bytes / parts).clamp(SEGMENTS[0], SEGMENTS[SEGMENTS.len() - 1])
}

/// The choice without segments and without waiting for anybody: the way of the data alone.
pub(super) fn whole(choice: Choice) -> Choice {
    match choice {
        Choice::Algorithm(algorithm) => Choice::Algorithm(algorithm.whole()),
        Choice::Stock => Choice::Stock,
    }
}

pub(super) fn with_segment(choice: Choice, size: u64) -> Option<Choice> {
    match choice {
        Choice::Algorithm(algorithm) if algorithm.entry.has_parameter("segment") => {
            Some(Choice::Algorithm(Algorithm { segment: NonZeroU64::new(size), ..algorithm }))
        }
        _ => None,
    }
}

fn with_value(choice: Choice, name: &str, value: u64) -> Option<Choice> {
    let Choice::Algorithm(algorithm) = choice else { return None };
    algorithm.with_value(name, value).map(Choice::Algorithm)
}

/// The choice with so many bytes shared at once while the next segment comes, or none; `None` for
/// what has no such parameter.
pub(super) fn with_overlap(choice: Choice, bytes: Option<u64>) -> Option<Choice> {
    with_value(choice, "overlap", bytes.unwrap_or(NONE))
}

/// The choice with nothing said of how it is handed on within nodes; `None` for what has no
/// overlap.
pub(super) fn plainly_handed_on(choice: Choice) -> Option<Choice> {
    with_value(with_value(choice, "overlap", 0)?, "buffer", 0)
}

/// The choice with smaller buffers, so that others of the node begin earlier; none where overlap or
/// buffer were said already.
pub(super) fn smaller_buffers(choice: Choice, bytes: u64) -> Vec<Choice> {
    let Choice::Algorithm(algorithm) = choice else { return Vec::new() };
    if ["overlap", "buffer"].into_iter().any(|name| algorithm.given(name).is_some()) {
        return Vec::new();
    }
    let at_once = algorithm.segment.map_or(bytes, NonZeroU64::get);
    let sizes = [at_once / 4, at_once / 16].map(power_of_two);
    let sizes = sizes.into_iter().filter(|size| *size >= LEAST_BUFFER);
    sizes.filter_map(|size| with_value(choice, "buffer", size)).collect()
}

/// The choice with each radix that a search tries.
pub(super) fn radices(choice: Choice, ranks: u32) -> Vec<Choice> {
    match choice {
        Choice::Algorithm(algorithm) => algorithm.radices(ranks).into_iter().map(Choice::Algorithm).collect(),
        Choice::Stock => vec![Choice::Stock],
    }
}

/// The choice with the radices next to its own.
fn next_radices(choice: Choice, ranks: u32) -> Vec<Choice> {
    let all = radices(choice, ranks);
    let Some(place) = all.iter().position(|one| *one == choice) else { return Vec::new() };
    let places = [place.checked_sub(1), Some(place + 1)];
    places.into_iter().flatten().filter_map(|place| all.get(place).copied()).collect()
}

/// Whether two choices are one algorithm, whatever its parameters.
pub(super) fn are_kin(one: Choice, other: Choice) -> bool {
    match (one, other) {
        (Choice::Algorithm(one), Choice::Algorithm(other)) => one.entry == other.entry,
        _ => one == other,
    }
}

/// The choice in segments of half and twice the size; if it is not cut, in the largest segments
/// that cut it.
fn next_segments(choice: Choice, bytes: u64) -> Vec<Choice> {
    let Choice::Algorithm(algorithm) = choice else { return Vec::new() };
    let Some(segment) = algorithm.segment else {
        let largest = SEGMENTS.into_iter().take_while(|size| *size < bytes).last();
        return largest.and_then(|size| with_segment(choice, size)).into_iter().collect();
    };
    let sizes = [segment.get() / 2, segment.get() * 2].into_iter();
    let sizes = sizes.filter(|size| SEGMENTS.contains(size) && *size < bytes);
    sizes.filter_map(|size| with_segment(choice, size)).collect()
}

/// The choice with less handed on within nodes meanwhile: all is tried first, and less than a
/// quarter gains nothing.
fn less_overlap(choice: Choice) -> Vec<Choice> {
    let Choice::Algorithm(algorithm) = choice else { return Vec::new() };
    match algorithm.segment {
        Some(segment) if plainly_handed_on(choice) == Some(choice) => {
            let [_, half, quarter] = mixed::overlaps(segment.get());
            [half, quarter].into_iter().filter_map(|overlap| with_overlap(choice, Some(overlap))).collect()
        }
        _ => Vec::new(),
    }
}

/// The choices that differ by one step of one parameter. `is_best_kin`: no other radix is faster so
/// far.
pub(super) fn neighbours(choice: Choice, ranks: u32, bytes: u64, is_best_kin: bool) -> Vec<Choice> {
    let mut found = next_segments(choice, bytes);
    found.extend(less_overlap(choice));
    found.extend(smaller_buffers(choice, bytes));
    if is_best_kin {
        found.extend(next_radices(choice, ranks));
    }
    found
}

/// The choice in segments, overlaps, buffers and with radices of every size; some twice.
pub(super) fn all(choice: Choice, ranks: u32, bytes: u64) -> Vec<Choice> {
    let mut found = Vec::new();
    for choice in radices(choice, ranks) {
        let cut = SEGMENTS.into_iter().take_while(|size| *size < bytes);
        found.extend(cut.filter_map(|size| with_segment(choice, size)));
        found.push(choice);
    }
    for one in found.clone() {
        if let Choice::Algorithm(Algorithm { segment: Some(segment), .. }) = one {
            let smaller = SEGMENTS.into_iter().take_while(|overlap| *overlap < segment.get());
            let [_, half, quarter] = mixed::overlaps(segment.get());
            let overlaps = smaller.chain([half, quarter]).map(Some).chain([None]);
            found.extend(overlaps.filter_map(|overlap| with_overlap(one, overlap)));
        }
        found.extend(smaller_buffers(one, bytes));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::candidates;
    use super::*;
    use crate::policy::{Capabilities, Collective, CommunicatorShape};

    fn names(of: &[Choice]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    fn broadcast(text: &str) -> Choice {
        Choice::read(Collective::Broadcast, text).unwrap()
    }

    #[test]
    fn neighbours_differ_by_one_step() {
        let of = |text, is_best| names(&neighbours(broadcast(text), 16, 64 << 10, is_best));
        assert_eq!(of("chain:segment=4KiB", true), ["chain:segment=2KiB", "chain:segment=8KiB"]);
        assert_eq!(of("chain:segment=1KiB", true), ["chain:segment=2KiB"]);
        assert_eq!(of("chain", true), ["chain:segment=32KiB"]);
        let cut = ["k-ary:k=4,segment=4KiB", "k-ary:k=4,segment=16KiB"];
        assert_eq!(of("k-ary:k=4,segment=8KiB", false), cut);
        let radices = ["k-ary:k=3,segment=8KiB", "k-ary:k=8,segment=8KiB"];
        assert_eq!(of("k-ary:k=4,segment=8KiB", true), [cut, radices].concat());
        let two_level = "two-level:between=chain";
        let expected =
            ["segment=8KiB", "segment=32KiB", "overlap=8KiB,segment=16KiB", "overlap=4KiB,segment=16KiB"];
        let expected: Vec<String> = expected
            .into_iter()
            .chain(["buffer=4KiB,segment=16KiB"])
            .map(|rest| format!("{two_level},{rest}"))
            .collect();
        assert_eq!(of("two-level:between=chain,segment=16KiB", true), expected);
        assert_eq!(of("multicast-push", true), [""; 0]);
        assert_eq!(names(&neighbours(Choice::Stock, 16, 64, true)), [""; 0]);
    }

    #[test]
    fn all_have_each_radix_with_each_segment() {
        let found = names(&all(broadcast("k-nomial:k=4"), 16, 4 << 10));
        let expected = ["k-nomial:k=3,segment=1KiB", "k-nomial:k=8,segment=2KiB", "k-nomial:k=4"];
        assert!(expected.into_iter().all(|one| found.contains(&one.to_owned())), "{found:?}");
        assert!(!found.iter().any(|name| name.starts_with("binomial")), "it is there by its own name");
        let found = names(&all(broadcast("two-level"), 16, 64 << 10));
        let expected =
            ["two-level:overlap=none,segment=32KiB", "two-level:buffer=8KiB,segment=32KiB", "two-level"];
        assert!(expected.into_iter().all(|one| found.contains(&one.to_owned())), "{found:?}");
        assert_eq!(all(Choice::Stock, 16, 64), [Choice::Stock]);
    }

    /// A race must not find what the search that it is held against does not know.
    #[test]
    fn whatever_a_race_tries_is_among_all() {
        let shape = CommunicatorShape::new(32, 8, Some(4)).unwrap();
        for collective in Collective::ALL {
            for bytes in [1 << 10, 64 << 10, 1 << 20] {
                let first = candidates(collective, shape, bytes, Capabilities::ALL);
                let all: Vec<Choice> = first.iter().flat_map(|way| all(*way, 32, bytes)).collect();
                let next = first.iter().flat_map(|way| neighbours(*way, 32, bytes, true));
                for way in first.iter().copied().chain(next) {
                    assert!(all.contains(&way), "{collective} of {bytes}: {way}");
                }
            }
        }
    }
}
