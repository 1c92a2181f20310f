//! A process that serves this one: it is told things on its standard input, and answers in lines. It does not outlive this one.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The longest time that a helper may take to end after its standard input was closed.
pub const END_LIMIT: Duration = Duration::from_secs(2);

/// The most lines that login shells and ssh may print before the helper speaks.
pub const MAX_CHATTER_LINES: usize = 200;

/// The most bytes that are kept of a helper's standard error.
const MAX_ERRORS_BYTES: u64 = 4_096;

/// The number of lines of standard error that count as a helper's last words.
const LAST_LINES: usize = 3;

/// The process.
pub struct HelperProcess {
    child: Child,
    /// The helper's standard input; absent once it was dismissed, and while [`Self::take_stdin`]
    /// has lent it.
    stdin: Option<ChildStdin>,
    /// Pieces of the helper's standard error, as they come.
    errors: Receiver<Vec<u8>>,
}

impl HelperProcess {
    /// Starts the helper. `heed` gets its lines in a thread of its own, which ends with `heed`.
    pub fn start(
        mut command: Command,
        heed: impl FnOnce(Lines) + Send + 'static,
    ) -> std::io::Result<HelperProcess> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || heed(Lines(BufReader::new(stdout))));
        }
        let (sender, errors) = channel();
        let stderr = child.stderr.take();
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
        Ok(HelperProcess { stdin: child.stdin.take(), child, errors })
    }

    /// Hands over the helper's standard input, for data that is no line. The caller gives it back
    /// with [`Self::listen_to`].
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Gives back the helper's standard input, through which [`Self::tell`] writes from now on.
    pub fn listen_to(&mut self, stdin: Option<ChildStdin>) {
        self.stdin = stdin;
    }

    /// Sends the helper a line of JSON. The end of a helper shows in its lines, so a failure to
    /// write is ignored.
    pub fn tell(&mut self, words: &impl Serialize) {
        if let (Some(stdin), Ok(mut line)) = (&mut self.stdin, serde_json::to_vec(words)) {
            line.push(b'\n');
            let _ = stdin.write_all(&line).and_then(|()| stdin.flush());
        }
    }

    /// Closes the helper's standard input, so that the helper ends.
    pub fn dismiss(&mut self) {
        self.stdin = None;
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

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.end(Instant::now() + END_LIMIT);
    }
}

/// The lines of a helper's standard output, until the helper ends or its output cannot be read.
/// Login shells may write in any encoding.
pub struct Lines(BufReader<ChildStdout>);

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        if self.0.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        Some(String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned())
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
        while process.child.try_wait().unwrap().is_none() {
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
