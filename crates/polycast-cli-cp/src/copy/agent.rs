//! The agent on a node of a copy: on the source, or on a node that gets the files. It ends when its standard input does, whatever it does then but to put files
//! into their place, and what has come by then stays for the next run.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use polycast_copy::{Key, Layout, Manifest, Stream};

use super::address::Network;
use super::backing::{Backing, BlockReader, Unreadable};
use super::commit::{Commit, check_room, taken};
use super::contact;
use super::feed::Feed;
use super::group::{Candidate, Handle, Word};
use super::in_common::Mark;
use super::message::{Command, Event};
use super::scan;
use super::serve::{Limit, PROOF_LIMIT, Server, serve};
use super::staging::{self, Destination, Opened, Staging, Writer};
use super::store::{Block, Found, Store};

/// The time between two reports of an agent on how far it is.
const TELL: Duration = Duration::from_millis(100);

/// The block sizes by lengths of stream, unless the user says otherwise: short, so that a chain is soon full; longer for what takes long anyway.
const BLOCK_BYTES: [(u64, u32); 3] = [(16 << 20, 16 << 10), (4 << 30, 64 << 10), (64 << 30, 256 << 10)];
/// The block size for streams that are longer than all of [`BLOCK_BYTES`].
const LONGEST_BLOCK_BYTES: u32 = 1 << 20;

/// The lock that is held while files are put into their place.
static FINISHING: Mutex<()> = Mutex::new(());

/// Serves a coordinator. `remove_tool`: this program was brought along, and its file is not needed any more.
pub fn run(remove_tool: bool) -> ExitCode {
    if remove_tool && let Ok(tool) = std::env::current_exe() {
        let _ = std::fs::remove_file(tool);
    }
    say(&Event::Hello { version: env!("CARGO_PKG_VERSION").to_owned() });
    let (sender, lines) = channel::<String>();
    thread::spawn(move || {
        let mut agent = RunningAgent::default();
        for line in lines {
            let done = match serde_json::from_str(&line) {
                Ok(command) => agent.obey(command),
                Err(error) => Err(format!("expected a command of polycast cp: {error}")),
            };
            if let Err(reason) = done {
                fail(reason);
            }
        }
    });
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let _ = sender.send(line);
    }
    // Other threads are not waited for: to read what an earlier run has left may take an hour.
    let _last = FINISHING.lock();
    staging::leave();
    std::process::exit(0)
}

