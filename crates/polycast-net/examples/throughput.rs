//! What the offloads are worth: bytes through one pair of sockets between two emulated hosts.
//!
//! ```sh
//! cargo run --release -p polycast-net --example throughput
//! ```
//!
//! The sender keeps a quarter of the granted buffer in flight, so nothing is lost. CPU time is of both ends and of the kernel's way
//! between them: unlike the rate it hardly depends on what else the machine does.

#[allow(dead_code, reason = "each user of these helpers uses some of them")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use polycast_net::{Family, Group, Socket, SocketOptions};

const MESSAGE_BYTES: usize = 128 << 20;
/// What one system call sends.
const DATAGRAMS: usize = 43;
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
    println!("family  segment  coalesce    MB/s  CPU ns per datagram  datagrams per receive  dropped");
    for family in [Family::V4, Family::V6] {
        let group = Group::random(family, &mut || 1);
        for (segment, coalesce) in [(true, true), (true, false), (false, true), (false, false)] {
            let options = SocketOptions { segment, coalesce, ..SocketOptions::default() };
            let mut from = left.open("e0", group, &options);
            let mut to = right.open("e0", group, &options);
            let (started, cpu) = (Instant::now(), cpu_ns());
            let Sum { bytes, datagrams, calls } = transfer(&mut from, &mut to);
            println!(
                "{family}    {segment:<7}  {coalesce:<8}  {:>6.0}  {:>19.0}  {:>21.1}  {:>7}",
                bytes as f64 / started.elapsed().as_secs_f64() / 1e6,
                (cpu_ns() - cpu) as f64 / datagrams as f64,
                datagrams as f64 / calls as f64,
                to.dropped_by_kernel(),
            );
        }
    }
}

/// Of all threads, in user and in kernel mode.
fn cpu_ns() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its usage");
    usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()
}

#[derive(Default)]
struct Sum {
    bytes: usize,
    datagrams: usize,
    calls: usize,
}

fn transfer(from: &mut Socket, to: &mut Socket) -> Sum {
    let received = &AtomicUsize::new(0);
    let most = from.most_datagram_bytes();
    let row = vec![0x5a; DATAGRAMS * most];
    let rows = MESSAGE_BYTES / row.len();
    let all = rows * row.len();
    let window_bytes = to.granted_receive_bytes() / 4;
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for index in 0..rows {
                while index * row.len() - received.load(Ordering::Relaxed) > window_bytes {
                    thread::park();
                }
                support::send_all(from, &row, most);
            }
        });
        let mut sum = Sum::default();
        while sum.bytes < all {
            let count = to.receive(|datagram| sum.bytes += datagram.len()).expect("the socket works");
            if count == 0 {
                assert!(support::wait(to, PollFlags::POLLIN, Duration::from_secs(5)), "datagrams were lost");
                continue;
            }
            sum.datagrams += count;
            sum.calls += 1;
            received.store(sum.bytes, Ordering::Relaxed);
            sender.thread().unpark();
        }
        sum
    })
}
