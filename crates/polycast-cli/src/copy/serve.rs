//! Gives blocks to whoever asks and has the key.

use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{BlockHeader, CONFIRMATION, Greeting, NONCE_BYTES, Purpose, REQUEST_BYTES, Request, Tag};

use super::backing::{Backing, BlockReader};
use super::group::{Handle, Side, Word};
use super::store::{Block, Found, Store};

/// Who has not shown by then that it has the key is not served.
const PROOF_LIMIT: Duration = Duration::from_secs(5);

/// Connections at once that have not shown it.
const MAX_STRANGERS: usize = 64;

/// What this node gives, and how fast.
pub struct Server {
    pub node: u32,
    pub store: Arc<Store>,
    /// There as soon as something is on disk.
    pub backing: Arc<OnceLock<Backing>>,
    pub limit: Option<Limit>,
    /// Where those go that are next in a ring.
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

/// Serves until the process ends.
pub fn serve(listener: TcpListener, server: Arc<Server>) {
    let strangers = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        let Ok(connection) = connection else {
            // Out of descriptors, for example: others may close theirs.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if strangers.fetch_add(1, Ordering::Relaxed) >= MAX_STRANGERS {
            strangers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (server, strangers) = (Arc::clone(&server), Arc::clone(&strangers));
        thread::spawn(move || {
            let request = server.receive_request(&connection);
            strangers.fetch_sub(1, Ordering::Relaxed);
            // Whoever asked notices that the connection ends.
            let Ok(Some(request)) = request else { return };
            let side = match request.purpose {
                Purpose::Blocks => {
                    let _ = server.give(&connection, request);
                    return;
                }
                Purpose::Ring => Side::Successor,
                Purpose::Below => Side::Below,
            };
            if let Some(group) = server.group.get() {
                group.say(Word::Link(side, request.block, connection));
            }
        });
    }
}

impl Server {
    fn receive_request(&self, mut connection: &TcpStream) -> io::Result<Option<Request>> {
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PROOF_LIMIT))?;
        connection.set_write_timeout(Some(PROOF_LIMIT))?;
        let greeting = Greeting { nonce: nonce()? };
        connection.write_all(&greeting.encode())?;
        let began = Instant::now();
        let mut bytes = [0; REQUEST_BYTES];
        let mut filled = 0;
        // As a whole within the limit, not byte by byte.
        while filled < bytes.len() {
            if began.elapsed() >= PROOF_LIMIT {
                return Ok(None);
            }
            match connection.read(&mut bytes[filled..])? {
                0 => return Ok(None),
                read => filled += read,
            }
        }
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
        connection.read_exact(&mut confirmed)?;
        if confirmed[0] != CONFIRMATION[0] {
            return Ok(None);
        }
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
            let (tag, found) = fetch(found, block, &self.store, &self.backing, &mut reader)?;
            let bytes = found.as_sent();
            if let Some(limit) = &self.limit {
                limit.wait(bytes.len());
            }
            let header = BlockHeader { block, bytes: bytes.len() as u32, tag }.encode();
            write_both(&mut connection, &header, bytes)?;
        }
        // Whoever asked closes when it has read everything; who closes before, with a byte unread, may take from it what is under way.
        connection.shutdown(std::net::Shutdown::Write)?;
        io::copy(&mut connection.take(CONFIRMATION.len() as u64), &mut io::sink())?;
        Ok(())
    }
}

/// A block's bytes, which may have to be read again.
pub fn fetch<'a>(
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
    let backing = backing.get().ok_or_else(|| io::Error::other("nothing is written"))?;
    let bytes = reader.get_or_insert_with(|| BlockReader::new(backing)).read(&store.stream, block)?;
    // A file of the source, or one that was put in its place, may have changed since.
    if store.key.tag(block, &bytes) != tag {
        return Err(io::Error::other("a file has changed"));
    }
    Ok((tag, Arc::new(store.block(block, tag, bytes))))
}

/// In one system call where the socket takes it.
fn write_both(connection: &mut &TcpStream, header: &[u8], bytes: &[u8]) -> io::Result<()> {
    let sent = connection.write_vectored(&[IoSlice::new(header), IoSlice::new(bytes)])?;
    connection.write_all(&header[sent.min(header.len())..])?;
    connection.write_all(&bytes[sent.saturating_sub(header.len())..])
}
