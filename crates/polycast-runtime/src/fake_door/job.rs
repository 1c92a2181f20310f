use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use polycast_core::protocol::KEY_BYTES;

use super::collectives::Called;
use super::conditions::Conditions;
use super::network::Weather;
use super::process::{self, Told};
use super::stage::{Delays, Turns};
use super::sums::DoubleSum;
use super::world::{Doing, World};
use super::wrong::WrongCall;
use crate::fault::Point;

/// Who lets no other rank go on for so long, on the machine's clock, never will: it does something else than wait.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 60 });
/// No job lasts longer in the time of the ranks.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// What all ranks do, in this order.
#[derive(Clone, Debug)]
pub enum Step {
    /// One more communicator, of these processes. They are counted from 0 on.
    Make {
        members: Vec<u32>,
    },
    Broadcast(Broadcast),
    /// Started one after the other on one communicator; each rank goes on with them in an order of its own.
    InFlight(Vec<Broadcast>),
    /// Started without waiting, on several communicators: each rank goes through these in an order of its own.
    Ahead(Vec<Broadcast>),
    /// The same with any collectives, on the first communicator.
    Collectives(Vec<Called>),
    /// On the first communicator, as its rules say.
    Wrong(WrongCall),
    /// On the first communicator.
    DoubleSum(DoubleSum),
    Free {
        communicator: usize,
    },
    /// Each process sets POLYCAST_BCAST.
    Configure(Vec<&'static str>),
    /// One process does something else for a while.
    Pause {
        process: u32,
        time: Duration,
    },
}

/// One call of MPI_Bcast.
#[derive(Clone, Debug)]
pub struct Broadcast {
    pub communicator: usize,
    pub root: u32,
    /// Of each rank.
    pub bytes: Vec<usize>,
}

/// A program, and what happens to it.
#[derive(Clone, Debug)]
pub struct Job {
    pub seed: u64,
    pub program: Vec<Step>,
    /// The environment of all processes, or of one alone.
    pub variables: Vec<(Option<u32>, &'static str, String)>,
    pub conditions: Conditions,
    /// What the program of each rank sets of floating-point arithmetic (MXCSR); none: nothing.
    pub environments: Vec<u32>,
    /// This rank panics there, when it comes there for this time.
    pub panic: Option<(u32, Point, u32)>,
    /// This rank has another build, which it tells the others where they vote.
    pub other_build: Option<u32>,
    /// This rank goes by itself in what all have voted on: what none may do.
    pub ignores_vote: Option<u32>,
}

/// What became of a job.
#[derive(Debug)]
pub struct Outcome {
    pub ranks: Vec<Told>,
    /// The call that failed because the test says so, if it came to that.
    pub failed: Option<Doing>,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// By each rank that has sent some.
    pub datagrams_of: BTreeMap<u32, u64>,
    /// What a stranger has recorded, if there was one.
    pub recorded: Vec<Arc<[u8]>>,
    /// That were drawn, and whatever else is as long.
    pub keys: Vec<[u8; KEY_BYTES]>,
    /// Groups that were joined over verbs.
    pub over_verbs: usize,
    /// Sockets that are still open.
    pub memberships: usize,
    /// Messages on private communicators.
    pub messages: u32,
    /// Of the rank with the most, both ways.
    pub most_messages: u32,
    /// Those that nobody has received.
    pub unreceived: usize,
    /// Letters on the board that nobody has taken.
    pub letters: usize,
    /// On all communicators, the program's own among them.
    pub collectives: usize,
    /// Arenas of hosts that were made.
    pub segments: usize,
    /// Slots of them that were taken for communicators.
    pub slots: usize,
    /// In the time of the ranks.
    pub took: Duration,
}

impl Job {
    /// All ranks on one host; each call with the same size on all ranks.
    pub fn new(ranks: u32, seed: u64, algorithm: &str, calls: &[(u32, usize)]) -> Job {
        let mut program = vec![Step::Make { members: (0..ranks).collect() }];
        program.extend(calls.iter().map(|&(root, bytes)| {
            Step::Broadcast(Broadcast { communicator: 0, root, bytes: vec![bytes; ranks as usize] })
        }));
        program.push(Step::Free { communicator: 0 });
        let variables =
            [("POLYCAST_BCAST", algorithm), ("POLYCAST_MULTICAST", "off"), ("POLYCAST_TRIALS", "off")];
        Job {
            seed,
            program,
            variables: variables.map(|(name, value)| (None, name, value.to_owned())).to_vec(),
            conditions: Conditions {
                has_private: true,
                tag_most: c_int::MAX,
                numbers: None,
                has_threads: false,
                fault: None,
                tamper: None,
                delays: Delays::default(),
                turns: Turns::default(),
                weather: Weather::FINE,
                hosts: vec![0; ranks as usize],
                localities: Vec::new(),
                memory_left: Vec::new(),
                receive_buffers: Vec::new(),
                processors: 64,
                eager_bytes: 0,
                message_rate: None,
                stalled: None,
                loses_message: None,
                refused: Vec::new(),
                reads_until: None,
                arena_bytes: None,
                board: None,
            },
            environments: Vec::new(),
            panic: None,
            other_build: None,
            ignores_vote: None,
        }
    }

