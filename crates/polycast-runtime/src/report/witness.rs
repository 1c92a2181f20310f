//! A process beside rank 0 that reports for it if it ends without MPI_Finalize (docs/decisions/0075).
//!
//! Invariants:
//! 1. Nothing of it is in this process but a mapping: no descriptor, child, thread, signal handler or function at exit.
//! 2. One of two texts stands whole at any time, and the other is being written.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use polycast_core::variables::WITNESS;
use polycast_net::verbs::own_folder;
use rustix::fs::{Access, MemfdFlags, access, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::machine::{self, stand_in};

mod process;

/// The program, beside the library.
const PROGRAM: &str = "polycast-witness";

/// What stands where the way of the end belongs, which the witness alone knows.
pub const END: &str = "@END@";

// As in doors/witness/record.h.
const VERSION: u32 = 0x706c_7901;
const DOCUMENTS: usize = 2;
const FILE_ROOM: usize = 4096;
const TEXT_ROOM: usize = 512 << 10;

/// The share of its time that a rank spends at most to renew the texts: one of so many parts.
const PART: u32 = 300;

#[repr(C)]
struct Text {
    bytes: u32,
    first_half_bytes: u32,
    begin: [u8; TEXT_ROOM],
}

#[repr(C)]
struct Document {
    file: [u8; FILE_ROOM],
    standing: AtomicU32,
    texts: [Text; 2],
}

#[repr(C)]
struct Memory {
    version: u32,
    is_told: AtomicU32,
    documents: [Document; DOCUMENTS],
}

/// The memory that the witness reads.
pub struct Witness {
    memory: NonNull<Memory>,
    /// Number of documents that were asked for.
    documents: usize,
    /// Time from which on the texts may be renewed.
    due: Instant,
    /// Calls so far.
    calls: u64,
}

// SAFETY: the mapping is this value's alone, whichever thread has it.
unsafe impl Send for Witness {}

impl Witness {
    /// A witness for documents that go to these files; `None` is standard error. `None` if it cannot be had.
    pub fn start(places: &[Option<PathBuf>], now: Instant) -> Option<Witness> {
        // In tests ranks are threads.
        stand_in!(|_machine| None);
        let program = own_folder()?.join(PROGRAM);
        access(&program, Access::EXEC_OK).ok()?;
        let (mut witness, file) = Witness::create(places, now)?;
        // What the new process sees is whole.
        witness.memory().version = VERSION;
        let socket = machine::variable(WITNESS).unwrap_or_default();
        let [program, socket] = [program.into_os_string(), socket].map(|text| CString::new(text.into_vec()));
        process::spawn(&program.ok()?, file.as_fd(), &socket.ok()?)?;
        Some(witness)
    }

    fn create(places: &[Option<PathBuf>], now: Instant) -> Option<(Witness, OwnedFd)> {
        let file = memfd_create("polycast-witness", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&file, size_of::<Memory>() as u64).ok()?;
        let (write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping of a new file, as long as it.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), size_of::<Memory>(), write, shared, &file, 0) }.ok()?;
        let documents = places.len().min(DOCUMENTS);
        let mut witness = Witness { memory: NonNull::new(memory.cast())?, documents, due: now, calls: 0 };
        for (document, place) in witness.memory().documents.iter_mut().zip(places) {
            let name = place.as_deref().map_or(Some(PathBuf::new()), whole)?;
            let name = name.as_os_str().as_bytes();
            // The last byte stays 0.
            document.file[..FILE_ROOM - 1].get_mut(..name.len())?.copy_from_slice(name);
        }
        Some((witness, file))
    }

    fn memory(&mut self) -> &mut Memory {
        // SAFETY: it is mapped as long as `self`; numbers and bytes of any value are valid. The witness reads only what
        // this process does not write, but for the atomic numbers.
        unsafe { self.memory.as_mut() }
    }

    /// Number of documents.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// True if the texts are to be renewed after one more call: enough time has gone by, or there are twice as many calls as at some time
    /// before, so that jobs of a few calls are told, too.
    pub fn is_due(&mut self, now: Instant) -> bool {
        self.calls += 1;
        now >= self.due || self.calls.is_power_of_two()
    }

    /// Renews the texts, each with [`END`] in it. A text that is too long does not take the place of the one before.
    pub fn renew(&mut self, texts: &[String], began: Instant, now: impl FnOnce() -> Instant) {
        let documents = self.documents;
        for (document, text) in self.memory().documents[..documents].iter_mut().zip(texts) {
            document.renew(text);
        }
        let now = now();
        self.due = now + PART * (now - began).max(Duration::from_micros(10));
    }
}

