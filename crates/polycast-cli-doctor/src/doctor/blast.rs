//! The measurement of how fast one host sends to another: a short blast by TCP, which gives way to
//! others, bounded in bytes and time.
//!
//! ```text
//!   sender     connects, writes until the other end has had enough
//!   receiver   notes when how many bytes had come; what came in the first half of the time does not count: TCP begins
//!              slowly, and a token bucket that was full lets its first bytes pass
//! ```

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_send_buffer_size;

/// The most bytes, and the most time, that a blast may take of the network.
const MOST_BYTES: usize = 4 << 20;
const MOST_TIME: Duration = Duration::from_millis(200);
/// The longest time to set up a connection, and the longest silence of either end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Size of the sender's socket buffer. Kept small: on a slow link its contents are still on their
/// way when the blast is over.
const SEND_BUFFER_BYTES: usize = 64 << 10;
const CHUNK_BYTES: usize = 32 << 10;

/// The receiving end of blasts of one run of the doctor; blasts come one after the other, as long
/// as this process lives.
pub struct Target {
    /// The TCP port that blasts are sent to.
    pub port: u16,
    rates: Receiver<Option<u64>>,
}

/// The socket address of `address` on the interface of this index: an address that is local to a
/// link says nothing without its interface.
fn socket_address(address: IpAddr, port: u16, interface: u32) -> SocketAddr {
    match address {
        IpAddr::V6(local) if is_link_local(local) => SocketAddrV6::new(local, port, 0, interface).into(),
        address => (address, port).into(),
    }
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

impl Target {
    /// Listens at this address of this interface.
    pub fn listen(address: IpAddr, interface: u32, run: u64) -> io::Result<Target> {
        let listener = TcpListener::bind(socket_address(address, 0, interface))?;
        let port = listener.local_addr()?.port();
        let (sender, rates) = channel();
        thread::spawn(move || serve(&listener, run, &sender));
        Ok(Target { port, rates })
    }

    /// The rate of the blast that was over last, in bits per second.
    pub fn rate(&self) -> Option<u64> {
        let first = self.rates.recv_timeout(PATIENCE).ok()?;
        self.rates.try_iter().last().unwrap_or(first)
    }
}

fn serve(listener: &TcpListener, run: u64, rates: &Sender<Option<u64>>) {
    for connection in listener.incoming().flatten() {
        // Strangers are not answered, nor counted.
        if let Ok(samples) = receive(connection, run)
            && rates.send(rate_of(&samples)).is_err()
        {
            return;
        }
    }
}

/// A sample at the receiver: the time since the beginning, and the bytes that had come by then.
type Sample = (Duration, u64);

fn receive(mut connection: TcpStream, run: u64) -> io::Result<Vec<Sample>> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut word = [0; 8];
    connection.read_exact(&mut word)?;
    if u64::from_be_bytes(word) != run {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut samples, mut bytes, mut began) = (Vec::new(), 0, None);
    loop {
        match connection.read(&mut chunk) {
            Ok(0) | Err(_) => return Ok(samples),
            Ok(more) => bytes += more as u64,
        }
        let passed = began.get_or_insert_with(Instant::now).elapsed();
        samples.push((passed, bytes));
        if passed >= MOST_TIME || bytes >= MOST_BYTES as u64 {
            return Ok(samples);
        }
    }
}

/// The rate in bits per second of the bytes that came in the second half of the time; of all bytes
/// where hardly any came then. `None` without two samples.
fn rate_of(samples: &[Sample]) -> Option<u64> {
    let (end, all) = *samples.last()?;
    let half = samples.iter().find(|(at, _)| *at * 2 >= end)?;
    let first = *samples.first()?;
    // Where hardly anything came later, all that there is.
    let (at, before) = if all - half.1 > 0 { *half } else { first };
    let nanos = u64::try_from((end - at).as_nanos()).ok().filter(|nanos| *nanos > 0)?;
    u64::try_from(u128::from(all - before) * 8 * 1_000_000_000 / u128::from(nanos)).ok()
}

/// Sends a blast. Its rate is known at the other end.
pub fn send(to: IpAddr, port: u16, interface: u32, run: u64) -> io::Result<()> {
    let mut connection = TcpStream::connect_timeout(&socket_address(to, port, interface), PATIENCE)?;
    set_socket_send_buffer_size(&connection, SEND_BUFFER_BYTES)?;
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.write_all(&run.to_be_bytes())?;
    let chunk = vec![0x55; CHUNK_BYTES];
    let began = Instant::now();
    let mut bytes = 0;
    // The other end closes when it has had enough; this one has its own limits.
    while bytes < MOST_BYTES + CHUNK_BYTES && began.elapsed() < 2 * MOST_TIME {
        match connection.write(&chunk) {
            Ok(more) => bytes += more,
            Err(_) => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: &[(u64, u64)]) -> Vec<Sample> {
        of.iter().map(|(millis, bytes)| (Duration::from_millis(*millis), *bytes)).collect()
    }

    #[test]
    fn what_a_full_bucket_lets_pass_does_not_count() {
        // 64 KB at once, then 10 Mb/s.
        let bucket: Vec<(u64, u64)> =
            [(0, 64_000)].into_iter().chain((1..=200).map(|at| (at, 64_000 + at * 1_250))).collect();
        assert_eq!(rate_of(&samples(&bucket)), Some(10_000_000));
        // And what begins slowly.
        assert_eq!(
            rate_of(&samples(&[(0, 10), (50, 100), (99, 1_000), (100, 2_000), (200, 127_000)])),
            Some(10_000_000)
        );
    }

    #[test]
    fn without_time_there_is_no_rate() {
        assert_eq!(rate_of(&[]), None);
        assert_eq!(rate_of(&samples(&[(0, 1_000)])), None);
        assert_eq!(rate_of(&samples(&[(0, 1_000), (10, 2_000)])), Some(800_000));
    }

    #[test]
    fn a_blast_is_measured_and_strangers_are_not() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let target = Target::listen(here, 0, 7).unwrap();
        send(here, target.port, 0, 8).unwrap();
        send(here, target.port, 0, 7).unwrap();
        assert!(target.rate().unwrap() > 1_000_000);
        assert_eq!(target.rates.try_recv().ok(), None);
    }

    #[test]
    fn a_local_address_has_its_interface() {
        let text = |address: &str| socket_address(address.parse().unwrap(), 5, 3).to_string();
        assert_eq!(text("fe80::1"), "[fe80::1%3]:5");
        assert_eq!([text("fd00::1"), text("10.0.0.1")], ["[fd00::1]:5", "10.0.0.1:5"]);
    }
}