    /// With multicast between hosts.
    pub fn on_hosts(mut self, hosts: &[u32], weather: Weather) -> Job {
        self = self.with(None, "POLYCAST_MULTICAST", "on");
        (self.conditions.hosts, self.conditions.weather) = (hosts.to_vec(), weather);
        self
    }

    /// A variable of all processes, or of one alone.
    pub fn with(mut self, process: Option<u32>, name: &'static str, value: &str) -> Job {
        self.variables.push((process, name, value.to_owned()));
        self
    }

    /// Later ones count.
    pub fn variables_of(&self, process: u32) -> HashMap<&'static str, String> {
        let mine = self.variables.iter().filter(|(of, ..)| of.is_none_or(|of| of == process));
        mine.map(|(_, name, value)| (*name, value.clone())).collect()
    }

    pub fn ranks(&self) -> u32 {
        self.conditions.hosts.len() as u32
    }

    /// Runs it.
    ///
    /// # Panics
    /// If a rank does not return, or ranks meet in different collectives.
    pub fn run(&self) -> Outcome {
        self.try_run().unwrap_or_else(|wrong| panic!("{wrong}\n{self:?}"))
    }

    /// Runs it; an error is what no job may do, whatever happens to it.
    pub fn try_run(&self) -> Result<Outcome, String> {
        let world = Arc::new(World::new(self.conditions.clone(), self.seed));
        let (sender, receiver) = mpsc::channel();
        let mut threads = Vec::new();
        let job = Arc::new(self.clone());
        for rank in 0..self.ranks() {
            let (job, world, sender) = (job.clone(), world.clone(), sender.clone());
            threads.push(std::thread::spawn(move || {
                let _ = sender.send((rank, process::run(&job, rank, &world)));
            }));
        }
        drop(sender);
        let mut told: Vec<Option<Told>> = (0..self.ranks()).map(|_| None).collect();
        let mut before = 0;
        while told.iter().any(Option::is_none) {
            match receiver.recv_timeout(PATIENCE) {
                Ok((rank, Some(of_rank))) => told[rank as usize] = Some(of_rank),
                Ok((rank, None)) => return Err(format!("rank {rank} panicked outside of polycast")),
                Err(RecvTimeoutError::Timeout)
                    if (before + 1..LONGEST_NANOS).contains(&world.stage.nanos()) =>
                {
                    before = world.stage.nanos();
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(wrong) = world.wrong() {
            return Err(wrong);
        }
        let stuck = (0..self.ranks()).filter(|rank| told[*rank as usize].is_none());
        let stuck: Vec<String> = stuck.map(|rank| world.doing(rank)).collect();
        if !stuck.is_empty() {
            return Err(format!("busy for ever: {}", stuck.join("; ")));
        }
        threads.into_iter().for_each(|thread| drop(thread.join()));
        let communicators = self.program.iter().filter(|step| matches!(step, Step::Make { .. })).count();
        let (recorded, keys) = world.network.recorded();
        Ok(Outcome {
            recorded,
            keys,
            ranks: told.into_iter().flatten().collect(),
            failed: world.failed(),
            datagrams: world.network.sent().values().sum(),
            datagrams_of: world.network.sent(),
            over_verbs: world.network.groups_over_verbs(),
            memberships: world.network.memberships(),
            messages: world.messages(),
            most_messages: world.most_messages(),
            unreceived: (1..=communicators).map(|communicator| world.unreceived(communicator)).sum(),
            letters: self.conditions.board.as_ref().map_or(0, |board| board.letters()),
            collectives: world.collectives(),
            segments: world.arenas[0].load(Ordering::Relaxed),
            slots: world.arenas[1].load(Ordering::Relaxed),
            took: Duration::from_nanos(world.stage.nanos()),
        })
    }
}
