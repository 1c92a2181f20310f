//! A rank that follows goes on with the size that it is told first.
//!
//! ```text
//!   awaits its size ──told its own──▶ goes on
//!                   ──told another──▶ schedule of that size ──▶ goes on      what was posted is kept: all sizes have the same streams
//!                                     └ none, or no room    ──▶ is spoiled
//! ```

use super::shared::SharedLane;
use super::{Call, Completed, Conversation, Direction, Lane, LaneIndex, Lanes, NOTHING, StepId, Transport};
use crate::schedule::Kind;

impl Conversation {
    /// Goes on after the announcement of a lane has come, and perhaps its first data.
    pub(super) fn hear<T: Transport>(
        &mut self,
        done: Completed,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let mut lane = self.renamed(done.id.lane);
        let is_signal = self.is_signal(lane);
        if self.awaits_size && !is_signal {
            self.learn(done.total, call, transport)?;
            lane = self.renamed(done.id.lane);
        }
        let is_agreed = done.total == self.total || is_signal;
        let next = match is_agreed {
            true => Lanes::Agreed { held: (self.lane(lane).steps > 0).then_some(done.received_bytes) },
            false => self.draining(lane, done.total, call),
        };
        if !matches!(next, Lanes::Agreed { held: Some(_) }) {
            transport.keep(done.id.lane, None);
        }
        self.is_spoiled |= !is_agreed;
        let Lanes::Unheard { waiting } = std::mem::replace(&mut self.lanes[lane], next) else {
            return Ok(());
        };
        for index in 0..waiting {
            let action = self.executor.schedule.step(lane, index).action;
            self.start(StepId { lane, index }, &action, transport)?;
        }
        self.drain(lane, transport)
    }

    /// Goes on with a call of `total` bytes, if that is another size than that of this conversation: what
    /// it sends has come by other ways, and nothing was sent. Without room it is spoiled.
    pub fn go_on_as<T: Transport>(
        &mut self,
        total: u64,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        if total != self.total && !self.adopt(total, call, transport)? {
            self.spoil();
        }
        Ok(())
    }

    /// Takes the first size that this rank is told. Then it announces what it has to.
    pub(super) fn learn<T: Transport>(
        &mut self,
        told: u64,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        self.awaits_size = false;
        if told != self.total {
            self.adopt(told, call, transport)?;
        }
        self.announce_empty(transport)
    }

    /// Announces on lanes on which this rank sends nothing: where others have signals at once, elsewhere when it has been told a size.
    pub(super) fn announce_empty<T: Transport>(&mut self, transport: &mut T) -> Result<(), T::Error> {
        for lane in 0..self.lanes.len() {
            let is_due = self.lane(lane).steps == 0 && (!self.awaits_size || self.is_signal(lane));
            if let (true, Lanes::Sending { is_announced: false }) = (is_due, &self.lanes[lane]) {
                self.lanes[lane] = Lanes::Sending { is_announced: true };
                self.announce(lane, NOTHING, transport)?;
            }
        }
        Ok(())
    }

    /// Goes on as a rank that was called with `total`, before anything was sent but signals. False: it cannot be.
    fn adopt<T: Transport>(
        &mut self,
        total: u64,
        call: &mut impl Call,
        transport: &mut T,
    ) -> Result<bool, T::Error> {
        let Some(mut other) = Conversation::new(call, total, self.limits) else { return Ok(false) };
        let Some(posted) = self.names_in(&other) else { return Ok(false) };
        if !transport.adopt(total, other.scratch_bytes()) {
            return Ok(false);
        }
        for (lane, before) in posted.iter().enumerate() {
            let description = other.lane(lane);
            let state = match description.stream().map(|stream| stream.direction) {
                Some(Direction::Receive) => match self.lanes[*before] {
                    // A signal that has come: what is heard of it is dealt with, or still to be.
                    Lanes::Agreed { held: None } => Lanes::Closed,
                    Lanes::Agreed { held } => Lanes::Agreed { held },
                    _ => Lanes::Unheard { waiting: 0 },
                },
                Some(Direction::Send) if self.has_announced(*before) => Lanes::Closed,
                Some(Direction::Send) => Lanes::Sending { is_announced: false },
                None if description.kind == Kind::Local => Lanes::Local,
                None => Lanes::Shared,
            };
            if let Lanes::Shared = state {
                let sharing = SharedLane::again(lane, other.opening(lane), total, transport)?;
                other.sharing.push(sharing);
            }
            other.lanes.push(state);
        }
        (other.outstanding, other.is_spoiled, other.posted) = (self.outstanding, self.is_spoiled, posted);
        *self = other;
        Ok(true)
    }

    fn has_announced(&self, lane: LaneIndex) -> bool {
        matches!(self.lanes[lane], Lanes::Sending { is_announced: true })
    }

    /// The lanes of `other` by their names in this; `None` if not all of them can go on there.
    fn names_in(&self, other: &Conversation) -> Option<Vec<LaneIndex>> {
        let is_same = |lane: &Lane, known: &Lane| match (lane.stream(), known.stream()) {
            (None, None) => lane.kind == known.kind,
            (stream, of_known) => stream == of_known,
        };
        let find = |lane: LaneIndex, of: &Conversation, among: &Conversation| {
            let lane = of.lane(lane);
            let found = (0..among.lanes()).find(|known| is_same(lane, among.lane(*known)));
            // What is local needs no name.
            found.or((lane.kind == Kind::Local).then_some(0))
        };
        let names: Vec<_> = (0..other.lanes()).map(|lane| find(lane, other, self)).collect::<Option<_>>()?;
        let have_all = (0..self.lanes()).all(|lane| find(lane, self, other).is_some());
        have_all.then_some(names)
    }

    /// The lane whose first message was posted under this name.
    pub(super) fn renamed(&self, posted: LaneIndex) -> LaneIndex {
        let is_it = |lane: &LaneIndex| self.posted[*lane] == posted && self.lane(*lane).is_receive();
        (0..self.posted.len()).find(is_it).unwrap_or(posted)
    }
}
