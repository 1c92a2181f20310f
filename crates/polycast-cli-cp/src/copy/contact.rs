//! A connection to another node, though packets get lost that the kernel sends again only after a second.
//!
//! ```text
//!   this node    SYN ──×              after 30 ms another one beside it, from another port
//!                who has 10.1.0.7? ──×      nothing that is sent helps: the kernel asks again after 1 s
//!   the other    ◀── who has 10.1.0.9? ──   it was told to send first, too: who is asked knows who asks
//! ```
//!
//! Who has other addresses is tried there, too, when the first one has had its tries: it may be the better network.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{CONFIRMATION, GREETING_BYTES, Greeting, Key, PROOF_BYTES, Purpose, Request};

use super::serve::nonce;

/// The longest time in which an address must answer, and in which a node must show that it has the
/// key.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// The waiting time before the second try begins beside the first one; each further try waits twice
/// as long, up to the second value.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(480));
/// Tries of the first address before others are tried.
const ALONE: u32 = 3;
/// The UDP port of empty datagrams that nobody is to use: the discard port.
const DISCARD_PORT: u16 = 9;

/// The order in which the addresses of a node are tried.
struct Plan {
    left: Vec<SocketAddr>,
    /// The number of tries of the first address.
    tries: u32,
    turn: usize,
}

impl Plan {
    fn new(addresses: &[SocketAddr]) -> Plan {
        Plan { left: addresses.to_vec(), tries: 0, turn: 0 }
    }

    fn next(&mut self) -> Option<SocketAddr> {
        if self.tries < ALONE || self.left.is_empty() {
            self.tries += 1;
            return self.left.first().copied();
        }
        self.turn += 1;
        Some(self.left[self.turn % self.left.len()])
    }

    /// Drops an address at which no node of this copy was found.
    fn failed(&mut self, address: SocketAddr) {
        if self.left.first() == Some(&address) {
            self.tries = 0;
        }
        self.left.retain(|left| *left != address);
    }
}

/// The asking node, its purpose, and its key.
#[derive(Clone)]
pub struct Caller {
    pub node: u32,
    pub purpose: Purpose,
    /// The first block, or the number of a ring.
    pub block: u64,
    pub key: Key,
}

/// A connection on which blocks will come, or messages of a ring.
pub fn introduce(caller: &Caller, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let (sender, tries) = channel();
    let limit = CONNECT_LIMIT * addresses.len() as u32;
    let (began, mut plan, (mut patience, longest)) = (Instant::now(), Plan::new(addresses), TRY_AGAIN);
    let (mut under_way, mut last) = (0, io::Error::other("it has no address"));
    while began.elapsed() < limit || limit.is_zero() {
        match plan.next() {
            Some(address) => {
                let (sender, caller) = (sender.clone(), caller.clone());
                thread::spawn(move || {
                    // Nobody may want it any more; then it closes, and was nothing.
                    let _ = sender.send((address, try_to_introduce(&caller, address)));
                });
                under_way += 1;
            }
            None if under_way == 0 => return Err(last),
            None => {}
        }
        match tries.recv_timeout(patience) {
            Ok((_, Ok(mut connection))) => {
                for byte in CONFIRMATION {
                    connection.write_all(&[byte])?;
                }
                return Ok(connection);
            }
            Ok((address, Err(error))) => {
                under_way -= 1;
                plan.failed(address);
                last = io::Error::new(error.kind(), format!("{address}: {error}"));
            }
            Err(_) => patience = (patience * 2).min(longest),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"))
}

fn try_to_introduce(caller: &Caller, address: SocketAddr) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(CONNECT_LIMIT))?;
    let strange = || io::Error::other("who listens there does not belong to this copy");
    let mut greeting = [0; GREETING_BYTES];
    connection.read_exact(&mut greeting)?;
    let greeting = Greeting::decode(&greeting).ok_or_else(strange)?;
    let Caller { node, purpose, block, ref key } = *caller;
    let (request, expected) = Request { purpose, node, block, nonce: nonce()? }.encode(&greeting, key);
    connection.write_all(&request)?;
    let mut proof = [0; PROOF_BYTES];
    connection.read_exact(&mut proof)?;
    if proof != expected {
        return Err(strange());
    }
    connection.set_read_timeout(None)?;
    Ok(connection)
}

