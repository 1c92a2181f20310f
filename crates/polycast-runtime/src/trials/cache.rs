//! The file in which jobs leave each other what their trials found (`POLYCAST_CACHE`, docs/table.md). Rank 0 of a communicator reads
//! and writes it, and tells the others. What goes wrong with it stops nobody: the job finds out by itself.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polycast_core::policy::trials::{CACHE_FILE, Memory};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::{Resource, getrlimit};

use crate::machine::sleep;

/// Most bytes of the file; a longer one is written anew, with the lines that count.
const MAX_BYTES: u64 = 256 << 10;
/// Number of times, and time between them, that a file is asked for while another job is writing
/// it.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The findings in the file of this folder, and the number of its lines that say nothing. Empty if
/// there is no file.
pub fn read(folder: &Path, today: u64) -> (Vec<Memory>, usize) {
    let text = open(&folder.join(CACHE_FILE), OpenOptions::new().read(true)).and_then(|file| text_of(&file));
    text.map_or_else(|_| Default::default(), |text| Memory::read_all(&text, today))
}

/// Adds a line to the file in `folder`.
pub fn add(folder: &Path, memory: &Memory, today: u64) -> io::Result<()> {
    // Beyond it the kernel ends the program.
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < 2 * MAX_BYTES) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(CACHE_FILE);
    let mut file = locked(&path)?;
    if file.metadata()?.len() > MAX_BYTES {
        let text = text_of(&file)?;
        // The newest half: one that is always full would be written anew by every job.
        let memories = Memory::read(&text, today);
        let lines = memories[memories.len() / 2..].iter().map(|memory| memory.line() + "\n");
        let text = lines.collect::<String>() + &memory.line() + "\n";
        return polycast_system::replace(&path, 0o600, text.as_bytes());
    }
    // A job may have ended in the middle of its line.
    file.write_all(format!("\n{}\n", memory.line()).as_bytes())
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A name may lead to a pipe that nobody writes to.
    let file = options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn text_of(file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(2 * MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens and locks the file at `path`, so that nobody else writes it.
fn locked(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = open(path, OpenOptions::new().read(true).append(true).create(true).mode(0o600))?;
        let is_mine = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Another one may have been renamed to it meanwhile.
        if is_mine
            && fs::metadata(path).is_ok_and(|now| now.ino() == file.metadata().map_or(0, |mine| mine.ino()))
        {
            return Ok(file);
        }
        sleep(BETWEEN_TRIES);
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// The library of the MPI below, as this process has mapped it; empty if it is not known.
pub fn mpi_below() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.split_once('/'))
        .map(|(_, path)| format!("/{path}"))
        .find(|path| is_mpi(path))
        .unwrap_or_default()
}

fn is_mpi(path: &str) -> bool {
    let name = PathBuf::from(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    ["libmpi.so", "libmpich.so", "libmpi_abi.so"].iter().any(|begins| name.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a job writes it that found `nanos` for a size.
    fn memory(first_bytes: u64, nanos: u64) -> Memory {
        let line = format!(
            r#"{{"version":1,"mpi":"/libmpi.so","hosts":"n#","build":"9f","ranks":4,"nodes":4,"ranks_per_node":1,"switches":1,
            "collective":"bcast","first_bytes":{first_bytes},"interval":0,"epoch":0,"capabilities":3,
            "ways":[{{"choice":"chain","nanos":{nanos}}},{{"choice":"stock","nanos":1}}],"stays":"stock","again":512,"day":100}}"#
        );
        Memory::read(&line.replace('\n', ""), 100).remove(0)
    }

    #[test]
    fn jobs_that_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    for line in 0..20 {
                        // Another one may hold the file for longer on a busy machine.
                        while add(folder, &memory(1 << ((writer * 20 + line) % 60), 100 * writer + line), 100)
                            .is_err()
                        {}
                    }
                });
            }
        });
        let text = fs::read_to_string(folder.path().join(CACHE_FILE)).unwrap();
        assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 80);
        assert_eq!(read(folder.path(), 100).0.len(), 60);
    }

    #[test]
    fn a_line_that_was_cut_short_costs_nothing_but_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CACHE_FILE);
        fs::write(&path, &memory(8, 1).line()[..40]).unwrap();
        add(folder.path(), &memory(16, 2), 100).unwrap();
        assert_eq!(read(folder.path(), 100), (vec![memory(16, 2)], 1));
    }

    #[test]
    fn a_large_file_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CACHE_FILE);
        let old = memory(8, 1).line() + "\n";
        fs::write(&path, old.repeat(MAX_BYTES as usize / old.len() + 1)).unwrap();
        add(folder.path(), &memory(16, 2), 100).unwrap();
        assert_eq!(read(folder.path(), 100), (vec![memory(8, 1), memory(16, 2)], 0));
        assert!(path.metadata().unwrap().len() < 1000);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("nothing"), 100), (Vec::new(), 0));
        fs::create_dir(folder.path().join(CACHE_FILE)).unwrap();
        assert_eq!(read(folder.path(), 100), (Vec::new(), 0));
        assert!(add(folder.path(), &memory(8, 1), 100).is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(open(&pipe, OpenOptions::new().read(true)).is_err());
    }

    #[test]
    fn the_library_of_an_mpi_has_one_of_its_names() {
        assert!(is_mpi("/usr/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so.40.30.4"));
        assert!(is_mpi("/usr/lib/libmpich.so.12.2.0"));
        assert!(!is_mpi("/usr/lib/libmpi_mpifh.so.40") && !is_mpi("/usr/lib/libpolycast-mpi.so"));
    }
}
