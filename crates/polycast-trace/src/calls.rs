//! Each collective call with what all its ranks say of it. Calls on a communicator are told apart by their number: MPI demands
//! that all ranks call in the same order. Communicators are told apart by their ranks, and by the order in which those of the same ranks
//! had their first call.

use std::collections::HashMap;

use crate::event::{Event, Kind};
use crate::job::Job;
use crate::layout::NOT_NAMED;

/// A call of a collective.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the group of the communicator's ranks.
    pub group: u64,
    /// The number of the communicator among those of these ranks.
    pub ordinal: u32,
    /// Ranks of the communicator.
    pub size: u32,
    /// The call's number on the communicator, from 1.
    pub number: u32,
    /// The collective's number.
    pub collective: u8,
    /// The bytes of a message, or of a rank's block.
    pub bytes: u64,
    /// A rank of the communicator.
    pub root: u32,
    /// True if the times of the call's parts may be held against each other: their clocks were
    /// compared, or are one.
    pub has_one_clock: bool,
    /// The ranks whose call is known, by rank of the communicator.
    pub parts: Vec<Part>,
}

/// A call on one rank. Times are in nanoseconds since the job's beginning.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The rank in the communicator.
    pub rank: u32,
    /// The index of the rank's trace.
    pub trace: u32,
    /// The time at which the program called.
    pub called_ns: i64,
    /// The time at which it was settled who serves the call.
    pub chosen_ns: Option<i64>,
    /// The time at which the call returned; `None`: not before the end of the trace.
    pub returned_ns: Option<i64>,
    /// The choice that served the call, as an index into the job's names.
    pub choice: u16,
    /// The reason for the choice, as an index into the job's names.
    pub reason: u16,
    /// True if the call returned an error.
    pub has_failed: bool,
    /// The time that the rank waited in the call, as far as polycast knows.
    pub waited_ns: u64,
    /// The longer waits: since when, and how long.
    pub waits: Vec<(i64, u64)>,
    /// The datagrams that a leader of a node saw of the broadcast.
    pub datagrams: Option<Box<Datagrams>>,
}

/// The datagrams of a broadcast on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// The time at which the first datagram came or went.
    pub first_ns: Option<i64>,
    /// The time at which the last datagram came or went.
    pub last_ns: Option<i64>,
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that brought something new.
    pub useful: u32,
    /// Datagrams that went.
    pub sent: u32,
    /// Fragments that were sent again to this node.
    pub repaired: u64,
    /// Fragments that the parity restored.
    pub restored: u32,
    /// The number of requests that the node made.
    pub requests: u32,
}

/// Returns all calls, by when the first rank called.
pub fn calls(job: &Job) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places: HashMap<(u64, u32, u32), usize> = HashMap::new();
    for (index, trace) in job.traces.iter().enumerate() {
        // Where this rank's part of a call is: the index of the call, and of the part there.
        let mut mine: HashMap<(u16, u32), (usize, usize)> = HashMap::new();
        for event in trace.events.iter().filter(|event| event.communicator != NOT_NAMED) {
            let Some(communicator) = trace.communicators.get(usize::from(event.communicator)) else {
                continue;
            };
            let at_ns = job.common_ns(index, event.at_ns);
            let of_rank = (event.communicator, event.call);
            if event.kind == Kind::Call {
                let key = (communicator.group, communicator.ordinal, event.call);
                let place = *places.entry(key).or_insert(calls.len());
                if place == calls.len() {
                    calls.push(Call {
                        group: communicator.group,
                        ordinal: communicator.ordinal,
                        size: communicator.size,
                        number: event.call,
                        collective: event.detail,
                        bytes: event.a,
                        root: event.b,
                        has_one_clock: true,
                        parts: Vec::new(),
                    });
                }
                let parts = &mut calls[place].parts;
                mine.insert(of_rank, (place, parts.len()));
                let (rank, trace) = (communicator.rank, index as u32);
                parts.push(Part { rank, trace, called_ns: at_ns, ..Part::default() });
            } else if let Some((call, part)) = mine.get(&of_rank) {
                add(&mut calls[*call].parts[*part], event, at_ns, |name| job.name(index, name));
                if event.kind == Kind::Return {
                    mine.remove(&of_rank);
                }
            }
        }
    }
    for call in &mut calls {
        call.parts.sort_by_key(|part| part.rank);
        call.has_one_clock = job.have_one_clock(call.parts.iter().map(|part| part.trace as usize));
    }
    calls.sort_by_key(|call| call.parts.iter().map(|part| part.called_ns).min());
    calls
}

fn add(part: &mut Part, event: &Event, at_ns: i64, name: impl Fn(u32) -> u16) {
    let Event { a, b, c, detail, .. } = *event;
    match event.kind {
        Kind::Chosen => {
            part.chosen_ns = Some(at_ns);
            (part.choice, part.reason) = (name(b), name(c));
        }
        Kind::Return => {
            part.returned_ns = Some(at_ns.max(part.called_ns));
            (part.waited_ns, part.has_failed) = (a, detail != 0);
        }
        Kind::Wait => part.waits.push((at_ns, a)),
        Kind::FirstDatagram => part.datagrams.get_or_insert_default().first_ns = Some(at_ns),
        Kind::LastDatagram => part.datagrams.get_or_insert_default().last_ns = Some(at_ns),
        Kind::Datagrams => {
            let datagrams = part.datagrams.get_or_insert_default();
            (datagrams.received, datagrams.useful, datagrams.sent) = (a, b, c);
        }
        Kind::Repairs => {
            let datagrams = part.datagrams.get_or_insert_default();
            (datagrams.repaired, datagrams.restored, datagrams.requests) = (a, b, c);
        }
        Kind::Call | Kind::Left | Kind::Unserved => {}
    }
}

impl Call {
    /// True if all ranks are known, and all have returned.
    pub fn is_whole(&self) -> bool {
        self.parts.len() == self.size as usize && self.parts.iter().all(|part| part.returned_ns.is_some())
    }

    /// Returns the choice that served the call: that of the first known rank, which is that of all
    /// if they agree.
    pub fn choice(&self) -> u16 {
        self.parts.first().map_or(0, |part| part.choice)
    }
}
