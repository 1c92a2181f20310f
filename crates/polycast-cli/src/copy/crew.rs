//! The agents of a copy as their coordinator has them: commands go in, events of all come out of one channel.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::message::{Command, Event};

/// What login shells may print before the agent speaks.
const MAX_CHATTER_LINES: usize = 200;
/// What is kept of an agent's standard error.
const MAX_ERRORS_BYTES: u64 = 4_096;
/// How long an agent may take to end when it is told to.
const END_LIMIT: Duration = Duration::from_secs(2);

/// What came of a node.
#[derive(Debug)]
pub enum News {
    Event(Event),
    /// It says nothing any more.
    Gone,
}

/// An agent, and how to reach it.
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Its standard input as soon as the tool itself has gone through it.
    stdin_to_come: Option<Receiver<ChildStdin>>,
    errors: Option<JoinHandle<String>>,
}

impl Agent {
    /// Starts one; what it says goes to `news` with its number. `tool`: what the process expects first.
    pub fn start(
        node: u32,
        mut process: Process,
        tool: Option<Arc<Vec<u8>>>,
        news: Sender<(u32, News)>,
    ) -> std::io::Result<Agent> {
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process.spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        thread::spawn(move || {
            let mut chatter = 0;
            let lines =
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines().map_while(Result::ok));
            for line in lines {
                match serde_json::from_str(&line) {
                    Ok(event) => {
                        if news.send((node, News::Event(event))).is_err() {
                            return;
                        }
                    }
                    Err(_) if chatter < MAX_CHATTER_LINES => chatter += 1,
                    Err(_) => break,
                }
            }
            let _ = news.send((node, News::Gone));
        });
        let errors = thread::spawn(move || {
            let mut kept = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(MAX_ERRORS_BYTES).read_to_end(&mut kept);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            let said = String::from_utf8_lossy(&kept).into_owned();
            let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            lines[lines.len().saturating_sub(3)..].join("; ")
        });
        let Some(tool) = tool else {
            return Ok(Agent { child, stdin, stdin_to_come: None, errors: Some(errors) });
        };
        let (through, stdin_to_come) = channel();
        thread::spawn(move || {
            if let Some(mut stdin) = stdin
                && stdin.write_all(&tool).is_ok()
            {
                let _ = through.send(stdin);
            }
        });
        Ok(Agent { child, stdin: None, stdin_to_come: Some(stdin_to_come), errors: Some(errors) })
    }

    /// Tells it something. One that is gone says so by itself.
    pub fn tell(&mut self, command: &Command) {
        if let Some(to_come) = self.stdin_to_come.take() {
            // It has spoken, so all of the tool is there.
            self.stdin = to_come.recv().ok();
        }
        if let (Some(stdin), Ok(mut line)) = (&mut self.stdin, serde_json::to_vec(command)) {
            line.push(b'\n');
            let _ = stdin.write_all(&line).and_then(|()| stdin.flush());
        }
    }

    /// It may end.
    pub fn dismiss(&mut self) {
        self.stdin = None;
        self.stdin_to_come = None;
    }

    /// Why it is gone: its exit code, and its last words.
    pub fn last_words(&mut self) -> (Option<i32>, String) {
        let status = self.end(Instant::now() + END_LIMIT);
        let said = self.errors.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let status_text = status.map_or("an unknown status".to_owned(), |status| status.to_string());
        let text = if said.is_empty() { status_text } else { format!("{status_text}: {said}") };
        (status.and_then(|status| status.code()), text)
    }

    /// Waits for its end, by force from then on.
    pub fn end(&mut self, by: Instant) -> Option<std::process::ExitStatus> {
        self.stdin = None;
        self.stdin_to_come = None;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < by => thread::sleep(Duration::from_millis(2)),
                _ => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end(Instant::now() + END_LIMIT);
    }
}
