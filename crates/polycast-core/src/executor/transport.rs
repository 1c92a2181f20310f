use super::{Executor, Operation, StepId};
use crate::schedule::Schedule;

/// Starts messages and reports when they are done. Never blocks, except in [`Transport::wait`].
pub trait Transport {
    /// What can go wrong; ends the collective.
    type Error;

    /// Starts `operation`.
    fn start(&mut self, operation: &Operation) -> Result<(), Self::Error>;

    /// Appends what has completed since the last call.
    fn poll(&mut self, completed: &mut Vec<StepId>) -> Result<(), Self::Error>;

    /// Called when a poll found nothing: gives the processor away in whatever way suits, for a bounded time.
    /// `fruitless_polls` counts the polls since the last completion.
    fn wait(&mut self, fruitless_polls: u32);
}

/// Runs a schedule to its end.
pub fn drive<S: Schedule, T: Transport>(
    mut executor: Executor<S>,
    transport: &mut T,
) -> Result<(), T::Error> {
    let mut completed = Vec::new();
    let mut fruitless_polls = 0u32;
    loop {
        while let Some(operation) = executor.next_operation() {
            transport.start(&operation)?;
        }
        if executor.is_finished() {
            return Ok(());
        }
        transport.poll(&mut completed)?;
        if completed.is_empty() {
            fruitless_polls = fruitless_polls.saturating_add(1);
            transport.wait(fruitless_polls);
        } else {
            fruitless_polls = 0;
            completed.drain(..).for_each(|id| executor.complete(id));
        }
    }
}
