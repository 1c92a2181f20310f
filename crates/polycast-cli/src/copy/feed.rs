//! Takes blocks from another node.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{
    BLOCK_HEADER_BYTES, BlockHeader, CONFIRMATION, GREETING_BYTES, Greeting, Key, PROOF_BYTES, Purpose,
    Request,
};

use super::serve::nonce;
use super::store::{Block, Store};

/// How long an address may take to answer, and a node to say that it has the key.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How long a try may take before another one begins beside it; that one may take twice as long, and so on.
const TRY_AGAIN: Duration = Duration::from_millis(30);

/// A connection to another node, until it is stopped.
pub struct Feed {
    stop: Arc<AtomicBool>,
    connection: Arc<Mutex<Option<TcpStream>>>,
}

impl Feed {
    /// Begins to take; `failed` is called, unless it was stopped, if that comes to an end before the last block.
    pub fn start(
        node: u32,
        addresses: Vec<SocketAddr>,
        store: Arc<Store>,
        failed: impl FnOnce(String) + Send + 'static,
    ) -> Feed {
        let feed = Feed { stop: Arc::default(), connection: Arc::default() };
        let (stop, place) = (Arc::clone(&feed.stop), Arc::clone(&feed.connection));
        thread::spawn(move || {
            let outcome = connect(node, &addresses, &store, &stop, &place);
            if let (Err(error), false) = (outcome, stop.load(Ordering::Relaxed)) {
                failed(error.to_string());
            }
        });
        feed
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(connection) = &*self.connection.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn connect(
    node: u32,
    addresses: &[SocketAddr],
    store: &Store,
    stop: &AtomicBool,
    place: &Mutex<Option<TcpStream>>,
) -> io::Result<()> {
    let mut last = io::Error::other("it has no address");
    for address in addresses {
        let have = store.have_and_written().0;
        match introduce(node, *address, Purpose::Blocks, have, store) {
            Ok(connection) => {
                let clone = connection.try_clone()?;
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(clone);
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                return take(&connection, have, store, stop);
            }
            Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
        }
    }
    Err(last)
}

/// A connection to another one in the ring of this number.
pub fn introduce_to_ring(
    node: u32,
    addresses: &[SocketAddr],
    purpose: Purpose,
    number: u64,
    store: &Store,
) -> io::Result<TcpStream> {
    let mut last = io::Error::other("it has no address");
    for address in addresses {
        match introduce(node, *address, purpose, number, store) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection on which blocks will come, or messages of a ring. A try whose packet got lost is not waited for: another one begins beside it.
fn introduce(
    node: u32,
    address: SocketAddr,
    purpose: Purpose,
    block: u64,
    store: &Store,
) -> io::Result<TcpStream> {
    let (sender, tries) = channel();
    let (began, mut patience, mut under_way) = (Instant::now(), TRY_AGAIN, 0);
    while began.elapsed() < CONNECT_LIMIT {
        let (sender, key) = (sender.clone(), store.key.clone());
        thread::spawn(move || {
            // Nobody may want it any more; then it closes, and was nothing.
            let _ = sender.send(try_to_introduce(node, address, purpose, block, &key));
        });
        under_way += 1;
        let again_at = Instant::now() + patience;
        patience *= 2;
        while let Ok(come) = tries.recv_timeout(again_at.saturating_duration_since(Instant::now())) {
            match come {
                Ok(mut connection) => {
                    for byte in CONFIRMATION {
                        connection.write_all(&[byte])?;
                    }
                    return Ok(connection);
                }
                Err(error) => {
                    under_way -= 1;
                    if under_way == 0 {
                        return Err(error);
                    }
                }
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"))
}

fn try_to_introduce(
    node: u32,
    address: SocketAddr,
    purpose: Purpose,
    block: u64,
    key: &Key,
) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(CONNECT_LIMIT))?;
    let strange = || io::Error::other("who listens there does not belong to this copy");
    let mut greeting = [0; GREETING_BYTES];
    connection.read_exact(&mut greeting)?;
    let greeting = Greeting::decode(&greeting).ok_or_else(strange)?;
    let request = Request { purpose, node, block, nonce: nonce()? };
    let (request, expected) = request.encode(&greeting, key);
    connection.write_all(&request)?;
    let mut proof = [0; PROOF_BYTES];
    connection.read_exact(&mut proof)?;
    if proof != expected {
        return Err(strange());
    }
    connection.set_read_timeout(None)?;
    Ok(connection)
}

fn take(mut connection: &TcpStream, first: u64, store: &Store, stop: &AtomicBool) -> io::Result<()> {
    for block in first..store.stream.blocks() {
        let mut header = [0; BLOCK_HEADER_BYTES];
        connection.read_exact(&mut header)?;
        let range = store.stream.range(block);
        let whole = range.end - range.start;
        let is_next = |header: &BlockHeader| header.block == block && u64::from(header.bytes) <= whole;
        let header = BlockHeader::decode(&header)
            .filter(is_next)
            .ok_or_else(|| io::Error::other("something else came than the next block"))?;
        let mut bytes = vec![0; header.bytes as usize];
        connection.read_exact(&mut bytes)?;
        let came = 0..bytes.len();
        let tag = Some(header.tag);
        let received = Block::received(&store.key, (block, whole as usize), tag, Arc::new(bytes), came)
            .ok_or_else(|| io::Error::other("a block is not what the source has sent"))?;
        if !store.push_all(block, [received], stop) {
            return Ok(());
        }
    }
    Ok(())
}
