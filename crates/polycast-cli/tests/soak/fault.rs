//! What goes wrong around a job.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::Labs;
use crate::common::{checkout, processes_of};
use crate::job::{LAB, group_and_port};
use crate::round::HOSTS;

/// The program whose processes are looked for.
pub const PROGRAM: &str = "collective_soak";

/// A fault, and for how long where it ends.
#[derive(Clone, Debug)]
pub enum Fault {
    Nothing,
    /// A rank dies.
    Killed,
    /// A rank is stopped, and goes on.
    Stopped(Duration),
    /// A rank starts later than the others.
    Late(Duration),
    /// The link of this host is down.
    LinkDown(usize, Duration),
    /// So many percent of the datagrams that reach any host are lost, the whole time.
    Loss(u32),
    /// So many percent of all packets that reach this host are lost, TCP's among them.
    LossOfAll(usize, u32),
    /// No multicast reaches this host, or any.
    Blocked(Option<usize>, Duration),
    /// None has ever reached this host.
    NeverThere(usize),
    /// A host sends again what it hears, changed and unchanged.
    Hostile(Duration),
    /// A host sends as many datagrams of its own to the job's group as it can, from when there is one.
    Flood(Duration),
    /// The switch forgets again and again who is a member of which group, as one does that hears no reports.
    Forgotten(Duration),
    /// A host ends all hosts' memberships, again and again, in their names.
    Leaves(Duration),
    /// Nothing goes wrong, but so many threads of each rank call at once.
    Threads(u32),
    /// Nothing goes wrong, but each call is on a new communicator.
    Communicators,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Nothing => write!(f, "nothing goes wrong"),
            Fault::Killed => write!(f, "a rank is killed"),
            Fault::Stopped(time) => write!(f, "a rank is stopped for {time:?}"),
            Fault::Late(time) => write!(f, "a rank starts {time:?} late"),
            Fault::LinkDown(host, time) => write!(f, "the link of h{host} is down for {time:?}"),
            Fault::Loss(percent) => write!(f, "{percent} % of the datagrams are lost"),
            Fault::LossOfAll(host, percent) => write!(f, "{percent} % of the packets to h{host} are lost"),
            Fault::Blocked(None, time) => write!(f, "multicast is blocked for {time:?}"),
            Fault::Blocked(Some(host), time) => write!(f, "multicast to h{host} is blocked for {time:?}"),
            Fault::NeverThere(host) => write!(f, "no multicast reaches h{host}"),
            Fault::Hostile(time) => write!(f, "a hostile host for {time:?}"),
            Fault::Flood(time) => write!(f, "a host floods the group for {time:?}"),
            Fault::Forgotten(time) => write!(f, "the switch forgets all members for {time:?}"),
            Fault::Leaves(time) => write!(f, "a host forges leaves for {time:?}"),
            Fault::Threads(threads) => write!(f, "{threads} threads call at once"),
            Fault::Communicators => write!(f, "a new communicator for each call"),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Happened {
    /// Whether the job ran when it began.
    pub is_amid: bool,
    /// Whether a rank died, and all the others with it in time: what hangs after that is the MPI's launcher, in whose processes
    /// polycast is not.
    pub have_all_died: bool,
    /// What a host says that sends to the group.
    pub said: String,
}

/// Processes of the program.
pub fn ranks() -> Vec<i32> {
    processes_of(PROGRAM)
}

/// Files of polycast in folders for temporary ones.
pub fn files() -> BTreeSet<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let ours = |name: &String| name.contains("polycast");
    names("/dev/shm").into_iter().filter(ours).collect()
}

fn nft(rule: &str) -> String {
    format!("nft 'table ip soak {{ chain c {{ type filter hook input priority 0; {rule}; }}; }}'")
}

const NO_MORE_RULES: &str = "nft delete table ip soak 2>/dev/null || true";
const NO_MULTICAST: &str = "ip daddr 224.0.0.0/4 meta l4proto udp drop";

impl Fault {
    /// What is so before the job starts.
    pub fn prepare(&self, labs: &Labs) {
        match self {
            Fault::Loss(percent) => {
                let rule = format!("meta l4proto udp numgen random mod 100 < {percent} drop");
                (0..HOSTS).for_each(|host| run_on(labs, host, &nft(&rule)));
            }
            Fault::LossOfAll(host, percent) => {
                run_on(labs, *host, &nft(&format!("numgen random mod 100 < {percent} drop")));
            }
            Fault::NeverThere(host) => run_on(labs, *host, &nft(NO_MULTICAST)),
            _ => {}
        }
    }

