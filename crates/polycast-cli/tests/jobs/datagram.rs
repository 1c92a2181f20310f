//! Who hears a multicast datagram. Hosts run this test program again, with a role in its environment.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::cluster::Labs;
use crate::common::job::LIMIT;

const ROLE: &str = "POLYCAST_TEST_ROLE";
const PORT: u16 = 50_123;
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 193, 7, 7);
/// Transient, link-local scope.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x77);

/// What a receiver prints when it has joined, and when a datagram has come.
const READY: &str = "listening";
const HEARD: &str = "heard it";

/// The sender repeats the datagram so often at least: who has not heard it then, and so long after the last, hears none.
const TIMES: u32 = 10;
const SILENCE: Duration = Duration::from_millis(200);

/// Sends datagrams from a host of a lab to a group; fails unless of the receivers, all of them members, exactly those hear one that are to.
pub fn are_heard(labs: &Labs, lab: &str, family: &str, sender: &str, receivers: &[(&str, bool)]) {
    // Each lasts until its standard input ends.
    let start = |host: &str, role: &str| {
        let program = env::current_exe().unwrap();
        let test = ["--exact", "datagram::in_a_lab", "--nocapture"];
        let mut command = labs.command(&["exec", lab, host, "--", program.to_str().unwrap()]);
        let command = command.args(test).env(ROLE, format!("{role} {family}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut listening: Vec<_> = receivers.iter().map(|(host, _)| lines_of(start(host, "receive"))).collect();
    for (_, lines) in &mut listening {
        assert!(lines.any(|line| line.unwrap().contains(READY)), "a receiver could not join");
    }
    let mut sending = start(sender, "send");
    let hears = |lines: &mut Lines| lines.any(|line| line.unwrap().contains(HEARD));
    // It sends on until they have.
    for ((host, _), (_, lines)) in receivers.iter().zip(&mut listening).filter(|((_, is_to), _)| *is_to) {
        assert!(hears(lines), "{family} from {sender}: {host} hears nothing");
    }
    drop(sending.stdin.take());
    assert!(sending.wait().unwrap().success());
    for ((host, is_to), (mut child, mut lines)) in receivers.iter().zip(listening) {
        drop(child.stdin.take());
        assert!(*is_to || !hears(&mut lines), "{family} from {sender}: {host} hears it");
        // Nobody is left to hear what else it says.
        lines.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}

type Lines = io::Lines<BufReader<std::process::ChildStdout>>;

fn lines_of(mut child: Child) -> (Child, Lines) {
    let output = child.stdout.take().unwrap();
    (child, BufReader::new(output).lines())
}

/// The part of other tests that runs on a host of a lab: only there it has a role.
#[test]
fn in_a_lab() {
    let Ok(role) = env::var(ROLE) else { return };
    let index: u32 = fs::read_to_string("/sys/class/net/e0/ifindex").unwrap().trim().parse().unwrap();
    let (any, group): (SocketAddr, SocketAddr) = match role.ends_with("ipv6") {
        true => ((Ipv6Addr::UNSPECIFIED, PORT).into(), SocketAddrV6::new(GROUP_V6, PORT, 0, index).into()),
        false => ((Ipv4Addr::UNSPECIFIED, PORT).into(), (GROUP_V4, PORT).into()),
    };
    let socket = UdpSocket::bind(any).unwrap();
    if role.starts_with("send") {
        let input = thread::spawn(|| io::copy(&mut io::stdin(), &mut io::sink()).unwrap());
        for sent in 1.. {
            socket.send_to(b"hear me", group).unwrap();
            thread::sleep(Duration::from_millis(20));
            if sent >= TIMES && input.is_finished() {
                return;
            }
        }
    }
    if role.ends_with("ipv6") {
        socket.join_multicast_v6(&GROUP_V6, index).unwrap();
    } else {
        socket.join_multicast_v4(&GROUP_V4, &Ipv4Addr::UNSPECIFIED).unwrap();
    }
    // A membership report needs a moment to the switches.
    thread::sleep(Duration::from_millis(100));
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut said = std::io::stdout();
    writeln!(said, "{READY}").unwrap();
    thread::spawn(|| {
        io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
        thread::sleep(SILENCE);
        std::process::exit(0);
    });
    if socket.recv(&mut [0; 64]).is_ok() {
        writeln!(said, "{HEARD}").unwrap();
    }
}
