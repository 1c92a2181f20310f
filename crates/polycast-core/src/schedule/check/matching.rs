//! Proof 1: lanes fit together.

use super::{Place, Summary, Violation};
use crate::schedule::{CHANNELS, Direction, Lane, LaneIndex, Schedule, Stream};
use crate::units::Rank;

/// For every rank and lane, the index of the lane at the other end.
pub(super) type Partners = Vec<Vec<LaneIndex>>;

/// What fits together, and how much it is.
pub(super) struct Matching {
    pub partners: Partners,
    pub summary: Summary,
}

pub(super) fn check<S: Schedule>(schedules: &[S]) -> Result<Matching, Violation> {
    let tables = (0..)
        .map(Rank)
        .zip(schedules)
        .map(|(rank, schedule)| streams(schedule, rank, schedules.len()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut partners = Vec::with_capacity(schedules.len());
    let mut summary = Summary::default();
    for (rank, schedule) in (0..).map(Rank).zip(schedules) {
        let mut sent = Summary::default();
        let mut of_rank = Vec::with_capacity(schedule.lanes().len());
        for (index, lane) in schedule.lanes().iter().enumerate() {
            let at = Place { rank, lane: index, step: 0 };
            let stream = lane.stream().ok_or(Violation::NoMessages { at })?;
            let direction = match stream.direction {
                Direction::Send => Direction::Receive,
                Direction::Receive => Direction::Send,
            };
            let peer = stream.peer;
            let partner = find(&tables[peer.index()], Stream { peer: rank, direction, ..stream });
            let partner = partner.ok_or(Violation::Unmatched { at, peer })?;
            if lane.is_send() {
                same_steps(schedule, at, lane, &schedules[peer.index()], partner, &mut sent)?;
            }
            of_rank.push(partner);
        }
        partners.push(of_rank);
        summary.messages += sent.messages;
        summary.signals += sent.signals;
        summary.bytes.0 += sent.bytes.0;
        summary.most_messages_sent = summary.most_messages_sent.max(sent.messages);
        summary.most_bytes_sent = summary.most_bytes_sent.max(sent.bytes);
    }
    Ok(Matching { partners, summary })
}

/// The lanes of one rank, sorted by what identifies them.
fn streams<S: Schedule>(
    schedule: &S,
    rank: Rank,
    ranks: usize,
) -> Result<Vec<(Stream, LaneIndex)>, Violation> {
    let mut streams = Vec::with_capacity(schedule.lanes().len());
    for (index, lane) in schedule.lanes().iter().enumerate() {
        let at = Place { rank, lane: index, step: 0 };
        let Stream { peer, channel, .. } = lane.stream().ok_or(Violation::NoMessages { at })?;
        if peer == rank || peer.index() >= ranks {
            return Err(Violation::NoSuchPeer { at, peer });
        }
        if channel >= CHANNELS {
            return Err(Violation::NoSuchChannel { at, channel });
        }
        streams.extend(lane.stream().map(|stream| (stream, index)));
    }
    streams.sort_unstable();
    let twins = streams.windows(2).find(|pair| pair[0].0 == pair[1].0);
    twins.map_or(Ok(()), |twins| {
        let at = Place { rank, lane: twins[1].1, step: 0 };
        Err(Violation::SameStream { at, other: twins[0].1 })
    })?;
    Ok(streams)
}

fn find(streams: &[(Stream, LaneIndex)], stream: Stream) -> Option<LaneIndex> {
    let place = streams.binary_search_by_key(&stream, |(stream, _)| *stream).ok()?;
    Some(streams[place].1)
}

fn same_steps<S: Schedule>(
    sender: &S,
    at: Place,
    lane: &Lane,
    receiver: &S,
    receiver_lane: LaneIndex,
    sent_by_rank: &mut Summary,
) -> Result<(), Violation> {
    let received = receiver.lanes()[receiver_lane].steps;
    if received != lane.steps {
        return Err(Violation::StepCount { at, sent: lane.steps, received });
    }
    for step in 0..lane.steps {
        let bytes = |schedule: &S, lane| super::bytes_of(&schedule.step(lane, step).action);
        let (sent, received) = (bytes(sender, at.lane), bytes(receiver, receiver_lane));
        sent_by_rank.bytes.0 += sent.end.saturating_sub(sent.start);
        *(if sent.is_empty() { &mut sent_by_rank.signals } else { &mut sent_by_rank.messages }) += 1;
        if sent != received {
            return Err(Violation::OtherBytes { at: Place { step, ..at }, sent, received });
        }
    }
    Ok(())
}
