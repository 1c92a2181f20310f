//! A segment: a file without a name, mapped by the processes of a node.
//!
//! One makes it, and tells the others its process and descriptor; they open `/proc/PROCESS/fd/DESCRIPTOR`, which the kernel refuses to other
//! users. Nothing stands in any directory: it is gone with the last process that has mapped it, however that ends. Its length is sealed, and its
//! memory is taken piece by piece, before anybody writes there, so that none is missing later; what is not needed any more is given back.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{self, FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::process::{Resource, geteuid, getrlimit};

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// "polycst2"
const MAGIC: u64 = u64::from_le_bytes(*b"polycst2");
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
/// The bytes of a page.
pub const PAGE: usize = 4096;
/// The words at the beginning that tell what the segment is.
pub const OWN_WORDS: usize = 3;

/// The reason why there is no segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The kernel does not give a segment, or does not let this process open it.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The descriptor is of something else than the segment that was offered.
    #[error("the descriptor is not the segment that was offered: {0}")]
    Other(&'static str),
}

impl From<Errno> for SegmentError {
    fn from(error: Errno) -> SegmentError {
        SegmentError::System(error.into())
    }
}

/// An offer of a segment, by which others find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The number of the process that has made the segment.
    pub process: u32,
    /// The segment's descriptor in that process.
    pub descriptor: u32,
    /// The random number that tells the segment apart from all others.
    pub name: u64,
}

/// A segment that is mapped in this process, and not in its children.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
    /// The file's device and number: the program may have closed the descriptor, and opened another
    /// file by it.
    identity: (u64, u64),
}

// SAFETY: the mapping belongs to the process.
unsafe impl Send for Segment {}
// SAFETY: the same; what is written through it is atomic, or goes by the promises of those who hand out memory of it.
unsafe impl Sync for Segment {}

/// The number of attempts to reserve memory when signals interrupt them.
const TRIES: u32 = 10;

/// Reserves memory. A signal undoes the part that has been reserved so far, so the reservation
/// begins anew; a process that gets signals all the time gets an error.
fn reserve(mut reserve: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    (1..TRIES).map(|_| reserve()).find(|result| *result != Err(Errno::INTR)).unwrap_or_else(reserve)
}

/// Refuses sizes beyond the largest file that the process may write, for which the kernel sends a
/// signal that ends the program.
fn may_be_of(bytes: usize) -> rustix::io::Result<()> {
    let most = getrlimit(Resource::Fsize).current;
    if most.is_none_or(|most| bytes as u64 <= most) { Ok(()) } else { Err(Errno::FBIG) }
}

fn identity(file: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    fstat(file).map(|found| (found.st_dev, found.st_ino))
}

/// The most bytes that a file of this process may have.
pub fn most_bytes() -> usize {
    getrlimit(Resource::Fsize).current.map_or(usize::MAX, |most| most.try_into().unwrap_or(usize::MAX))
}

impl Segment {
    /// Makes a segment of so many bytes, the first page of which is there. The others can open it as
    /// long as this lives.
    pub fn create(bytes: usize, name: u64) -> Result<(Segment, Offer), SegmentError> {
        let file = memfd_create(c"polycast", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        may_be_of(bytes)?;
        ftruncate(&file, bytes as u64)?;
        fs::fcntl_add_seals(&file, SEALS)?;
        let segment = Segment::map(file, bytes)?;
        segment.take(0..PAGE)?;
        // Relaxed: others open it when they have been told, by other means.
        let words = [MAGIC, name, bytes as u64];
        words.iter().enumerate().for_each(|(index, word)| segment.word(index).store(*word, Relaxed));
        let descriptor = segment.file.as_raw_fd() as u32;
        Ok((segment, Offer { process: std::process::id(), descriptor, name }))
    }

    /// Opens the segment that was offered, if it has at most so many bytes.
    pub fn open(offer: Offer, most_bytes: usize) -> Result<Segment, SegmentError> {
        let path = format!("/proc/{}/fd/{}", offer.process, offer.descriptor);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = fs::open(&*path, flags, Mode::empty())?;
        let found = fstat(&file)?;
        let bytes = usize::try_from(found.st_size).unwrap_or(0);
        if found.st_uid != geteuid().as_raw() || !(PAGE..=most_bytes).contains(&bytes) {
            return Err(SegmentError::Other("another owner or length"));
        }
        // Whoever may shrink it could kill this process.
        if !fs::fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(SegmentError::Other("not sealed"));
        }
        let segment = Segment::map(file, bytes)?;
        let words = [0, 1, 2].map(|index| segment.word(index).load(Relaxed));
        match words == [MAGIC, offer.name, bytes as u64] {
            true => Ok(segment),
            false => Err(SegmentError::Other("another content")),
        }
    }

