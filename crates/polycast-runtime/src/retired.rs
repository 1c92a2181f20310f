//! Communicators that the program has freed, and MPI still has messages for.
//!
//! A rank may leave a pushed broadcast before its predecessor has sent what it does not need any more. If the private
//! communicator went meanwhile, that message would meet the next communicator with the same context, which has other ranks
//! (Open MPI 4 then crashes). So neighbours say goodbye, and a communicator stays until it has heard both.

use std::sync::Mutex;
use std::time::Duration;

use crate::communicator::Communicator;
use crate::machine;
use crate::of_process::{Shared, of_process};

/// How long `MPI_Finalize` waits for messages that are on their way.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

struct Retired(Box<Communicator>);

// SAFETY: it is only touched under the lock, and its pointers lead to the door, which any thread may use that may use MPI.
unsafe impl Send for Retired {}

of_process! {
    static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());
}

/// Keeps a communicator until it is settled.
pub fn add(communicator: Box<Communicator>) {
    RETIRED.change(|retired| retired.push(Retired(communicator)));
}

/// Lets those go that are settled by now. Not under the lock: it calls MPI.
pub fn visit() {
    for Retired(mut communicator) in RETIRED.change(std::mem::take) {
        match communicator.is_settled() {
            true => communicator.close(),
            false => add(communicator),
        }
    }
}

/// MPI ends. What still comes is here soon, as a rule; it is received, for some libraries complain of messages that nobody has asked
/// for (UCX: a line for each). The receives for those that are later stay with MPI, which works while it waits for all ranks to end.
pub fn leave_all_to_mpi() {
    let end = machine::now() + LAST_PATIENCE;
    let mut all = RETIRED.change(std::mem::take);
    while !all.iter_mut().all(|Retired(communicator)| communicator.is_settled()) && machine::now() < end {
        machine::give_way();
    }
    for Retired(mut communicator) in all {
        match communicator.is_settled() {
            true => communicator.leave_to_mpi(),
            false => add(communicator),
        }
    }
}
