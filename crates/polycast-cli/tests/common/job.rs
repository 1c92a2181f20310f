//! One run of a program under mpiexec, with a time limit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::mpi::Mpi;
use super::report::Report;

/// Jobs of this process that run at a time. Mostly they wait: for their launcher, for late ranks, for MPI to come to its end. Their ranks
/// give their processor away while they do. More of them take longer than one after the other, and much memory.
const AT_A_TIME: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ONE_LESS: Condvar = Condvar::new();

/// Held by the one that waits next: who needs all places gets them though others go on asking for one.
static NEXT: Mutex<()> = Mutex::new(());

/// Places of running jobs, free again when it goes.
pub struct Places(usize);

impl Places {
    fn take(count: usize) -> Places {
        let _next = lock(&NEXT);
        let is_full = |running: &mut usize| *running + count > AT_A_TIME;
        let running = ONE_LESS.wait_while(lock(&RUNNING), is_full);
        *running.unwrap_or_else(PoisonError::into_inner) += count;
        Places(count)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        *lock(&RUNNING) -= self.0;
        ONE_LESS.notify_all();
    }
}

/// Of a test that failed, too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a job may run, beside another one, and keeps the place for as long as the guard lives.
pub fn place() -> Places {
    Places::take(1)
}

/// Keeps other jobs of this process waiting for as long as the guard lives.
pub fn alone() -> Places {
    Places::take(AT_A_TIME)
}

/// Ends what hangs, on a machine that does other things, too.
pub const LIMIT: Duration = Duration::from_secs(300);

/// The status of `timeout` when it had to end the job.
pub const OUT_OF_TIME: i32 = 124;

/// A job to be run.
pub struct Job {
    mpi: Mpi,
    ranks: usize,
    program: Vec<OsString>,
    preload: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    limit: Duration,
}

/// What a successful job said.
pub struct Output {
    /// The launcher's command line, for messages.
    pub command: String,
    pub stdout: String,
    pub stderr: String,
}

impl Job {
    /// A program of `tests/mpi` on the bare MPI library.
    pub fn stock(mpi: Mpi, ranks: usize, program: &str) -> Job {
        Job::of(mpi, ranks, vec![mpi.built(program).into()])
    }

    /// Any command on the bare MPI library.
    pub fn of(mpi: Mpi, ranks: usize, program: Vec<OsString>) -> Job {
        Job { mpi, ranks, program, preload: vec![], variables: vec![], limit: LIMIT }
    }

