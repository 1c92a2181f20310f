//! The reports of jobs that end early. A witness on this host brings them past the launcher, which may be gone before its ranks
//! (docs/decisions/0075).

use std::io::{ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// The longest time that ranks may take to end after their launcher.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of reports: more is nobody's report.
const MOST_BYTES: u64 = 16 << 20;

/// A place for reports, which nobody finds who is not told its name.
pub struct Listener {
    listener: UnixListener,
    name: String,
}

impl Listener {
    /// A new place; `None` if the system has none.
    pub fn new() -> Option<Listener> {
        let mut number = [0; 16];
        let count = getrandom(&mut number, GetRandomFlags::empty()).ok()?;
        // So few bytes come whole.
        let number = u128::from_le_bytes((count == number.len()).then_some(number)?);
        let name = format!("polycast-report-{number:032x}");
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).ok()?).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Listener { listener, name })
    }

    /// The name of the place, for ranks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What witnesses bring, after the launcher has ended. Each that is there has come while its rank was alive, and goes with it.
    pub fn take(self) -> Vec<u8> {
        let deadline = Instant::now() + LIMIT;
        let mut brought = Vec::new();
        while let Ok((witness, _)) = self.listener.accept() {
            if getsockopt(&witness, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw()) {
                read(witness, &mut brought, deadline);
            }
        }
        brought
    }
}

/// Reads to the end, or to the deadline.
fn read(witness: UnixStream, into: &mut Vec<u8>, deadline: Instant) {
    let mut witness = witness.take(MOST_BYTES);
    let mut bytes = [0; 64 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let _ = witness.get_ref().set_nonblocking(false);
        let _ = witness.get_ref().set_read_timeout(Some(left));
        match witness.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => into.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;

    #[test]
    fn what_came_is_taken_and_who_is_there_is_waited_for() {
        let listener = Listener::new().unwrap();
        let come =
            || UnixStream::connect_addr(&SocketAddr::from_abstract_name(listener.name()).unwrap()).unwrap();
        let (mut one, silent, mut late) = (come(), come(), come());
        one.write_all(b"one\n").unwrap();
        drop((one, silent));
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            late.write_all(b"late\n").unwrap();
        });
        assert_eq!(listener.take(), b"one\nlate\n");
        writer.join().unwrap();
    }

    #[test]
    fn nobody_is_not_waited_for() {
        assert_eq!(Listener::new().unwrap().take(), b"");
    }
}
