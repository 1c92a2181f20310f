//! A round: a job, what goes wrong around it, and what must hold.

use std::fmt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use polycast_core::algorithm::Registry;
use polycast_core::collective::Collective;
use polycast_core::variables::FORCED as FORCED_BY;

use crate::cluster::Labs;
use crate::common::job::OUT_OF_TIME;
use crate::common::mpi::Mpi;
use crate::common::report::Report;
use crate::fault::{Fault, Happened, PROGRAM, ranks};
use crate::job::{LAB, LabJob};
use crate::totals::Totals;

/// A rank on each, two in some rounds.
pub const HOSTS: usize = 4;

/// How much longer than without polycast a job may take to end by a rank's death, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(60);

/// How often it is looked whether ranks are gone.
const LOOK: Duration = Duration::from_millis(20);

/// What is there for longer after a job has been left behind: the kernel takes milliseconds, where it gets a processor. What other jobs of the
/// machine have goes with them.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// What is forced, multicast first; `None` is the table's choice.
const FORCED: [Option<&str>; 8] = [
    Some("multicast-pull"),
    Some("multicast-push"),
    Some("multicast-pull:parity"),
    Some("multicast-push:parity"),
    Some("chain:segment=4KiB"),
    Some("binomial"),
    Some("scatter-ring"),
    None,
];

/// So many of them are forms of multicast.
const FORMS: usize = 4;

/// The status of a job, unless it had said all and hung in MPICH, and what it wrote.
type Ended = (Option<ExitStatus>, String, String);

