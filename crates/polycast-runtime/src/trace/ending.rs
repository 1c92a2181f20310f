//! Processes that end without MPI_Finalize.

use std::sync::Arc;

use super::Tracer;

/// Watches the process: its file is written when it exits, or gets SIGTERM.
#[cfg(not(test))]
pub fn watch(tracer: Arc<Tracer>) {
    process::watch(tracer);
}

/// Does nothing: in tests ranks are threads.
#[cfg(test)]
pub fn watch(_: Arc<Tracer>) {}

#[cfg(not(test))]
mod process {
    use std::mem::MaybeUninit;
    use std::sync::{Arc, OnceLock};

    use polycast_trace::Ending;

    use super::Tracer;

    static WATCHED: OnceLock<Arc<Tracer>> = OnceLock::new();
    /// Action of SIGTERM before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub fn watch(tracer: Arc<Tracer>) {
        if WATCHED.set(tracer).is_err() {
            return;
        }
        // SAFETY: the function stays, for nobody unloads this library; the actions are valid, and zero is one (the default).
        unsafe {
            libc::atexit(at_exit);
            let mut before = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = at_sigterm as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigemptyset(&mut action.sa_mask);
            if libc::sigaction(libc::SIGTERM, std::ptr::null(), &mut before) == 0
                && BEFORE.set(before).is_ok()
            {
                libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
            }
        }
    }

    extern "C" fn at_exit() {
        if let Some(tracer) = WATCHED.get() {
            tracer.write_at_end(Ending::Exited);
        }
    }

    /// Writes the file at SIGTERM, without memory or a lock. Afterwards SIGTERM does what it did
    /// before.
    extern "C" fn at_sigterm(signal: libc::c_int) {
        if let Some(tracer) = WATCHED.get() {
            let _ = tracer.write(Ending::Terminated);
        }
        if let Some(before) = BEFORE.get() {
            // SAFETY: the action was the signal's; it is delivered again when this returns.
            unsafe {
                libc::sigaction(signal, before, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
    }
}