/// An event is one write; nobody who could read it any more is no reason to complain.
pub(super) fn say(event: &Event) {
    if let Ok(mut line) = serde_json::to_vec(event) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Tells the coordinator, where `error` is an [`Unreadable`] one, of the source's file that has changed since it was read.
pub(super) fn tell_unreadable(error: &io::Error) {
    let found = error.get_ref().and_then(|error| error.downcast_ref::<Unreadable>());
    if let Some(Unreadable { file, reason }) = found {
        say(&Event::Unreadable { file: file.display().to_string(), reason: reason.clone() });
    }
}

fn fail(reason: impl ToString) {
    say(&Event::Failed { reason: reason.to_string() });
}

#[derive(Default)]
struct RunningAgent {
    network: Network,
    source: Option<Arc<Store>>,
    receiver: Option<Receiver>,
    /// The means to become a member of a multicast group.
    seat: Option<Candidate>,
}

struct Receiver {
    node: u32,
    store: Arc<Store>,
    shared: Arc<Shared>,
    feed: Option<Feed>,
}

/// The state that the writer and the coordinator's commands share.
struct Shared {
    destination: Destination,
    /// The staging folder; gone when it has been put in its place, or given up.
    staging: Mutex<Option<Staging>>,
    backing: Arc<OnceLock<Backing>>,
    /// The writer has finished without an error.
    is_written: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl RunningAgent {
    fn obey(&mut self, command: Command) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        match command {
            Command::Network { ports, hops } => self.network = Network::new(ports, hops)?,
            Command::Send { key, sources, recursive, block_bytes, bits_per_second, compress } => {
                let key = Key::from_text(&key).ok_or("expected a key")?;
                let scanned = scan::scan(&sources, recursive)?;
                let seat =
                    send(key, scanned, block_bytes, bits_per_second, compress, self.network).map_err(text)?;
                (self.source, self.seat) = (Some(Arc::clone(&seat.store)), Some(seat));
            }
            Command::ReadAll => {
                if let Some(store) = &self.source {
                    store.want(u64::MAX / 2);
                }
            }
            Command::Receive {
                key,
                node,
                destination,
                into_folder,
                force,
                preserve,
                manifest,
                lengths,
                compress,
            } => {
                let key = Key::from_text(&key).ok_or("expected a key")?;
                let destination = Destination::new(destination.clone(), into_folder, force, preserve)
                    .map_err(|error| format!("{}: {error}", destination.display()))?;
                match Staging::open(&destination, &manifest, &Mark::new(&key, node)).map_err(text)? {
                    Opened::InCommon(with) => say(&Event::InCommon { with }),
                    Opened::Own(staging) => {
                        let store = Arc::new(Store::new(lengths.into(), key, compress));
                        let received = receive(node, store, destination, staging, &manifest, self.network);
                        let (receiver, seat) = received.map_err(text)?;
                        (self.receiver, self.seat) = (Some(receiver), Some(seat));
                    }
                }
            }
            Command::Expect(addresses) => contact::expect(&addresses),
            Command::Join(group, net) => {
                say(&Event::Joined(self.seat.as_ref().and_then(|seat| seat.join(group, &net))));
            }
            Command::Probe(payload_bytes) => self.to_group(Word::Probe(payload_bytes as usize)),
            Command::Sit(seat) => {
                if let Some(receiver) = &mut self.receiver {
                    receiver.feed = None;
                }
                self.to_group(Word::Sit(seat));
            }
            Command::Leave => self.to_group(Word::Leave),
            Command::Feed { parent, addresses } => {
                self.to_group(Word::Leave);
                if let Some(receiver) = &mut self.receiver {
                    // The one before ends first.
                    receiver.feed = None;
                    let failed = move |reason| say(&Event::ParentFailed { parent, reason });
                    let store = Arc::clone(&receiver.store);
                    receiver.feed = Some(Feed::start(receiver.node, addresses, store, failed));
                }
            }
            Command::Finish { digest, spoiled, keeps_mark } => {
                if let Some(receiver) = &self.receiver {
                    receiver.finish(&digest, &spoiled)?;
                    if !keeps_mark {
                        staging::leave();
                    }
                    say(&Event::Done);
                }
            }
        }
        Ok(())
    }

    fn to_group(&self, word: Word) {
        if let Some(group) = self.seat.as_ref().and_then(|seat| seat.group.get()) {
            group.say(word);
        }
    }
}

fn send(
    key: Key,
    scanned: scan::Scan,
    block_bytes: Option<u32>,
    bits_per_second: Option<u64>,
    compress: bool,
    network: Network,
) -> io::Result<Candidate> {
    let (files, folders, links) = (scanned.files, scanned.folders, scanned.links);
    let skipped = scanned.skipped.clone();
    let (manifest, places, stamps) = scanned.into_parts();
    let bytes = manifest.encode();
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let backing = Arc::new(OnceLock::new());
    let layout = Layout::new(&manifest, bytes.len() as u64);
    let length = layout.stream(1).bytes;
    let by_length =
        BLOCK_BYTES.iter().find(|(most, _)| length <= *most).map_or(LONGEST_BLOCK_BYTES, |(_, bytes)| *bytes);
    let stream = layout.stream(block_bytes.unwrap_or(by_length));
    let store = Arc::new(Store::new(stream, key, compress));
    let _ = backing.set(Backing::new(manifest, bytes, places));
    let (listener, addresses) = network.listen()?;
    let (stop, group) = <(Arc<AtomicBool>, Arc<OnceLock<Handle>>)>::default();
    let server = Server {
        node: polycast_copy::SOURCE,
        store: Arc::clone(&store),
        backing: Arc::clone(&backing),
        limit: bits_per_second.map(Limit::new),
        proof_limit: PROOF_LIMIT,
        group: Arc::clone(&group),
        is_source: true,
        stop: Arc::clone(&stop),
    };
    thread::spawn(move || serve(listener, Arc::new(server)));
    say(&Event::Scanned {
        manifest: digest,
        lengths: stream.into(),
        addresses,
        files,
        folders,
        links,
        skipped,
    });
    let seat = Candidate {
        node: polycast_copy::SOURCE,
        store: Arc::clone(&store),
        backing: Arc::clone(&backing),
        group,
        hops: network.hops,
        bits_per_second,
        stop: Arc::clone(&stop),
    };
    let reading = Arc::clone(&store);
    thread::spawn(move || {
        if let Some(backing) = backing.get() {
            let (spoiled, sent_bytes) = scan::read_all(backing, &stamps, &reading, &stop);
            say(&Event::Read { digest: reading.digest(), spoiled, sent_bytes });
        }
    });
    tell(store, true);
    Ok(seat)
}

/// Says how far it is, whether there is something new or not, for silence is a sign, too; and at once when it has everything.
fn tell(store: Arc<Store>, is_source: bool) {
    thread::spawn(move || {
        loop {
            let (have, written) = store.have_and_written();
            say(&Event::Progress { have, written: if is_source { have } else { written } });
            store.rest(TELL);
        }
    });
}

fn receive(
    node: u32,
    store: Arc<Store>,
    destination: Destination,
    staging: Staging,
    manifest: &str,
    network: Network,
) -> io::Result<(Receiver, Candidate)> {
    staging::leave_at_the_end(&staging)?;
    // What is left may take long to read.
    tell(Arc::clone(&store), false);
    let backing = Arc::new(OnceLock::new());
    if let Some(kept) = resume(&staging, &store, manifest) {
        Commit::new(&kept, &destination, &[]).check()?;
        let _ = backing.set(kept);
    }
    let (listener, addresses) = network.listen()?;
    let (stop, group) = <(Arc<AtomicBool>, Arc<OnceLock<Handle>>)>::default();
    let server = Server {
        node,
        store: Arc::clone(&store),
        backing: Arc::clone(&backing),
        limit: None,
        proof_limit: PROOF_LIMIT,
        group: Arc::clone(&group),
        is_source: false,
        stop: Arc::clone(&stop),
    };
    thread::spawn(move || serve(listener, Arc::new(server)));
    let seat = Candidate {
        node,
        store: Arc::clone(&store),
        backing: Arc::clone(&backing),
        group,
        hops: network.hops,
        bits_per_second: None,
        stop: Arc::clone(&stop),
    };
    let into_folder = destination.name.is_none();
    let shared = Arc::new(Shared {
        destination,
        staging: Mutex::new(Some(staging)),
        backing,
        is_written: AtomicBool::new(false),
        stop,
    });
    say(&Event::Ready { have: store.have_and_written().0, addresses, into_folder });
    let (writing, of_writer) = (Arc::clone(&store), Arc::clone(&shared));
    let manifest = manifest.to_owned();
    thread::spawn(move || {
        if let Err(error) = of_writer.write(&writing, &manifest) {
            of_writer.give_up();
            fail(error);
        }
    });
    Ok((Receiver { node, store, shared, feed: None }, seat))
}

/// Takes over what an earlier run has left, up to the first block that is not what was written: nobody is given one that is not. The digest in the
/// end covers them, too.
fn resume(staging: &Staging, store: &Store, digest: &str) -> Option<Backing> {
    let (bytes, noted) = staging.left(&store.stream)?;
    if *blake3::hash(&bytes).to_hex() != *digest {
        return None;
    }
    let backing = staging.backing(Manifest::decode(&bytes).ok()?, bytes).ok()?;
    let mut reader = BlockReader::new(&backing);
    for block in 0..noted.blocks() {
        // From the first one that cannot be read on, others send it.
        let read = reader.read(&store.stream, block).ok();
        let Some(bytes) = read.filter(|bytes| noted.is(block, bytes)) else { break };
        store.add_written(store.key.tag(block, &bytes));
    }
    drop(reader);
    Some(backing)
}

impl Shared {
    /// Writes what comes until all is written.
    fn write(&self, store: &Store, digest: &str) -> io::Result<()> {
        let stream = store.stream;
        let mut manifest = Vec::new();
        let blocks_of_manifest = stream.manifest_bytes.div_ceil(stream.block_bytes.into());
        let mut pending: Vec<(u64, Arc<Block>)> = Vec::new();
        if self.backing.get().is_none() {
            for _ in 0..blocks_of_manifest {
                let Some((number, block)) = next_after(store, pending.len() as u64, &self.stop) else {
                    return Ok(());
                };
                manifest.extend_from_slice(block.bytes());
                pending.push((number, block));
                // Others get these from memory when this one has all of them. The last one may have bytes of a file in it.
                store.want(number);
            }
            manifest.truncate(stream.manifest_bytes as usize);
            self.begin(manifest, digest, &stream)?;
        }
        let Some(backing) = self.backing.get() else { return Ok(()) };
        // Held by this thread alone until it has finished; who finishes comes later.
        let guard = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(staging) = &*guard else { return Ok(()) };
        let written = store.have_and_written().1;
        let mut writer = Writer::new(staging, backing, (stream, written), self.destination.preserve)?;
        for (number, block) in pending.drain(..) {
            writer.write(number, block.bytes())?;
            store.wrote();
        }
        while store.have_and_written().1 < stream.blocks() {
            let Some((number, block)) = store.next_unwritten(&self.stop) else { return Ok(()) };
            writer.write(number, block.bytes())?;
            store.wrote();
        }
        writer.finish()?;
        self.is_written.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks the manifest that has come, and that there is a place for what it lists; then the backing is set.
    fn begin(&self, bytes: Vec<u8>, digest: &str, stream: &Stream) -> io::Result<()> {
        if *blake3::hash(&bytes).to_hex() != *digest {
            return Err(io::Error::other("the list of files is not what the source has made"));
        }
        let manifest = Manifest::decode(&bytes).map_err(io::Error::other)?;
        let guard = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(staging) = &*guard else { return Ok(()) };
        let backing = staging.backing(manifest, bytes)?;
        Commit::new(&backing, &self.destination, &[]).check()?;
        let to_come = stream.bytes - stream.manifest_bytes;
        check_room(&self.destination.folder, to_come.saturating_sub(taken(&staging.tree())))?;
        let _ = self.backing.set(backing);
        Ok(())
    }

    /// Stops the copy and removes what has come: others may want the space, above all where the disk is full.
    fn give_up(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(staging) = self.staging.lock().unwrap_or_else(PoisonError::into_inner).take() {
            staging.remove();
            staging::leave();
        }
    }
}

/// A block that came, whether it is on disk or not; the manifest's are not yet.
fn next_after(store: &Store, pending: u64, stop: &AtomicBool) -> Option<(u64, Arc<Block>)> {
    match store.get(pending, stop)? {
        Found::Memory(block) => Some((pending, block)),
        Found::Disk(_) => None,
    }
}

impl Receiver {
    fn finish(&self, digest: &str, spoiled: &[u32]) -> Result<(), String> {
        // If all was left by an earlier run the writer may not have looked at it yet.
        let (is_written, stop) = (&self.shared.is_written, &self.shared.stop);
        while !is_written.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let _last = FINISHING.lock();
        // The writer lets go of it when it has finished.
        let mut guard = self.shared.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(staging), Some(backing)) = (guard.take(), self.shared.backing.get()) else {
            return Err("nothing has been written".to_owned());
        };
        if !is_written.load(Ordering::Relaxed) {
            return Err("not everything could be written".to_owned());
        }
        let (have, written) = self.store.have_and_written();
        if have < self.store.stream.blocks() || written < have || self.store.digest() != digest {
            staging.remove();
            return Err(
                "what was written is not what was sent: an earlier run has left something else; run it again"
                    .into(),
            );
        }
        Commit::new(backing, &self.shared.destination, spoiled)
            .run(&staging)
            .map_err(|error| error.to_string())
    }
}
