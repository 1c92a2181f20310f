use std::sync::Arc;
use std::time::{Duration, Instant};

use polycast_core::policy::chooser::Why;
use polycast_core::policy::{Call, Choice, Collective};
use polycast_core::protocol::Counters;
use polycast_core::units::Rank;
use polycast_trace::{Event, Kind};

use super::Tracer;
use crate::call::Heard;
use crate::machine;

/// Shortest wait that gets an event; shorter ones are only counted.
const SHORTEST_WAIT: Duration = Duration::from_micros(10);

/// The calls of one communicator.
pub struct CallTrace {
    tracer: Arc<Tracer>,
    communicator: u16,
    /// Number of the last call.
    call: u32,
    waits: Waits,
    /// Names of the last choice and its reason.
    named: Option<Named>,
}

/// Waits of the call under way.
#[derive(Default)]
struct Waits {
    since: Option<Instant>,
    time: Duration,
    count: u32,
}

struct Named {
    collective: Collective,
    choice: Choice,
    why: Why,
    names: [u16; 2],
}

impl CallTrace {
    /// The trace of a communicator of these ranks of MPI_COMM_WORLD, if anything is recorded.
    pub fn of(rank: Rank, world_ranks: &[u32]) -> Option<CallTrace> {
        let tracer = super::tracer()?;
        let communicator = tracer.communicator(rank.0, world_ranks);
        Some(CallTrace { tracer, communicator, call: 0, waits: Waits::default(), named: None })
    }

    /// Number of the last call.
    pub fn number(&self) -> u32 {
        self.call
    }

    #[inline]
    fn record(&self, call: u32, at: Instant, kind: Kind, detail: u8, (a, b, c): (u64, u32, u32)) {
        let at_ns = self.tracer.nanos(at);
        self.tracer.recorder.record(Event {
            at_ns,
            kind,
            detail,
            communicator: self.communicator,
            call,
            a,
            b,
            c,
        });
    }

    /// Records that the program has called.
    pub fn called(&mut self, of: &Call, root: Rank, at: Instant) {
        self.call = self.call.wrapping_add(1);
        self.waits = Waits::default();
        self.record(self.call, at, Kind::Call, of.collective as u8, (of.bytes.0, root.0, 0));
    }

    /// Records who serves the call. `text` says why.
    pub fn chosen(
        &mut self,
        collective: Collective,
        choice: Choice,
        why: Why,
        text: impl FnOnce() -> String,
    ) {
        let is_it = |named: &&Named| (named.collective, named.choice, named.why) == (collective, choice, why);
        let names = self
            .named
            .as_ref()
            .filter(is_it)
            .map(|named| named.names)
            .unwrap_or_else(|| [self.tracer.name(&choice.to_string()), self.tracer.name(&text())]);
        self.named = Some(Named { collective, choice, why, names });
        let [choice, why] = names.map(u32::from);
        self.record(self.call, machine::now(), Kind::Chosen, collective as u8, (0, choice, why));
    }

    /// Notes that nothing can go on before something comes.
    pub fn rests(&mut self) {
        if self.waits.since.is_none() {
            self.waits.since = Some(machine::now());
        }
    }

    /// Records the wait that has ended, since something has come.
    pub fn goes_on(&mut self) {
        if let Some(since) = self.waits.since.take() {
            let time = machine::now().saturating_duration_since(since);
            self.waits.time += time;
            self.waits.count += 1;
            if time >= SHORTEST_WAIT {
                self.record(self.call, since, Kind::Wait, 0, (time.as_nanos() as u64, 0, 0));
            }
        }
    }

    /// Records the datagrams that a leader saw of a broadcast by multicast.
    pub fn heard(&self, call: u32, heard: &Heard) {
        let Heard { first, last, is_root, counters } = heard;
        let detail = u8::from(*is_root);
        for (kind, at) in [(Kind::FirstDatagram, first), (Kind::LastDatagram, last)] {
            if let Some(at) = at {
                self.record(call, *at, kind, detail, (0, 0, 0));
            }
        }
        let now = machine::now();
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let Counters { received, useful, sent, repaired, restored, .. } = *counters;
        self.record(call, now, Kind::Datagrams, detail, (received, narrow(useful), narrow(sent)));
        let requests = counters.requests + counters.urgent_requests;
        if repaired + restored + requests > 0 {
            self.record(call, now, Kind::Repairs, detail, (repaired, narrow(restored), narrow(requests)));
        }
    }

    /// Records that a call returns.
    pub fn returned(&mut self, call: u32, has_failed: bool, at: Instant) {
        self.goes_on();
        let Waits { time, count, .. } = self.waits;
        self.record(call, at, Kind::Return, has_failed.into(), (time.as_nanos() as u64, count, 0));
    }
}
