//! The server of a node's blocks, for whoever asks and has the key.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{
    BlockHeader, CONFIRMATION, Greeting, NONCE_BYTES, Purpose, REQUEST_BYTES, Request, Tag, of_place_in_ring,
};

use super::agent::tell_unreadable;
use super::backing::{Backing, BlockReader, Unreadable};
use super::group::{Handle, Member, Side, Word};
use super::lane::Broken;
use super::store::{Block, Found, Store};
use super::strangers::Strangers;

/// The time within which a node that connects has to show that it has the key; else it is not
/// served.
pub const PROOF_LIMIT: Duration = Duration::from_secs(5);

/// The blocks that this node gives to others, and how fast.
pub struct Server {
    pub node: u32,
    pub store: Arc<Store>,
    /// The files on disk; set as soon as something is there.
    pub backing: Arc<OnceLock<Backing>>,
    pub limit: Option<Limit>,
    /// The time for which strangers are listened to.
    pub proof_limit: Duration,
    /// The member's thread, to which connections of the next nodes in a ring are handed.
    pub group: Arc<OnceLock<Handle>>,
    pub is_source: bool,
    pub stop: Arc<AtomicBool>,
}

/// A rate that all connections together do not exceed.
pub struct Limit {
    bits_per_second: u64,
    free_at: Mutex<Instant>,
}

impl Limit {
    pub fn new(bits_per_second: u64) -> Limit {
        Limit { bits_per_second, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until so many bytes may go.
    fn wait(&self, bytes: usize) {
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second as f64);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = (*free_at).max(Instant::now());
        *free_at = begin + takes;
        drop(free_at);
        thread::sleep(begin.saturating_duration_since(Instant::now()));
    }
}

/// A random nonce.
pub fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

type Waiting = Mutex<Strangers<TcpStream>>;

fn lock(strangers: &Waiting) -> MutexGuard<'_, Strangers<TcpStream>> {
    strangers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until the process ends.
pub fn serve(listener: TcpListener, server: Arc<Server>) {
    let strangers: Arc<Waiting> = Arc::default();
    loop {
        let come =
            listener.accept().and_then(|(connection, from)| Ok((connection.try_clone()?, connection, from)));
        let Ok((clone, connection, from)) = come else {
            // Out of descriptors, for example: others may close theirs.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let (number, gone) = lock(&strangers).come(from.ip(), clone);
        if let Some(gone) = gone {
            let _ = gone.shutdown(Shutdown::Both);
        }
        let (server, strangers) = (Arc::clone(&server), Arc::clone(&strangers));
        thread::spawn(move || {
            let request = server.receive_request(&connection);
            lock(&strangers).known(number);
            // Whoever asked notices that the connection ends.
            let Ok(Some(request)) = request else { return };
            let (side, ring) = match request.purpose {
                Purpose::Blocks => {
                    let _ = server.give(&connection, request);
                    return;
                }
                Purpose::Ring => (Side::Successor, request.block),
                Purpose::Below => {
                    let (place, ring) = of_place_in_ring(request.block);
                    (Side::Below(place), ring.into())
                }
            };
            if let Some(group) = server.group.get() {
                group.say(Word::Link(side, ring, connection));
            }
        });
    }
}

impl Server {
    fn receive_request(&self, mut connection: &TcpStream) -> io::Result<Option<Request>> {
        connection.set_nodelay(true)?;
        connection.set_write_timeout(Some(self.proof_limit))?;
        let greeting = Greeting { nonce: nonce()? };
        connection.write_all(&greeting.encode())?;
        let until = Instant::now() + self.proof_limit;
        let mut bytes = [0; REQUEST_BYTES];
        read_by(until, connection, &mut bytes)?;
        let Some((request, proof)) = Request::decode(&bytes, &greeting, &self.store.key) else {
            return Ok(None);
        };
        // An address that is the same on every host, of a bridge for example, may lead a node to itself.
        if request.node == self.node {
            return Ok(None);
        }
        connection.write_all(&proof)?;
        // Who connects may have had an answer on another connection first. The second byte may come later.
        let mut confirmed = [0];
        read_by(until, connection, &mut confirmed)?;
        if confirmed[0] != CONFIRMATION[0] {
            return Ok(None);
        }
        connection.set_read_timeout(None)?;
        connection.set_write_timeout(None)?;
        Ok(Some(request))
    }

    fn give(&self, mut connection: &TcpStream, request: Request) -> io::Result<()> {
        let stream = self.store.stream;
        let mut reader = None;
        for block in request.block..stream.blocks() {
            if self.is_source {
                self.store.want(block + 1);
            }
            let Some(found) = self.store.get(block, &self.stop) else { return Ok(()) };
            let (tag, found) =
                fetch(found, block, &self.store, &self.backing, &mut reader).inspect_err(|error| {
                    if self.is_source {
                        tell_unreadable(error)
                    }
                })?;
            let bytes = found.as_sent();
            if let Some(limit) = &self.limit {
                limit.wait(bytes.len());
            }
            let header = BlockHeader { block, bytes: bytes.len() as u32, tag }.encode();
            write_both(&mut connection, &header, bytes)?;
        }
        // Whoever asked closes when it has read everything; who closes before, with a byte unread, may take from it what is under way.
        connection.shutdown(Shutdown::Write)?;
        io::copy(&mut connection.take(CONFIRMATION.len() as u64), &mut io::sink())?;
        Ok(())
    }
}

/// Reads all of `bytes` by the time `until`, not byte by byte.
fn read_by(until: Instant, mut connection: &TcpStream, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes = &mut bytes[read..],
        }
    }
    Ok(())
}

