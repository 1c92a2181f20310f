//! Keeps an address for as long as it is needed: renews the lease in time, gives it back at the end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};

use super::{Client, Lease};

/// The pause after a renewal that failed: the second half of the lease leaves time for some more
/// tries.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Holds a lease until it is dropped, which gives the address back (two seconds at most, if the server is gone).
#[derive(Debug)]
pub struct LeaseRenewer {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LeaseRenewer {
    /// Takes the lease over. `next` yields uniform random words. Without a thread (the system has none to give) the lease
    /// ends by itself.
    pub fn new(client: Client, lease: Lease, next: impl FnMut() -> u64 + Send + 'static) -> LeaseRenewer {
        let (end, ended) = channel();
        // The program's signals are not for this thread, which inherits the mask of the one that starts it.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let thread = std::thread::Builder::new()
            .name("polycast-madcap".to_owned())
            .spawn(move || keep(&client, lease, &ended, next))
            .ok();
        if let Ok(before) = before {
            // It was in force a moment ago, so it can be again.
            let _ = before.thread_set_mask();
        }
        LeaseRenewer { end: Some(end), thread }
    }
}

impl Drop for LeaseRenewer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, the lease would end by itself.
            let _ = thread.join();
        }
    }
}

fn keep(client: &Client, mut lease: Lease, ended: &Receiver<()>, mut next: impl FnMut() -> u64) {
    let mut pause = lease.renew_after();
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
        pause = match client.renew(&lease, &mut next) {
            Ok(renewed) => {
                lease = renewed;
                lease.renew_after()
            }
            Err(_) => RETRY_AFTER,
        };
    }
    // If the server is gone, the lease ends by itself.
    let _ = client.release(lease, &mut next);
}
