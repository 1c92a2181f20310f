//! Jobs over a door without an MPI leave traces.

use std::time::Duration;

use polycast_core::collective::Collective;
use polycast_trace::{Job as Traced, Kind, calls, decode, phases};
use tempfile::TempDir;

use super::job::{Job, Step};
use super::network::Weather;

/// What the ranks of a job leave, put together.
fn traced(job: Job) -> (Traced, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let outcome = job.with(None, "POLYCAST_TRACE", folder.path().to_str().unwrap()).run();
    assert!(outcome.ranks.iter().all(|told| told.calls.iter().all(|ended| ended.is_right())));
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "trace"));
    let traces = files.map(|file| decode(&std::fs::read(file).unwrap()).unwrap());
    (Traced::new(traces.collect()).unwrap(), folder)
}

#[test]
fn every_call_is_recorded_on_all_ranks() {
    let mut job = Job::new(4, 1, "chain:segment=1KiB", &[(0, 5000), (1, 100), (3, 3000)]);
    job.program.insert(2, Step::Pause { process: 2, time: Duration::from_millis(20) });
    let (job, folder) = traced(job);
    assert_eq!((job.ranks, job.traces.len(), &job.missing[..]), (4, 4, &[][..]));
    let calls = calls(&job);
    let shape: Vec<_> = calls.iter().map(|call| (call.number, call.bytes, call.root, call.size)).collect();
    assert_eq!(shape, [(1, 5000, 0, 4), (2, 100, 1, 4), (3, 3000, 3, 4)]);
    assert!(
        calls
            .iter()
            .all(|call| call.is_whole() && job.names[usize::from(call.choice())] == "chain:segment=1KiB")
    );
    let reason = usize::from(calls[0].parts[0].reason);
    assert_eq!(job.names[reason], "POLYCAST_BCAST");
    // Of the second call rank 2 was late, which is no root.
    let second = phases(&calls[1]).unwrap();
    assert!(second.intermediate_ns >= 19_000_000, "{second:?}");
    let waited = calls[1].parts[3].waits.iter().map(|(_, time)| *time).max();
    assert!(calls[1].parts.iter().any(|part| part.waited_ns > 1_000_000), "{waited:?}");
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    assert!(report.contains("polycast-report"), "{report}");
}

#[test]
fn what_the_mpi_serves_is_recorded_too() {
    let (job, _folder) = traced(Job::new(3, 1, "stock", &[(0, 500), (1, 100)]));
    let calls = calls(&job);
    assert_eq!(calls.len(), 2);
    for part in &calls[0].parts {
        let [choice, reason] = [part.choice, part.reason].map(|name| &job.names[usize::from(name)][..]);
        assert_eq!((choice, reason, part.returned_ns.is_some()), ("stock", "POLYCAST_BCAST=stock", true));
    }
}

/// The hosts of the stage have one clock, which the ranks do not know: the bound of the error holds.
#[test]
fn clocks_are_compared_at_both_ends() {
    let job = Job::new(4, 3, "binomial", &[(0, 500)]).on_hosts(&[0, 0, 1, 2], Weather::FINE);
    let (job, _folder) = traced(job);
    let measured: Vec<u32> = job
        .traces
        .iter()
        .filter(|trace| trace.clocks.iter().all(Option::is_some))
        .map(|trace| trace.rank)
        .collect();
    assert_eq!((&measured[..], &job.without_clock[..]), (&[2, 3][..], &[][..]));
    for clock in job.traces.iter().flat_map(|trace| trace.clocks.iter().flatten()) {
        assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns, "{clock:?}");
    }
}

#[test]
fn datagrams_and_repairs_are_recorded_by_leaders() {
    let weather = Weather { lost: 200, ..Weather::FINE };
    let calls_made: Vec<(u32, usize)> = (0..6).map(|_| (0, 40_000)).collect();
    let job = Job::new(3, 5, "multicast-pull", &calls_made).on_hosts(&[0, 1, 2], weather);
    let (job, _folder) = traced(job);
    let of_job = calls(&job);
    let of_leaders =
        || of_job.iter().flat_map(|call| call.parts.iter().filter_map(|part| part.datagrams.as_deref()));
    assert!(of_leaders().count() >= 6 * 3 - 3, "{}", of_leaders().count());
    assert!(of_leaders().any(|seen| seen.sent > 0) && of_leaders().any(|seen| seen.useful > 0));
    assert!(of_leaders().any(|seen| seen.repaired > 0 && seen.requests > 0));
    assert!(of_leaders().all(|seen| seen.first_ns <= seen.last_ns));
}

#[test]
fn one_rank_alone_records_what_it_sees() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::new(3, 1, "chain", &[(0, 500)]);
    job.with(Some(1), "POLYCAST_TRACE", folder.path().to_str().unwrap()).run();
    let trace = decode(&std::fs::read(folder.path().join("rank-000001.trace")).unwrap()).unwrap();
    assert_eq!((trace.job, trace.rank, trace.ranks), (0, 1, 3));
    assert_eq!(trace.events.iter().filter(|event| event.kind == Kind::Return).count(), 1);
}

#[test]
fn a_folder_that_cannot_be_made_is_a_line_and_no_more() {
    let job = Job::new(2, 1, "chain", &[(0, 500)]).with(None, "POLYCAST_TRACE", "/proc/nowhere");
    let outcome = job.run();
    assert!(
        outcome.ranks[1].said.contains("trace /proc/nowhere/rank-000001.trace: "),
        "{}",
        outcome.ranks[1].said
    );
    assert!(outcome.ranks[1].calls[0].is_right());
}

#[test]
fn collectives_have_the_same_numbers_everywhere() {
    let header = include_str!("../../../../include/polycast.h");
    let list = header.split_once("POLYCAST_COLLECTIVE_NAMES").unwrap().1.split_once('{').unwrap().1;
    let names = list.split('}').next().unwrap().split(',').map(|name| name.trim().trim_matches('"'));
    assert!(names.eq(Collective::ALL.map(Collective::name)));
    for (number, collective) in (0..).zip(Collective::ALL) {
        assert_eq!(polycast_trace::has_root(number), collective.has_root());
    }
}
