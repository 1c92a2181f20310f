//! The way of what one rank publishes and others fetch:
//!
//! ```text
//!   shared       publish: waits for a free buffer ─▶ copies in ── latency ─▶ there
//!                  fetch: waits until it is there ─▶ copies out ── latency ─▶ the writer may use the buffer again
//!   multicast    publish: overhead ─▶ leaves ── latency ─▶ reaches each reader's port, and comes in byte by byte
//!                  fetch: waits until the prefix up to its end has come ─▶ overhead
//! ```
//!
//! *leaves* occupies the writer's port once, whoever reads, and no link between switches; copies and overheads occupy a rank's processor.

use std::collections::HashMap;

use polycast_core::executor::StepId;
use polycast_core::schedule::{Action, Fabric, Kind, LaneIndex, Partners, Schedule, Slice};
use polycast_core::units::Rank;

use super::{Engine, Event};

/// A lane of a rank.
pub(crate) type LaneOf = (Rank, LaneIndex);

/// The stream that a lane publishes.
pub(crate) struct Writer {
    fabric: Fabric,
    readers: Vec<LaneOf>,
    /// The ends of the published steps in the stream.
    ends: Vec<u64>,
    /// The stream so far, if data is carried.
    data: Vec<u8>,
    /// A step that waits for a free buffer.
    waiting: Option<(StepId, Slice)>,
}

/// The state of a lane that fetches.
pub(crate) struct Reader {
    writer: LaneOf,
    arrivals: Vec<Arrival>,
    /// The fetch that waits for its data.
    waiting: Option<Fetch>,
    /// The byte of the stream before which the reader needs nothing any more, as far as the writer
    /// knows.
    released: u64,
}

/// A part of a stream that has begun to come in.
#[derive(Debug)]
pub(crate) struct Arrival {
    start: u64,
    end: u64,
    begins_ns: u64,
}

/// A fetch under way.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    id: StepId,
    at: u64,
    to: Slice,
}

/// An event of published data.
pub(crate) enum Published {
    /// All of a step has been copied to shared memory.
    CopiedIn(LaneOf, StepId, Slice),
    /// A step may leave through the writer's port.
    Leave(LaneOf, StepId, Slice),
    /// A published step is at a reader: in shared memory all of it, else its first byte at the port.
    Reach(LaneOf, Arrival),
    /// A fetch may have what it waits for.
    Look(LaneOf),
    /// The reader has what it fetched.
    Fetched(LaneOf, Fetch),
    /// The writer sees that this reader needs nothing before this byte any more.
    Released(LaneOf, u64),
}

/// All lanes that publish or fetch.
#[derive(Default)]
pub(crate) struct Streams {
    writers: HashMap<LaneOf, Writer>,
    readers: HashMap<LaneOf, Reader>,
}

impl Streams {
    pub fn new<S: Schedule>(schedules: &[S], partners: &Partners) -> Streams {
        let mut streams = Streams::default();
        for (rank, (schedule, partners)) in (0..).map(Rank).zip(schedules.iter().zip(partners)) {
            for (lane, (description, partners)) in schedule.lanes().iter().zip(partners).enumerate() {
                match (&description.kind, partners.first()) {
                    (Kind::Publish { fabric, .. }, _) => {
                        let (readers, ends, data) = (partners.clone(), Vec::new(), Vec::new());
                        let writer = Writer { fabric: *fabric, readers, ends, data, waiting: None };
                        streams.writers.insert((rank, lane), writer);
                    }
                    (Kind::Fetch { .. }, Some(writer)) => {
                        let (arrivals, released) = (Vec::new(), 0);
                        let reader = Reader { writer: *writer, arrivals, waiting: None, released };
                        streams.readers.insert((rank, lane), reader);
                    }
                    _ => {}
                }
            }
        }
        streams
    }
}

