use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polycast_core::units::{Nanos, Rate};

use super::conditions::{Conditions, Fault, Function};
pub use super::doing::{Collective, Doing};
use super::mail::{Mail, Part, Place, Way};
use super::network::Network;
use super::random::Random;
use super::stage::Stage;
use super::{ABORTED, INJECTED, MISUSED};
use crate::abi::{ANY_PEER, Completion};
use crate::attach::RECORD_BYTES;

/// The shortest message on its way, where messages take time.
const MESSAGE_NANOS: u64 = 20_000;

struct Meeting {
    what: Collective,
    parts: Vec<Option<Vec<u8>>>,
    arrived: usize,
    /// Those that are there, and wait for others.
    waiting: Vec<u32>,
    /// Known to all when those have come that count.
    outcome: Option<Arc<[u8]>>,
}

struct Communicator {
    /// Of MPI_COMM_WORLD.
    members: Vec<u32>,
    /// Each one's rank here.
    ranks: HashMap<u32, usize>,
    meetings: Vec<Meeting>,
    /// How many each member has come to.
    attended: Vec<usize>,
}

struct RankState {
    calls: HashMap<Function, u32>,
    random: Random,
    doing: Doing,
    /// Of the last call.
    communicator: usize,
    said: String,
    /// It waits in a collective, where MPI works on.
    is_in_mpi: bool,
    /// That it has sent, and that were sent to it.
    messages: [u32; 2],
}

struct State {
    communicators: Vec<Communicator>,
    /// All processes when MPI ends, also if one of them did not come to what the others still wait in.
    end: Communicator,
    ranks: Vec<RankState>,
    mail: Mail,
    /// They wait in a collective, and there are messages for them: MPI works on them whoever calls it.
    served_meanwhile: BTreeSet<u32>,
    messages: u32,
    is_aborted: bool,
    failed: Option<Doing>,
    wrong: Option<String>,
    /// What each rank did when the job was found to be stuck.
    stuck: Option<String>,
}

/// All that the ranks of a job share.
pub struct World {
    pub conditions: Conditions,
    pub stage: Arc<Stage>,
    pub network: Arc<Network>,
    /// Arenas that were made, and slots of them that were taken.
    pub arenas: [AtomicUsize; 2],
    state: Mutex<State>,
}

