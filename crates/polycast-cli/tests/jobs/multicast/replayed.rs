//! A host that belongs to no job has recorded one, and sends all of it to the group and port of the next job of the same user on the same hosts,
//! in the names of those hosts: with the number of the job that it was, and with that of the job that it reaches, which stands in each datagram
//! for all to read. Communicator and operations have the same numbers in both jobs, and other bytes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::tempdir;

use crate::cluster::Labs;
use crate::common::checkout;
use crate::common::job::{Output, alone};
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LAB, LabJob, expect_multicast, group_and_port, lab};

/// The last host has no rank.
const RANKS: usize = 2;

/// Calls of the first job before and after the host begins to listen.
const RECORDED: &[&str] = &["5", "100"];
/// Calls of the second one: before it has sent all of it, before it has sent it under this job's number, and after that.
const REPLAYED: &[&str] = &["20", "40", "200"];

fn replay(labs: &Labs, what: &str, file: &Path, [group, port]: [String; 2]) -> Child {
    let script = checkout().join("tests/mpi/replay.py");
    let [host, script, file] =
        [format!("h{RANKS}"), script.to_string_lossy().into(), file.to_string_lossy().into()];
    let mut command =
        labs.command(&["exec", LAB, &host, "--", "python3", &script, what, &file, &group, &port]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool is there")
}

/// Runs a job, beside which the host records or sends; what both said.
fn beside(labs: &Labs, what: &str, file: &Path, calls: &[&str]) -> (Output, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let job = LabJob::stock(labs, Mpi::OpenMpi, RANKS, "bcast_died");
    let job = job.arguments(&[&["8192", &*path], calls].concat()).forced(FORMS[0]);
    thread::scope(|scope| {
        let job = scope.spawn(move || job.run_beside_others().expect_ok("bcast_died"));
        while !folder.path().join("reached.1").exists() && !job.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let mut host = replay(labs, what, file, group_and_port(labs, "h1").expect("it uses multicast"));
        let mut output = BufReader::new(host.stdout.take().unwrap());
        let mut said = String::new();
        for part in 1..calls.len() {
            output.read_line(&mut said).unwrap();
            fs::write(folder.path().join(format!("go.{part}")), "").unwrap();
        }
        let job = job.join().unwrap();
        drop(host.stdin.take());
        output.read_to_string(&mut said).unwrap();
        host.wait().unwrap();
        (job, said)
    })
}

#[test]
fn what_a_job_has_sent_is_nothing_to_the_next() {
    let Some(labs) = lab(RANKS + 1, &[]) else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("recorded");
    let _one_test = alone();
    let (_, recorded) = beside(&labs, "record", &file, RECORDED);
    let (output, sent) = beside(&labs, "send", &file, REPLAYED);
    let report = expect_multicast(&output, FORMS[0]);
    let [foreign, forged] = ["foreign", "forged"].map(|name| report.multicast(name));
    eprintln!("{recorded}{sent}{foreign} were of another job, {forged} under another job's key");
    if foreign < 50 || forged < 50 || report.served_by(FORMS[0]) != 260 {
        output.fail(&format!("expected that strangers were heard, and believed nothing: {recorded}{sent}"));
    }
    labs.succeeds(&["down", "--all"]);
}
