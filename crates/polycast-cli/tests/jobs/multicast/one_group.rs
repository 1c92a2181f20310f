//! Jobs whose datagrams all go to one group and port: what each hears of the others is foreign to it, and changes no byte.
//!
//! Jobs draw groups at random, so that this hardly happens. Here the hosts' firewalls see to it: what a job sends to its group leaves for
//! the shared one, and what arrives there is handed to it as if it had come to its own.
//!
//! ```text
//!   job 0   239.192.8.1:6001 ─┐                         ┌─▶ 239.192.8.1:6001   its own, and 1's: foreign
//!                             ├─▶ 239.193.77.1:7777 ────┤
//!   job 1   239.194.5.9:9120 ─┘                         └─▶ 239.194.5.9:9120   its own, and 0's: foreign
//! ```

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::tempdir;

use crate::cluster::Labs;
use crate::common::checkout;
use crate::common::job::alone;
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LAB, LabJob, expect_multicast, lab};

const SHARED_GROUP: &str = "239.193.77.1";
const SHARED_PORT: &str = "7777";

/// Of each job, a host of its own for each: a root and a receiver that hear all the others.
const RANKS: usize = 2;

/// Calls while each job still has its group to itself.
const BEFORE: usize = 2;

/// One datagram: receive buffers have room for what the others send while a rank waits for its processor.
const BYTES: &str = "1000";

fn hosts_of(job: usize) -> impl Iterator<Item = String> {
    (job * RANKS..(job + 1) * RANKS).map(|host| format!("h{host}"))
}

/// From now on this host's job has the shared group, as soon as the process has said so.
fn share(labs: &Labs, host: &str) -> Child {
    let script = checkout().join("tests/mpi/one_group.py");
    let words = ["exec", LAB, host, "--", "python3", &script.to_string_lossy()];
    let mut command = labs.command(&[&words[..], &[SHARED_GROUP, SHARED_PORT]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool is there")
}

/// So many jobs at a time, each with so many broadcasts on the shared group.
fn share_a_group(jobs: usize, calls: usize) {
    let Some(labs) = lab(jobs * RANKS, &[]) else { return };
    let folders: Vec<_> = (0..jobs).map(|_| tempdir().unwrap()).collect();
    let job = |number: usize| {
        let hosts: Vec<String> = hosts_of(number).collect();
        let path = folders[number].path().to_string_lossy().into_owned();
        let form = FORMS[number % FORMS.len()];
        let job = LabJob::stock(&labs, Mpi::OpenMpi, RANKS, "bcast_died").on(&hosts.join(","));
        let arguments = [BYTES, &path, &BEFORE.to_string(), &calls.to_string()];
        (job.arguments(&arguments).forced(form).limit(Duration::from_secs(600)), form)
    };
    let _one_test = alone();
    let outputs: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..jobs)
            .map(|number| {
                let (job, form) = job(number);
                (scope.spawn(move || job.run_beside_others().expect_ok("bcast_died")), form)
            })
            .collect();
        for (folder, (job, _)) in folders.iter().zip(&started) {
            while !folder.path().join("reached.1").exists() && !job.is_finished() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        // All at a time: ranks that wait leave them little of the processors.
        let mut members: Vec<Child> = (0..jobs).flat_map(hosts_of).map(|host| share(&labs, &host)).collect();
        for member in &mut members {
            let mut line = String::new();
            BufReader::new(member.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "joined\n");
        }
        for folder in &folders {
            fs::write(folder.path().join("go.1"), "").unwrap();
        }
        let outputs = started.into_iter().map(|(job, form)| (job.join().unwrap(), form)).collect();
        for mut member in members {
            drop(member.stdin.take());
            member.wait().unwrap();
        }
        outputs
    });
    let (mut served, mut foreign) = (0, 0);
    for (output, form) in &outputs {
        let report = expect_multicast(output, form);
        if report.multicast("forged") != 0 {
            output.fail("a datagram of another job was nearly taken for its own");
        }
        served += report.served_by(form);
        foreign += report.multicast("foreign");
    }
    let all = jobs * (BEFORE + calls);
    eprintln!(
        "{jobs} jobs: {served} of {all} broadcasts by multicast, {foreign} datagrams were another job's"
    );
    // A job whose ranks do not come to read in time leaves multicast for a while, and one may be through before others begin.
    assert!(served > (jobs * BEFORE + calls / 2) as u64, "hardly any came over the shared group");
    assert!(foreign > calls as u64, "they have hardly heard each other");
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn four_jobs() {
    share_a_group(4, 200);
}

#[test]
#[ignore = "make test-all: 64 hosts take minutes"]
fn thirty_two_jobs() {
    share_a_group(32, 1000);
}
