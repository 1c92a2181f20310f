//! A stand-in for the machine, for ranks that are threads of a test.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use polycast_core::topology::Locality;
use polycast_net::verbs::VerbsPort;
use polycast_net::{Carrier, Group, Interface};
use polycast_shm::{Arena, Offer, SegmentError, Slot};
use rustix::event::PollFd;

use crate::reason::Reason;

/// A stand-in for the machine; each function takes the place of the one of its name.
pub trait Machine {
    fn now(&self) -> Instant;
    fn monotonic_nanos(&self) -> u64;
    fn sleep(&self, time: Duration);
    /// Waits for a moment, awake or not.
    fn give_way(&self);
    fn poll(&self, watched: &[PollFd<'_>], longest: Duration) -> usize;
    fn processors(&self) -> usize;
    fn locality(&self) -> Locality;
    fn memory_left(&self) -> Option<u64>;
    fn receive_buffer_bytes(&self) -> Option<u64>;
    fn random(&self, bytes: &mut [u8]) -> io::Result<()>;
    fn host(&self) -> (String, String);
    fn variable(&self, name: &str) -> Option<OsString>;
    fn variables(&self) -> Vec<(OsString, OsString)>;
    /// The text of a file of the site or the user.
    fn text_if_there(&self, _file: &str) -> Option<Result<String, String>> {
        None
    }
    fn say(&self, text: &str);
    fn interfaces(&self) -> Vec<Interface>;
    fn create_arena(&self, most: usize, name: u64) -> Result<(Arena, Offer), SegmentError>;
    fn open_arena(&self, offer: Offer) -> Result<Arena, SegmentError>;
    fn take_slot(&self, arena: &Arena, ranks: u32, numbers: usize) -> Option<Slot>;
    fn read_process(&self, process: u32, address: u64, place: &mut [u8]) -> io::Result<()>;
    /// The port of an interface.
    fn verbs_port(&self) -> Option<VerbsPort>;
    /// Joins a group.
    fn open(&self, interface: &Interface, group: Group, is_verbs: bool) -> Result<Box<dyn Carrier>, Reason>;
}

thread_local! {
    static STAND_IN: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
}

/// Makes this thread run on `machine` from now on.
pub fn enter(machine: Rc<dyn Machine>) {
    STAND_IN.set(Some(machine));
}

/// The machine that this thread runs on, if it is a stand-in.
pub fn stand_in() -> Option<Rc<dyn Machine>> {
    STAND_IN.with_borrow(Clone::clone)
}