impl Writer {
    fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl<S: Schedule> Engine<S> {
    pub(crate) fn start_publish(&mut self, rank: Rank, id: StepId, from: Slice, now_ns: u64) {
        let of = (rank, id.lane);
        let Some(writer) = self.streams.writers.get_mut(&of) else { return };
        if writer.fabric == Fabric::Multicast {
            let started_ns = self.hosts[rank.index()].work(now_ns, self.network.send_overhead_ns);
            return self.events.schedule(started_ns, Event::Published(Published::Leave(of, id, from)));
        }
        let reused = (id.index as usize).checked_sub(self.network.shared.buffers as usize);
        let reused_end = reused.map_or(0, |step| writer.ends[step]);
        if writer.readers.iter().any(|reader| self.streams.readers[reader].released < reused_end) {
            writer.waiting = Some((id, from));
            return;
        }
        let done_ns = self.hosts[rank.index()].work(now_ns, self.network.shared.copy_ns(from.length()));
        self.events.schedule(done_ns, Event::Published(Published::CopiedIn(of, id, from)));
    }

    pub(crate) fn start_fetch(&mut self, rank: Rank, id: StepId, (at, to): (u64, Slice), now_ns: u64) {
        let of = (rank, id.lane);
        if let Some(reader) = self.streams.readers.get_mut(&of) {
            // What stands before the first part that it takes it does not wait for.
            if id.index == 0 && at > 0 {
                let released = Event::Published(Published::Released(of, at));
                self.events.schedule(now_ns + self.network.shared.latency_ns, released);
            }
            reader.waiting = Some(Fetch { id, at, to });
            self.look(of, now_ns);
        }
    }

    pub(crate) fn published(&mut self, event: Published, now_ns: u64) {
        match event {
            Published::CopiedIn(of, id, from) => {
                let reach_ns = now_ns + self.network.shared.latency_ns;
                self.publish(of, &from, reach_ns);
                self.complete(of.0, id, now_ns);
            }
            Published::Leave(of, id, from) => {
                let port = self.links.port(of.0, true);
                let (begin_ns, sent_ns) = self.links.occupy(&self.network, port, from.length(), now_ns);
                self.events.schedule(sent_ns, Event::Sent(of.0, id));
                self.publish(of, &from, begin_ns + self.network.latency_ns);
            }
            Published::Reach(of, mut arrival) => {
                let Some(reader) = self.streams.readers.get_mut(&of) else { return };
                if self.streams.writers[&reader.writer].fabric == Fabric::Multicast {
                    let (port, bytes) = (self.links.port(of.0, false), arrival.end - arrival.start);
                    (arrival.begins_ns, _) = self.links.occupy(&self.network, port, bytes, now_ns);
                }
                reader.arrivals.push(arrival);
                self.look(of, now_ns);
            }
            Published::Look(of) => self.look(of, now_ns),
            Published::Fetched(of, fetch) => self.fetched(of, fetch, now_ns),
            Published::Released(of, until) => {
                let Some(reader) = self.streams.readers.get_mut(&of) else { return };
                reader.released = until;
                let writer = reader.writer;
                let waiting = self.streams.writers.get_mut(&writer).and_then(|writer| writer.waiting.take());
                if let Some((id, from)) = waiting {
                    self.start_publish(writer.0, id, from, now_ns);
                }
            }
        }
    }

    /// Adds a step to a stream, which reaches its readers at this time.
    fn publish(&mut self, of: LaneOf, from: &Slice, reach_ns: u64) {
        let Some(writer) = self.streams.writers.get_mut(&of) else { return };
        if let Some(data) = &self.hosts[of.0.index()].data {
            writer.data.extend_from_slice(data.at(from));
        }
        let (start, end) = (writer.end(), writer.end() + from.length());
        writer.ends.push(end);
        for reader in &writer.readers {
            let arrival = Arrival { start, end, begins_ns: reach_ns };
            self.events.schedule(reach_ns, Event::Published(Published::Reach(*reader, arrival)));
        }
    }

    /// Lets a waiting fetch go on if its data is there, or looks again when it comes.
    fn look(&mut self, of: LaneOf, now_ns: u64) {
        let Some(reader) = self.streams.readers.get_mut(&of) else { return };
        let Some(Fetch { at, to, .. }) = &reader.waiting else { return };
        let (bytes, end) = (to.length(), at + to.length());
        let fabric = self.streams.writers[&reader.writer].fabric;
        let there_ns = match reader.arrivals.get(reader.arrivals.partition_point(|arrival| arrival.end < end))
        {
            None if end > 0 => return,
            Some(arrival) if fabric == Fabric::Multicast => {
                arrival.begins_ns + self.network.occupancy_ns(end.saturating_sub(arrival.start))
            }
            _ => now_ns,
        };
        if there_ns > now_ns {
            return self.events.schedule(there_ns, Event::Published(Published::Look(of)));
        }
        let Some(fetch) = reader.waiting.take() else { return };
        let cost_ns = match fabric {
            Fabric::Shared | Fabric::Cell => self.network.shared.copy_ns(bytes),
            Fabric::Multicast => self.network.receive_overhead_ns,
        };
        let done_ns = self.hosts[of.0.index()].work(now_ns, cost_ns);
        self.events.schedule(done_ns, Event::Published(Published::Fetched(of, fetch)));
    }

    fn fetched(&mut self, of: LaneOf, Fetch { id, at, to }: Fetch, now_ns: u64) {
        let Some(reader) = self.streams.readers.get(&of) else { return };
        let writer = &self.streams.writers[&reader.writer];
        let host = &mut self.hosts[of.0.index()];
        if let Some(data) = &mut host.data {
            data.at_mut(&to).copy_from_slice(&writer.data[at as usize..(at + to.length()) as usize]);
        }
        let schedule = host.executor.schedule();
        let is_last = id.index + 1 == schedule.lanes()[id.lane].steps;
        let until = match schedule.step(id.lane, id.index + u64::from(!is_last)).action {
            Action::Fetch { at, .. } if !is_last => at,
            _ => u64::MAX,
        };
        let released = Event::Published(Published::Released(of, until));
        self.events.schedule(now_ns + self.network.shared.latency_ns, released);
        self.complete(of.0, id, now_ns);
    }
}
