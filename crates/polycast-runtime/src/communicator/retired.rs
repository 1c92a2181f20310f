//! Communicators that the program has freed, until MPI has no messages for them any more.
//!
//! A rank may leave a pushed broadcast before its predecessor has sent what it does not need any more. If the private
//! communicator went meanwhile, that message would meet the next communicator with the same context, which has other ranks
//! (Open MPI 4 then crashes). So neighbours say goodbye, and a communicator stays until it has heard both.

use std::sync::Mutex;
use std::time::Duration;

use crate::attach::give_back_number;
use crate::call::Failure;
use crate::communicator::process::Process;
use crate::communicator::serving::Serving;
use crate::machine;
use crate::multicast::{Driver, left_group};
use crate::of_process::change;
use crate::report;

/// Time for which freeing a communicator waits for the last messages between its nodes. A
/// communicator that takes longer is looked at when the next one is attached.
const SETTLING: Duration = Duration::from_millis(1);

/// Time for which `MPI_Finalize` waits for messages that are on their way.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

impl Serving {
    /// Detaches the communicator, which the program frees: it is counted, and goes when MPI has
    /// nothing more for it. `is_over`: MPI ends, and nobody will ask again. `learn`: the process
    /// learns from its trials.
    pub fn detach(mut self: Box<Serving>, is_over: bool, learn: impl FnOnce()) {
        report::released(self.shared.driver.as_deref().map(Driver::totals));
        learn();
        // At once on all ranks of the node: who leads it keeps the rest for longer than they do.
        if self.is_clean()
            && !self.has_number_of_slot
            && let Some(memory) = self.shared.memory.take()
        {
            memory.give_back();
        }
        if let Some(driver) = self.shared.driver.take() {
            if let Ok(control) = driver.say_bye(&mut self.shared.messages) {
                self.leaving = Some(Box::new(control));
            }
            left_group();
        }
        let mut is_settled = self.is_settled();
        let patience = if is_over { Duration::ZERO } else { SETTLING };
        let end = machine::now() + patience;
        while !is_settled && machine::now() < end {
            is_settled = self.is_settled();
            machine::give_way();
        }
        if is_settled {
            self.close();
        } else {
            self.process.clone().retired.add(self);
        }
    }

    /// True if nothing is on its way between the nodes, or MPI has failed: then nobody knows, and
    /// the number is not used again. Does not wait.
    pub fn is_settled(&mut self) -> bool {
        let Some(control) = &mut self.leaving else { return true };
        let settled = control.is_settled(&mut self.shared.messages);
        self.is_spoiled |= settled.is_err();
        settled.unwrap_or(true)
    }

    /// True if nothing has gone wrong, and nothing is running.
    fn is_clean(&self) -> bool {
        !self.is_spoiled && self.broken.is_none() && !self.operations.are_running()
    }

    /// Ends all operations: MPI touches no buffer of polycast's any more.
    fn abandon(&mut self) {
        self.end_all(Failure::Internal);
        self.shared.messages.cancel(|_| true);
    }

    /// Closes the communicator: the door may free what it has, and another communicator may have
    /// the number.
    pub fn close(mut self: Box<Serving>) {
        let is_over = self.is_clean() && !self.shared.messages.is_sending();
        self.abandon();
        match self.shared.memory.take().filter(|_| self.has_number_of_slot) {
            _ if !is_over => {}
            Some(memory) => memory.give_back(),
            None => give_back_number(self.number),
        }
        self.door.close();
    }

    /// Leaves the communicator to the MPI, which ends and frees what the door has.
    pub fn leave_to_mpi(mut self: Box<Serving>) {
        self.abandon();
    }
}

struct Retired(Box<Serving>);

// SAFETY: it is only touched under the lock, and its pointers lead to the door, which any thread may use that may use MPI.
unsafe impl Send for Retired {}

/// Communicators that the program has freed, and that are not settled yet.
#[derive(Default)]
pub struct RetiredCommunicators(Mutex<Vec<Retired>>);

impl RetiredCommunicators {
    /// Keeps a communicator until it is settled.
    fn add(&self, communicator: Box<Serving>) {
        change(&self.0, |retired| retired.push(Retired(communicator)));
    }

    /// Closes the communicators that are settled by now. The lock is not held meanwhile: this calls
    /// MPI.
    pub fn visit(&self) {
        for Retired(mut communicator) in change(&self.0, std::mem::take) {
            match communicator.is_settled() {
                true => communicator.close(),
                false => self.add(communicator),
            }
        }
    }
}

/// Ends all retired communicators, since MPI ends. Messages that still come are here soon, as a
/// rule; they are received, for some libraries complain of messages that nobody has asked for (UCX:
/// a line for each). The receives for later ones stay with MPI, which works while it waits for all
/// ranks to end.
pub fn leave_all_to_mpi() {
    let end = machine::now() + LAST_PATIENCE;
    let process = Process::here();
    let retired = &process.retired;
    let mut all = change(&retired.0, std::mem::take);
    while !all.iter_mut().all(|Retired(communicator)| communicator.is_settled()) && machine::now() < end {
        machine::give_way();
    }
    for Retired(mut communicator) in all {
        match communicator.is_settled() {
            true => communicator.leave_to_mpi(),
            false => retired.add(communicator),
        }
    }
}