    fn map(file: OwnedFd, bytes: usize) -> Result<Segment, SegmentError> {
        let (protection, identity) = (ProtFlags::READ | ProtFlags::WRITE, identity(&file)?);
        // SAFETY: a new mapping, where the kernel likes.
        let base = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, file.as_fd(), 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(SegmentError::Other("nowhere"))?;
        let segment = Segment { base, bytes, file, identity };
        // SAFETY: it is this mapping; a child must not write in it.
        unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontFork)? };
        Ok(segment)
    }

    /// The file, by which tests see what is written.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// The length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of byte `at`.
    pub fn at(&self, at: usize) -> NonNull<u8> {
        assert!(at < self.bytes);
        // SAFETY: it is in the mapping.
        unsafe { self.base.add(at) }
    }

    /// One of the numbers that the segment consists of.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: it is in the mapping, atomic, and aligned.
        unsafe { self.at(index * size_of::<AtomicU64>()).cast().as_ref() }
    }

    /// Several of these numbers.
    pub fn words(&self, range: Range<usize>) -> &[AtomicU64] {
        assert!(range.end * size_of::<AtomicU64>() <= self.bytes);
        // SAFETY: as for one.
        unsafe { std::slice::from_raw_parts(self.word(range.start), range.len()) }
    }

    /// Takes the memory of whole pages: they can be written without a signal.
    pub fn take(&self, pages: Range<usize>) -> Result<(), SegmentError> {
        if identity(&self.file)? != self.identity {
            return Err(SegmentError::Other("the program has closed it"));
        }
        may_be_of(pages.end)?;
        let (start, length) = (pages.start as u64, pages.len() as u64);
        Ok(reserve(|| fs::fallocate(&self.file, FallocateFlags::empty(), start, length))?)
    }

    /// Gives the memory of whole pages back, in which nobody has anything. Whether the kernel takes it
    /// makes no difference to what is done later.
    pub fn give_back(&self, pages: Range<usize>) {
        assert!(pages.end <= self.bytes);
        // SAFETY: it is this mapping, and the caller says that nobody has anything there.
        let _ = unsafe { madvise(self.at(pages.start).as_ptr().cast(), pages.len(), Advice::LinuxRemove) };
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was mapped like this, and what is lent out lives no longer than this. A mapping that cannot be removed stays.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    const BYTES: usize = 64 * PAGE;

    #[test]
    fn memory_that_a_signal_kept_away_is_asked_for_again() {
        let after = |signals: u32, then: rustix::io::Result<()>| {
            let mut calls = 0;
            let result = reserve(|| {
                calls += 1;
                if calls > signals { then } else { Err(Errno::INTR) }
            });
            (result, calls)
        };
        assert_eq!(after(0, Ok(())), (Ok(()), 1));
        assert_eq!(after(3, Ok(())), (Ok(()), 4));
        assert_eq!(after(2, Err(Errno::NOSPC)), (Err(Errno::NOSPC), 3));
        assert_eq!(after(u32::MAX, Ok(())), (Err(Errno::INTR), TRIES));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn memory_is_taken_written_read_and_given_back() {
        let (leader, offer) = Segment::create(BYTES, 7).unwrap();
        let pages = || fstat(leader.file()).unwrap().st_blocks as usize * 512 / PAGE;
        assert_eq!(pages(), 1);
        let other = Segment::open(offer, BYTES).unwrap();
        other.take(4 * PAGE..8 * PAGE).unwrap();
        assert_eq!(pages(), 5);
        other.word(4 * PAGE / 8).store(5, Relaxed);
        assert_eq!(leader.words(4 * PAGE / 8..4 * PAGE / 8 + 2)[0].load(Relaxed), 5);
        leader.give_back(4 * PAGE..8 * PAGE);
        assert_eq!(pages(), 1);
        leader.take(4 * PAGE..5 * PAGE).unwrap();
        assert_eq!(other.word(4 * PAGE / 8).load(Relaxed), 0, "zeros again");
    }

    /// A program may close descriptors that it does not know, and get the number for a file of its own.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn another_file_behind_the_descriptor_is_left_alone() {
        let (segment, _) = Segment::create(BYTES, 7).unwrap();
        let others = memfd_create(c"other", MemfdFlags::CLOEXEC).unwrap();
        let mut segment = std::mem::ManuallyDrop::new(segment);
        rustix::io::dup2(&others, &mut segment.file).unwrap();
        let refused = segment.take(PAGE..2 * PAGE).unwrap_err().to_string();
        assert!(refused.ends_with("the program has closed it"), "{refused}");
        assert_eq!(fstat(&others).unwrap().st_size, 0);
        drop(std::mem::ManuallyDrop::into_inner(segment));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_is_something_else_is_refused() {
        let (leader, offer) = Segment::create(BYTES, 7).unwrap();
        let refused = |offer, most| Segment::open(offer, most).unwrap_err().to_string();
        assert!(refused(Offer { name: 8, ..offer }, BYTES).ends_with("another content"));
        assert!(refused(offer, BYTES - 1).ends_with("another owner or length"));
        let unsealed = memfd_create(c"other", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&unsealed, BYTES as u64).unwrap();
        let other = Offer { descriptor: unsealed.as_raw_fd() as u32, ..offer };
        assert!(refused(other, BYTES).ends_with("not sealed"));
        drop(leader);
        assert!(Segment::open(offer, BYTES).is_err());
    }

    /// The file itself would let everybody in: it is the way to it that other users have not.
    #[test]
    #[cfg_attr(miri, ignore = "starts processes")]
    fn other_users_are_refused() {
        const NOBODY: u32 = 65_534;
        if !geteuid().is_root() {
            eprintln!("skipped: only root can become another user");
            return;
        }
        let (_segment, offer) = Segment::create(BYTES, 7).unwrap();
        let path = format!("/proc/{}/fd/{}", offer.process, offer.descriptor);
        let open_as = |user: u32, way: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("exec 3{way}\"$1\""), "open", &path]).uid(user).gid(user);
            let output = shell.output().unwrap();
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        for way in ["<>", "<", ">>"] {
            assert_eq!(open_as(0, way), (true, String::new()), "so the test can fail");
            let (is_open, said) = open_as(NOBODY, way);
            assert!(!is_open && said.contains("Permission denied"), "{way}: {said}");
        }
    }
}
