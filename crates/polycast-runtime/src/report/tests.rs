use std::time::Duration;

use polycast_core::policy::{Call, Choice, Collective};
use polycast_core::units::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::record::Record;
use super::summary::Summary;

const MIB: u64 = 1 << 20;

fn broadcast(bytes: u64) -> Call {
    Call::new(Collective::Broadcast, Bytes(bytes))
}

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
        record.served(&broadcast(MIB), choice("multicast-pull"), Duration::from_millis(95));
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
    let small = record.reason(Collective::Broadcast, "a few packets (the rule for bytes ..8KiB)");
    record.left(&broadcast(1024), small, Duration::from_micros(10));
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
        record.served(&broadcast(bytes), choice(name), Duration::from_micros(1));
    }
    let sentence = summary(&record).sentence();
    assert!(sentence.contains(" by chain, binary, binomial and 2 others in 5.00 µs"), "{sentence}");
}

#[test]
fn a_job_that_was_left_alone_is_told_so() {
    let mut record = Record::default();
    let sentence = summary(&record).sentence();
    assert!(
        sentence.starts_with("rank 0 called no collective that came by polycast; calls by handles"),
        "{sentence}"
    );
    let [unused, used] = ["unused", "two ranks have nothing to pipeline"]
        .map(|text| record.reason(Collective::Broadcast, text));
    record.left(&broadcast(8), used, Duration::from_nanos(400));
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
    let reason = record.reason(Collective::Broadcast, "small");
    record.left(&broadcast(100), reason, Duration::from_micros(7));
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

#[test]
fn each_collective_is_told_apart() {
    let mut record = Record { all_ranks_report: true, ..twenty() };
    let call = Call::new(Collective::Allreduce, Bytes(4096));
    let doubling = Choice::read(Collective::Allreduce, "recursive-doubling").unwrap();
    record.served(&call, doubling, Duration::from_micros(20));
    let reason = record.reason(Collective::Allreduce, "because");
    record.left(&call, reason, Duration::from_micros(2));
    let barrier = Call::new(Collective::Barrier, Bytes(0));
    let reason = record.reason(Collective::Barrier, "because");
    record.left(&barrier, reason, Duration::from_micros(1));
    let summary = Summary::of(&record, |values| {
        values.iter_mut().for_each(|value| *value *= 3);
        true
    });
    let (text, json) = (summary.text(), json(&summary));
    for expected in [
        "; served 1 of 2 calls of MPI_Allreduce (4 KiB) by recursive-doubling in 20.0 µs\n",
        "left to the MPI: 1 call of MPI_Allreduce (4 KiB in 2.00 µs): because\n",
        "left to the MPI: 1 call of MPI_Barrier (0 B in 1.00 µs): because\n",
        "allreduce recursive-doubling calls=1 bytes=4096 ",
        "allreduce stock calls=1 bytes=4096 ",
        "barrier stock calls=1 bytes=0 ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let of = |which: &Value| -> Vec<(String, u64, u64)> {
        let of = |one: &Value| {
            let calls = |what: &str| one[what]["calls"].as_u64().unwrap();
            (one["collective"].as_str().unwrap().to_owned(), calls("served"), calls("left_to_mpi"))
        };
        which["collectives"].as_array().unwrap().iter().map(of).collect()
    };
    let expected = |times: u64| {
        [("bcast", 20, 0), ("barrier", 0, 1), ("allreduce", 1, 1)]
            .map(|(name, served, left)| (name.to_owned(), times * served, times * left))
    };
    assert_eq!([of(&json["rank_0"]), of(&json["all_ranks"])], [expected(1), expected(3)]);
    assert_eq!(json["rank_0"]["served"]["calls"], 20, "broadcasts as ever");
}

proptest! {
    /// The same totals, whichever way they are read.
    #[test]
    fn json_and_lines_have_the_same_totals(
        calls in prop::collection::vec((0usize..5, 1u64..1 << 40, 0u64..1 << 40), 0..60),
    ) {
        let mut record = Record::default();
        let reasons = ["one node", "small \"quoted\" \\ calls"].map(|text| record.reason(Collective::Broadcast, text));
        for (kind, bytes, nanos) in calls {
            let took = Duration::from_nanos(nanos);
            match kind {
                0 | 1 => record.left(&broadcast(bytes), reasons[kind], took),
                2 => record.served(&broadcast(bytes), choice("chain:segment=8KiB"), took),
                3 => record.served(&broadcast(bytes), choice("multicast-pull"), took),
                _ => record.served(&broadcast(bytes), choice("flat"), took),
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
