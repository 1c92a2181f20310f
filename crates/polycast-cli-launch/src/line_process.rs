//! A child process that speaks lines: what it says, as it comes, in a thread of its own; what it is told
//! on its standard input; and its end.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The process. Whoever has it sees to its end.
#[derive(Debug)]
pub struct LineProcess {
    /// The process itself.
    pub child: Child,
    /// The process's standard input; absent if it has none, once it was closed, and while it is lent.
    pub stdin: Option<ChildStdin>,
}

impl LineProcess {
    /// Starts the process, with a standard input if that is piped. `heed` gets its lines in a thread of
    /// its own, which ends with `heed`: so an interrupt is noticed while nothing comes.
    pub fn start(
        command: &mut Command,
        stdin: Stdio,
        heed: impl FnOnce(Lines) + Send + 'static,
    ) -> io::Result<LineProcess> {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).spawn()?;
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || heed(Lines(BufReader::new(stdout))));
        }
        Ok(LineProcess { stdin: child.stdin.take(), child })
    }

    /// Starts the process, whose whole lines come through a channel.
    pub fn start_heard(command: &mut Command, stdin: Stdio) -> io::Result<(LineProcess, Receiver<String>)> {
        let (sender, lines) = channel();
        let process = LineProcess::start(command, stdin, move |said| {
            let _ = said.whole().try_for_each(|line| sender.send(line));
        })?;
        Ok((process, lines))
    }

    /// Sends the process a line. The end of a process shows in its lines and its status, which say more
    /// than a failure to write: that is ignored.
    pub fn tell(&mut self, line: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(&[line, b"\n"].concat()).and_then(|()| stdin.flush());
        }
    }

    /// Waits for the end of the process, looking every `look`, until `by` or until somebody has had
    /// enough. `None` if it is still there.
    pub fn wait_until(
        &mut self,
        by: Instant,
        look: Duration,
        is_enough: impl Fn() -> bool,
    ) -> io::Result<Option<ExitStatus>> {
        loop {
            let status = self.child.try_wait()?;
            if status.is_some() || is_enough() || Instant::now() >= by {
                return Ok(status);
            }
            thread::sleep(look);
        }
    }
}

/// The lines of a process's standard output, until it ends or its output cannot be read. What login
/// shells and launchers mix in may be in any encoding.
pub struct Lines(BufReader<ChildStdout>);

impl Lines {
    /// The lines that have an end: one without it was cut off by the death of its writer, perhaps inside
    /// of a number.
    pub fn whole(mut self) -> impl Iterator<Item = String> {
        let whole = move || self.read().filter(|line| line.ends_with(b"\n"));
        std::iter::from_fn(whole).map(|line| text(&line).trim_end_matches(['\r', '\n']).to_owned())
    }

    fn read(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        (self.0.read_until(b'\n', &mut line).ok()? > 0).then_some(line)
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.read().map(|line| text(line.strip_suffix(b"\n").unwrap_or(&line)))
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The command that runs a script of the shell.
    pub fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_line_that_was_cut_off_is_none_of_the_whole_ones() {
        let script = r"printf 'a\r\ngr\374\n12'";
        let (mut process, lines) = LineProcess::start_heard(&mut shell(script), Stdio::null()).unwrap();
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["a", "gr\u{fffd}"]);
        process.child.wait().unwrap();
        let (sender, said) = channel();
        let heed = move |mut lines: Lines| lines.try_for_each(|line| sender.send(line)).unwrap();
        let mut process = LineProcess::start(&mut shell(script), Stdio::null(), heed).unwrap();
        assert_eq!(said.iter().collect::<Vec<_>>(), ["a\r", "gr\u{fffd}", "12"]);
        process.child.wait().unwrap();
    }

    #[test]
    fn who_is_told_answers_and_is_waited_for() {
        let script = "read word; echo got $word; read end; exit 3";
        let (mut process, lines) = LineProcess::start_heard(&mut shell(script), Stdio::piped()).unwrap();
        process.tell(b"this");
        assert_eq!(lines.recv().unwrap(), "got this");
        let look = Duration::from_millis(1);
        assert_eq!(process.wait_until(Instant::now(), look, || false).unwrap(), None);
        let far = Instant::now() + Duration::from_secs(300);
        assert_eq!(process.wait_until(far, look, || true).unwrap(), None, "somebody has had enough");
        process.stdin = None;
        process.tell(b"nobody hears it");
        let status = process.wait_until(far, look, || false).unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
    }
}
