//! Who hears a multicast datagram. Hosts run this test program again, with a role in its environment.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::cluster::Labs;

const ROLE: &str = "POLYCAST_TEST_ROLE";
const PORT: u16 = 50_123;
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 193, 7, 7);
/// Transient, link-local scope.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x77);

/// What a receiver prints when it has joined, and when a datagram has come.
const READY: &str = "listening";
const HEARD: &str = "heard it";

/// How long a datagram is waited for. The sender repeats it ten times in much less.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends datagrams from a host of a lab to a group; which of the `receivers`, all of them members, hear one.
pub fn heard_by(labs: &Labs, lab: &str, family: &str, sender: &str, receivers: &[&str]) -> Vec<bool> {
    let start = |host: &str, role: &str| {
        let program = env::current_exe().unwrap();
        let test = ["--exact", "datagram::in_a_lab", "--nocapture"];
        let mut command = labs.command(&["exec", lab, host, "--", program.to_str().unwrap()]);
        command.args(test).env(ROLE, format!("{role} {family}")).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut listening: Vec<_> = receivers.iter().map(|host| lines_of(start(host, "receive"))).collect();
    for (_, lines) in &mut listening {
        assert!(lines.any(|line| line.unwrap().contains(READY)), "a receiver could not join");
    }
    assert!(start(sender, "send").wait().unwrap().success());
    let hears = |(mut child, mut lines): (Child, std::io::Lines<_>)| {
        let heard = lines.any(|line: std::io::Result<String>| line.unwrap().contains(HEARD));
        assert!(child.wait().unwrap().success());
        heard
    };
    listening.into_iter().map(hears).collect()
}

fn lines_of(mut child: Child) -> (Child, std::io::Lines<BufReader<std::process::ChildStdout>>) {
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
        for _ in 0..10 {
            socket.send_to(b"hear me", group).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        return;
    }
    if role.ends_with("ipv6") {
        socket.join_multicast_v6(&GROUP_V6, index).unwrap();
    } else {
        socket.join_multicast_v4(&GROUP_V4, &Ipv4Addr::UNSPECIFIED).unwrap();
    }
    // A membership report needs a moment to the switches.
    std::thread::sleep(Duration::from_millis(100));
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = std::io::stdout();
    writeln!(said, "{READY}").unwrap();
    if socket.recv(&mut [0; 64]).is_ok() {
        writeln!(said, "{HEARD}").unwrap();
    }
}
