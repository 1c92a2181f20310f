//! A thread that looks at the clock while this one waits in a function of the MPI.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::of_process::of_process;

/// The wait for other ranks after which a rank speaks, if there is reason to: as in MPI_Init.
const PATIENCE: Duration = Duration::from_secs(20);

/// See [`PATIENCE`]; POLYCAST_TEST_PATIENCE is a number of seconds, for tests.
pub fn patience() -> Duration {
    of_process! { static FOUND: OnceLock<Duration> = OnceLock::new(); }
    FOUND.with(|found| {
        *found.get_or_init(|| {
            let seconds = std::env::var("POLYCAST_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
            seconds.filter(|seconds| *seconds > 0).map_or(PATIENCE, Duration::from_secs)
        })
    })
}

/// Runs `exchange`; if that takes longer than `patience`, `speak` is called meanwhile, by a thread that is gone when this returns. Where there can be none,
/// nobody speaks.
pub fn watched<R>(patience: Duration, speak: impl FnOnce() + Send, exchange: impl FnOnce() -> R) -> R {
    stand_in!(|_machine| exchange());
    thread::scope(|scope| {
        let (ends, over) = mpsc::channel::<()>();
        let watch = move || {
            if over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                speak();
            }
        };
        // Signals are for the program's own threads; the thread is made with none.
        let before = with_signals(None);
        let _ = thread::Builder::new().spawn_scoped(scope, watch);
        with_signals(before);
        let result = exchange();
        drop(ends);
        result
    })
}

/// Lets this thread take the signals of a set only, or none; returns those that it took.
fn with_signals(blocked: Option<libc::sigset_t>) -> Option<libc::sigset_t> {
    let (mut set, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are filled in before they are read.
    unsafe {
        match blocked {
            Some(blocked) => {
                set.write(blocked);
            }
            None => {
                libc::sigfillset(set.as_mut_ptr());
            }
        }
        let is_set = libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), before.as_mut_ptr()) == 0;
        is_set.then(|| before.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_is_heard_meanwhile() {
        let (says, said) = mpsc::channel();
        let result = watched(
            Duration::from_millis(1),
            move || says.send(1).unwrap(),
            || said.recv_timeout(Duration::from_secs(60)),
        );
        assert_eq!(result, Ok(1));
    }

    #[test]
    fn nobody_speaks_after_the_end() {
        let (says, said) = mpsc::channel();
        assert_eq!(watched(Duration::from_secs(3600), move || says.send(1).unwrap(), || 7), 7);
        assert!(said.recv().is_err());
    }
}
