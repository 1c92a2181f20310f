//! `polycast madcap` as a program: what it says, whom it serves, how it ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polycast_madcap::{Client, Scope};
use polycast_net::Family;

#[test]
fn it_serves_clients_and_ends_cleanly_when_interrupted() {
    let mut server = Command::new(cargo_bin("polycast"))
        .args(["madcap", "--listen", "127.0.0.1:0", "--pool", "239.192.8.0/30", "--lease", "10m"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address =
        first.strip_prefix("listening on ").and_then(|rest| rest.split(',').next()).expect("an address");

    let mut words = 0;
    let mut next = || {
        words += 1;
        words
    };
    // However long it waits for a processor, it is asked once: it tells of each request.
    let long = Duration::from_secs(300);
    let client = Client::new(address, Scope::of(Family::V4)).unwrap().patient(long, long);
    let lease = client.acquire(Duration::from_secs(3_600), &mut next).unwrap();
    assert_eq!(lease.address.to_string(), "239.192.8.0");
    assert_eq!(lease.duration, Duration::from_secs(600));
    client.acquire(Duration::from_secs(60), &mut next).unwrap();
    client.release(lease, &mut next).unwrap();

    kill(Pid::from_raw(server.id() as i32), Signal::SIGINT).unwrap();
    assert!(server.wait().unwrap().success());
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "127.0.0.1: 239.192.8.0 given for 600s; 1 in use",
            "127.0.0.1: 239.192.8.1 given for 60s; 2 in use",
            "127.0.0.1: 239.192.8.0 released; 1 in use",
            "ended; 1 in use",
        ]
    );
}

#[test]
fn what_cannot_be_served_is_refused_with_the_remedy() {
    for (arguments, expected) in [
        (["--listen", "127.0.0.1:0", "--pool", "10.0.0.0/24"], "expected a range of multicast addresses"),
        (["--listen", "127.0.0.1:0", "--pool", "239.192.0.0/14"], "expected at most 65536"),
        (["--listen", "0.0.0.0", "--pool", "239.192.0.0/24"], "the address that clients name"),
        (["--listen", "192.0.2.1:0", "--pool", "239.192.0.0/24"], "it must be an address of this host"),
    ] {
        let output = Command::new(cargo_bin("polycast")).arg("madcap").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "{arguments:?}: {text}");
    }
}