impl Drop for Witness {
    /// There is nothing more to report.
    fn drop(&mut self) {
        self.memory().is_told.store(1, Ordering::Release);
        // SAFETY: nobody in this process uses it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), size_of::<Memory>()) };
    }
}

impl Document {
    fn renew(&mut self, text: &str) {
        let Some((first, second)) = text.split_once(END) else { return };
        let next = usize::from(self.standing.load(Ordering::Relaxed) == 1);
        let place = &mut self.texts[next];
        let bytes = first.len() + second.len();
        let Some(room) = place.begin.get_mut(..bytes) else { return };
        room[..first.len()].copy_from_slice(first.as_bytes());
        room[first.len()..].copy_from_slice(second.as_bytes());
        (place.bytes, place.first_half_bytes) = (bytes as u32, first.len() as u32);
        // Pairs with the witness's load: it sees the whole text.
        self.standing.store(next as u32 + 1, Ordering::Release);
    }
}

/// A name for a process in another folder.
fn whole(file: &Path) -> Option<PathBuf> {
    std::path::absolute(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the witness would write to the first document.
    fn standing(witness: &mut Witness) -> Option<String> {
        let document = &witness.memory().documents[0];
        let text = &document.texts[(document.standing.load(Ordering::Acquire) as usize).checked_sub(1)?];
        let (first, second) = text.begin[..text.bytes as usize].split_at(text.first_half_bytes as usize);
        Some(String::from_utf8([first, b"|", second].concat()).unwrap())
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd")]
    fn the_last_whole_text_stands() {
        let now = Instant::now();
        let (mut witness, _file) = Witness::create(&[None, Some("x.json".into())], now).unwrap();
        assert_eq!(standing(&mut witness), None);
        for (text, expected) in [
            ("one @END@ two".to_owned(), "one | two"),
            ("@END@".to_owned(), "|"),
            ("no end".to_owned(), "|"),
            ("three@END@".to_owned(), "three|"),
            ("x".repeat(TEXT_ROOM + 1) + END, "three|"),
        ] {
            witness.renew(&[text.clone(), text], now, || now + Duration::from_millis(1));
            assert_eq!(standing(&mut witness).as_deref(), Some(expected));
        }
        let due = (1..=9).map(|_| witness.is_due(now + Duration::from_millis(300)));
        assert_eq!(due.collect::<Vec<_>>(), [true, true, false, true, false, false, false, true, false]);
        assert!(witness.is_due(now + Duration::from_millis(301)));
        let file = &witness.memory().documents[1].file;
        let name = std::str::from_utf8(file).unwrap().trim_end_matches('\0');
        assert!(name.starts_with('/') && name.ends_with("/x.json"), "{name}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd")]
    fn a_name_that_is_too_long_has_no_witness() {
        let long = PathBuf::from("/".to_owned() + &"x".repeat(FILE_ROOM));
        assert!(Witness::create(&[Some(long)], Instant::now()).is_none());
    }

    #[test]
    fn the_memory_is_that_of_the_header() {
        let header = include_str!("../../../../doors/witness/record.h");
        for line in
            ["RECORD_VERSION = 0x706c7901", "DOCUMENTS = 2", "FILE_ROOM = 4096", "TEXT_ROOM = 512 * 1024"]
        {
            assert!(header.contains(line), "{line}");
        }
        assert_eq!(size_of::<Text>(), 8 + TEXT_ROOM);
        assert_eq!(size_of::<Memory>(), 8 + DOCUMENTS * (FILE_ROOM + 4 + 2 * size_of::<Text>()));
    }
}
