//! What is only for calls of other sizes: messages that are thrown away, and lanes that carry announcements alone.

use super::{Call, Content, Conversation, Lanes, MessagePart, Transport};
use crate::schedule::{Kind, Lane, LaneIndex, Schedule};

impl Conversation {
    /// True if the lane has a signal, which says nothing of a size.
    pub(super) fn is_signal(&self, lane: LaneIndex) -> bool {
        let own = self.executor.schedule().lanes().len();
        match lane.checked_sub(own) {
            Some(further) => self.further[further].1,
            None => self.lane(lane).stream().is_some() && matches!(self.opening(lane), (_, 1, 0)),
        }
    }

    /// Returns the state of a lane whose sender was called with `total`: the messages that still follow.
    pub(super) fn draining(&self, lane: LaneIndex, total: u64, call: &mut impl Call) -> Lanes {
        let stream = self.lane(lane).stream();
        let Some(schedule) = call.schedule(total) else { return Lanes::Closed };
        let same = |other: &Lane| other.stream() == stream;
        let Some(lane) = schedule.lanes().iter().position(same) else { return Lanes::Closed };
        let has_data = schedule.lanes()[lane].steps > 0;
        let next = u64::from(has_data && schedule.step(lane, 0).action.length() <= self.most_first);
        Lanes::Draining { schedule, lane, next }
    }

    /// Receives the next message that is thrown away, one after the other.
    pub(super) fn drain<T: Transport>(&mut self, lane: LaneIndex, transport: &mut T) -> Result<(), T::Error> {
        let Lanes::Draining { schedule, lane: theirs, next } = &mut self.lanes[lane] else { return Ok(()) };
        if *next >= schedule.lanes()[*theirs].steps {
            self.lanes[lane] = Lanes::Closed;
            return Ok(());
        }
        let bytes = schedule.step(*theirs, *next).action.length();
        *next += 1;
        self.send_or_receive(lane, MessagePart::Scrap, Content::Scrap(bytes), transport)
    }
}

/// The lanes of larger sizes that `schedule` lacks (invariant 1), and whether each has a signal there: they carry announcements only.
pub(super) fn further_lanes(call: &mut impl Call, schedule: &dyn Schedule) -> Vec<(Lane, bool)> {
    let Some(all) = call.schedule(call.bytes_for_all_lanes()) else { return Vec::new() };
    let is_same = |lane: &Lane, known: &Lane| match lane.stream() {
        None => known.kind == lane.kind,
        stream => known.stream() == stream,
    };
    let is_known = |lane: &Lane| schedule.lanes().iter().any(|known| is_same(lane, known));
    let is_signal =
        |index: LaneIndex, lane: &Lane| lane.steps == 1 && all.step(index, 0).action.length() == 0;
    let missing = all.lanes().iter().enumerate();
    let missing = missing.filter(|(_, lane)| lane.kind != Kind::Local && !is_known(lane));
    missing.map(|(index, lane)| (Lane::new(lane.kind.clone(), 0), is_signal(index, lane))).collect()
}
