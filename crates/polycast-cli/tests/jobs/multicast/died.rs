//! Multicast that dies in mid-job is left by all within a few calls, and comes back within the announced time. Calls are counted, not
//! times: how many each way has served stands in the report.

use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::tempdir;

use crate::cluster::Labs;
use crate::common::job::Output;
use crate::common::mpi::Mpi;
use crate::common::report::Report;
use crate::job::{FORMS, LAB, LabJob, expect_warning, lab, warnings};

const HOSTS: usize = 8;
/// Calls of each part of the job.
const CALLS: u64 = 40;
/// Calls by multicast at most when it is dead: three bad ones, one in which the root tells, three until the ranks look; and in a push nine by
/// which the root may be ahead, eight whose receivers have not said that they called, and one that waits for them. If their word overtakes
/// that of the node that is deaf, which comes from another sender, all look four calls later.
const MAX_LEFT_AFTER: [u64; 2] = [8, 20];
/// What the warning announces; and calls after which it is looked at again whether the time has come.
const RETRY_AFTER: Duration = Duration::from_secs(30);

const BLOCK: &str = "nft 'table ip died { chain c { type filter hook input priority 0; \
                     ip daddr 224.0.0.0/4 meta l4proto udp drop; }; }'";
const OPEN: &str = "nft delete table ip died";

fn on_all_hosts(labs: &Labs, script: &str) {
    for host in 0..HOSTS {
        labs.exec(LAB, &format!("h{host}"), script);
    }
}

/// Runs `bcast_died` with a part more than there are changes, which happen between them. Other jobs need not wait: some changes sleep.
fn run(labs: &Labs, form: &str, bytes: &str, changes: &[&dyn Fn()]) -> (Output, Report) {
    let folder = tempdir().unwrap();
    let (calls, path) = (CALLS.to_string(), folder.path().to_string_lossy().into_owned());
    let mut arguments = vec![bytes, &path];
    arguments.extend(vec![calls.as_str(); changes.len() + 1]);
    let job = LabJob::stock(labs, Mpi::OpenMpi, HOSTS, "bcast_died").arguments(&arguments).forced(form);
    let has_reached = |folder: &Path, part: usize| folder.join(format!("reached.{part}")).exists();
    let output = thread::scope(|scope| {
        let job = scope.spawn(|| job.run_beside_others().expect_ok("bcast_died"));
        for (part, change) in (1..).zip(changes) {
            // A job that does not come so far is ended by its own limit.
            while !has_reached(folder.path(), part) && !job.is_finished() {
                thread::sleep(Duration::from_millis(10));
            }
            change();
            std::fs::write(folder.path().join(format!("go.{part}")), "").unwrap();
        }
        job.join().unwrap()
    });
    let report = output.report();
    (output, report)
}

#[test]
fn all_leave_within_a_few_calls() {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    for (form, bytes, most) in [
        (FORMS[0], "8192", MAX_LEFT_AFTER[0]),
        (FORMS[0], "1048576", MAX_LEFT_AFTER[0]),
        (FORMS[1], "8192", MAX_LEFT_AFTER[1]),
    ] {
        let block = || on_all_hosts(&labs, BLOCK);
        let (output, report) = run(&labs, form, bytes, &[&block]);
        on_all_hosts(&labs, OPEN);
        let by_multicast = report.served_by(form);
        if !(CALLS + 3..=CALLS + most).contains(&by_multicast) || report.multicast("died") != HOSTS as u64 {
            output.fail(&format!(
                "{bytes} bytes: {by_multicast} calls by {form}, expected {CALLS} and at most {most}"
            ));
        }
        expect_warning(&output, &["multicast has died", "trees serve", "30 s"]);
    }
    labs.succeeds(&["down", "--all"]);
}

/// Where a root is far ahead of the others.
#[test]
fn nobody_leaves_what_works() {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    for form in FORMS {
        let nothing: [&dyn Fn(); 5] = [&|| {}; 5];
        let (output, report) = run(&labs, form, "8192", &nothing);
        if report.served_by(form) != 6 * CALLS || !warnings(&output).is_empty() {
            output.fail(&format!("expected all calls by {form}"));
        }
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn what_works_again_is_used_again() {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    let block = || on_all_hosts(&labs, BLOCK);
    let open = || {
        on_all_hosts(&labs, OPEN);
        thread::sleep(RETRY_AFTER);
    };
    let (output, report) = run(&labs, FORMS[0], "8192", &[&block, &open]);
    // After 16 calls it was too early, after 32 more it is not.
    let by_multicast = report.served_by(FORMS[0]);
    if report.multicast("returned") != HOSTS as u64 || by_multicast < CALLS + 4 + (2 * CALLS - 7 - 48) {
        output.fail(&format!("it does not serve again: {by_multicast} calls"));
    }
    expect_warning(&output, &["multicast has died"]);
    labs.succeeds(&["down", "--all"]);
}
