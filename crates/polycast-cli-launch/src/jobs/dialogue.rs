//! A job of the measuring program that stays: rank 0 reads what to do from its standard input, line by line.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::run::{Ending, HUNG, Heard, LEAVE, LOOK, end, leave_or_end, lines_of};

/// The argument that lets the measuring program take one plan after the other.
pub const PLANS: &str = "plans";

/// The reason why a job says nothing more.
#[derive(Debug, thiserror::Error)]
pub enum DialogueError {
    /// The user has had enough.
    #[error("interrupted")]
    Interrupted,
    /// The job is gone.
    #[error("the measuring job ended early ({0}); what it said stands above")]
    Ended(ExitStatus),
    /// The job was ended.
    #[error("the measuring job closed its output and stayed, so it was ended; what it said stands above")]
    Stayed,
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

    /// Sends the job a line.
    pub fn say(&mut self, line: &str) {
        // If the job is gone, its status says more than our failure to write.
        let _ = writeln!(self.stdin, "{line}");
    }

    /// Waits for the job's next line.
    pub fn line(&mut self) -> Result<String, DialogueError> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(DialogueError::Interrupted);
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone(LEAVE)?),
            }
        }
    }

    /// Ends the dialogue with a job that says nothing more: waits up to `leave` for the job to end,
    /// ends it otherwise, and returns the reason as an error. A launcher may close its output and
    /// stay.
    fn gone(&mut self, leave: Duration) -> io::Result<DialogueError> {
        let ending = leave_or_end(&mut self.child, leave, &self.interrupted)?;
        self.has_ended = true;
        Ok(match ending {
            _ if self.interrupted.load(Ordering::Relaxed) => DialogueError::Interrupted,
            Ending::Exited(status) => DialogueError::Ended(status),
            Ending::Hung => DialogueError::Stayed,
        })
    }

    /// Hands the job's lines to `on_line`, up to the last line of an answer.
    pub fn hear<E: From<DialogueError>>(
        &mut self,
        mut on_line: impl FnMut(&str) -> Result<Heard, E>,
    ) -> Result<(), E> {
        while on_line(&self.line()?)? == Heard::More {}
        Ok(())
    }

    /// Ends the job. The job has answered everything by now, so a bad end is no error.
    pub fn shutdown(mut self) -> io::Result<()> {
        self.say("end");
        if leave_or_end(&mut self.child, LEAVE, &self.interrupted)? == Ending::Hung {
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

    #[test]
    fn a_launcher_that_closes_its_output_and_stays_is_ended() {
        for (is_interrupted, leave) in [(false, Duration::from_millis(50)), (true, LEAVE)] {
            let interrupted = Arc::new(AtomicBool::new(false));
            let mut command = Command::new("sh");
            command.args(["-c", "exec >&-; exec sleep 60"]);
            let mut job = Dialogue::start(command, Arc::clone(&interrupted)).unwrap();
            assert!(job.lines.recv().is_err());
            interrupted.store(is_interrupted, Ordering::Relaxed);
            match job.gone(leave).unwrap() {
                DialogueError::Interrupted => assert!(is_interrupted),
                DialogueError::Stayed => assert!(!is_interrupted),
                other => panic!("{other}"),
            }
        }
    }
}
