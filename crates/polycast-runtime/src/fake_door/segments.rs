//! The memory that ranks of a job share. A job goes on if it changes, though nobody sends or receives a message.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{self, SeekFrom};
use rustix::io::Errno;

use super::allocations::outside;

/// The segments of a job, and the bytes that were in them when somebody looked last.
#[derive(Default)]
pub struct Segments {
    files: Vec<File>,
    before: Vec<Vec<u8>>,
}

impl Segments {
    /// One more, until the job ends.
    pub fn add(&mut self, file: &OwnedFd) -> io::Result<()> {
        outside(|| {
            self.files.push(file.try_clone()?.into());
            Ok(())
        })
    }

    /// True if there are other bytes in them than when this was asked last. No rank runs meanwhile.
    pub fn have_changed(&mut self) -> bool {
        outside(|| {
            let now: io::Result<Vec<Vec<u8>>> = self.files.iter().map(bytes).collect();
            let now = now.expect("a segment can be read");
            let have_changed = now != self.before;
            self.before = now;
            have_changed
        })
    }
}

/// What is in memory of it, one part behind the other, each with its place; most of an arena is not.
fn bytes(file: &File) -> io::Result<Vec<u8>> {
    let (mut bytes, mut at) = (Vec::new(), 0);
    loop {
        at = match fs::seek(file, SeekFrom::Data(at)) {
            Ok(first) => first,
            Err(Errno::NXIO) => return Ok(bytes),
            Err(error) => return Err(error.into()),
        };
        let (first, place) = (at, bytes.len());
        at = fs::seek(file, SeekFrom::Hole(at))?;
        bytes.resize(place + 8 + (at - first) as usize, 0);
        bytes[place..place + 8].copy_from_slice(&first.to_le_bytes());
        file.read_exact_at(&mut bytes[place + 8..], first)?;
    }
}

mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use polycast_shm::{Arena, Board, MAX_SLOTS};

    use crate::fake_door::stage::{Delays, Stage, Turns};

    /// Who waits for long is stuck, unless somebody writes into the memory meanwhile.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn memory_in_which_nobody_writes_stands_still() {
        for writes in [true, false] {
            let stage = Stage::new(1, 0, Delays::default(), Turns::default());
            let (arena, _) = Arena::create(4 << 20, 7).unwrap();
            let slot = arena.take(1, MAX_SLOTS).unwrap();
            // SAFETY: nobody gives it back.
            let memory = unsafe { arena.memory(slot, 1) }.unwrap();
            stage.watch(arena.segment().file()).unwrap();
            stage.enter(0);
            for millisecond in 0..20_000 {
                if writes {
                    memory.reached(0).store(millisecond, Relaxed);
                }
                stage.wait(0, Some(Duration::from_millis(1)), false);
            }
            assert_eq!(stage.is_stuck(), !writes);
        }
    }
}
