//! A process that serves this one: it is told things on its standard input, and answers in lines. It does not outlive this one.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::line_process::{LineProcess, Lines};

/// The longest time that a helper may take to end after its standard input was closed.
pub const END_LIMIT: Duration = Duration::from_secs(2);

/// The most lines that login shells and ssh may print before the helper speaks.
pub const MAX_CHATTER_LINES: usize = 200;

/// The most bytes that are kept of a helper's standard error.
const MAX_ERRORS_BYTES: u64 = 4_096;

/// The interval at which a helper is looked at that is about to end.
const LOOK: Duration = Duration::from_millis(2);

/// The number of lines of standard error that count as a helper's last words.
const LAST_LINES: usize = 3;

/// The process.
pub struct HelperProcess {
    process: LineProcess,
    /// Pieces of the helper's standard error, as they come.
    errors: Receiver<Vec<u8>>,
}

impl HelperProcess {
    /// Starts the helper. `heed` gets its lines in a thread of its own, which ends with `heed`.
    pub fn start(
        mut command: Command,
        heed: impl FnOnce(Lines) + Send + 'static,
    ) -> std::io::Result<HelperProcess> {
        let mut process = LineProcess::start(command.stderr(Stdio::piped()), Stdio::piped(), heed)?;
        let (sender, errors) = channel();
        let stderr = process.child.stderr.take();
        thread::spawn(move || {
            let Some(mut stderr) = stderr else { return };
            let mut kept = BufReader::new((&mut stderr).take(MAX_ERRORS_BYTES));
            while let Ok(bytes @ [_, ..]) = kept.fill_buf() {
                let (bytes, len) = (bytes.to_vec(), bytes.len());
                kept.consume(len);
                // Who has gone wants no more.
                let _ = sender.send(bytes);
            }
            // The rest is read so that the process does not wait for somebody to read it.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
        Ok(HelperProcess { process, errors })
    }

    /// Hands over the helper's standard input, for data that is no line. The caller gives it back
    /// with [`Self::listen_to`].
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.process.stdin.take()
    }

    /// Gives back the helper's standard input, through which [`Self::tell`] writes from now on.
    pub fn listen_to(&mut self, stdin: Option<ChildStdin>) {
        self.process.stdin = stdin;
    }

    /// Sends the helper a line of JSON; see [`LineProcess::tell`].
    pub fn tell(&mut self, words: &impl Serialize) {
        if let Ok(line) = serde_json::to_vec(words) {
            self.process.tell(&line);
        }
    }

    /// Closes the helper's standard input, so that the helper ends.
    pub fn dismiss(&mut self) {
        self.process.stdin = None;
    }

    /// Ends the helper; returns its exit status and the last lines of its standard error.
    pub fn last_words(&mut self) -> (Option<ExitStatus>, String) {
        let by = Instant::now() + END_LIMIT;
        let status = self.end(by);
        // What it started may hold its standard error open for long, as the connection that ssh shares does.
        let mut said = Vec::new();
        while let Ok(bytes) = self.errors.recv_timeout(by.saturating_duration_since(Instant::now())) {
            said.extend(bytes);
        }
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        (status, lines[lines.len().saturating_sub(LAST_LINES)..].join("; "))
    }

    /// Waits until `by` for the helper's end, then ends it by force.
    pub fn end(&mut self, by: Instant) -> Option<ExitStatus> {
        self.dismiss();
        if let Ok(Some(status)) = self.process.wait_until(by, LOOK, || false) {
            return Some(status);
        }
        let child = &mut self.process.child;
        let _ = child.kill();
        child.wait().ok()
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.end(Instant::now() + END_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It, and what it says.
    fn shell(script: &str) -> (HelperProcess, Receiver<String>) {
        let (sender, said) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let process = HelperProcess::start(command, move |mut lines| {
            let _ = lines.try_for_each(|line| sender.send(line));
        });
        (process.unwrap(), said)
    }

    /// However long that takes here.
    fn has_ended(process: &mut HelperProcess) {
        while process.process.child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn what_is_no_text_is_a_line_like_others() {
        let (mut process, said) = shell(r"printf 'gr\374\337 Gott\n\nhello'; cat");
        process.tell(&7);
        process.dismiss();
        let lines: Vec<String> = said.iter().collect();
        assert_eq!(lines, ["gr\u{fffd}\u{fffd} Gott", "", "hello7"]);
    }

    #[test]
    fn last_words_do_not_wait_for_who_outlives_it() {
        let (mut process, said) =
            shell("sleep 600 >/dev/null & echo $!; echo no route >&2; echo to host >&2; exit 3");
        let sleeper = said.iter().last().unwrap();
        has_ended(&mut process);
        let (status, words) = process.last_words();
        assert_eq!((status.unwrap().code(), words.as_str()), (Some(3), "no route; to host"));
        // It would not be there any more if it had been waited for.
        assert!(Command::new("kill").arg(sleeper).status().unwrap().success());
    }

    #[test]
    fn last_words_are_few() {
        let (mut process, said) = shell("head -c 1000000 /dev/zero >&2; exit 1");
        assert_eq!(said.iter().count(), 0);
        has_ended(&mut process);
        let (status, words) = process.last_words();
        assert_eq!((status.unwrap().code(), words.len() as u64), (Some(1), MAX_ERRORS_BYTES));
    }

    #[test]
    fn one_that_does_not_go_is_ended() {
        let (process, said) = shell("trap '' TERM; exec 0</dev/zero; echo $$; exec sleep 60");
        let number = said.recv().unwrap();
        drop(process);
        assert!(!Command::new("kill").args(["-0", &number]).output().unwrap().status.success());
    }
}
