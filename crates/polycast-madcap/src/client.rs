//! Getting an address from a MADCAP server, keeping it and giving it back; bounded in time, since a job waits for it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::PORT;
use super::message::{Kind, LeaseId, Message, NakCode};
use super::scope::Scope;
use polycast_net::{Group, Ports};

/// The longest time of an exchange, whatever the server does or does not do: a job waits for it.
const MAX_TIME: Duration = Duration::from_secs(2);
/// The time after which an unanswered request is repeated; each further repeat comes after twice
/// the time.
const FIRST_REPEAT: Duration = Duration::from_millis(200);
/// The most bytes of a reply; a larger one is cut off and so refused.
const MAX_REPLY_BYTES: usize = 1_500;
const LEASE_ID_BYTES: usize = 16;

/// A multicast address that is the client's for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The leased address, inside the scope that was asked for.
    pub address: IpAddr,
    /// The time that the lease lasts, from the moment it was given.
    pub duration: Duration,
    id: LeaseId,
}

impl Lease {
    /// The time after which to renew the lease: half of its duration, which leaves room for a
    /// server that restarts.
    pub fn renew_after(&self) -> Duration {
        self.duration / 2
    }

    /// A group at the leased address, with one of these ports, because MADCAP gives none.
    pub fn group(&self, ports: Ports, next: &mut impl FnMut() -> u64) -> Group {
        Group { address: self.address, port: ports.random(next) }
    }
}

/// The reason why there is no address; the caller then draws a random group.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the server is none, or leads nowhere.
    #[error("MADCAP server `{server}`: {source}; expected an address or a name, with or without :port")]
    Server {
        /// The server's name as the user gave it.
        server: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The network refused.
    #[error("MADCAP server {server}: {source}; is `polycast madcap` running there?")]
    Network {
        /// The address at which the server should be.
        server: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// No reply came that could be accepted.
    #[error(
        "MADCAP server {server} gave no valid reply within {limit:?}{}; is `polycast madcap` running there, and UDP \
         port {} open?", heard(.refused), .server.port()
    )]
    Silent {
        /// The address at which the server should be.
        server: SocketAddr,
        /// The time that the server had.
        limit: Duration,
        /// The fault in the last reply, if one came.
        refused: Option<String>,
    },
    /// The server says no.
    #[error("MADCAP server {server} refuses: {code}")]
    Refused {
        /// The server that refused.
        server: SocketAddr,
        /// The reason that the server gave.
        code: NakCode,
    },
}

fn heard(refused: &Option<String>) -> String {
    refused.as_ref().map_or(String::new(), |why| format!(" (the last one: {why})"))
}

/// A client of one MADCAP server.
#[derive(Debug)]
pub struct Client {
    server: SocketAddr,
    socket: UdpSocket,
    scope: Scope,
    limit: Duration,
    first_repeat: Duration,
}

impl Client {
    /// A client of the server at `host[:port]` (an IPv6 address with a port in brackets), which accepts addresses of
    /// this scope only. Resolving a name takes at most two seconds.
    pub fn new(server: &str, scope: Scope) -> Result<Client, ClientError> {
        let address =
            resolve(server).map_err(|source| ClientError::Server { server: server.to_owned(), source })?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Connected: the kernel drops what comes from elsewhere.
        let socket = UdpSocket::bind((any, 0))
            .and_then(|socket| socket.connect(address).map(|()| socket))
            .map_err(|source| ClientError::Network { server: address, source })?;
        Ok(Client { server: address, socket, scope, limit: MAX_TIME, first_repeat: FIRST_REPEAT })
    }

    /// Changes the time limits, for callers that nobody waits for: an exchange takes at most
    /// `limit` instead of two seconds, and a request is repeated after `first_repeat` for the first
    /// time.
    pub fn patient(self, limit: Duration, first_repeat: Duration) -> Client {
        Client { limit, first_repeat, ..self }
    }

    /// Asks for one address for this long (the server may give it for less). Takes at most two seconds. `next` yields
    /// uniform random words; whoever guesses them could end the lease.
    pub fn acquire(&self, duration: Duration, next: &mut impl FnMut() -> u64) -> Result<Lease, ClientError> {
        let words = [next(), next()];
        let mut bytes = [0; LEASE_ID_BYTES];
        bytes[..8].copy_from_slice(&words[0].to_be_bytes());
        bytes[8..].copy_from_slice(&words[1].to_be_bytes());
        let id = LeaseId::new(&bytes).expect("16 bytes are a lease identifier");
        let wish =
            Message { scope: Some(self.scope.first()), ..self.wish(Kind::Request, id, duration, next) };
        self.lease(&wish, id, None)
    }

