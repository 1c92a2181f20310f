//! Proof 1: lanes fit together.

use super::{Place, Violation};
use crate::schedule::{CHANNELS, Channel, Direction, Fabric, Kind, Lane, LaneIndex, Posting, Schedule};
use crate::units::Rank;

/// For every rank and lane the lanes at the other end: one for messages and fetches, one per reader for what is published.
pub type Partners = Vec<Vec<Vec<(Rank, LaneIndex)>>>;

/// The identity of a lane among those of its rank. A lane tells by it which lane it expects at
/// another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Messages(Rank, Direction, Channel, Posting),
    Publish(Fabric, Channel),
    Fetch(Rank, Fabric, Channel),
}

/// The lanes of one rank, sorted by what identifies them.
type Table = Vec<(End, LaneIndex)>;

/// Finds the partners of all lanes; or says which lane has none, or one that does not fit.
pub fn partners<S: Schedule>(schedules: &[S]) -> Result<Partners, Violation> {
    let ranked = || (0..).map(Rank).zip(schedules);
    let tables = ranked().map(|(rank, schedule)| table(schedule, rank, schedules.len()));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let mut partners = Vec::with_capacity(schedules.len());
    for (rank, schedule) in ranked() {
        let mut of_rank = Vec::with_capacity(schedule.lanes().len());
        for (lane, description) in schedule.lanes().iter().enumerate() {
            let at = Place { rank, lane, step: 0 };
            let expected = expected(rank, &description.kind).into_iter();
            let lanes = expected.map(|(peer, end)| {
                let lane = find(&tables[peer.index()], end).ok_or(Violation::Unmatched { at, peer })?;
                if description.is_send() {
                    same_steps(at, description, &schedules[peer.index()].lanes()[lane])?;
                }
                Ok((peer, lane))
            });
            of_rank.push(lanes.collect::<Result<Vec<_>, _>>()?);
            listens_to(schedules, at, &description.kind)?;
        }
        partners.push(of_rank);
    }
    Ok(partners)
}

/// Returns the lanes that a lane of `rank` needs at other ranks.
fn expected(rank: Rank, kind: &Kind) -> Vec<(Rank, End)> {
    match kind {
        Kind::Messages(stream) => {
            let direction = match stream.direction {
                Direction::Send => Direction::Receive,
                Direction::Receive => Direction::Send,
            };
            vec![(stream.peer, End::Messages(rank, direction, stream.channel, stream.posting))]
        }
        Kind::Local => Vec::new(),
        Kind::Publish { fabric, channel, readers } => {
            readers.iter().map(|reader| (*reader, End::Fetch(rank, *fabric, *channel))).collect()
        }
        Kind::Fetch { fabric, channel, writer } => vec![(*writer, End::Publish(*fabric, *channel))],
    }
}

/// Checks that a rank that fetches is among the writer's readers.
fn listens_to<S: Schedule>(schedules: &[S], at: Place, kind: &Kind) -> Result<(), Violation> {
    let Kind::Fetch { fabric, channel, writer } = kind else { return Ok(()) };
    let is_reader = |lane: &Lane| match &lane.kind {
        Kind::Publish { fabric: f, channel: c, readers } => {
            (f, c) == (fabric, channel) && readers.binary_search(&at.rank).is_ok()
        }
        _ => false,
    };
    let is_known = schedules[writer.index()].lanes().iter().any(is_reader);
    if is_known { Ok(()) } else { Err(Violation::Unmatched { at, peer: *writer }) }
}

fn table<S: Schedule>(schedule: &S, rank: Rank, ranks: usize) -> Result<Table, Violation> {
    let mut table = Table::with_capacity(schedule.lanes().len());
    for (lane, description) in schedule.lanes().iter().enumerate() {
        let at = Place { rank, lane, step: 0 };
        let (end, peers, channel) = match &description.kind {
            Kind::Local => continue,
            Kind::Messages(s) => {
                let end = End::Messages(s.peer, s.direction, s.channel, s.posting);
                (end, std::slice::from_ref(&s.peer), s.channel)
            }
            Kind::Publish { fabric, channel, readers } => {
                (End::Publish(*fabric, *channel), &**readers, *channel)
            }
            Kind::Fetch { fabric, channel, writer } => {
                (End::Fetch(*writer, *fabric, *channel), std::slice::from_ref(writer), *channel)
            }
        };
        if let Some(peer) = peers.iter().find(|peer| **peer == rank || peer.index() >= ranks) {
            return Err(Violation::NoSuchPeer { at, peer: *peer });
        }
        if channel >= CHANNELS {
            return Err(Violation::NoSuchChannel { at, channel });
        }
        table.push((end, lane));
    }
    table.sort_unstable();
    match table.windows(2).find(|pair| is_same_stream(pair[0].0, pair[1].0)) {
        Some(twins) => {
            let at = Place { rank, lane: twins[1].1, step: 0 };
            Err(Violation::SameStream { at, other: twins[0].1 })
        }
        None => Ok(table),
    }
}

/// True if two lanes of a rank are the same stream: streams of messages must differ in more than
/// the time at which their receives are posted.
fn is_same_stream(a: End, b: End) -> bool {
    match (a, b) {
        (End::Messages(peer, direction, channel, _), End::Messages(p, d, c, _)) => {
            (peer, direction, channel) == (p, d, c)
        }
        _ => a == b,
    }
}

fn find(table: &Table, end: End) -> Option<LaneIndex> {
    let place = table.binary_search_by_key(&end, |(end, _)| *end).ok()?;
    Some(table[place].1)
}

fn same_steps(at: Place, sender: &Lane, receiver: &Lane) -> Result<(), Violation> {
    let (sent, received) = (sender.steps, receiver.steps);
    if sent == received { Ok(()) } else { Err(Violation::StepCount { at, sent, received }) }
}
