//! A lane in memory that the ranks of a node share. Its stream begins with its writer's announcement, like any lane:
//!
//! ```text
//!   publishing    open ──▶ steps, as there is room for them ──▶ closed
//!   fetching      hear ──▶ steps, as they are there ──▶ finished             finished at once if the announcement is another one
//! ```

use super::Transport;
use crate::executor::{Executor, StepId};
use crate::schedule::{Action, Kind, LaneIndex, Schedule, Slice};

/// What is to be done on a lane in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share<'a> {
    /// To begin: this rank publishes on this lane.
    Open {
        /// What it was called with.
        total: u64,
        /// How much the first step publishes; 0 if there is none.
        first_bytes: u64,
    },
    /// To begin: this rank fetches on this lane.
    Expect,
    /// The next step that publishes; `is_spoiled`: there is nothing to be published, but readers wait for it.
    Publish {
        /// What.
        from: &'a Slice,
        /// Not even this.
        is_spoiled: bool,
    },
    /// To end: everything was published.
    Close,
    /// Then: how many bytes its writer was called with.
    Hear,
    /// The next step that fetches.
    Fetch {
        /// From there in the stream.
        at: u64,
        /// To here.
        to: &'a Slice,
    },
    /// To end: nothing more is needed.
    Finish,
}

/// How far that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Not done, and nothing was done now.
    Waits,
    /// A part of it was done.
    Moved,
    /// It is done.
    Done,
    /// To [`Share::Hear`]: so many.
    Heard(u64),
    /// To [`Share::Fetch`]: what comes is worth nothing.
    Spoiled,
}

/// Where a lane is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its writer has not been heard.
    Unheard,
    /// Steps go on.
    Open,
    /// The writer was called with another size: steps fetch nothing.
    Closed,
}

/// What a lane has come to when nothing more can be done on it now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Went {
    /// No step has ended.
    Nowhere,
    /// Some have.
    On,
    /// Nothing is left.
    ToItsEnd,
}

/// A lane that is not over.
pub(super) struct Sharing {
    pub lane: LaneIndex,
    kind: Kind,
    stage: Stage,
    /// The one that has started.
    step: Option<(u64, Action)>,
    steps_left: u64,
}

impl Sharing {
    /// A lane of so many steps, the first of which publishes so much.
    pub fn begin<T: Transport>(
        lane: LaneIndex,
        (kind, steps, first_bytes): (&Kind, u64, u64),
        total: u64,
        transport: &mut T,
    ) -> Result<Sharing, T::Error> {
        let (stage, how) = match kind {
            Kind::Fetch { .. } => (Stage::Unheard, Share::Expect),
            _ => (Stage::Open, Share::Open { total, first_bytes }),
        };
        transport.share(lane, kind, how)?;
        Ok(Sharing { lane, kind: kind.clone(), stage, step: None, steps_left: steps })
    }

    /// Of the executor's.
    pub fn start(&mut self, index: u64, action: &Action) {
        self.step = Some((index, action.clone()));
    }

    /// Does what can be done now, in a call of `total` bytes.
    pub fn advance<T: Transport>(
        &mut self,
        total: u64,
        is_spoiled: &mut bool,
        executor: &mut Executor<Box<dyn Schedule>>,
        transport: &mut T,
    ) -> Result<Went, T::Error> {
        let mut went = Went::Nowhere;
        if self.stage == Stage::Unheard {
            let Shared::Heard(heard) = transport.share(self.lane, &self.kind, Share::Hear)? else {
                return Ok(went);
            };
            self.stage = if heard == total { Stage::Open } else { Stage::Closed };
            if self.stage == Stage::Closed {
                *is_spoiled = true;
                transport.share(self.lane, &self.kind, Share::Finish)?;
            }
        }
        if let Some((index, action)) = &self.step {
            let share = match action {
                _ if self.stage == Stage::Closed => None,
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
        let is_over =
            self.stage == Stage::Closed || transport.share(self.lane, &self.kind, end)? == Shared::Done;
        Ok(if is_over { Went::ToItsEnd } else { went })
    }
}