impl World {
    /// `seed` decides what happens when.
    pub fn new(conditions: Conditions, seed: u64) -> World {
        let size = conditions.hosts.len() as u32;
        let rank = |rank| RankState {
            calls: HashMap::new(),
            random: Random::new(seed.wrapping_mul(1_000_003).wrapping_add(rank)),
            doing: Doing::Nothing,
            communicator: 0,
            said: String::new(),
            is_in_mpi: false,
            messages: [0; 2],
        };
        let state = State {
            communicators: vec![Communicator::of((0..size).collect())],
            end: Communicator::of((0..size).collect()),
            ranks: (0..u64::from(size)).map(rank).collect(),
            mail: Mail::default(),
            served_meanwhile: BTreeSet::new(),
            messages: 0,
            is_aborted: false,
            failed: None,
            wrong: None,
            stuck: None,
        };
        let stage = Arc::new(Stage::new(size, seed, conditions.delays, conditions.turns));
        let network = Arc::new(Network::new(stage.clone(), conditions.weather.clone(), seed));
        World { conditions, stage, network, arenas: Default::default(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A communicator of the program, with a number that is the same on all ranks, from 1 on. Number 0 is MPI's own.
    pub fn make(&self, number: usize, members: &[u32]) {
        let mut state = self.lock();
        if number == state.communicators.len() {
            state.communicators.push(Communicator::of(members.to_vec()));
        }
    }

    /// Counts a call, and lets others come first; whether it is to fail.
    fn begin(
        &self,
        Part { process, communicator }: Part,
        function: Function,
        doing: Doing,
    ) -> Result<(), Option<Fault>> {
        self.stage.turn(process);
        self.look_whether_stuck();
        if function != Function::Poll {
            self.stage.trace(process, format_args!("{doing} of communicator {communicator}"));
        }
        let mut state = self.lock();
        let mine = &mut state.ranks[process as usize];
        let calls = mine.calls.entry(function).or_default();
        let nth = *calls;
        *calls += 1;
        (mine.doing, mine.communicator) = (doing, communicator);
        let fault = self
            .conditions
            .fault
            .filter(|fault| (fault.rank, fault.function, fault.nth) == (process, function, nth));
        if fault.is_some() {
            state.failed = Some(doing);
            return Err(fault);
        }
        Ok(())
    }

    fn look_whether_stuck(&self) {
        if self.stage.is_stuck() {
            let mut state = self.lock();
            state.is_aborted = true;
            if state.stuck.is_none() {
                let doing = (0..state.ranks.len()).map(|rank| state.doing(rank as u32));
                state.stuck = Some(doing.collect::<Vec<_>>().join("; "));
            }
        }
    }

    /// What all ranks get of it.
    pub fn meet(&self, part: Part, what: Collective, mut mine: Vec<u8>) -> Result<Arc<[u8]>, c_int> {
        let fault = match what {
            // What the door does where it fails is a vote.
            Collective::Finalize | Collective::OpenPrivate => None,
            _ => self.begin(part, Function::Collective, Doing::Collective(what)).err().flatten(),
        };
        if fault.is_some_and(|fault| !fault.is_late) {
            return Err(INJECTED);
        }
        let is_record = what == Collective::Allgather { bytes: RECORD_BYTES } && part.communicator == 0;
        if let Some(tamper) = self.conditions.tamper.filter(|_| is_record) {
            tamper(part.process, &mut mine);
        }
        let mut state = self.lock();
        let here = state.place(part, what);
        let rank = here.ranks[&part.process];
        let index = here.attended[rank];
        here.attended[rank] += 1;
        if index == here.meetings.len() {
            here.meetings.push(Meeting::new(what, here.members.len()));
        }
        let meeting = &mut here.meetings[index];
        let other = meeting.what;
        if other != what {
            state.wrong = Some(format!("rank {} calls {what:?} where others call {other:?}", part.process));
            state.is_aborted = true;
            drop(state);
            self.stage.wake_all();
            return Err(MISUSED);
        }
        meeting.arrive(rank, mine);
        let is_complete = meeting.arrived == meeting.parts.len();
        let awaited =
            if meeting.outcome.is_some() { std::mem::take(&mut meeting.waiting) } else { Vec::new() };
        if what == Collective::Finalize && is_complete && !state.is_aborted {
            // SAFETY: all wait in MPI, and keep what they have posted until they have left it.
            unsafe { state.mail.end(&mut Random::new(0)) };
        }
        drop(state);
        self.stage.wake(awaited);
        loop {
            let mut state = self.lock();
            let is_aborted = state.is_aborted;
            let meeting = &mut state.place(part, what).meetings[index];
            match (meeting.outcome.clone(), fault) {
                (None, _) if is_aborted => return Err(ABORTED),
                (None, _) => {
                    meeting.waiting.push(part.process);
                    state.waits_in_mpi(part.process, true);
                    drop(state);
                    self.stage.wait(part.process, None, false);
                    self.lock().waits_in_mpi(part.process, false);
                    self.look_whether_stuck();
                }
                (Some(_), Some(_)) => return Err(INJECTED),
                (Some(outcome), None) => return Ok(outcome),
            }
        }
    }

    /// The processes of a communicator.
    pub fn members(&self, communicator: usize) -> Vec<u32> {
        self.lock().communicators[communicator].members.clone()
    }

    /// # Safety
    /// As for [`Mail::send`].
    pub unsafe fn send(
        &self,
        part: Part,
        peer: u32,
        tag: c_int,
        slot: u32,
        place: Place,
    ) -> Result<(), c_int> {
        let doing = Doing::Isend { bytes: place.bytes, peer, tag };
        self.begin(part, Function::Isend, doing).map_err(|_| INJECTED)?;
        let mut state = self.lock();
        let way = self.way(part.process, peer, tag)?;
        state.messages += 1;
        state.ranks[part.process as usize].messages[0] += 1;
        state.ranks[peer as usize].messages[1] += 1;
        let is_lost = self.conditions.loses_message == Some(state.messages - 1);
        let is_short = place.bytes <= self.conditions.eager_bytes;
        let is_eager = is_lost || is_short || state.ranks[part.process as usize].random.one_in(2);
        let way = if is_lost { Way { tag: -1, ..way } } else { way };
        state.mail.now = self.stage.nanos();
        if let Some(stalled) = self.conditions.stalled
            && Duration::from_nanos(state.mail.now) >= stalled.since
            && stalled.of.is_none_or(|of| of == part.process)
            && state.ranks[part.process as usize].random.one_in(stalled.one_in)
        {
            state.mail.stall(way.from, way.to, stalled.time.as_nanos() as u64);
        }
        let rate = self.conditions.message_rate.map(Rate::bits_per_second);
        state.mail.takes = rate.map_or(0, |rate| MESSAGE_NANOS + Nanos::on_link(place.bytes, rate).0);
        // SAFETY: handed on from the caller.
        unsafe { state.mail.send(part, way, slot, place, is_eager)? };
        if state.ranks[peer as usize].is_in_mpi {
            state.served_meanwhile.insert(peer);
        }
        Ok(())
    }

    pub fn receive(&self, part: Part, peer: u32, tag: c_int, slot: u32, place: Place) -> Result<(), c_int> {
        let doing = Doing::Irecv { bytes: place.bytes, peer, tag };
        self.begin(part, Function::Irecv, doing).map_err(|_| INJECTED)?;
        let mut state = self.lock();
        let way = self.way(peer, part.process, tag)?;
        state.mail.receive(part, way, slot, place)
    }

    /// MPI is asked to combine data.
    pub fn combine(&self, part: Part, bytes: usize) -> Result<(), c_int> {
        self.begin(part, Function::Combine, Doing::Combine { bytes }).map_err(|_| INJECTED)
    }

    /// # Safety
    /// As for [`Mail::progress`].
    pub unsafe fn poll(&self, part: Part) -> Result<Vec<Completion>, c_int> {
        self.begin(part, Function::Poll, Doing::Poll).map_err(|_| INJECTED)?;
        let mut state = self.lock();
        state.mail.now = self.stage.nanos();
        // SAFETY: handed on from the caller; who waits in MPI has not returned from what started its messages.
        unsafe { state.progress(part.process) };
        let State { mail, ranks, is_aborted, .. } = &mut *state;
        let done = mail.done(part, &mut ranks[part.process as usize].random);
        if done.is_empty() && *is_aborted {
            return Err(ABORTED);
        }
        drop(state);
        if !done.is_empty() {
            self.stage.trace(
                part.process,
                format_args!("{} done of communicator {}", done.len(), part.communicator),
            );
            self.stage.moves();
        }
        Ok(done)
    }

    /// # Safety
    /// As for [`Mail::cancel`].
    pub unsafe fn cancel(&self, part: Part, slots: &[u32]) {
        // SAFETY: handed on from the caller.
        unsafe { self.lock().mail.cancel(part, slots) };
    }

    /// MPI has this rank, and such tags.
    fn way(&self, from: u32, to: u32, tag: c_int) -> Result<Way, c_int> {
        let ranks = self.conditions.hosts.len() as u32;
        let is_right =
            (from < ranks || from == ANY_PEER) && to < ranks && (0..=self.conditions.tag_most).contains(&tag);
        is_right.then_some(Way { from, to, tag }).ok_or(MISUSED)
    }

    /// Messages that were sent on private communicators.
    pub fn messages(&self) -> u32 {
        self.lock().messages
    }

    /// Of the rank with the most, those that it has sent and those that were sent to it.
    pub fn most_messages(&self) -> u32 {
        self.lock().ranks.iter().map(|rank| rank.messages.iter().sum()).max().unwrap_or(0)
    }

    /// How often ranks have met.
    pub fn collectives(&self) -> usize {
        self.lock().communicators.iter().map(|here| here.meetings.len()).sum()
    }

    pub fn outstanding_receives(&self, part: Part) -> usize {
        self.lock().mail.outstanding_receives(part).len()
    }

    /// Messages of a communicator that nobody has received.
    pub fn unreceived(&self, communicator: usize) -> usize {
        self.lock().mail.unreceived(communicator).values().sum()
    }

    /// Nobody waits any more.
    pub fn abort(&self) {
        self.lock().is_aborted = true;
        self.stage.wake_all();
    }

    pub fn say(&self, rank: u32, text: &str) {
        self.lock().ranks[rank as usize].said.push_str(text);
    }

    /// What a rank has said on standard error.
    pub fn said(&self, rank: u32) -> String {
        self.lock().ranks[rank as usize].said.clone()
    }

    /// The call that has failed because the test says so.
    pub fn failed(&self) -> Option<Doing> {
        self.lock().failed
    }

    /// What no MPI may see: ranks in different collectives, messages that meet a stranger. Or ranks that wait for ever.
    pub fn wrong(&self) -> Option<String> {
        let state = self.lock();
        let stuck = state.stuck.as_ref().map(|doing| format!("nobody goes on: {doing}"));
        state.wrong.clone().or_else(|| state.mail.wrong.clone()).or(stuck)
    }

    /// The last call of a rank, and for whose messages it waits.
    pub fn doing(&self, rank: u32) -> String {
        self.lock().doing(rank)
    }
}

impl Meeting {
    fn new(what: Collective, ranks: usize) -> Meeting {
        Meeting { what, parts: vec![None; ranks], arrived: 0, waiting: Vec::new(), outcome: None }
    }

    fn arrive(&mut self, rank: usize, part: Vec<u8>) {
        self.parts[rank] = Some(part);
        self.arrived += 1;
        let is_over = match self.what.root() {
            Some(root) => root as usize == rank,
            None => self.arrived == self.parts.len(),
        };
        if is_over {
            self.outcome = Some(self.what.outcome(&self.parts).into());
        }
    }
}

impl Communicator {
    fn of(members: Vec<u32>) -> Communicator {
        let attended = vec![0; members.len()];
        let ranks = members.iter().zip(0..).map(|(process, rank)| (*process, rank)).collect();
        Communicator { members, ranks, meetings: Vec::new(), attended }
    }
}

impl State {
    /// Where ranks meet.
    fn place(&mut self, part: Part, what: Collective) -> &mut Communicator {
        match what {
            Collective::Finalize => &mut self.end,
            _ => &mut self.communicators[part.communicator],
        }
    }

    fn waits_in_mpi(&mut self, process: u32, waits: bool) {
        self.ranks[process as usize].is_in_mpi = waits;
        if waits && self.mail.has_letters(process) {
            self.served_meanwhile.insert(process);
        } else {
            self.served_meanwhile.remove(&process);
        }
    }

    /// # Safety
    /// As for [`Mail::progress`], for this process and for all that wait in MPI.
    unsafe fn progress(&mut self, process: u32) {
        let State { mail, ranks, served_meanwhile, .. } = self;
        // SAFETY: handed on from the caller.
        unsafe { mail.progress(process, &mut ranks[process as usize].random) };
        served_meanwhile.retain(|other| {
            // SAFETY: handed on from the caller.
            unsafe { mail.progress(*other, &mut ranks[*other as usize].random) };
            mail.has_letters(*other)
        });
    }

    fn doing(&self, rank: u32) -> String {
        let RankState { doing, communicator, .. } = &self.ranks[rank as usize];
        let mut doing = format!("rank {rank} in communicator {communicator}: {doing}");
        for communicator in 0..self.communicators.len() {
            let mut awaited = BTreeMap::<_, usize>::new();
            for from in self.mail.outstanding_receives(Part { communicator, process: rank }) {
                *awaited.entry(from).or_default() += 1;
            }
            for ((peer, tag), count) in awaited {
                doing.push_str(&format!(
                    ", {count} from rank {peer} of communicator {communicator} with tag {tag}"
                ));
            }
        }
        doing
    }
}
