use proptest::prelude::*;

use super::*;

const KIB: u64 = 1 << 10;
const MESSAGE: u64 = 8 << 20;

/// 16 KiB to 8 MiB, as in Wu's Tables 4.4 to 4.6.
fn segments() -> impl Iterator<Item = u64> {
    (4..14).map(|power| KIB << power)
}

/// Table 4.4: 8 MB on 8 × 16 ranks of an SP, after filter 1.
#[test]
fn three_entries_of_each_column_are_left() {
    assert_eq!(overlaps(16 * KIB), [16 * KIB, 8 * KIB, 4 * KIB]);
    assert_eq!(overlaps(512 * KIB), [512 * KIB, 256 * KIB, 128 * KIB]);
    assert_eq!(overlaps(8192 * KIB), [8192 * KIB, 4096 * KIB, 2048 * KIB]);
    assert_eq!(segments().flat_map(overlaps).count(), 30);
}

/// Between nodes alone small segments cost messages, large ones fill the pipeline slowly; so the columns at both ends take longest.
fn of_the_tables() -> Vec<BetweenNodes> {
    let between_ms = [240.0, 190.0, 150.0, 130.0, 120.0, 125.0, 140.0, 165.0, 220.0, 400.0];
    let column = |(segment, ms): (u64, f64)| {
        let interval_ns = ms * 1e6 * segment as f64 / MESSAGE as f64;
        BetweenNodes { segment, whole_ns: ms * 1e6, interval_ns, busy_ns: 0.3 * interval_ns, hops: 7 }
    };
    segments().zip(between_ms).map(column).collect()
}

/// Table 4.5: columns of 64 KiB to 2 MiB are left by filter 2. Table 4.6: of these the bottoms up to 512 KiB, where the penalty begins, are measured,
/// and the two above each are predicted.
#[test]
fn the_tables_are_those_of_the_thesis() {
    let columns = of_the_tables();
    let without = MatrixEntry { segment: 256 * KIB, overlap: 0, time_us: 170e3, is_measured: true };
    let left: Vec<u64> =
        within(&columns, without.time_us).iter().map(|column| column.segment / KIB).collect();
    assert_eq!(left, [64, 128, 256, 512, 1024, 2048]);

    let shared_ns = |bytes: u64| bytes as f64 * 6.0;
    let message = MixedMessage { bytes: MESSAGE, shared_ns: &shared_ns, penalty_ns: None };
    let mut walk = Walk::new(message, &columns, without);
    let mut measured = Vec::new();
    while let Some((segment, overlap)) = walk.next() {
        if segment != overlap {
            break;
        }
        measured.push(segment / KIB);
        let column = columns.iter().find(|column| column.segment == segment).unwrap();
        let form = if segment < 512 * KIB { MixedForm::Complete } else { MixedForm::LargestPenalty };
        walk.took(message.time_ns(form, column, overlap).unwrap() / 1e3);
    }
    assert_eq!(measured, [64, 128, 256, 512]);
    let predicted: Vec<(u64, u64)> = walk
        .entries()
        .iter()
        .filter(|entry| !entry.is_measured)
        .map(|entry| (entry.segment / KIB, entry.overlap / KIB))
        .collect();
    let expected = [(64, 32), (64, 16), (128, 64), (128, 32), (256, 128), (256, 64), (512, 256), (512, 128)];
    assert_eq!(predicted, expected);
}

/// A cluster of the one or the other mode.
#[derive(Clone, Copy, Debug)]
struct Land {
    rate_us: f64,
    message_us: f64,
    shared_us: f64,
    start_us: f64,
    nodes: u32,
    /// From which segments on the levels hinder each other.
    penalty_from: u64,
}

impl Land {
    fn columns(&self) -> Vec<BetweenNodes> {
        let column = |segment: u64| {
            let interval_ns = 1e3 * (self.message_us + self.rate_us * segment as f64);
            let steps = (MESSAGE / segment + u64::from(self.nodes) - 2) as f64;
            let (whole_ns, busy_ns) = (steps * interval_ns, self.message_us * 1e3);
            BetweenNodes { segment, whole_ns, interval_ns, busy_ns, hops: self.nodes - 1 }
        };
        segments().map(column).collect()
    }

    fn truth_us(&self, message: &MixedMessage<'_>, column: &BetweenNodes, overlap: u64) -> f64 {
        let is_late = column.busy_ns + (message.shared_ns)(overlap) > column.interval_ns;
        let form = match is_late {
            _ if overlap == 0 => MixedForm::Complete,
            _ if column.segment >= self.penalty_from => MixedForm::LargestPenalty,
            true => MixedForm::Overlapping,
            false => MixedForm::Complete,
        };
        message.time_ns(form, column, overlap).unwrap() / 1e3
    }
}

proptest! {
    /// Within 10 % of what all entries of the matrix would have shown, with at most 12 % of them measured.
    #[test]
    fn few_measurements_find_what_all_would(
        rate_us in 0.0005..0.05f64, message_us in 5.0..200.0f64, share in 0.02..2.0f64, start_us in 0.5..10.0f64,
        nodes in 2u32..64, penalty in 4u32..16, noise in prop::collection::vec(0.99..1.01f64, 40),
    ) {
        let land = Land { rate_us, message_us, shared_us: rate_us * share, start_us, nodes, penalty_from: KIB << penalty };
        let shared_ns = |bytes: u64| 1e3 * (land.start_us + land.shared_us * bytes as f64);
        let message = MixedMessage { bytes: MESSAGE, shared_ns: &shared_ns, penalty_ns: None };
        let columns = land.columns();
        let entry = |column: &BetweenNodes, overlap| MatrixEntry {
            segment: column.segment, overlap, time_us: land.truth_us(&message, column, overlap), is_measured: true,
        };
        let fastest = |entries: Vec<MatrixEntry>| entries.into_iter().map(|entry| entry.time_us).fold(f64::INFINITY, f64::min);
        let without = columns.iter().map(|column| entry(column, 0));
        let without = without.min_by(|one, other| one.time_us.total_cmp(&other.time_us)).unwrap();
        let all = |column: &BetweenNodes| {
            let overlaps = (0..14).map(|power| KIB << power).take_while(|overlap| *overlap <= column.segment);
            overlaps.map(|overlap| entry(column, overlap)).collect::<Vec<_>>()
        };
        let matrix: Vec<MatrixEntry> = columns.iter().flat_map(all).collect();
        let (places, best_us) = (matrix.len(), fastest(matrix).min(without.time_us));

        let (mut walk, mut measured) = (Walk::new(message, &columns, without), 0);
        while let Some((segment, overlap)) = walk.next() {
            let column = columns.iter().find(|column| column.segment == segment).unwrap();
            walk.took(land.truth_us(&message, column, overlap) * noise[measured]);
            measured += 1;
        }
        prop_assert!(measured * 100 <= 12 * places, "{measured} of {places}");
        let found = walk.best();
        let column = columns.iter().find(|column| column.segment == found.segment).unwrap();
        let found_us = land.truth_us(&message, column, found.overlap);
        prop_assert!(found_us <= 1.10 * best_us, "{found:?}: {found_us} of {best_us}");
    }
}
