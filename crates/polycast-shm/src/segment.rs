//! A segment: a file without a name, mapped by the ranks of a node.
//!
//! Its leader makes it, and tells the others its process and descriptor; they open `/proc/PROCESS/fd/DESCRIPTOR`, which the kernel refuses to other
//! users. Nothing stands in any directory: it is gone with the last process that has mapped it, however that ends. Its length is sealed, and each rank
//! takes the memory of what it will write, before anybody writes: so none is missing later, and the kernel gives what is near the rank.

use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{self, FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::process::{Resource, geteuid, getrlimit};

use crate::raw::{Raw, Shape};
use crate::sync::Ordering::Relaxed;

/// "polycst1"
const MAGIC: u64 = u64::from_le_bytes(*b"polycst1");
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

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
    raw: Raw,
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to the process.
unsafe impl Send for Segment {}
// SAFETY: the same; what it hands out is `raw`.
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

fn take(file: &OwnedFd, bytes: Range<usize>) -> rustix::io::Result<()> {
    may_be_of(bytes.end)?;
    reserve(|| fs::fallocate(file, FallocateFlags::empty(), bytes.start as u64, bytes.len() as u64))
}

impl Segment {
    /// Makes a segment. The others can open it as long as the descriptor lives.
    pub fn create(shape: Shape, name: u64) -> Result<(Segment, OwnedFd, Offer), SegmentError> {
        let file = memfd_create(c"polycast", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        may_be_of(shape.bytes())?;
        ftruncate(&file, shape.bytes() as u64)?;
        take(&file, Shape::of_nobody())?;
        fs::fcntl_add_seals(&file, SEALS)?;
        let segment = Segment::map(&file, shape)?;
        // Relaxed: others open it when they have been told, by other means.
        segment.raw.word(0).store(MAGIC, Relaxed);
        segment.raw.word(1).store(name, Relaxed);
        segment.raw.word(2).store(shape.ranks.into(), Relaxed);
        let offer = Offer { process: std::process::id(), descriptor: file.as_raw_fd() as u32, name };
        Ok((segment, file, offer))
    }

    /// Opens the segment that was offered.
    pub fn open(offer: Offer, shape: Shape) -> Result<(Segment, OwnedFd), SegmentError> {
        let path = format!("/proc/{}/fd/{}", offer.process, offer.descriptor);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = fs::open(&*path, flags, Mode::empty())?;
        let found = fstat(&file)?;
        if found.st_uid != geteuid().as_raw() || found.st_size != shape.bytes() as i64 {
            return Err(SegmentError::Other("another owner or length"));
        }
        // Whoever may shrink it could kill this process.
        if !fs::fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(SegmentError::Other("not sealed"));
        }
        let segment = Segment::map(&file, shape)?;
        let words = [0, 1, 2].map(|index| segment.raw.word(index).load(Relaxed));
        match words == [MAGIC, offer.name, shape.ranks.into()] {
            true => Ok((segment, file)),
            false => Err(SegmentError::Other("another content")),
        }
    }

    /// Reserves the memory that this rank will write, in a segment that was mapped from this file.
    /// When all ranks have done so, each can write.
    pub fn take(&self, file: &OwnedFd, rank: u32) -> Result<(), SegmentError> {
        Ok(take(file, self.raw.shape().of_rank(rank))?)
    }

    fn map(file: impl AsFd, shape: Shape) -> Result<Segment, SegmentError> {
        let (bytes, protection) = (shape.bytes(), ProtFlags::READ | ProtFlags::WRITE);
        if bytes == 0 {
            return Err(SegmentError::Other("empty"));
        }
        // SAFETY: a new mapping, where the kernel likes.
        let base = unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(SegmentError::Other("nowhere"))?;
        // SAFETY: it is this mapping; a child must not write in it.
        let advised = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontFork) };
        // SAFETY: the file was empty and is sealed at this length.
        let segment = Segment { raw: unsafe { Raw::new(base, shape) }, base };
        advised?;
        Ok(segment)
    }
}

impl Deref for Segment {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was mapped like this, and `raw` is lent out for no longer than this lives. A mapping that cannot be removed stays.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.raw.shape().bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::memory::{Memory, Way};

    const SHAPE: fn() -> Shape = || Shape::new(3);

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
    fn what_one_writes_another_reads() {
        let (leader, _file, offer) = Segment::create(SHAPE(), 7).unwrap();
        let (other, _file) = Segment::open(offer, SHAPE()).unwrap();
        let way = Way { writer: 2, channel: 1 };
        leader.written(way).store(5, Relaxed);
        assert_eq!(other.written(way).load(Relaxed), 5);
        let mut found = [0; 3];
        // SAFETY: nobody else uses either.
        unsafe {
            other.put(way, leader.ring_bytes() - 1, [1, 2, 3].as_ptr(), 3);
            leader.get(way, leader.ring_bytes() - 1, found.as_mut_ptr(), 3);
        }
        assert_eq!(found, [1, 2, 3]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn each_rank_takes_its_own_memory() {
        let (leader, file, offer) = Segment::create(SHAPE(), 7).unwrap();
        let taken = || fstat(&file).unwrap().st_blocks as usize * 512;
        let own = SHAPE().of_rank(0).len();
        assert!(taken() < own, "{} bytes of {}", taken(), SHAPE().bytes());
        let (other, others) = Segment::open(offer, SHAPE()).unwrap();
        other.take(&others, 2).unwrap();
        assert!((own..2 * own).contains(&taken()));
        (0..2).for_each(|rank| leader.take(&file, rank).unwrap());
        assert_eq!(taken(), SHAPE().bytes());
        other.meet();
        assert_eq!(taken(), SHAPE().bytes());
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_is_something_else_is_refused() {
        let (_leader, file, offer) = Segment::create(SHAPE(), 7).unwrap();
        let refused = |offer, shape| Segment::open(offer, shape).unwrap_err().to_string();
        assert!(refused(Offer { name: 8, ..offer }, SHAPE()).ends_with("another content"));
        assert!(refused(offer, Shape::new(4)).ends_with("another owner or length"));
        let unsealed = memfd_create(c"other", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&unsealed, SHAPE().bytes() as u64).unwrap();
        let other = Offer { descriptor: unsealed.as_raw_fd() as u32, ..offer };
        assert!(refused(other, SHAPE()).ends_with("not sealed"));
        drop(file);
        assert!(Segment::open(offer, SHAPE()).is_err());
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
        let (_segment, _file, offer) = Segment::create(SHAPE(), 7).unwrap();
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
