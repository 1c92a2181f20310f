//! Jobs that have said all they have to say and do not end.
//!
//! MPICH over UCX at times hangs in `MPI_Finalize`, with and without polycast (docs/decisions/0010-goodbye.md). Such a job is
//! ended, and counts, but only if the stacks of its ranks show that polycast has left them to MPICH's own function.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::checkout;

/// How long a job may take to end before its ranks are looked at, and looked at again.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the output of a job that has ended is read: a daemon of Open MPI 4.1.4 may hold it for ever, which after a rank's death hangs in
/// `PMIx_server_finalize`, on a host where polycast is in no process any more (3 of 141 such jobs on a busy machine).
const HELD: Duration = Duration::from_secs(30);

/// Everything that a job wrote, and how it ended.
pub struct Finished {
    /// `None` if it had said all, hung in MPICH, and was ended.
    pub status: Option<std::process::ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end, or until it has said all it has to say and hangs in MPICH.
pub fn finish(command: &mut Command, has_said_all: impl Fn(&str, &str) -> bool) -> std::io::Result<Finished> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = Stream::of(child.stdout.take().expect("it is piped"));
    let stderr = Stream::of(child.stderr.take().expect("it is piped"));
    let mut looked = Instant::now();
    let mut said_all = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if !said_all {
            looked = Instant::now();
            said_all = has_said_all(&stdout.so_far(), &stderr.so_far());
        } else if looked.elapsed() > PATIENCE {
            if hangs_in_mpich() {
                end(&mut child)?;
                break None;
            }
            looked = Instant::now();
        }
        thread::sleep(Duration::from_millis(10));
    };
    Ok(Finished { status, stdout: stdout.all(HELD), stderr: stderr.all(HELD) })
}

/// What a thread reads from a pipe.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn of(mut pipe: impl Read + Send + 'static) -> Stream {
        let bytes = Arc::new(Mutex::new(vec![]));
        let shared = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                shared.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Stream { bytes, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// All that is said until nobody holds the pipe any more, or for so long.
    fn all(self, held: Duration) -> String {
        let until = Instant::now() + held;
        while !self.reader.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        self.so_far()
    }
}

/// Asks the command, a `timeout`, to end its job.
fn end(child: &mut Child) -> std::io::Result<()> {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM)?;
    child.wait().map(|_| ())
}

/// Whether there are ranks, and each is in the library's own `PMPI_Finalize`.
fn hangs_in_mpich() -> bool {
    let ranks = ranks();
    !ranks.is_empty() && ranks.iter().all(|pid| stack(*pid).lines().any(is_finalize_of_mpich))
}

fn is_finalize_of_mpich(frame: &str) -> bool {
    frame.contains(" PMPI_Finalize - ") && frame.contains("/libmpich.so")
}

/// The processes of the test programs of this checkout; jobs run one at a time.
fn ranks() -> Vec<i32> {
    let programs = checkout().canonicalize().expect("the checkout exists").join("build/tests/mpich");
    let python = checkout().join("build/venv-mpi4py");
    let of_a_job = |pid: &i32| {
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = PathBuf::from(
            String::from_utf8_lossy(words.split(|byte| *byte == 0).next().unwrap_or_default()).as_ref(),
        );
        executable.starts_with(&programs) || name.starts_with(&python)
    };
    let entries = fs::read_dir("/proc").expect("Linux has it").filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(of_a_job).collect()
}

/// The functions that a process is in, with their libraries.
fn stack(pid: i32) -> String {
    let said = Command::new("eu-stack").args(["--module", "-p", &pid.to_string()]).output();
    let said = said.expect("eu-stack of elfutils must be installed: scripts/setup.sh test");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

#[test]
fn only_the_librarys_own_function_counts() {
    let ended = "#7  0x00007f848af386e3 PMPI_Finalize - /usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2";
    let ours = "#7  0x00007f848af386e3 MPI_Finalize - /opt/lib/polycast/libpolycast-mpi.so";
    assert!(is_finalize_of_mpich(ended) && !is_finalize_of_mpich(ours));
}

#[test]
fn who_holds_the_output_of_a_job_that_has_ended_does_not_hold_up_its_reader() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = Stream::of(child.stdout.take().unwrap());
    child.wait().unwrap();
    // Its reader may still have to get a processor.
    while !stdout.so_far().ends_with('\n') {
        thread::sleep(Duration::from_millis(10));
    }
    let holder = stdout.all(Duration::from_millis(100)).trim().parse().unwrap();
    // It would not be there any more if it had been waited for.
    kill(Pid::from_raw(holder), Signal::SIGKILL).unwrap();
}
