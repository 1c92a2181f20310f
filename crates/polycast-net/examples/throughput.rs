//! What the offloads are worth: megabytes through one socket pair between two emulated hosts.
//!
//! ```sh
//! cargo run --release -p polycast-net --example throughput
//! ```
//!
//! The sender keeps a window of half the granted buffer in flight (a loss-free transfer, as the protocol paces it), so the figures are the
//! costs of the system calls and of the kernel's way from one to the other.

#[allow(dead_code, reason = "each user of these helpers uses some of them")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use polycast_net::{Family, Group, Socket, SocketOptions};

const MESSAGE_BYTES: usize = 256 << 20;
const INSIDE: &str = "inside";

fn main() {
    if std::env::args().nth(1).as_deref() != Some(INSIDE) {
        let binary = std::env::current_exe().expect("this program has a path");
        match support::enter(&[binary.to_str().expect("a path in UTF-8"), INSIDE]) {
            Ok(table) => print!("{table}"),
            Err(reason) => eprintln!("{reason}"),
        }
        return;
    }
    let (left, right) = support::pair();
    println!("family  segment  coalesce       MB/s  datagrams per receive  dropped");
    for family in [Family::V4, Family::V6] {
        let group = Group::random(family, &mut || 1);
        for (segment, coalesce) in [(true, true), (true, false), (false, true), (false, false)] {
            let options = SocketOptions { segment, coalesce, ..SocketOptions::default() };
            let mut from = left.open("e0", group, &options);
            let mut to = right.open("e0", group, &options);
            let started = Instant::now();
            let (got, calls) = transfer(&mut from, &mut to);
            println!(
                "{family}    {segment:<7}  {coalesce:<8}  {:>9.0}  {:>21.1}  {:>7}",
                got as f64 / started.elapsed().as_secs_f64() / 1e6,
                got as f64 / from.most_datagram_bytes() as f64 / calls as f64,
                to.dropped_by_kernel(),
            );
        }
    }
}

/// Bytes received and the calls that it took.
fn transfer(from: &mut Socket, to: &mut Socket) -> (usize, usize) {
    let received = AtomicUsize::new(0);
    let received = &received;
    let most = from.most_datagram_bytes();
    let row = vec![0x5a; 44 * most];
    let window_bytes = to.granted_receive_bytes() / 4;
    let rows = MESSAGE_BYTES / row.len();
    thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..rows {
                while index * row.len() - received.load(Ordering::Relaxed) > window_bytes {
                    thread::yield_now();
                }
                support::send_all(from, &row, most);
            }
        });
        let mut calls = 0;
        while received.load(Ordering::Relaxed) < rows * 44 * most {
            let mut bytes = 0;
            if to.receive(|datagram| bytes += datagram.len()).expect("the socket works") == 0 {
                assert!(support::wait(to, PollFlags::POLLIN, Duration::from_secs(5)), "datagrams were lost");
            } else {
                received.fetch_add(bytes, Ordering::Relaxed);
                calls += 1;
            }
        }
        (received.load(Ordering::Relaxed), calls)
    })
}
