//! One launch of the measuring program: its lines as they come, until it ends or the user has enough.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::processes::Processes;
use crate::line_process::LineProcess;

/// The interval at which a silent job is looked at.
pub const LOOK: Duration = Duration::from_millis(100);

/// The interval at which a job is looked at that is about to leave, which takes milliseconds.
const LEAVE_LOOK: Duration = Duration::from_millis(5);

/// The interval at which a launcher is looked at that cleans up.
const END_LOOK: Duration = Duration::from_millis(20);

/// The time that an mpiexec may take to clean up before it is ended.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// The time that a job may take to end after its last result. MPICH 4.0 over UCX sometimes never
/// leaves MPI_Finalize.
pub const LEAVE: Duration = Duration::from_secs(10);

/// The note on a job that had to be ended; its results count.
pub const HUNG: &str =
    "the job had not ended 10 s after its last result, so it was ended; the results are complete";

/// The meaning of a line to the code that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Results may follow.
    More,
    /// The line was the last result.
    Last,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The job ended by itself, or because the user had enough.
    Exited(ExitStatus),
    /// The job stayed after its last result, and was ended.
    Hung,
}

/// Runs `command` and hands every line of its output to `on_line`. Returns early when `interrupted` is set or
/// `on_line` fails, or when the job stays after its last result; the job is ended then.
pub fn run<E: From<io::Error>>(
    command: Command,
    interrupted: &AtomicBool,
    on_line: impl FnMut(&str) -> Result<Heard, E>,
) -> Result<Ending, E> {
    run_until(LEAVE, command, interrupted, on_line)
}

fn run_until<E: From<io::Error>>(
    leave: Duration,
    mut command: Command,
    interrupted: &AtomicBool,
    mut on_line: impl FnMut(&str) -> Result<Heard, E>,
) -> Result<Ending, E> {
    let (mut job, lines) = LineProcess::start_heard(&mut command, Stdio::null())?;
    let mut last_result: Option<Instant> = None;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => match on_line(&line) {
                Ok(Heard::More) => {}
                Ok(Heard::Last) => last_result = last_result.or_else(|| Some(Instant::now())),
                Err(error) => {
                    end(&mut job)?;
                    return Err(error);
                }
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupted.load(Ordering::Relaxed) {
            end(&mut job)?;
            // What the job had already written counts.
            while let Ok(line) = lines.try_recv() {
                on_line(&line)?;
            }
            break;
        }
        if last_result.is_some_and(|since| since.elapsed() >= leave) {
            break;
        }
    }
    let left = leave.saturating_sub(last_result.map_or(Duration::ZERO, |since| since.elapsed()));
    Ok(leave_or_end(&mut job, left, interrupted)?)
}

/// Waits for a job that has nothing more to say, and ends it if it stays for longer than `leave`.
pub fn leave_or_end(job: &mut LineProcess, leave: Duration, interrupted: &AtomicBool) -> io::Result<Ending> {
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    if let Some(status) = job.wait_until(Instant::now() + leave, LEAVE_LOOK, is_interrupted)? {
        return Ok(Ending::Exited(status));
    }
    let was_interrupted = is_interrupted();
    end(job)?;
    let status = job.child.wait()?;
    Ok(if was_interrupted { Ending::Exited(status) } else { Ending::Hung })
}

/// Asks the launcher to end its ranks; ends whatever it has started on this machine if it does not, or leaves something.
pub fn end(job: &mut LineProcess) -> io::Result<()> {
    let launcher = job.child.id() as i32;
    let mut processes = Processes::default();
    processes.look(launcher);
    let _ = kill_process(Pid::from_child(&job.child), Signal::TERM);
    if job.wait_until(Instant::now() + CLEAN_UP, END_LOOK, || false)?.is_none() {
        processes.look(launcher);
        job.child.kill()?;
    }
    processes.kill();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_process::tests::shell;

    #[test]
    fn lines_come_in_order_and_the_status_at_the_end() {
        let mut lines = Vec::new();
        let status = run::<io::Error>(shell("echo a; echo b; exit 3"), &AtomicBool::new(false), |line| {
            lines.push(line.to_owned());
            Ok(Heard::More)
        });
        assert_eq!(lines, ["a", "b"]);
        assert!(matches!(status.unwrap(), Ending::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn an_interrupt_ends_a_silent_job() {
        let interrupted = AtomicBool::new(false);
        let mut lines = 0;
        let status = run::<io::Error>(shell("echo a; exec sleep 1000"), &interrupted, |_| {
            lines += 1;
            interrupted.store(true, Ordering::Relaxed);
            Ok(Heard::More)
        });
        // Had it been waited for, it had ended well.
        assert!(matches!(status.unwrap(), Ending::Exited(status) if !status.success()));
        assert_eq!(lines, 1);
    }

    fn heard(line: &str) -> io::Result<Heard> {
        Ok(if line == "end" { Heard::Last } else { Heard::More })
    }

    #[test]
    fn a_job_that_stays_after_its_last_result_is_ended() {
        let short = Duration::from_millis(50);
        for stays in ["exec sleep 1000", "exec >/dev/null; exec sleep 1000", "sleep 1000 & wait"] {
            let job = shell(&format!("echo a; echo end; {stays}"));
            let ending = run_until(short, job, &AtomicBool::new(false), heard);
            assert_eq!(ending.unwrap(), Ending::Hung, "{stays}");
        }
    }

    #[test]
    fn a_job_that_leaves_after_its_last_result_is_waited_for() {
        // However long it waits for a processor.
        let long = Duration::from_secs(300);
        let ending = run_until(long, shell("echo end; exit 3"), &AtomicBool::new(false), heard);
        assert!(matches!(ending.unwrap(), Ending::Exited(status) if status.code() == Some(3)));
    }
}
