//! Choice of a group: from a MADCAP server where one is named, else at random.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polycast_madcap::{Client, ClientError, LeaseRenewer, Scope};
use polycast_net::{Family, Group, Ports, Range};

use crate::machine::random;
use crate::of_process::of_process;
use crate::say::warn_once;

/// Time for which an address is asked for; a longer job renews it.
const LEASE: Duration = Duration::from_secs(24 * 3600);

of_process! {
    /// True if the server did not answer: it is not asked again, for each time may take two
    /// seconds.
    static SERVER_FAILED: AtomicBool = AtomicBool::new(false);
}

/// A group, and the renewer of its address if a server gave it.
pub fn choose_group(
    family: Family,
    range: Range,
    ports: Ports,
    server: Option<&str>,
) -> io::Result<(Group, Option<LeaseRenewer>)> {
    // Drawn before anything uses it: an error must not turn into a number that can be guessed.
    random()?;
    if let Some(server) = server.filter(|_| !SERVER_FAILED.with(|failed| failed.load(Ordering::Relaxed))) {
        match ask(family, ports, server) {
            Ok((group, renewer)) => return Ok((group, Some(renewer))),
            Err(error) => {
                SERVER_FAILED.with(|failed| failed.store(true, Ordering::Relaxed));
                warn_once(&format!("POLYCAST_MADCAP={server}: {error}; a random group is used"));
            }
        }
    }
    Ok((Group::random_of(range, ports, &mut next), None))
}

fn ask(family: Family, ports: Ports, server: &str) -> Result<(Group, LeaseRenewer), ClientError> {
    let client = Client::new(server, Scope::of(family))?;
    let lease = client.acquire(LEASE, &mut next)?;
    let group = lease.group(ports, &mut next);
    Ok((group, LeaseRenewer::new(client, lease, next)))
}

/// A random number from the kernel, whose generator does not fail once it has worked.
fn next() -> u64 {
    random().unwrap_or_default()
}
