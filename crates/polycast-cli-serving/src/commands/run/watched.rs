//! `polycast run --report`: what the launcher says on its standard error is looked at on its way, so that somebody says so where no rank has
//! reported: a program that is no MPI program, for example.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// The words by which ranks answer the question for a report.
const ANSWERS: [&[u8]; 2] = [b"polycast: report: ", b"; the stock MPI serves every call"];

/// The time between two looks at the launcher where no pidfd is to be had.
const LOOK_MS: i64 = 50;

/// Runs a launcher to its end, which signals reach as if it had taken this process over: how it ended, and whether ranks have reported.
pub fn run(mut command: Command) -> io::Result<(ExitStatus, bool)> {
    // Before there is somebody to hand them to: none is lost.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let launcher = Pid::from_raw(child.id() as i32);
    let handle = signals.handle();
    let forwarder = thread::spawn(move || signals.forever().for_each(|signal| hand_on(launcher, signal)));
    let stderr = child.stderr.take().expect("it is piped");
    let answered = look(&mut child, stderr);
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    Ok((status?, answered?))
}

/// A terminal sends its signals to all processes in its foreground, and Open MPI's mpiexec leaves at once where ^C comes twice.
fn hand_on(launcher: Pid, signal: i32) {
    let is_of_terminal = matches!(signal, SIGINT | SIGQUIT)
        && tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp());
    if let (false, Ok(signal)) = (is_of_terminal, Signal::try_from(signal)) {
        let _ = kill(launcher, signal);
    }
}

/// Hands on what comes until the launcher has ended: a daemon that it leaves behind may hold the pipe for longer.
fn look(child: &mut Child, mut stderr: ChildStderr) -> io::Result<bool> {
    rustix::io::ioctl_fionbio(&stderr, true)?;
    let ending = rustix::process::Pid::from_raw(child.id() as i32)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut answer = AnswerSearch::default();
    loop {
        let has_ended = child.try_wait()?.is_some();
        if pass_on(&mut stderr, &mut answer)? || has_ended {
            return Ok(answer.came);
        }
        let mut sources = vec![PollFd::new(&stderr, PollFlags::IN)];
        sources.extend(ending.iter().map(|ending| PollFd::from_borrowed_fd(ending.as_fd(), PollFlags::IN)));
        let wait = rustix::time::Timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
        match poll(&mut sources, ending.is_none().then_some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Hands on all that is there; returns whether it was the last. What nobody reads here is still
/// looked at.
fn pass_on(stderr: &mut ChildStderr, answer: &mut AnswerSearch) -> io::Result<bool> {
    let mut bytes = [0; 64 * 1024];
    loop {
        match stderr.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                answer.look(&bytes[..count]);
                let _ = io::stderr().write_all(&bytes[..count]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The search for answers in bytes that come in pieces.
#[derive(Default)]
struct AnswerSearch {
    came: bool,
    /// The end of what has come, shorter than an answer.
    tail: Vec<u8>,
}

impl AnswerSearch {
    fn look(&mut self, bytes: &[u8]) {
        if self.came {
            return;
        }
        self.tail.extend_from_slice(bytes);
        let stands = |answer: &&[u8]| self.tail.windows(answer.len()).any(|window| window == *answer);
        self.came = ANSWERS.iter().any(stands);
        let longest = ANSWERS.iter().map(|answer| answer.len()).max().unwrap_or(0);
        self.tail.drain(..self.tail.len().saturating_sub(longest - 1));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn an_answer_is_found_wherever_pieces_of_it_end() {
        let text = b"[1,0]<stderr>:polycast: report: served 20 of 20 broadcasts";
        for at in 0..text.len() {
            let mut answer = AnswerSearch::default();
            answer.look(&text[..at]);
            answer.look(&text[at..]);
            assert!(answer.came, "{at}");
        }
        let mut answer = AnswerSearch::default();
        [&b"polycast: warning: "[..], b"report: ", b"x"].into_iter().for_each(|bytes| answer.look(bytes));
        assert!(!answer.came);
    }

    #[test]
    fn the_end_of_the_launcher_is_the_end() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let (status, answered) = run(command).unwrap();
            (status.code(), status.signal(), answered)
        };
        assert_eq!(run("echo polycast: report: x >&2; exit 3"), (Some(3), None, true));
        assert_eq!(run("sleep 600 >/dev/null & exit 0"), (Some(0), None, false), "somebody holds the pipe");
        assert_eq!(run("exec 2>&-; kill -KILL $$"), (None, Some(9), false), "the pipe ends before");
    }
}
