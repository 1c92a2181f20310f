//! Communicators that the program has freed, and MPI still has messages for.
//!
//! A rank may leave a pushed broadcast before its predecessor has sent what it does not need any more. If the private
//! communicator went meanwhile, that message would meet the next communicator with the same context, which has other ranks
//! (Open MPI 4 then crashes). So neighbours say goodbye, and a communicator stays until it has heard both.

use std::sync::{Mutex, PoisonError};

use crate::communicator::Communicator;

struct Retired(Box<Communicator>);

// SAFETY: it is only touched under the lock, and its pointers lead to the door, which any thread may use that may use MPI.
unsafe impl Send for Retired {}

static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());

fn take_all() -> Vec<Retired> {
    std::mem::take(&mut *RETIRED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps a communicator until it is settled.
pub fn add(communicator: Box<Communicator>) {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(Retired(communicator));
}

/// Lets those go that are settled by now. Not under the lock: it calls MPI.
pub fn visit() {
    for Retired(mut communicator) in take_all() {
        match communicator.is_settled() {
            true => communicator.close(),
            false => add(communicator),
        }
    }
}

/// MPI ends.
pub fn leave_all_to_mpi() {
    take_all().into_iter().for_each(|Retired(communicator)| communicator.leave_to_mpi());
}