/// The name of a kind of faults, and how one is drawn that lasts so many times as long as in a short round.
pub type Kind = (&'static str, fn(&mut fastrand::Rng, u64) -> Fault);

/// Each comes once in as many rounds in a row.
pub const FAULTS: [Kind; 15] = [
    ("nothing", |_, _| Fault::Nothing),
    ("killed", |_, _| Fault::Killed),
    ("stopped", |draws, scale| Fault::Stopped(time(draws, scale))),
    ("late", |draws, scale| Fault::Late(time(draws, scale))),
    ("link-down", |draws, scale| Fault::LinkDown(draws.usize(0..HOSTS), time(draws, scale))),
    ("loss", |draws, _| Fault::Loss(if draws.bool() { draws.u32(1..10) } else { draws.u32(10..=50) })),
    ("blocked", |draws, scale| {
        Fault::Blocked(draws.bool().then(|| draws.usize(0..HOSTS)), time(draws, scale))
    }),
    ("hostile", |draws, scale| Fault::Hostile(time(draws, scale))),
    ("never-there", |draws, _| Fault::NeverThere(draws.usize(0..HOSTS))),
    ("forgotten", |draws, scale| Fault::Forgotten(time(draws, scale))),
    ("threads", |draws, _| Fault::Threads(draws.u32(2..=4))),
    ("flood", |draws, scale| Fault::Flood(time(draws, scale))),
    ("communicators", |_, _| Fault::Communicators),
    ("leaves", |draws, scale| Fault::Leaves(time(draws, scale))),
    ("loss-of-all", |draws, _| Fault::LossOfAll(draws.usize(0..HOSTS), draws.u32(1..5))),
];

fn time(draws: &mut fastrand::Rng, scale: u64) -> Duration {
    Duration::from_millis(draws.u64(100..1000) * scale)
}

/// What goes wrong in the round of a seed.
pub fn fault_of(seed: u64) -> Kind {
    FAULTS[(seed % FAULTS.len() as u64) as usize]
}

/// Everything follows from the seed.
#[derive(Clone, Debug)]
pub struct Round {
    seed: u64,
    mpi: Mpi,
    forced: Option<&'static str>,
    /// Variables and algorithms of the other collectives, or none: the table's choice.
    others: Vec<(&'static str, String)>,
    ranks_per_host: usize,
    calls: u64,
    /// It reports, and does not compare ways; else as users have it.
    is_watched: bool,
    /// From when all ranks are there to the fault.
    after: Duration,
    fault: Fault,
}

/// An algorithm for each collective but the broadcast.
fn draw_others(draws: &mut fastrand::Rng) -> Vec<(&'static str, String)> {
    let draw = |(collective, variable)| {
        let all = Registry::BUILT_IN.samples(collective);
        (variable, all[draws.usize(0..all.len())].to_string())
    };
    Collective::ALL.into_iter().zip(FORCED_BY).skip(1).map(draw).collect()
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Round { mpi, forced, others, ranks_per_host, calls, fault, .. } = self;
        let ranks = HOSTS * ranks_per_host;
        write!(
            f,
            "{:<8} {ranks} ranks, {calls} calls, {:<22} {:<10} {:<8} {fault}",
            mpi.name(),
            forced.unwrap_or("the table"),
            if others.is_empty() { "" } else { "and others" },
            if self.is_watched { "watched," } else { "" },
        )
    }
}

impl Round {
    /// The round of a seed; in short ones nothing lasts longer than a second.
    pub fn of(seed: u64, is_long: bool) -> Round {
        // Neighbouring seeds have little in common.
        let mut draws = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let scale = if is_long { 10 } else { 1 };
        let (_, draw) = fault_of(seed);
        let fault = draw(&mut draws, scale);
        let forced = match fault {
            // Where there is a group.
            Fault::Flood(_) | Fault::Leaves(_) => FORCED[draws.usize(0..FORMS)],
            _ => FORCED[draws.usize(0..FORCED.len())],
        };
        let mpi = if draws.bool() { Mpi::OpenMpi } else { Mpi::Mpich };
        let others = if draws.bool() { draw_others(&mut draws) } else { vec![] };
        let calls = match fault {
            // It goes on until a rank dies.
            Fault::Killed => 1_000_000,
            // What TCP loses takes it 200 ms.
            Fault::LossOfAll(..) => draws.u64(10..30) * scale,
            // Each of them.
            Fault::Threads(threads) => draws.u64(60..200) * scale / u64::from(threads),
            // Short ones.
            Fault::Communicators => draws.u64(200..400) * scale,
            _ => draws.u64(60..200) * scale,
        };
        let ranks_per_host = if mpi == Mpi::OpenMpi { draws.usize(1..=2) } else { 1 };
        let after = Duration::from_millis(draws.u64(0..400));
        let is_watched = draws.bool();
        Round { seed, mpi, forced, others, ranks_per_host, calls, is_watched, after, fault }
    }

    /// What did not hold; without polycast, to see what the MPI does by itself, wrong bytes and what is left behind.
    pub fn run(&self, labs: &Labs, totals: &mut Totals, with_polycast: bool) -> Vec<String> {
        self.fault.prepare(labs);
        let (done, happened) = self.job_and_fault(labs, with_polycast);
        if is_out_of_time(done.0) {
            let who = if happened.have_all_died {
                "launchers that hung after all ranks had died"
            } else {
                "hung jobs"
            };
            totals.add(who, 1);
        }
        let mut problems = self.problems(labs, &done, happened.have_all_died, with_polycast);
        self.fault.mend(labs);
        problems.extend(nothing_is_left(labs));
        totals.add_line("SOAK", &done.1);
        totals.add_line("HOSTILE", &happened.said);
        totals.add_line("LEAVES", &happened.said);
        totals.add_line("FLOOD", &happened.said);
        totals.add("faults amid a job", u64::from(happened.is_amid));
        if let Ok(report) = Report::parse(&done.2) {
            totals.add_report(&report);
        }
        if !problems.is_empty() {
            println!("--- stdout\n{}--- stderr\n{}", done.1, done.2);
        }
        problems
    }

    fn job<'a>(&self, labs: &'a Labs, with_polycast: bool) -> LabJob<'a> {
        let threads = if let Fault::Threads(threads) = self.fault { threads } else { 1 };
        let is_new = u64::from(matches!(self.fault, Fault::Communicators));
        let arguments = [self.seed, self.calls, u64::from(threads), is_new].map(|number| number.to_string());
        let mut job = match self.fault {
            Fault::Late(time) => {
                let program = self.mpi.built(PROGRAM);
                let late = format!(
                    "[ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" != 1 ] || sleep {}; exec {} \"$@\"",
                    time.as_secs_f64(),
                    program.display()
                );
                LabJob::of(labs, self.mpi, HOSTS * self.ranks_per_host, &["sh", "-c", &late, "late"])
            }
            _ => LabJob::stock(labs, self.mpi, HOSTS * self.ranks_per_host, PROGRAM),
        };
        job = job
            .arguments(&arguments.each_ref().map(String::as_str))
            .ranks_per_host(self.ranks_per_host)
            .limit(LIMIT);
        job = match (with_polycast, self.is_watched) {
            (false, _) => job,
            (true, false) => job.unwatched(),
            (true, true) => job.polycast().variable("POLYCAST_TRIALS", "off"),
        };
        let forced = self.forced.map(|forced| ("POLYCAST_BCAST", forced.to_owned()));
        let forced = forced.into_iter().chain(self.others.iter().cloned()).filter(|_| with_polycast);
        forced.fold(job, |job, (name, value)| job.variable(name, &value))
    }

    fn problems(
        &self,
        labs: &Labs,
        (status, stdout, stderr): &Ended,
        have_all_died: bool,
        with_polycast: bool,
    ) -> Vec<String> {
        if let Some(line) = stderr.lines().find(|line| line.contains("FAIL rank")) {
            return vec![line.to_owned()];
        }
        let is_ok = stdout.lines().any(|line| line == "OK collective_soak");
        let hung = is_out_of_time(*status);
        match (&self.fault, hung) {
            // How it ends is the MPI's.
            _ if !with_polycast => vec![],
            (_, true) if have_all_died => vec![],
            (_, true) => match self.hangs_without_polycast(labs) {
                true => vec![],
                false => vec![format!("not finished after {LIMIT:?}; without polycast it is")],
            },
            (Fault::Killed, false) if is_ok => {
                vec!["a rank was to be killed, and the job knows nothing of it".into()]
            }
            (Fault::Killed, false) => vec![],
            // The MPI's own end, where it gives up a connection, is not ours.
            (Fault::LinkDown(..) | Fault::LossOfAll(..), false) if !is_ok && !stderr.contains("panicked") => {
                if self.fails_without_polycast(labs) {
                    vec![]
                } else {
                    vec![format!("did not end well: {status:?}")]
                }
            }
            _ if is_ok => vec![],
            _ => vec![format!("did not end well: {status:?}")],
        }
    }

    /// The job and what goes wrong meanwhile, to the end of both.
    fn job_and_fault(&self, labs: &Labs, with_polycast: bool) -> (Ended, Happened) {
        thread::scope(|scope| {
            let job = scope.spawn(|| self.job(labs, with_polycast).end());
            let happened = self.fault.happen(labs, self.after, self.seed, || job.is_finished());
            (job.join().expect("it does not panic"), happened)
        })
    }

    fn hangs_without_polycast(&self, labs: &Labs) -> bool {
        is_out_of_time(self.job_and_fault(labs, false).0.0)
    }

    fn fails_without_polycast(&self, labs: &Labs) -> bool {
        self.job_and_fault(labs, false).0.0.is_some_and(|status| !status.success())
    }
}

