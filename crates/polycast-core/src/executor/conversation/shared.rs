//! A lane in memory that the ranks of a node share. Its stream begins with its writer's announcement, like any lane:
//!
//! ```text
//!   publishing    open ──▶ steps, as there is room for them ──▶ closed
//!   fetching      hear ──▶ steps, as they are there ──▶ finished             finished at once if the announcement is another one
//! ```

use super::Transport;
use crate::executor::{Executor, StepId};
use crate::schedule::{Action, Kind, LaneIndex, Schedule, Slice};

/// The next work on a lane in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share<'a> {
    /// To begin: this rank publishes on this lane.
    Open {
        /// The bytes that this rank was called with.
        total: u64,
        /// The bytes that the first step publishes; 0 if there is none.
        first_bytes: u64,
    },
    /// To begin anew, before anything was published on this lane: this rank has adopted another size.
    OpenAgain {
        /// The bytes of the call.
        total: u64,
        /// The bytes that the first step publishes; 0 if there is none.
        first_bytes: u64,
    },
    /// To begin: this rank fetches on this lane.
    Expect,
    /// To go on: the next step that publishes.
    Publish {
        /// The bytes to publish.
        from: &'a Slice,
        /// True if there is nothing to publish, but readers wait for the step.
        is_spoiled: bool,
    },
    /// To end: everything was published.
    Close,
    /// To go on: to find out how many bytes the lane's writer was called with.
    Hear,
    /// To go on: the next step that fetches.
    Fetch {
        /// The offset in the writer's stream.
        at: u64,
        /// The place for the bytes.
        to: &'a Slice,
    },
    /// To end: nothing more is needed.
    Finish,
}

/// The result of an attempt at a [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The work is not done, and no part of it was done now.
    Waits,
    /// A part of it was done.
    Moved,
    /// The work is done.
    Done,
    /// The answer to [`Share::Hear`]: the bytes that the writer was called with.
    Heard(u64),
    /// The answer to [`Share::Fetch`] if what comes is worth nothing.
    Spoiled,
}

/// The stage that a lane has reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharingStage {
    /// The lane's writer has not been heard.
    Unheard,
    /// Steps go on.
    Open,
    /// The writer was called with another size: steps fetch nothing.
    Closed,
}

/// The progress of a lane, when nothing more can be done on it now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Went {
    /// No step has ended.
    Nowhere,
    /// A step has ended.
    On,
    /// The lane is over.
    ToItsEnd,
    /// The lane's writer was called with so many bytes: the first size that this rank is told.
    Told(u64),
}

/// A lane that is not over.
pub(super) struct SharedLane {
    pub lane: LaneIndex,
    kind: Kind,
    stage: SharingStage,
    /// The step that has started, if there is one.
    step: Option<(u64, Action)>,
    steps_left: u64,
}

impl SharedLane {
    /// Begins a lane of `steps` steps, the first of which publishes `first_bytes`.
    pub fn begin<T: Transport>(
        lane: LaneIndex,
        (kind, steps, first_bytes): (&Kind, u64, u64),
        total: u64,
        transport: &mut T,
    ) -> Result<SharedLane, T::Error> {
        let (stage, how) = match kind {
            Kind::Fetch { .. } => (SharingStage::Unheard, Share::Expect),
            _ => (SharingStage::Open, Share::Open { total, first_bytes }),
        };
        transport.share(lane, kind, how)?;
        Ok(SharedLane { lane, kind: kind.clone(), stage, step: None, steps_left: steps })
    }

    /// Goes on with a lane that has begun, as one of a call of another size.
    pub fn again<T: Transport>(
        lane: LaneIndex,
        (kind, steps, first_bytes): (&Kind, u64, u64),
        total: u64,
        transport: &mut T,
    ) -> Result<SharedLane, T::Error> {
        let mut stage = SharingStage::Unheard;
        if let Kind::Publish { .. } = kind {
            stage = SharingStage::Open;
            transport.share(lane, kind, Share::OpenAgain { total, first_bytes })?;
        }
        Ok(SharedLane { lane, kind: kind.clone(), stage, step: None, steps_left: steps })
    }

    /// Takes on a step that the executor has started.
    pub fn start(&mut self, index: u64, action: &Action) {
        self.step = Some((index, action.clone()));
    }

    /// Does what can be done now, in a call of `total` bytes. `awaits_size`: the rank has not been told a size.
    pub fn advance<T: Transport>(
        &mut self,
        (total, awaits_size): (u64, bool),
        is_spoiled: &mut bool,
        executor: &mut Executor<Box<dyn Schedule>>,
        transport: &mut T,
    ) -> Result<Went, T::Error> {
        let mut went = Went::Nowhere;
        if self.stage == SharingStage::Unheard {
            let Shared::Heard(heard) = transport.share(self.lane, &self.kind, Share::Hear)? else {
                return Ok(went);
            };
            if awaits_size {
                return Ok(Went::Told(heard));
            }
            self.stage = if heard == total { SharingStage::Open } else { SharingStage::Closed };
            if self.stage == SharingStage::Closed {
                *is_spoiled = true;
                transport.share(self.lane, &self.kind, Share::Finish)?;
            }
        }
        if let Some((index, action)) = &self.step {
            let share = match action {
                _ if self.stage == SharingStage::Closed => None,
                Action::Publish(from) => Some(Share::Publish { from, is_spoiled: *is_spoiled }),
                Action::Fetch { at, to } => Some(Share::Fetch { at: *at, to }),
                _ => None,
            };
            match share.map_or(Ok(Shared::Done), |share| transport.share(self.lane, &self.kind, share))? {
                Shared::Waits | Shared::Moved => return Ok(went),
                Shared::Spoiled => *is_spoiled = true,
                Shared::Done | Shared::Heard(_) => {}
            }
            executor.complete(StepId { lane: self.lane, index: *index });
            (self.step, went) = (None, Went::On);
            self.steps_left -= 1;
        }
        if self.steps_left > 0 {
            return Ok(went);
        }
        let end = if let Kind::Fetch { .. } = self.kind { Share::Finish } else { Share::Close };
        let is_over = self.stage == SharingStage::Closed
            || transport.share(self.lane, &self.kind, end)? == Shared::Done;
        Ok(if is_over { Went::ToItsEnd } else { went })
    }
}
