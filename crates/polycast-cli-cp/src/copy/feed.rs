//! Takes blocks from another node.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use polycast_copy::{BLOCK_HEADER_BYTES, BlockHeader, Purpose};

use super::contact::{Caller, introduce};
use super::store::{Block, Store};

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
    let have = store.have_and_written().0;
    let caller = Caller { node, purpose: Purpose::Blocks, block: have, key: store.key.clone() };
    let connection = introduce(&caller, addresses)?;
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.try_clone()?);
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    take(&connection, have, store, stop)
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
        // What is not the next one any more is here: the ring that this node was in has brought it meanwhile.
        if !store.push_all(block, [received], stop) && stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use polycast_copy::{KEY_BYTES, Key, Stream};

    use super::*;

    /// A ring that a node leaves may bring it a segment more, when it has said what it has.
    #[test]
    fn what_is_here_already_is_passed_over() {
        let stream = Stream { bytes: 40, manifest_bytes: 0, block_bytes: 10 };
        let store = Store::new(stream, Key::from_bytes([3; KEY_BYTES]), false);
        let stop = AtomicBool::new(false);
        let block = |number: u64| {
            let bytes = vec![number as u8; 10];
            store.block(number, store.key.tag(number, &bytes), bytes)
        };
        assert!(store.push_all(0, [block(0), block(1)], &stop));
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for number in 0..4 {
            let header = BlockHeader { block: number, bytes: 10, tag: block(number).tag };
            other.write_all(&header.encode()).unwrap();
            other.write_all(block(number).bytes()).unwrap();
        }
        take(&listener.accept().unwrap().0, 0, &store, &stop).unwrap();
        assert_eq!(store.have_and_written().0, 4);
    }
}
