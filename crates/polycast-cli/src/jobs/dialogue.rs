//! A job of the measuring program that stays: rank 0 reads what to do from its standard input, line by line.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use super::run::{Ending, HUNG, Heard, LOOK, end, lines_of, see_off};

/// The argument that lets the measuring program take one plan after the other.
pub const PLANS: &str = "plans";

/// Why nothing more is heard of it.
#[derive(Debug, thiserror::Error)]
pub enum DialogueError {
    /// The user has had enough.
    #[error("interrupted")]
    Interrupted,
    /// The job is gone.
    #[error("the measuring job ended early ({0}); what it said stands above")]
    Ended(ExitStatus),
    /// The system refused something.
    #[error("cannot talk to the measuring job: {0}")]
    Io(#[from] io::Error),
}

/// A running job. Dropped, it is ended.
pub struct Dialogue {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    interrupted: Arc<AtomicBool>,
    has_ended: bool,
}

impl Dialogue {
    /// Starts `command`. `interrupted` ends it at any time.
    pub fn start(mut command: Command, interrupted: Arc<AtomicBool>) -> Result<Dialogue, DialogueError> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = lines_of(&mut child);
        let Some(stdin) = child.stdin.take() else {
            return Err(io::Error::other("the job has no standard input").into());
        };
        Ok(Dialogue { child, stdin, lines, interrupted, has_ended: false })
    }

    /// A line for it.
    pub fn say(&mut self, line: &str) {
        // If the job is gone, its status says more than our failure to write.
        let _ = writeln!(self.stdin, "{line}");
    }

    /// The next line of it.
    pub fn line(&mut self) -> Result<String, DialogueError> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DialogueError::Interrupted);
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.has_ended = true;
                    return Err(DialogueError::Ended(self.child.wait()?));
                }
            }
        }
    }

    /// Hands on its lines, up to the last one of an answer.
    pub fn hear<E: From<DialogueError>>(
        &mut self,
        mut on_line: impl FnMut(&str) -> Result<Heard, E>,
    ) -> Result<(), E> {
        while on_line(&self.line()?)? == Heard::More {}
        Ok(())
    }

    /// Ends the job. It has answered everything by now, so it is no error if it ends badly.
    pub fn shutdown(mut self) -> io::Result<()> {
        self.say("end");
        if see_off(&mut self.child, &self.interrupted)? == Ending::Hung {
            eprintln!("polycast: {HUNG}");
        }
        self.has_ended = true;
        Ok(())
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        if !self.has_ended {
            // Nobody is left to be told if this fails.
            let _ = end(&mut self.child);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_ends_the_job() {
        let interrupted = Arc::new(AtomicBool::new(false));
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut job = Dialogue::start(command, Arc::clone(&interrupted)).unwrap();
        interrupted.store(true, Ordering::Relaxed);
        assert!(matches!(job.line(), Err(DialogueError::Interrupted)));
        let pid = nix::unistd::Pid::from_raw(job.child.id() as i32);
        drop(job);
        assert!(nix::sys::signal::kill(pid, None).is_err());
    }
}
