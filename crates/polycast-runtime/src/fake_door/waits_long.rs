//! A rank that waits long speaks where the others may have kept to another way, which nobody tells it; and a valid program hears nothing.

use std::io::Write;
use std::time::Duration;

use super::job::{Job, Step};
use super::process::Ended;

/// Calls that are left to the MPI; then those of 100 bytes and more are served, and later the shorter ones are, too. In the first that is served
/// ranks agree before they wait.
const LEFT: usize = 4;
const TABLE: &str = "version = 1\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"100..\"\nearlier_calls = \"4..\"\nuse = \"chain\"\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"..99\"\nearlier_calls = \"80..\"\nuse = \"binomial\"\n\
    [[rule]]\ncollective = \"bcast\"\nuse = \"stock\"\n";

/// What the ranks say of a rank that comes 30 s late to the call after `calls` others.
fn said(calls: usize, late: Duration) -> Vec<String> {
    let mut job = Job::new(3, 1, "", &vec![(0, 128); calls + 3]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(TABLE.as_bytes()).unwrap();
    job = job.with(None, "POLYCAST_TABLE", file.path().to_str().unwrap());
    job.program.insert(1 + calls, Step::Pause { process: 1, time: late });
    let outcome = job.run();
    let is_well = |ended: &Ended| ended.code == 0 && ended.has_data;
    assert!(outcome.ranks.iter().all(|told| told.calls.iter().all(is_well)), "{job:?}");
    outcome.ranks.into_iter().map(|told| told.said).filter(|said| !said.is_empty()).collect()
}

#[test]
fn who_waits_after_a_change_names_call_size_and_way_out() {
    for calls in [LEFT + 1, LEFT + 3] {
        let said = said(calls, Duration::from_secs(30));
        assert!(!said.is_empty(), "after {calls} calls");
        for words in
            ["polycast: warning: MPI_Bcast: rank ", "blocks of 128 bytes", "by chain", "POLYCAST=off"]
        {
            assert!(said.iter().all(|said| said.contains(words)), "{said:?}");
        }
    }
}

#[test]
fn a_valid_program_that_waits_hears_nothing() {
    // Before anything is served; soon after a change, but not long; long after it; and where another size changes.
    for (calls, late) in [(1, 30), (LEFT + 1, 10), (LEFT + 30, 30), (90, 30)] {
        let said = said(calls, Duration::from_secs(late));
        assert!(said.is_empty(), "after {calls} calls: {said:?}");
    }
}