    /// What happens while it runs, `after` all ranks are there. Nothing happens to a job that has ended by then.
    pub fn happen(&self, labs: &Labs, after: Duration, seed: u64, has_ended: impl Fn() -> bool) -> Happened {
        let victims = loop {
            let found = ranks();
            if found.len() >= HOSTS {
                break found;
            }
            if has_ended() {
                return Happened::default();
            }
            thread::sleep(Duration::from_millis(5));
        };
        thread::sleep(after);
        let mut happened = Happened { is_amid: !ranks().is_empty(), ..Happened::default() };
        let victim = Pid::from_raw(victims[seed as usize % victims.len()]);
        let hosts = |host: &Option<usize>| host.map_or(0..HOSTS, |host| host..host + 1);
        match self {
            Fault::Killed => {
                // It may have ended.
                let _ = kill(victim, Signal::SIGKILL);
                let died = Instant::now();
                while !happened.have_all_died && died.elapsed() < ALL_DIE {
                    thread::sleep(Duration::from_millis(20));
                    happened.have_all_died = ranks().is_empty();
                }
            }
            Fault::Stopped(time) => {
                // It may have ended, but not while it is stopped.
                let _ = kill(victim, Signal::SIGSTOP);
                thread::sleep(*time);
                let _ = kill(victim, Signal::SIGCONT);
            }
            Fault::LinkDown(host, time) => {
                let seconds = time.as_secs_f64();
                let script = format!(
                    "ip link set e0 down; sleep {seconds}; ip link set e0 up; ip route add 224.0.0.0/4 dev e0"
                );
                run_on(labs, *host, &script);
            }
            Fault::Blocked(host, time) => {
                hosts(host).for_each(|host| run_on(labs, host, &nft(NO_MULTICAST)));
                thread::sleep(*time);
                hosts(host).for_each(|host| run_on(labs, host, NO_MORE_RULES));
            }
            Fault::Forgotten(time) => forget_members(labs, *time),
            Fault::Hostile(time) => {
                let (seconds, seed) = (time.as_secs_f64().to_string(), seed.to_string());
                happened.said = stranger(labs, "hostile.py", &[&seconds, &seed]);
            }
            Fault::Leaves(time) => {
                happened.said = stranger(labs, "leaves.py", &[&time.as_secs_f64().to_string()]);
            }
            Fault::Flood(time) => {
                let until = Instant::now() + *time;
                let mut group = None;
                while group.is_none() && Instant::now() < until && !ranks().is_empty() {
                    group = group_and_port(labs, "h1");
                }
                if let Some([group, port]) = group {
                    let seconds = time.as_secs_f64().to_string();
                    let kind = if seed.is_multiple_of(2) { "foreign" } else { "torn" };
                    happened.said = stranger(labs, "flood.py", &[&seconds, &group, &port, FLOOD_RATE, kind]);
                }
            }
            _ => {}
        }
        happened
    }

    /// Afterwards nothing is wrong.
    pub fn mend(&self, labs: &Labs) {
        match self {
            Fault::Loss(_) => (0..HOSTS).for_each(|host| run_on(labs, host, NO_MORE_RULES)),
            Fault::LossOfAll(host, _) | Fault::NeverThere(host) => run_on(labs, *host, NO_MORE_RULES),
            _ => {}
        }
    }
}

/// How long ranks live at most after one of them was killed, on a machine that does other things, too.
const ALL_DIE: Duration = Duration::from_secs(30);

/// Datagrams a second.
const FLOOD_RATE: &str = "100000";

/// What a program of `tests/mpi` says on a host of the lab.
fn stranger(labs: &Labs, program: &str, arguments: &[&str]) -> String {
    let script = checkout().join("tests/mpi").join(program);
    let words = ["exec", LAB, "h1", "--", "python3", &script.to_string_lossy()];
    let mut command = labs.command(&[&words[..], arguments].concat());
    let output = command.stdin(Stdio::null()).output().expect("the tool is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `bridge mdb` says `dev sw0 port p1 grp 239.1.2.3 temp` of each member.
fn forget_members(labs: &Labs, time: Duration) {
    let of_jobs = r"s/.*dev \(\S*\) port \(\S*\) grp \(239[0-9.]*\).*/mdb del dev \1 port \2 grp \3/p";
    let until = Instant::now() + time;
    while Instant::now() < until {
        // One that leaves by itself meanwhile cannot be forgotten.
        let script = format!("bridge mdb | sed -n '{of_jobs}' | bridge -force -batch - 2>/dev/null || true");
        let status = labs.on_switches(LAB, &script);
        assert!(status.success(), "the switch forgets nobody: {status}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn run_on(labs: &Labs, host: usize, script: &str) {
    labs.exec(LAB, &format!("h{host}"), script);
}
