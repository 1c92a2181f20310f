//! Keys stay where they belong, and what one group has sent is nothing to the next one.

use std::path::Path;
use std::sync::Arc;

use polycast_core::protocol::wire::{Header, JOB_AT, open, seal};
use polycast_core::protocol::{KEY_BYTES, Key};

use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::random::with_seeds;

/// Bytes of a key in a row that are no chance.
const TELLING_BYTES: usize = 6;

fn job(seed: u64) -> Job {
    let calls = [(0, 3000), (1, 20_000), (2, 100), (0, 50_000)];
    let mut job = Job::new(4, seed, "multicast-pull", &calls).on_hosts(&[0, 1, 2, 2], Weather::FINE);
    // Another communicator after it, in the same group; and one of other nodes in a group of its own.
    for (communicator, members) in [(1, vec![0, 1, 2, 3]), (2, vec![0, 1])] {
        let bytes = vec![20_000; members.len()];
        job.program.push(Step::Make { members });
        for root in [0, 1] {
            let bytes = bytes.clone();
            job.program.push(Step::Broadcast(Broadcast { communicator, root, bytes }));
        }
        job.program.push(Step::Free { communicator });
    }
    job
}

fn assert_right(outcome: &Outcome) {
    for told in &outcome.ranks {
        assert!(told.calls.iter().all(|ended| ended.is_served && ended.is_right()), "{told:?}");
    }
}

/// Whether any part of a key stands there, as it is or as people and programs write bytes.
fn has_part_of(key: &[u8; KEY_BYTES], there: &[u8]) -> bool {
    let has = |wanted: &[u8]| there.windows(wanted.len()).any(|found| found.eq_ignore_ascii_case(wanted));
    key.windows(TELLING_BYTES).any(|part| {
        let each = |write: fn(&u8) -> String| part.iter().map(write).collect::<Vec<_>>();
        let hexadecimal = each(|byte| format!("{byte:02x}"));
        let decimal = each(u8::to_string);
        has(part)
            || ["", " ", ":"].iter().any(|between| has(hexadecimal.join(between).as_bytes()))
            || [",", ", ", " "].iter().any(|between| has(decimal.join(between).as_bytes()))
    })
}

fn files_below(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn no_key_gets_into_what_a_job_writes_or_hands_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let traced = job(1).with(None, "POLYCAST_TRACE", &path("."));
    let reported = job(2).with(None, "POLYCAST_REPORT", "1");
    let in_a_file = job(3).with(None, "POLYCAST_REPORT", &path("report-3.json"));
    let written = |key: [u8; KEY_BYTES]| format!("{:?} {key:?}", Key::from_bytes([0; KEY_BYTES]));
    let (mut keys, mut there) = (Vec::new(), Vec::new());
    for job in [traced, reported, in_a_file] {
        let outcome = job.run();
        assert_right(&outcome);
        assert!(outcome.keys.len() >= 2, "a group for each set of nodes");
        keys.extend(outcome.keys);
        there.extend(outcome.ranks.into_iter().map(|told| told.said.into_bytes()));
    }
    assert!(there.iter().any(|said| String::from_utf8_lossy(said).contains("forged")), "that is a report");
    let files = files_below(folder.path());
    assert!(files.len() > 4, "traces and reports");
    there.extend(files);
    // What the children of a rank would have.
    let environment = std::env::vars_os().flat_map(|(name, value)| [name, value]);
    there.extend(environment.map(|word| word.as_encoded_bytes().to_vec()));
    for key in &keys {
        assert!(has_part_of(key, written(*key).as_bytes()), "so the test can fail");
        assert!(has_part_of(key, &[b"...", &key[5..20]].concat()), "so the test can fail");
        for there in &there {
            assert!(!has_part_of(key, there), "{}", there.escape_ascii());
        }
    }
}

/// Of all ranks.
fn counted(outcome: &Outcome, name: &str) -> u64 {
    let said = outcome.ranks.iter().flat_map(|told| told.said.split_whitespace());
    let found = said.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok());
    found.sum()
}

fn with_replays(seed: u64, recorded: Vec<Arc<[u8]>>) -> Outcome {
    let mut job = job(seed).with(None, "POLYCAST_REPORT", "1");
    job.conditions.weather.replayed = Some(recorded);
    let outcome = job.run();
    assert_right(&outcome);
    outcome
}

#[test]
fn what_a_communicator_has_sent_is_nothing_to_the_next_in_its_group() {
    with_seeds(20, |seed| {
        let outcome = with_replays(seed, Vec::new());
        assert!(counted(&outcome, "unclaimed") > 0, "{:?}", outcome.ranks[0].said);
        assert_eq!(counted(&outcome, "forged"), 0, "the same key");
    });
}

/// Nor if it had the next job's number: the key is another one.
#[test]
fn what_a_job_has_sent_is_nothing_to_the_next() {
    with_seeds(10, |seed| {
        let first = with_replays(seed, Vec::new());
        let next = seed + 1000;
        let numbers = |outcome: &Outcome| {
            let word = |datagram: &Arc<[u8]>| datagram[JOB_AT..JOB_AT + 4].try_into().unwrap();
            let all = outcome.recorded.iter().map(|datagram| u32::from_le_bytes(word(datagram)));
            all.collect::<Vec<u32>>()
        };
        let second = with_replays(next, first.recorded.clone());
        assert!(counted(&second, "foreign") > 0, "{:?}", second.ranks[0].said);
        assert_eq!(counted(&second, "forged"), 0);
        // The same once more, and the datagrams have its number.
        let number = numbers(&second)[first.recorded.len()];
        assert!(!numbers(&first).contains(&number));
        let with_number = |datagram: &Arc<[u8]>| {
            let job = numbers(&first)[0];
            let keys = first.keys.iter().map(|key| Key::from_bytes(*key));
            let (key, (header, payload)) =
                keys.filter_map(|key| Some((key.clone(), open(datagram, job, &key).ok()?))).next()?;
            let mut sealed = Vec::new();
            seal(&Header { job: number, ..header }, payload, &key, &mut sealed);
            Some(sealed.into())
        };
        let sealed: Vec<Arc<[u8]>> = first.recorded.iter().filter_map(with_number).collect();
        assert!(sealed.len() > 10);
        let third = with_replays(next, sealed);
        assert!(counted(&third, "forged") > 0, "{:?}", third.ranks[0].said);
    });
}
