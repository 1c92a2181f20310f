use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::conditions::{Conditions, Fault, Function};
pub use super::doing::{Collective, Doing};
use super::mail::{Mail, Part, Place, Way};
use super::network::Network;
use super::random::Random;
use super::stage::Stage;
use super::{ABORTED, INJECTED, MISUSED};
use crate::attach::RECORD_BYTES;
use crate::door::{ANY_PEER, Completion};

struct Meeting {
    what: Collective,
    parts: Vec<Option<Vec<u8>>>,
}

struct Communicator {
    /// Of MPI_COMM_WORLD.
    members: Vec<u32>,
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
}

struct State {
    communicators: Vec<Communicator>,
    /// All processes when MPI ends, also if one of them did not come to what the others still wait in.
    end: Communicator,
    ranks: Vec<RankState>,
    mail: Mail,
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
    /// Segments that were made.
    pub segments: AtomicUsize,
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
        };
        let state = State {
            communicators: vec![Communicator::of((0..size).collect())],
            end: Communicator::of((0..size).collect()),
            ranks: (0..u64::from(size)).map(rank).collect(),
            mail: Mail::default(),
            messages: 0,
            is_aborted: false,
            failed: None,
            wrong: None,
            stuck: None,
        };
        let stage = Arc::new(Stage::new(size, seed, conditions.delays));
        let network = Arc::new(Network::new(stage.clone(), conditions.weather.clone(), seed));
        World { conditions, stage, network, segments: AtomicUsize::new(0), state: Mutex::new(state) }
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

    /// The parts of those that count for this rank.
    pub fn meet(&self, part: Part, what: Collective, mut mine: Vec<u8>) -> Result<Vec<Vec<u8>>, c_int> {
        let fault = match what {
            // What the door does where it fails is a vote.
            Collective::Finalize | Collective::OpenPrivate => None,
            _ => self.begin(part, Function::Collective, Doing::Collective(what)).err().flatten(),
        };
        if fault.is_some_and(|fault| !fault.is_late) {
            return Err(INJECTED);
        }
        let mut state = self.lock();
        let here = state.place(part, what);
        let rank = here.rank_of(part.process);
        let index = here.attended[rank];
        here.attended[rank] += 1;
        if index == here.meetings.len() {
            here.meetings.push(Meeting { what, parts: vec![None; here.members.len()] });
        }
        let other = here.meetings[index].what;
        if other != what {
            state.wrong = Some(format!("rank {} calls {what:?} where others call {other:?}", part.process));
            state.is_aborted = true;
            drop(state);
            self.stage.wake_all();
            return Err(MISUSED);
        }
        let is_record = what == Collective::Allgather { bytes: RECORD_BYTES } && part.communicator == 0;
        if let Some(tamper) = self.conditions.tamper.filter(|_| is_record) {
            tamper(part.process, &mut mine);
        }
        here.meetings[index].parts[rank] = Some(mine);
        let is_complete = here.meetings[index].is_complete();
        if what == Collective::Finalize && is_complete && !state.is_aborted {
            // SAFETY: all wait in MPI, and keep what they have posted until they have left it.
            unsafe { state.mail.end(&mut Random::new(0)) };
        }
        drop(state);
        self.stage.wake_all();
        loop {
            let mut state = self.lock();
            let is_aborted = state.is_aborted;
            let meeting = &state.place(part, what).meetings[index];
            let is_over = match what {
                Collective::Broadcast { root, .. } | Collective::Stock { root } => {
                    meeting.parts[root as usize].is_some()
                }
                _ => meeting.is_complete(),
            };
            match (is_over, fault) {
                (false, _) if is_aborted => return Err(ABORTED),
                (false, _) => {
                    state.ranks[part.process as usize].is_in_mpi = true;
                    drop(state);
                    self.stage.wait(part.process, None, false);
                    self.lock().ranks[part.process as usize].is_in_mpi = false;
                    self.look_whether_stuck();
                }
                (true, Some(_)) => return Err(INJECTED),
                (true, None) => {
                    return Ok(meeting.parts.iter().map(|part| part.clone().unwrap_or_default()).collect());
                }
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
        // SAFETY: handed on from the caller.
        unsafe { state.mail.send(part, way, slot, place, is_eager) }
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
    fn is_complete(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }
}

impl Communicator {
    fn of(members: Vec<u32>) -> Communicator {
        let attended = vec![0; members.len()];
        Communicator { members, meetings: Vec::new(), attended }
    }

    fn rank_of(&self, process: u32) -> usize {
        self.members.iter().position(|member| *member == process).expect("a member")
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

    /// # Safety
    /// As for [`Mail::progress`], for this process and for all that wait in MPI.
    unsafe fn progress(&mut self, process: u32) {
        let State { mail, ranks, .. } = self;
        for (other, rank) in (0..).zip(ranks) {
            if other == process || rank.is_in_mpi {
                // SAFETY: handed on from the caller.
                unsafe { mail.progress(other, &mut rank.random) };
            }
        }
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
