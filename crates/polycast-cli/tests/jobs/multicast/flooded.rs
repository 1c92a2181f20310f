//! A host that does not belong to a job sends to its group and port, hundreds of thousands of datagrams a second. How much slower that makes
//! broadcasts is for a measurement to say; here none is lost, multicast stays, and the kernel is told to drop what strangers send.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::tempdir;

use crate::common::checkout;
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LAB, LabJob, expect_multicast, group_and_port, lab, warnings};

/// The last host has no rank.
const RANKS: usize = 3;

#[test]
fn strangers_do_not_stop_a_job() {
    let Some(labs) = lab(RANKS + 1, &[]) else { return };
    let folder = tempdir().unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let job =
        LabJob::stock(&labs, Mpi::OpenMpi, RANKS, "bcast_died").arguments(&["65536", &path, "20", "300"]);
    let output = thread::scope(|scope| {
        let job = scope.spawn(|| job.forced(FORMS[0]).expect_ok());
        while !folder.path().join("reached.1").exists() && !job.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let [group, port] = group_and_port(&labs, "h1").expect("it uses multicast");
        let flood = checkout().join("tests/mpi/flood.py");
        let words = ["exec", LAB, &format!("h{RANKS}"), "--", "python3", &flood.to_string_lossy()];
        let mut command = labs.command(&[&words[..], &["120", &group, &port, "200000"]].concat());
        let mut flood =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the tool is there");
        let mut begun = String::new();
        BufReader::new(flood.stdout.take().unwrap()).read_line(&mut begun).unwrap();
        assert_eq!(begun, "flooding\n");
        std::fs::write(folder.path().join("go.1"), "").unwrap();
        let output = job.join().unwrap();
        kill(Pid::from_raw(flood.id() as i32), Signal::SIGTERM).unwrap();
        flood.wait().unwrap();
        output
    });
    let report = expect_multicast(&output, FORMS[0]);
    if report.served_by(FORMS[0]) != 320 || report.multicast("foreign") < 64 || !warnings(&output).is_empty()
    {
        output.fail("expected all calls by multicast, and that strangers were seen");
    }
    labs.succeeds(&["down", "--all"]);
}