/// A block's bytes, which may have to be read again.
fn fetch<'a>(
    found: Found,
    block: u64,
    store: &Store,
    backing: &'a OnceLock<Backing>,
    reader: &mut Option<BlockReader<'a>>,
) -> io::Result<(Tag, Arc<Block>)> {
    let tag = match found {
        Found::Memory(block) => return Ok((block.tag, block)),
        Found::Disk(tag) => tag,
    };
    // A list of files that is longer than the window: it can be read when all of it is there.
    let backing = backing.wait();
    let bytes = reader.get_or_insert_with(|| BlockReader::new(backing)).read(&store.stream, block)?;
    // A file of the source, or one that was put in its place, may have changed since.
    if store.key.tag(block, &bytes) != tag {
        let file = backing.first_file(store.stream.range(block)).unwrap_or_default();
        return Err(Unreadable::has_changed(file));
    }
    Ok((tag, Arc::new(store.block(block, tag, bytes))))
}

/// A block that the source sends in a segment.
pub fn fetch_to_send<'a>(
    block: u64,
    member: &'a Member,
    reader: &mut Option<BlockReader<'a>>,
) -> Result<(Tag, Arc<Block>), Broken> {
    let found = member.store.get(block, &member.stop).ok_or(Broken)?;
    Ok(fetch(found, block, &member.store, &member.backing, reader).inspect_err(tell_unreadable)?)
}

/// Writes the header and the bytes, in one system call where the socket takes both.
fn write_both(connection: &mut &TcpStream, header: &[u8], bytes: &[u8]) -> io::Result<()> {
    let sent = connection.write_vectored(&[IoSlice::new(header), IoSlice::new(bytes)])?;
    connection.write_all(&header[sent.min(header.len())..])?;
    connection.write_all(&bytes[sent.saturating_sub(header.len())..])
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use polycast_copy::{GREETING_BYTES, KEY_BYTES, Key, Stream};

    use super::super::contact::{Caller, introduce};
    use super::*;

    fn server(proof_limit: Duration) -> (SocketAddr, Key) {
        let key = Key::from_bytes([3; KEY_BYTES]);
        let stream = Stream { bytes: 0, manifest_bytes: 0, block_bytes: 4_096 };
        let server = Server {
            node: 1,
            store: Arc::new(Store::new(stream, key.clone(), false)),
            backing: Arc::default(),
            limit: None,
            proof_limit,
            group: Arc::default(),
            is_source: false,
            stop: Arc::default(),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(listener, Arc::new(server)));
        (address, key)
    }

    #[test]
    fn strangers_leave_room_for_who_has_the_key() {
        let (address, key) = server(Duration::from_secs(3_600));
        let strangers: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
        let caller = Caller { node: 2, purpose: Purpose::Blocks, block: 0, key };
        introduce(&caller, &[address]).unwrap();
        // Those are out that had to go, perhaps before they were greeted, and the others are still listened to.
        let mut greeted = Vec::new();
        let _ = (&strangers[0]).read_to_end(&mut greeted);
        assert!(greeted.len() <= GREETING_BYTES);
    }

    #[test]
    fn who_does_not_show_the_key_is_not_listened_to_for_ever() {
        let (address, _) = server(Duration::from_millis(50));
        let mut silent = TcpStream::connect(address).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut greeted = [0; GREETING_BYTES];
        silent.read_exact(&mut greeted).unwrap();
        assert_eq!(silent.read(&mut greeted).unwrap(), 0);
    }
}
