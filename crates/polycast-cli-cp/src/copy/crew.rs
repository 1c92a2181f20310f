//! The agents of a copy as their coordinator has them: commands go in, events of all come out of one channel.

use std::io::Write;
use std::process::{ChildStdin, Command as Process, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use super::message::{Command, Event};
use crate::helper_process::{HelperProcess, MAX_CHATTER_LINES};

/// The size of the pieces in which the tool is sent. A node that takes a piece is alive.
const PIECE_BYTES: usize = 64 << 10;

/// A piece of news about a node.
#[derive(Debug)]
pub enum News {
    Event(Event),
    /// The node's agent says nothing any more.
    Gone,
    /// The node's agent has ended: its exit code, and its last words.
    Ended(Option<i32>, String),
}

/// An agent, and how to reach it.
pub struct Agent {
    process: HelperProcess,
    /// The agent's standard input, which comes as soon as all of the tool has gone through it.
    stdin_to_come: Option<Receiver<ChildStdin>>,
    /// The number of pieces of the tool that have gone, and of those that [`Agent::took_more`] knew
    /// of.
    gone: Arc<AtomicU64>,
    known: u64,
}

impl Agent {
    /// Starts an agent; what it says goes to `news` with its number. `tool`: what the process
    /// expects first.
    pub fn start(
        node: u32,
        process: Process,
        tool: Option<Arc<Vec<u8>>>,
        news: Sender<(u32, News)>,
    ) -> std::io::Result<Agent> {
        let mut process = HelperProcess::start(process, move |lines| {
            let mut chatter = 0;
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
        })?;
        let gone = Arc::<AtomicU64>::default();
        let stdin_to_come = tool.map(|tool| {
            let (through, to_come) = channel();
            let stdin = process.take_stdin();
            let gone = Arc::clone(&gone);
            thread::spawn(move || {
                let send = |stdin: &mut ChildStdin, piece| {
                    // Only a count.
                    stdin.write_all(piece).map(|()| gone.fetch_add(1, Ordering::Relaxed))
                };
                if let Some(mut stdin) = stdin
                    && tool.chunks(PIECE_BYTES).all(|piece| send(&mut stdin, piece).is_ok())
                {
                    let _ = through.send(stdin);
                }
            });
            to_come
        });
        Ok(Agent { process, stdin_to_come, gone, known: 0 })
    }

    /// Tells the agent something. An agent that is gone says so by itself.
    pub fn tell(&mut self, command: &Command) {
        if let Some(to_come) = self.stdin_to_come.take() {
            // It has spoken, so all of the tool is there.
            self.process.listen_to(to_come.recv().ok());
        }
        self.process.tell(command);
    }

    /// True if more of the tool has gone to the agent since this was last asked.
    pub fn took_more(&mut self) -> bool {
        let gone = self.gone.load(Ordering::Relaxed);
        std::mem::replace(&mut self.known, gone) < gone
    }

    /// Allows the agent to end.
    pub fn dismiss(&mut self) {
        self.stdin_to_come = None;
        self.process.dismiss();
    }

    /// The reason why the agent is gone: its exit code, and its last words.
    pub fn last_words(&mut self) -> (Option<i32>, String) {
        self.dismiss();
        let (status, said) = self.process.last_words();
        let status_text = status.map_or("an unknown status".to_owned(), |status| status.to_string());
        let text = if said.is_empty() { status_text } else { format!("{status_text}: {said}") };
        (status.and_then(|status| status.code()), text)
    }

    /// Waits for its end, by force from then on.
    pub fn end(&mut self, by: Instant) -> Option<ExitStatus> {
        self.dismiss();
        self.process.end(by)
    }
}

impl Drop for Agent {
    /// Else it would be waited for while its standard input is still to come.
    fn drop(&mut self) {
        self.dismiss();
    }
}
