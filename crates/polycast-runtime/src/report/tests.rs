use std::time::Duration;

use polycast_core::policy::Choice;
use proptest::prelude::*;
use serde_json::Value;

use super::record::Record;
use super::summary::Summary;

const MIB: u64 = 1 << 20;

fn choice(text: &str) -> Choice {
    text.parse().unwrap()
}

/// Of a process that is asked for nothing by others.
fn summary(record: &Record) -> Summary {
    Summary::of(record, |_| panic!("not all ranks report"))
}

fn json(summary: &Summary) -> Value {
    serde_json::from_str(&summary.json()).unwrap()
}

/// The number behind `name=` in a line.
fn number(line: &str, name: &str) -> u64 {
    let word = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {name} in {line}")).parse().unwrap()
}

/// Twenty broadcasts by multicast, of which nothing was lost.
fn twenty() -> Record {
    let mut record = Record { attached: 1, released: 1, ..Record::default() };
    for _ in 0..20 {
        record.served(choice("multicast-pull"), MIB, Duration::from_millis(95));
    }
    record.multicast.protocol.broadcasts = 20;
    record.multicast.protocol.useful = 700;
    record
}

#[test]
fn the_report_begins_with_a_sentence() {
    let mut record = twenty();
    let first = |record: &Record| summary(record).text().lines().next().unwrap().to_owned();
    assert_eq!(
        first(&record),
        "polycast: report: served 20 of 20 broadcasts (20 MiB) by multicast-pull in 1.90 s; nothing was repaired"
    );
    record.multicast.protocol.repaired = 12;
    record.multicast.protocol.restored = 1;
    record.multicast.protocol.penalty_broadcasts = 2;
    let small = record.reason("a few packets (the rule for bytes ..8KiB)");
    record.left(small, 1024, Duration::from_micros(10));
    assert_eq!(
        first(&record),
        "polycast: report: served 20 of 21 broadcasts (20 MiB) by multicast-pull in 1.90 s; \
         13 of 713 fragments were repaired"
    );
}

#[test]
fn many_algorithms_are_not_all_named() {
    let mut record = Record::default();
    for (name, bytes) in [("flat", 1), ("chain", 5), ("binary", 4), ("binomial", 3), ("k-ary:k=3", 2)] {
        record.served(choice(name), bytes, Duration::from_micros(1));
    }
    let sentence = summary(&record).sentence();
    assert!(sentence.contains(" by chain, binary, binomial and 2 others in 5.00 µs"), "{sentence}");
}

#[test]
fn a_job_that_was_left_alone_is_told_so() {
    let mut record = Record::default();
    assert_eq!(summary(&record).sentence(), "rank 0 called no MPI_Bcast that polycast could serve");
    let [unused, used] = ["unused", "two ranks have nothing to pipeline"].map(|text| record.reason(text));
    record.left(used, 8, Duration::from_nanos(400));
    let text = summary(&record).text();
    assert!(
        text.starts_with(
            "polycast: report: served none of 1 broadcast (8 B in 400 ns): all were left to the MPI\n"
        ),
        "{text}"
    );
    let line = "left to the MPI: 1 broadcast (8 B in 400 ns): two ranks have nothing to pipeline\n";
    assert!(text.contains(line) && !text.contains("unused") && unused != used, "{text}");
}

#[test]
fn sizes_are_a_table_with_times() {
    let mut record = twenty();
    let reason = record.reason("small");
    record.left(reason, 100, Duration::from_micros(7));
    let text = summary(&record).text();
    let of = |start: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix("polycast: report: ")?.trim().strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start}: {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("1MiB..4MiB"), "polycast 20 1.90 s 92.3 ms 95.0 ms");
    assert_eq!(of("64B..256B"), "mpi 1 7.00 µs 6.66 µs 7.00 µs");
    assert!(text.lines().filter(|line| line.contains("..")).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_multicast_did_is_said_in_words_and_numbers() {
    let mut record = twenty();
    record.without_multicast.insert("rank 2: datagrams do not arrive".to_owned(), 3);
    record.multicast.protocol.repaired = 1;
    record.multicast.protocol.penalty_broadcasts = 1;
    let text = summary(&record).text();
    for expected in [
        "without multicast: 3 communicators: rank 2: datagrams do not arrive\n",
        "repairs on this node: 1 fragment brought by the ring, 0 restored from parity, in 1 repair round; 0 datagrams lost",
        " repaired=1 ",
        " fallbacks=3 ranks=this\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn where_all_take_part_sums_are_over_all_ranks() {
    let mut record = twenty();
    record.all_ranks_report = true;
    let sums = Summary::of(&record, |values| {
        values.iter_mut().for_each(|value| *value *= 4);
        true
    });
    let json = json(&sums);
    assert_eq!(
        (&json["rank_0"]["served"]["calls"], &json["all_ranks"]["served"]["calls"]),
        (&20.into(), &80.into())
    );
    assert_eq!((&json["multicast"]["useful"], &json["multicast"]["ranks"]), (&2800.into(), &"all".into()));
    assert!(sums.text().contains(" useful=2800 ") && sums.text().contains("ranks=all\n"));
    let failed = Summary::of(&record, |_| false);
    assert!(failed.all_ranks.is_none() && failed.multicast("useful") == 700);
}

proptest! {
    /// The same totals, whichever way they are read.
    #[test]
    fn json_and_lines_have_the_same_totals(
        calls in prop::collection::vec((0usize..5, 1u64..1 << 40, 0u64..1 << 40), 0..60),
    ) {
        let mut record = Record::default();
        let reasons = ["one node", "small \"quoted\" \\ calls"].map(|text| record.reason(text));
        for (kind, bytes, nanos) in calls {
            let took = Duration::from_nanos(nanos);
            match kind {
                0 | 1 => record.left(reasons[kind], bytes, took),
                2 => record.served(choice("chain:segment=8KiB"), bytes, took),
                3 => record.served(choice("multicast-pull"), bytes, took),
                _ => record.served(choice("flat"), bytes, took),
            }
        }
        let summary = summary(&record);
        let (text, json) = (summary.text(), json(&summary));
        let sum = |values: &Value, field: &str| -> u64 {
            values.as_array().unwrap().iter().map(|value| value[field].as_u64().unwrap()).sum()
        };
        let report = &json["rank_0"];
        for field in ["calls", "bytes"] {
            let (mut served, mut stock) = (0, 0);
            for line in text.lines().filter(|line| line.contains("report: bcast ")) {
                let of = if line.contains("bcast stock") { &mut stock } else { &mut served };
                *of += number(line, field);
            }
            prop_assert_eq!(report["served"][field].as_u64(), Some(served));
            prop_assert_eq!(report["left_to_mpi"][field].as_u64(), Some(stock));
            prop_assert_eq!(sum(&report["algorithms"], field), served);
            prop_assert_eq!(sum(&report["reasons"], field), stock);
            prop_assert_eq!(sum(&report["sizes"], field), served + stock);
        }
        prop_assert_eq!(&json["schema_version"], 1);
        let first = text.lines().next().unwrap().strip_prefix("polycast: report: ");
        prop_assert_eq!(first, json["summary"].as_str());
    }
}