    pub fn arguments(mut self, arguments: &[&str]) -> Job {
        self.program.extend(arguments.iter().map(OsString::from));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Job {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Adds a shared object behind those that are preloaded already.
    pub fn preload(mut self, object: PathBuf) -> Job {
        self.preload.push(object);
        self
    }

    /// Behind polycast, which reports: it looks at each call.
    pub fn polycast(self) -> Job {
        self.unwatched().variable("POLYCAST_REPORT", "1")
    }

    /// Behind polycast as users have it, which leaves the calls of the MPI without a look at them.
    pub fn unwatched(self) -> Job {
        let job = match self.mpi.component() {
            Some((name, value)) => self.variable(name, &value),
            None => {
                let object = self.mpi.preload();
                self.preload(object)
            }
        };
        job.variable("POLYCAST_CACHE", "off")
    }

    /// Behind polycast, every broadcast by the same algorithm.
    pub fn forced(self, algorithm: &str) -> Job {
        self.polycast().variable("POLYCAST_BCAST", algorithm)
    }

    pub fn limit(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    fn command(&self) -> Command {
        let mut command = timeout(self.limit);
        self.mpi.mpiexec(&mut command, self.ranks);
        for (name, value) in &self.variables {
            command.args(self.mpi.set_variable(name, value));
        }
        if let Some(objects) = self.mpi.preloaded(&self.preload) {
            command.args(self.mpi.set_variable("LD_PRELOAD", &objects));
        }
        command.args(&self.program);
        command
    }

    /// Runs it. Fails, with everything it said, when it does not end well or not in time.
    pub fn run(self) -> Output {
        let _place = place();
        run(self.command(), self.limit)
    }

    /// Starts it, and looks at nothing that it says. Who has seen enough ends it with [`end`].
    pub fn start(&self) -> Child {
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("timeout is there")
    }

    /// Runs it to whatever end.
    pub fn finish(self) -> (ExitStatus, Output) {
        let _place = place();
        finish(&mut self.command())
    }
}

/// Runs a command that [`timeout`] began. Fails, with everything it said, when it does not end well or not in time.
pub fn run(mut command: Command, limit: Duration) -> Output {
    let (mut status, mut output) = finish(&mut command);
    let is_of_the_mpi = match status.code() {
        Some(0) => false,
        Some(OUT_OF_TIME) => output.is_of_mpichs_farewell(),
        _ => output.is_of_a_lost_exit(),
    };
    if is_of_the_mpi {
        (status, output) = finish(&mut command);
    }
    match status.code() {
        Some(0) => output,
        Some(OUT_OF_TIME) => output.fail(&format!("not finished after {limit:?}, ended by the test")),
        _ => output.fail(&format!("{status}")),
    }
}

/// Runs a command to whatever end.
pub fn finish(command: &mut Command) -> (ExitStatus, Output) {
    let described = format!("{command:?}");
    let done = command.output().unwrap_or_else(|error| panic!("cannot start {described}: {error}"));
    let output = Output {
        command: described,
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    };
    (done.status, output)
}

/// The beginning of a command that ends in time. `timeout` outlives a test that is interrupted, so that no job stays
/// behind. It asks the launcher to end its ranks, which live in process groups of their own, before it kills the
/// launcher. A variable in the caller's shell must not change what a test proves.
pub fn timeout(limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", &limit.as_secs().to_string()]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("POLYCAST") {
            command.env_remove(name);
        }
    }
    // Nor a file of the caller's.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Waits until something has come about.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "waited {LIMIT:?} in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a process has brought something about; false if it has ended before. After minutes it is killed, so that what it has said
/// is seen.
pub fn wait_for(process: &mut Child, is_there: impl Fn() -> bool) -> bool {
    let until = Instant::now() + LIMIT;
    while !is_there() {
        if process.try_wait().unwrap().is_some() {
            return is_there();
        }
        if Instant::now() > until {
            process.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Asks what [`timeout`] began to end, with the ranks.
pub fn end(process: &mut Child) {
    kill(Pid::from_raw(process.id() as i32), Signal::SIGTERM).unwrap();
    process.wait().unwrap();
}

impl Output {
    /// Fails with everything that is known about the run.
    pub fn fail(&self, problem: &str) -> ! {
        panic!("{problem}\n$ {}\n--- stdout\n{}--- stderr\n{}", self.command, self.stdout, self.stderr)
    }

    /// Open MPI's launcher may notice that a process has ended before it takes note that it has left MPI (open-mpi/ompi#7833), with or
    /// without us. Who never leaves MPI meets it each time.
    fn is_of_a_lost_exit(&self) -> bool {
        self.stderr.contains("exiting improperly") && self.stderr.contains("with PID 0 on")
    }

    /// MPICH over UCX may stand in its own MPI_Finalize, with or without us (decision 10), above all on a busy machine. The
    /// last line of polycast's report comes behind all that polycast does.
    fn is_of_mpichs_farewell(&self) -> bool {
        self.command.contains("mpich") && self.stderr.contains("polycast: report: attached")
    }

    /// Fails unless rank 0 said that every rank has the right bytes.
    pub fn expect_ok(self, program: &str) -> Output {
        let line = format!("OK {program}");
        if !self.stdout.lines().any(|found| found == line) {
            self.fail(&format!("expected the line `{line}`"));
        }
        self
    }

    /// The lines with this first word, in order.
    pub fn lines_of(&self, word: &str) -> Vec<&str> {
        self.stdout.lines().filter(|line| line.split_whitespace().next() == Some(word)).collect()
    }

    /// The number behind `name=` in the line with this first word.
    pub fn number(&self, word: &str, name: &str) -> f64 {
        let key = format!("{name}=");
        self.lines_of(word)
            .iter()
            .flat_map(|line| line.split_whitespace())
            .find_map(|field| field.strip_prefix(&key)?.parse().ok())
            .unwrap_or_else(|| self.fail(&format!("expected a line `{word} … {name}=NUMBER`")))
    }

    /// What polycast counted.
    pub fn report(&self) -> Report {
        Report::parse(&self.stderr).unwrap_or_else(|problem| self.fail(&problem))
    }
}