/// Prepares for nodes at these addresses to connect to this node. An empty datagram to each makes
/// the network ask where that node is, and thereby tells that node where this one is.
pub fn expect(addresses: &[SocketAddr]) {
    send_nothing(addresses, DISCARD_PORT);
}

fn send_nothing(addresses: &[SocketAddr], port: u16) {
    let bound = [UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)), UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))];
    for address in addresses {
        if let Ok(socket) = &bound[usize::from(address.is_ipv6())]
            && socket.set_nonblocking(true).is_ok()
        {
            // Without it there is one try less.
            let _ = socket.send_to(&[], (address.ip(), port));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use polycast_copy::{KEY_BYTES, REQUEST_BYTES};

    use super::*;

    fn caller() -> Caller {
        Caller { node: 7, purpose: Purpose::Blocks, block: 3, key: Key::from_bytes([1; KEY_BYTES]) }
    }

    /// Lets somebody in.
    fn answer(listener: &TcpListener) -> Request {
        let (mut connection, _) = listener.accept().unwrap();
        let greeting = Greeting { nonce: nonce().unwrap() };
        connection.write_all(&greeting.encode()).unwrap();
        let mut request = [0; REQUEST_BYTES];
        connection.read_exact(&mut request).unwrap();
        let (request, proof) = Request::decode(&request, &greeting, &caller().key).unwrap();
        connection.write_all(&proof).unwrap();
        let mut confirmation = [0; CONFIRMATION.len()];
        connection.read_exact(&mut confirmation).unwrap();
        assert_eq!(confirmation, CONFIRMATION);
        request
    }

    #[test]
    fn the_first_address_is_tried_alone_and_those_that_fail_no_more() {
        let addresses: Vec<SocketAddr> = (1..=3).map(|port| ([127, 0, 0, 1], port).into()).collect();
        let mut plan = Plan::new(&addresses);
        let ports = |plan: &mut Plan| -> Vec<u16> {
            (0..7).filter_map(|_| plan.next()).map(|address| address.port()).collect()
        };
        assert_eq!(ports(&mut plan), [1, 1, 1, 2, 3, 1, 2]);
        plan.failed(addresses[0]);
        assert_eq!(ports(&mut plan)[..3], [2, 2, 2]);
        plan.failed(addresses[2]);
        assert_eq!(ports(&mut plan), [2; 7]);
        plan.failed(addresses[1]);
        assert!(ports(&mut plan).is_empty());
        assert!(ports(&mut Plan::new(&[])).is_empty());
    }

    #[test]
    fn who_does_not_answer_at_one_address_is_found_at_another() {
        let [silent, other] = [0; 2].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        let addresses = [&silent, &other].map(|listener| listener.local_addr().unwrap());
        let server = thread::spawn(move || answer(&other));
        // The kernel lets it connect to the silent one, where nobody says anything.
        introduce(&caller(), &addresses).unwrap();
        let request = server.join().unwrap();
        assert_eq!((request.node, request.block, request.purpose), (7, 3, Purpose::Blocks));
    }

    #[test]
    fn where_nobody_is_it_fails_with_the_address() {
        // At an address of its own, so that no other test gets the port meanwhile.
        let closed = TcpListener::bind(("127.77.0.1", 0)).unwrap().local_addr().unwrap();
        let said = introduce(&caller(), &[closed]).unwrap_err().to_string();
        assert!(said.starts_with(&closed.to_string()), "{said}");
        assert_eq!(introduce(&caller(), &[]).unwrap_err().to_string(), "it has no address");
    }

    #[test]
    fn who_is_expected_is_sent_nothing_that_it_could_misread() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        send_nothing(&[(Ipv6Addr::LOCALHOST, 1).into(), (Ipv4Addr::LOCALHOST, 1).into()], port);
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 0);
    }
}