/// `timeout` ends what hangs, with this status or, where it has to kill, with none.
fn is_out_of_time(status: Option<ExitStatus>) -> bool {
    status.is_some_and(|status| status.code().is_none_or(|code| code == OUT_OF_TIME))
}

/// Of a host: UDP sockets, memberships, files where temporary ones are, what a job that wrote the cache anew has beside it, sockets with names.
const LOOKED_AT: &str = "tail -q -n +2 /proc/net/udp /proc/net/udp6; ip maddr show e0; \
    ls -Ad /dev/shm/*polycast* \"${TMPDIR:-/tmp}\"/*polycast* ~/.cache/polycast/trials.jsonl.* 2>/dev/null; \
    grep polycast /proc/net/unix || true";

/// A process that ends has no program any more before its sockets are closed.
fn nothing_is_left(labs: &Labs) -> Vec<String> {
    let left = || {
        let mut left: Vec<String> = ranks().iter().map(|pid| format!("process {pid}")).collect();
        for host in (0..HOSTS).map(|host| format!("h{host}")) {
            let found = labs.exec(LAB, &host, LOOKED_AT);
            left.extend(
                found
                    .lines()
                    .filter(|line| {
                        line.contains("239.") || line.contains("00000000:0000 ") || line.contains("polycast")
                    })
                    .map(|line| format!("{host}: {line}")),
            );
        }
        left
    };
    lasting(left).into_iter().map(|what| format!("left behind: {what}")).collect()
}

/// What of this does not go by itself.
pub fn lasting(left: impl Fn() -> Vec<String>) -> Vec<String> {
    let began = Instant::now();
    let mut found = left();
    while !found.is_empty() && began.elapsed() < GONE_WITHIN {
        thread::sleep(LOOK);
        found = left();
    }
    found
}