    /// Prolongs a lease; takes at most two seconds.
    pub fn renew(&self, lease: &Lease, next: &mut impl FnMut() -> u64) -> Result<Lease, ClientError> {
        let wish = self.wish(Kind::Renew, lease.id, lease.duration, next);
        self.lease(&wish, lease.id, Some(lease.address))
    }

    /// Gives the address back; takes at most two seconds. An error leaves it to end by itself.
    pub fn release(&self, lease: Lease, next: &mut impl FnMut() -> u64) -> Result<(), ClientError> {
        let message = Message {
            lease: Some(lease.id),
            ..Message::new(Kind::Release, self.scope.family(), next() as u32)
        };
        self.exchange(&message, |_| Ok(()))
    }

    fn wish(&self, kind: Kind, id: LeaseId, duration: Duration, next: &mut impl FnMut() -> u64) -> Message {
        Message {
            lease: Some(id),
            lease_seconds: Some(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)),
            ..Message::new(kind, self.scope.family(), next() as u32)
        }
    }

    /// A lease as the server acknowledges it; `known` is the address that it must be for.
    fn lease(&self, request: &Message, id: LeaseId, known: Option<IpAddr>) -> Result<Lease, ClientError> {
        self.exchange(request, |reply| {
            let address = reply.address.or(known).ok_or("no address in it")?;
            if !self.scope.contains(address) {
                return Err(format!("{address} is outside {}", self.scope));
            }
            if known.is_some_and(|known| known != address) {
                return Err(format!("another address, {address}"));
            }
            let seconds = reply.lease_seconds.filter(|s| *s > 0).ok_or("no lease time in it")?;
            Ok(Lease { address, duration: Duration::from_secs(seconds.into()), id })
        })
    }

    /// Sends the request, again and again, until a reply to it is accepted or the time is up.
    fn exchange<T>(
        &self,
        request: &Message,
        accept: impl Fn(&Message) -> Result<T, String>,
    ) -> Result<T, ClientError> {
        let failed = |source| ClientError::Network { server: self.server, source };
        let packet = request.encode();
        let mut buffer = [0; MAX_REPLY_BYTES];
        let mut refused = None;
        let deadline = Instant::now() + self.limit;
        let mut pause = self.first_repeat;
        let mut repeat = Instant::now();
        loop {
            let now = Instant::now();
            if now >= deadline {
                return Err(ClientError::Silent { server: self.server, limit: self.limit, refused });
            }
            if now >= repeat {
                self.socket.send(&packet).map_err(failed)?;
                repeat = now + pause;
                pause *= 2;
            }
            let patience = repeat.min(deadline).saturating_duration_since(now).max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(patience)).map_err(failed)?;
            let bytes = match self.socket.recv(&mut buffer) {
                Ok(bytes) => bytes,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            match reply_to(request, &buffer[..bytes]) {
                Ok(Message { kind: Kind::Nak, error, .. }) => {
                    let code = error.unwrap_or(NakCode::NotCompleted);
                    return Err(ClientError::Refused { server: self.server, code });
                }
                Ok(reply) => match accept(&reply) {
                    Ok(value) => return Ok(value),
                    Err(why) => refused = Some(why),
                },
                Err(why) => refused = Some(why),
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The message in these bytes if it answers the request, else what is wrong with it.
fn reply_to(request: &Message, bytes: &[u8]) -> Result<Message, String> {
    let reply = Message::decode(bytes).map_err(|e| e.to_string())?;
    if !matches!(reply.kind, Kind::Ack | Kind::Nak) {
        return Err(format!("a message of kind {:?}", reply.kind));
    }
    if reply.xid != request.xid || reply.family != request.family {
        return Err("the reply to another request".to_owned());
    }
    if reply.lease.is_some_and(|lease| Some(lease) != request.lease) {
        return Err("the reply for another lease".to_owned());
    }
    Ok(reply)
}

/// The first address of `host[:port]`.
fn resolve(server: &str) -> io::Result<SocketAddr> {
    let server = server.trim();
    if let Ok(address) = server.parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    if let Ok(address) = server.parse::<SocketAddr>() {
        return Ok(address);
    }
    let (name, port) = match server.rsplit_once(':') {
        Some((name, port)) => {
            let port = port.parse().map_err(|_| invalid("the port is no number up to 65535"))?;
            (name.to_owned(), port)
        }
        None => (server.to_owned(), PORT),
    };
    if name.is_empty() {
        return Err(invalid("no name"));
    }
    // The resolver has time limits of its own, longer than ours: it is left alone when the time is up.
    let (tell, told) = mpsc::channel();
    thread::Builder::new()
        .name("resolver".to_owned())
        .spawn(move || tell.send((name.as_str(), port).to_socket_addrs().map(|mut found| found.next())))?;
    match told.recv_timeout(MAX_TIME) {
        Ok(found) => found?.ok_or_else(|| invalid("no address")),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the name was not resolved within 2 s")),
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
