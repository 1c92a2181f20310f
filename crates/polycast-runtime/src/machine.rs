//! The time, rest and chance of the machine that runs this rank. The rest of the crate asks nobody else for them: in tests ranks are
//! threads, and one that has [entered](self::test::enter) a stand-in gets virtual time and chance by a seed from it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polycast_core::topology::Locality;
use polycast_shm::{Arena, Offer, SegmentError, Slot};
use rustix::event::{PollFd, Timespec};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{CpuSet, NanosleepRelativeResult, nanosleep, sched_getaffinity};

use crate::of_process::of_process;

/// Gives `$stand_in`'s answer if this thread has one. Nothing outside of tests.
macro_rules! stand_in {
    (|$stand_in:ident| $answer:expr) => {
        #[cfg(test)]
        if let Some($stand_in) = crate::machine::test::stand_in() {
            return $answer;
        }
    };
}
pub(crate) use stand_in;

mod locality;
mod memory;
mod process;
#[cfg(test)]
pub mod test;
mod watch;

pub use self::process::{command, mpi, program};
pub use self::watch::{patience, watched};

/// Folder in which Linux tells what the machine is made of.
const SYSTEM: &str = "/sys/devices/system";
/// Folder in which Linux tells what processes have of it.
const PROCESSES: &str = "/proc";

#[inline]
pub fn now() -> Instant {
    stand_in!(|machine| machine.now());
    Instant::now()
}

/// CLOCK_MONOTONIC in nanoseconds: the time of [`now`] as a number that other processes of the
/// machine share.
pub fn monotonic_nanos() -> u64 {
    stand_in!(|machine| machine.monotonic_nanos());
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

/// Nanoseconds since 1970.
pub fn nanos_since_1970() -> u64 {
    stand_in!(|machine| machine.monotonic_nanos());
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Text that is equal for processes whose CLOCK_MONOTONIC is one: a start of the kernel, and what
/// shifts its clocks for containers.
pub fn clock() -> String {
    stand_in!(|machine| machine.host().0);
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", host().1.trim(), namespace.display())
}

/// Days since 1970.
pub fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / (24 * 60 * 60))
}

pub fn sleep(time: Duration) {
    stand_in!(|machine| machine.sleep(time));
    let mut left = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    loop {
        match nanosleep(&left) {
            NanosleepRelativeResult::Interrupted(more) => left = more,
            NanosleepRelativeResult::Ok => return,
            // A sandbox refuses it, which the standard library takes for a reason to panic.
            NanosleepRelativeResult::Err(_) => return std::thread::yield_now(),
        }
    }
}

/// Sleeps by a function that sleeps for `longest` at most.
pub fn sleep_by(longest: Duration, sleep: impl FnOnce(Duration)) {
    stand_in!(|machine| machine.sleep(longest));
    sleep(longest);
}

/// Lets other ranks have the processor.
pub fn give_way() {
    stand_in!(|machine| machine.give_way());
    std::thread::yield_now();
}

/// Waits awake.
pub fn spin() {
    stand_in!(|machine| machine.give_way());
    std::hint::spin_loop();
}

/// Waits for descriptors; returns how many are ready, 0 after `longest` or a signal.
pub fn poll(watched: &mut [PollFd<'_>], longest: Duration) -> usize {
    stand_in!(|machine| machine.poll(watched, longest));
    let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
    rustix::event::poll(watched, Some(&timeout)).unwrap_or(0)
}

/// Number of processors that this process may run on, as first asked in MPI_Init. Later a program
/// may have bound this thread alone.
pub fn processors() -> usize {
    stand_in!(|machine| machine.processors());
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The processors that this process may run on: a number for each, none where they are not known.
pub fn binding() -> Vec<u8> {
    stand_in!(|machine| machine.locality().to_bits().to_le_bytes().to_vec());
    bound().into_iter().flat_map(u32::to_le_bytes).collect()
}

fn bound() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU as u32).filter(|processor| set.is_set(*processor as usize)).collect()
}

/// Place of this process on its host, as far as it is bound.
pub fn locality() -> Locality {
    stand_in!(|machine| machine.locality());
    locality::read(Path::new(SYSTEM), &bound())
}

/// Bytes of memory that this process may still ask for; `None`: nobody has limited it beforehand.
pub fn memory_left() -> Option<u64> {
    stand_in!(|machine| machine.memory_left());
    memory::left(Path::new(PROCESSES))
}

/// The host's name, and a text that is another one after each start of its kernel.
pub fn host() -> (String, String) {
    stand_in!(|machine| machine.host());
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (name, std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<OsString> {
    stand_in!(|machine| machine.variable(name));
    std::env::var_os(name)
}

/// All variables of the environment, with their values.
pub fn variables() -> Vec<(OsString, OsString)> {
    stand_in!(|machine| machine.variables());
    std::env::vars_os().collect()
}

/// The path of this library, as the loader mapped it.
pub fn library() -> Option<String> {
    stand_in!(|_machine| None);
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = |line: &str| line.find('/').map(|at| line[at..].to_owned());
    maps.lines().filter_map(path).find(|path| path.ends_with("/libpolycast.so"))
}

/// The text of a file, if there is one; an error says in words what was found instead.
pub fn text_if_there(file: &str, most_bytes: usize) -> Option<Result<String, String>> {
    stand_in!(|machine| machine.text_if_there(file));
    polycast_system::text_if_there(file, most_bytes)
}

/// Writes to standard error. A failure to write is ignored.
pub fn say(text: &str) {
    stand_in!(|machine| machine.say(text));
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Random bytes, `N` of them.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stand_in!(|machine| machine.random(&mut bytes).map(|()| bytes));
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// An arena of about so many bytes at most for the processes of this host, and by what they find it.
pub fn create_arena(most: usize, name: u64) -> Result<(Arena, Offer), SegmentError> {
    stand_in!(|machine| machine.create_arena(most, name));
    Arena::create(most, name)
}

/// Opens the arena that another process of the host has made.
pub fn open_arena(offer: Offer) -> Result<Arena, SegmentError> {
    stand_in!(|machine| machine.open_arena(offer));
    Arena::open(offer)
}

/// Takes a slot of an arena, of a number below `numbers`, for so many ranks.
pub fn take_slot(arena: &Arena, ranks: u32, numbers: usize) -> Option<Slot> {
    stand_in!(|machine| machine.take_slot(arena, ranks, numbers));
    arena.take(ranks, numbers)
}

/// Copies what stands in another process of the node.
pub fn read_process(process: u32, address: u64, place: &mut [u8]) -> io::Result<()> {
    stand_in!(|machine| machine.read_process(process, address, place));
    polycast_shm::address::read(process, address, place)
}

/// A random number.
pub fn random() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// Number that tells this process apart from all others on its host, also from those in other
/// containers; 0 if there is no entropy.
pub fn process_identity() -> u64 {
    of_process! { static IDENTITY: OnceLock<u64> = OnceLock::new(); }
    IDENTITY.with(|identity| *identity.get_or_init(|| random().unwrap_or(0)))
}
