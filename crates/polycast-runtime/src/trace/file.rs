use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::Ordering;

use polycast_trace::Ending;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::Tracer;
use crate::{machine, say, settings};

/// Name of a rank's file, and the process that writes it: what the process forks does not.
pub struct TraceName {
    name: CString,
    process: u32,
}

impl TraceName {
    /// The place of a rank's file. Rank 0 warns at once if nothing can be written; other ranks warn
    /// in the end.
    pub fn new(folder: &str, rank: u32) -> TraceName {
        let folder = settings::expand(folder);
        let made =
            std::fs::create_dir_all(&folder).and_then(|()| settings::can_be_written_in(folder.as_ref()));
        if let (Err(error), 0) = (made, rank) {
            say::text(&format!("polycast: warning: trace {folder}: {error}; no trace will be kept there\n"));
        }
        let name = Path::new(&folder).join(format!("rank-{rank:06}.trace"));
        let name = CString::new(name.into_os_string().into_encoded_bytes()).unwrap_or_default();
        TraceName { name, process: std::process::id() }
    }
}

impl Tracer {
    /// Writes the file as it is now. Takes neither memory nor a lock, so that a signal handler may
    /// call it.
    pub fn write(&self, ending: Ending) -> Result<(), Errno> {
        if self.is_written.load(Ordering::Acquire) || std::process::id() != self.place.process {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, &self.place.name, flags, Mode::from_raw_mode(0o644))?;
        let mut outcome = Ok(());
        self.recorder.write(ending, machine::monotonic_nanos(), |mut part| {
            while !part.is_empty() {
                match rustix::io::write(&file, part) {
                    Ok(count) => part = &part[count..],
                    Err(Errno::INTR) => {}
                    Err(error) => {
                        outcome = Err(error);
                        return false;
                    }
                }
            }
            true
        });
        outcome
    }

    /// Writes the file once and for all. Warns if that fails.
    pub fn write_at_end(&self, ending: Ending) {
        if !self.is_written.load(Ordering::Acquire) && self.is_of_another_job() {
            let name = self.place.name.to_string_lossy();
            say::text(&format!(
                "polycast: warning: trace {name}: another job has written it since this one began, and it is \
                 replaced; %p or %j in the name of the folder keeps jobs apart\n"
            ));
        }
        if let Err(error) = self.write(ending) {
            let name = self.place.name.to_string_lossy();
            say::text(&format!("polycast: warning: trace {name}: {error}; nothing of this rank is kept\n"));
        }
        self.is_written.store(true, Ordering::Release);
    }

    /// True if another job has written the file since MPI began here: with the same settings,
    /// beside this job.
    fn is_of_another_job(&self) -> bool {
        let is_own_process = std::process::id() == self.place.process;
        let Ok(file) = rustix::fs::stat(&self.place.name) else { return false };
        let changed_ns = i128::from(file.st_mtime) * 1_000_000_000 + i128::from(file.st_mtime_nsec);
        is_own_process && changed_ns > i128::from(self.began_1970_ns)
    }
}
