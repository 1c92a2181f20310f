//! One launch of the measuring program: its lines as they come, until it ends or the user has enough.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often a job is looked at while it is silent.
pub const LOOK: Duration = Duration::from_millis(100);

/// How long an mpiexec may take to clean up before it is ended.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// Runs `command` and hands every line of its output to `on_line`. Returns early when `interrupted` is set or
/// `on_line` fails; the job is ended then.
pub fn run<E: From<io::Error>>(
    mut command: Command,
    interrupted: &AtomicBool,
    mut on_line: impl FnMut(&str) -> Result<(), E>,
) -> Result<ExitStatus, E> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let lines = lines_of(&mut child);
    loop {
        let outcome = match lines.recv_timeout(LOOK) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => Ok(()),
        };
        if let Err(error) = outcome {
            end(&mut child)?;
            return Err(error);
        }
        if interrupted.load(Ordering::Relaxed) {
            end(&mut child)?;
            // What the job had already written counts.
            while let Ok(line) = lines.try_recv() {
                on_line(&line)?;
            }
            break;
        }
    }
    Ok(child.wait()?)
}

/// A thread reads, so that an interrupt is noticed while nothing comes.
pub fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            // Bytes, not text: what a launcher mixes in need not be UTF-8.
            // A line without its end was cut off by the death of its writer, perhaps inside of a number.
            while reader.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// Asks the launcher to end its ranks; insists if it does not.
pub fn end(child: &mut Child) -> io::Result<()> {
    let began = Instant::now();
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    while child.try_wait()?.is_none() {
        if began.elapsed() > CLEAN_UP {
            child.kill()?;
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_come_in_order_and_the_status_at_the_end() {
        let mut lines = Vec::new();
        let status = run::<io::Error>(shell("echo a; echo b; exit 3"), &AtomicBool::new(false), |line| {
            lines.push(line.to_owned());
            Ok(())
        });
        assert_eq!(lines, ["a", "b"]);
        assert_eq!(status.unwrap().code(), Some(3));
    }

    #[test]
    fn an_interrupt_ends_a_silent_job() {
        let interrupted = AtomicBool::new(false);
        let began = Instant::now();
        let mut lines = 0;
        let status = run::<io::Error>(shell("echo a; exec sleep 60"), &interrupted, |_| {
            lines += 1;
            interrupted.store(true, Ordering::Relaxed);
            Ok(())
        });
        assert!(!status.unwrap().success());
        assert_eq!(lines, 1);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
