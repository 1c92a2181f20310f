//! The far ends of a calibration: processes on hosts that move bytes over bare TCP and say when.
//!
//! CLOCK_MONOTONIC is one clock for all namespaces of a machine, so that a one-way time is a difference of two readings.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The port of all probes; a host has at most one that listens.
const PORT: u16 = 7_707;

/// The time for which a probe waits for its partner to come up.
const PARTNER_LIMIT: Duration = Duration::from_secs(10);

/// The work of a probe: one JSON argument on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Takes the transfers of a [`Task::Send`], and answers each with the time of its last byte.
    Receive { transfers: Transfers },
    /// Sends each size several times, from idle; prints the one-way times.
    Send { to: Ipv4Addr, transfers: Transfers },
    /// Sends to one host while another one sends to it; prints how much arrived in the window.
    Ring { to: Ipv4Addr, window: Window },
}

/// The sizes of transfers, and the number of transfers of each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Transfers {
    pub sizes: Vec<u64>,
    pub repetitions: usize,
    /// Silence before each transfer: buckets fill up, queues drain.
    pub idle: Duration,
}

/// A stretch of CLOCK_MONOTONIC in nanoseconds, with some time before it for TCP to come to speed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    pub send_from: u64,
    pub count_from: u64,
    pub until: u64,
}

/// The output of [`Task::Send`]: nanoseconds for each repetition of each size.
pub(crate) type OneWayTimes = Vec<Vec<u64>>;

/// The output of [`Task::Ring`]: bytes that arrived in the window.
pub(crate) type Arrived = u64;

/// Now, on the clock of all hosts, in nanoseconds.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    // The clock exists on every Linux; there is no error to have.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    now.as_nanos() as u64
}

/// Runs a task and prints its result as JSON.
pub(crate) fn run(task: &Task) -> io::Result<()> {
    match task {
        Task::Receive { transfers } => receive(transfers),
        Task::Send { to, transfers } => print(&send(*to, transfers)?),
        Task::Ring { to, window } => print(&ring(*to, *window)?),
    }
}

fn print(result: &impl Serialize) -> io::Result<()> {
    println!("{}", serde_json::to_string(result)?);
    Ok(())
}

fn receive(transfers: &Transfers) -> io::Result<()> {
    let mut stream = accept(&listen()?, monotonic_nanoseconds())?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; largest(transfers)];
    for &size in &transfers.sizes {
        for _ in 0..transfers.repetitions {
            stream.read_exact(&mut buffer[..size as usize])?;
            stream.write_all(&monotonic_nanoseconds().to_le_bytes())?;
        }
    }
    Ok(())
}

fn send(to: Ipv4Addr, transfers: &Transfers) -> io::Result<OneWayTimes> {
    let mut stream = connect(to)?;
    let buffer = vec![0x5a; largest(transfers)];
    let mut one = |size: u64| -> io::Result<u64> {
        thread::sleep(transfers.idle);
        let began = monotonic_nanoseconds();
        stream.write_all(&buffer[..size as usize])?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer)?;
        Ok(u64::from_le_bytes(answer).saturating_sub(began))
    };
    transfers.sizes.iter().map(|&size| (0..transfers.repetitions).map(|_| one(size)).collect()).collect()
}

fn largest(transfers: &Transfers) -> usize {
    transfers.sizes.iter().copied().max().unwrap_or(0) as usize
}

fn ring(to: Ipv4Addr, window: Window) -> io::Result<Arrived> {
    let listener = listen()?;
    let sender = thread::spawn(move || keep_sending(to, window));
    let arrived = count_arrivals(&mut accept(&listener, window.send_from)?, window)?;
    sender.join().map_err(|_| io::Error::other("the sending thread panicked"))??;
    Ok(arrived)
}

/// Bytes of one write: as a pipeline with large segments writes.
const RING_WRITE_BYTES: usize = 64 << 10;

fn keep_sending(to: Ipv4Addr, window: Window) -> io::Result<()> {
    let mut stream = connect(to)?;
    let buffer = vec![0x5a; RING_WRITE_BYTES];
    thread::sleep(Duration::from_nanos(window.send_from.saturating_sub(monotonic_nanoseconds())));
    while monotonic_nanoseconds() < window.until {
        match stream.write_all(&buffer) {
            // The successor has seen enough.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => break,
            written => written?,
        }
    }
    Ok(())
}

fn count_arrivals(stream: &mut TcpStream, window: Window) -> io::Result<u64> {
    let mut buffer = vec![0; RING_WRITE_BYTES];
    let mut arrived = 0;
    loop {
        let bytes = stream.read(&mut buffer)?;
        let now = monotonic_nanoseconds();
        if bytes == 0 || now >= window.until {
            return Ok(arrived);
        }
        if now >= window.count_from {
            arrived += bytes as u64;
        }
    }
}

fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Waits for the connection of the partner, who comes soon after `from` if at all.
fn accept(listener: &TcpListener, from: u64) -> io::Result<TcpStream> {
    let limit = from + PARTNER_LIMIT.as_nanos() as u64;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) if monotonic_nanoseconds() > limit => {
                let message = format!("no other host has connected to port {PORT}; it may be taken on one");
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn connect(to: Ipv4Addr) -> io::Result<TcpStream> {
    let limit = monotonic_nanoseconds() + PARTNER_LIMIT.as_nanos() as u64;
    loop {
        match TcpStream::connect((to, PORT)) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream),
            Err(error) if monotonic_nanoseconds() > limit => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_that_does_not_come_is_not_waited_for_without_end() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let long_ago = monotonic_nanoseconds().saturating_sub(PARTNER_LIMIT.as_nanos() as u64 + 1);
        assert_eq!(accept(&listener, long_ago).unwrap_err().kind(), ErrorKind::TimedOut);
        let _partner = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        accept(&listener, monotonic_nanoseconds()).unwrap();
    }
}
