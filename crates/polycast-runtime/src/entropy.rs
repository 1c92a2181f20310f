//! Random numbers from the system.

use std::io;
use std::sync::OnceLock;

use rustix::rand::{GetRandomFlags, getrandom};

/// As many random bytes as `N`.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
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

/// A random number.
pub fn random() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// Tells this process apart from all others on its host, also from those in other containers; 0 if there is no entropy.
pub fn process_identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| random().unwrap_or(0))
}
