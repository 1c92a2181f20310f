//! Files that others wait for.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::libc;

/// A file that nobody else opens for reading while this lives: a lease, which the kernel breaks after 45 s.
pub fn hold(file: &Path) -> File {
    /// fcntl.h; the crate does not have it.
    const F_SETSIG: libc::c_int = 10;
    let held = File::options().read(true).write(true).open(file).unwrap();
    // Other tests' processes have whatever is open here until they have begun.
    for _ in 0..10_000 {
        // SAFETY: plain numbers. The kernel says by this signal that somebody waits, and nobody minds it.
        let is_held = unsafe {
            libc::fcntl(held.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(held.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
        };
        if is_held {
            return held;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{}: {}", file.display(), io::Error::last_os_error());
}
