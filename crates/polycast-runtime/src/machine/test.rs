//! What takes the machine's place for ranks that are threads of a test.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use polycast_net::{Group, Interface};
use rustix::event::PollFd;

use crate::multicast::{MemorySocket, Reason};

/// See the module; each function takes the place of the one of its name.
pub trait Machine {
    fn now(&self) -> Instant;
    fn sleep(&self, time: Duration);
    /// Waits for a moment, awake or not.
    fn give_way(&self);
    fn poll(&self, watched: &[PollFd<'_>], longest: Duration) -> usize;
    fn processors(&self) -> usize;
    fn random(&self, bytes: &mut [u8]) -> io::Result<()>;
    fn host(&self) -> (String, String);
    fn variable(&self, name: &str) -> Option<OsString>;
    fn say(&self, text: &str);
    fn interfaces(&self) -> Vec<Interface>;
    /// Joins a group.
    fn open(&self, interface: &Interface, group: Group) -> Result<Box<dyn MemorySocket>, Reason>;
}

thread_local! {
    static STAND_IN: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
}

/// From now on this thread runs on `machine`.
pub fn enter(machine: Rc<dyn Machine>) {
    STAND_IN.set(Some(machine));
}

/// What this thread runs on.
pub fn stand_in() -> Option<Rc<dyn Machine>> {
    STAND_IN.with_borrow(Clone::clone)
}
