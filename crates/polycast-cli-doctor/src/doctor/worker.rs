//! The doctor's end of a worker: a process that is asked and answers, and that does not outlive the doctor.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::message::{Answer, Question};
use crate::helper_process::{HelperProcess, MAX_CHATTER_LINES};

/// A worker does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The worker's process could not be started on this machine.
    #[error("{program} cannot be started: {source}")]
    NotStarted {
        /// The program that was to be run.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The worker has ended.
    #[error("the worker ended with {status}{said}")]
    Ended {
        /// The exit status in a shell's words.
        status: String,
        /// The exit code, if it has one.
        code: Option<i32>,
        /// The worker's last words, after a colon.
        said: String,
    },
    /// The worker is silent.
    #[error("no answer within {} s", limit.as_secs())]
    Silent {
        /// The time for which the doctor waited for an answer.
        limit: Duration,
    },
    /// The worker said something other than an answer to its question.
    #[error("expected a worker's answer, found {found:?}")]
    Strange {
        /// The words of the worker.
        found: String,
    },
    /// The worker's polycast is of another version than the doctor's.
    #[error("its polycast is version {theirs}, this is {}", env!("CARGO_PKG_VERSION"))]
    OtherVersion {
        /// The version of the worker's polycast.
        theirs: String,
    },
}

/// A worker.
pub struct Worker {
    process: HelperProcess,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts a worker, which is ready only when it has been greeted.
    pub fn start(command: Command) -> Result<Worker, Trouble> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (sender, lines) = channel();
        let process = HelperProcess::start(command, move |mut said| {
            // A doctor that has gone wants no more lines.
            let _ = said.try_for_each(|line| sender.send(line));
        });
        let process = process.map_err(|source| Trouble::NotStarted { program, source })?;
        Ok(Worker { process, lines })
    }

    /// Waits for the worker until `deadline`, which is `limit` after the start, and skips what others say before it.
    pub fn greet(&mut self, deadline: Instant, limit: Duration) -> Result<(), Trouble> {
        let mut last = String::new();
        for _ in 0..MAX_CHATTER_LINES {
            let line = self.line(deadline, limit)?;
            match serde_json::from_str(&line) {
                Ok(Answer::Hello { version }) if version == env!("CARGO_PKG_VERSION") => return Ok(()),
                Ok(Answer::Hello { version }) => return Err(Trouble::OtherVersion { theirs: version }),
                _ => last = line,
            }
        }
        Err(Trouble::Strange { found: last })
    }

    /// Asks, and does not wait. A worker that is gone says why when its answer is waited for.
    pub fn ask(&mut self, question: &Question) {
        self.process.tell(question);
    }

    /// The answer to the oldest question that has none.
    pub fn answer(&mut self, deadline: Instant, limit: Duration) -> Result<Answer, Trouble> {
        let line = self.line(deadline, limit)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Failed(found)) => Err(Trouble::Strange { found }),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Trouble::Strange { found: line }),
        }
    }

    fn line(&mut self, deadline: Instant, limit: Duration) -> Result<String, Trouble> {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                // Others may be silent, too: it gets no time to end.
                self.process.end(Instant::now());
                Err(Trouble::Silent { limit })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.last_words()),
        }
    }

    fn last_words(&mut self) -> Trouble {
        let (status, said) = self.process.last_words();
        Trouble::Ended {
            code: status.and_then(|status| status.code()),
            status: status.map_or("an unknown status".into(), describe),
            said: if said.is_empty() { said } else { format!(": {said}") },
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long a shell waits for a processor.
    const LIMIT: Duration = Duration::from_secs(300);

    fn shell(script: &str) -> Worker {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Worker::start(command).unwrap()
    }

    fn hello(version: &str) -> String {
        serde_json::to_string(&Answer::Hello { version: version.into() }).unwrap()
    }

    #[test]
    fn chatter_before_the_greeting_is_skipped() {
        let script = format!(
            "echo Welcome; echo '{}'; read line; echo '{{\"findings\":[]}}'",
            hello(env!("CARGO_PKG_VERSION"))
        );
        let mut worker = shell(&script);
        worker.greet(Instant::now() + LIMIT, LIMIT).unwrap();
        worker.ask(&Question::Queries);
        assert!(
            matches!(worker.answer(Instant::now() + LIMIT, LIMIT), Ok(Answer::Findings(findings)) if findings.is_empty())
        );
    }

    #[test]
    fn every_trouble_says_what_happened() {
        let trouble =
            |script: &str, limit| shell(script).greet(Instant::now() + limit, limit).unwrap_err().to_string();
        assert_eq!(
            trouble("echo no route to host >&2; exit 255", LIMIT),
            "the worker ended with status 255: no route to host"
        );
        assert!(trouble(&format!("echo '{}'", hello("0.0.0")), LIMIT).contains("version 0.0.0"));
        assert!(trouble("yes", LIMIT).contains("found \"y\""));
        assert_eq!(trouble("read line", Duration::from_millis(50)), "no answer within 0 s");
        let missing = Worker::start(Command::new("/nowhere/ssh")).err().unwrap().to_string();
        assert!(missing.starts_with("/nowhere/ssh cannot be started"), "{missing}");
    }
}
