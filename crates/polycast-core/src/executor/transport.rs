use std::ops::Range;

use super::Limits;
use super::conversation::{Call, Completed, Conversation, Message, Outcome};
use crate::schedule::LaneIndex;

/// Starts messages and reports when they are done. Never blocks, except in [`Transport::wait`].
pub trait Transport {
    /// What can go wrong; ends the collective.
    type Error;

    /// Starts `message`.
    fn start(&mut self, message: &Message) -> Result<(), Self::Error>;

    /// Puts the data that came with the last first message of a lane into this part of the buffer.
    fn keep(&mut self, lane: LaneIndex, bytes: Range<u64>);

    /// Appends what has completed since the last call.
    fn poll(&mut self, completed: &mut Vec<Completed>) -> Result<(), Self::Error>;

    /// Called when a poll found nothing: gives the processor away in whatever way suits, for a bounded time.
    /// `fruitless_polls` counts the polls since the last completion.
    fn wait(&mut self, fruitless_polls: u32);
}

/// Runs a call of `total` bytes to its end; `None` if `call` has no schedule for it. For `is_spoiled` see
/// [`Conversation::begin`].
pub fn drive<T: Transport>(
    call: &mut impl Call,
    total: u64,
    is_spoiled: bool,
    limits: Limits,
    transport: &mut T,
) -> Result<Option<Outcome>, T::Error> {
    let Some(mut conversation) = Conversation::begin(call, total, is_spoiled, limits, transport)? else {
        return Ok(None);
    };
    let mut fruitless_polls = 0u32;
    loop {
        let mut has_progressed = false;
        if let Some(outcome) = conversation.advance(transport, &mut has_progressed)? {
            return Ok(Some(outcome));
        }
        if has_progressed {
            fruitless_polls = 0;
        } else {
            fruitless_polls = fruitless_polls.saturating_add(1);
            transport.wait(fruitless_polls);
        }
    }
}
