use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::MISUSED;
use super::allocations::outside;
use super::environments::is_programs;
use super::mail::{Part, Place};
use super::world::{Collective, World};
use crate::abi::{CAN_PACK, CollectiveCall, Completion, DoorTable, INTERFACE_VERSION};

/// What a communicator is to the door: one process's part of it.
pub struct RankDoor {
    pub world: Arc<World>,
    pub part: Part,
    pub is_closed: AtomicBool,
    /// MPI ends, and frees by itself what is not closed by then.
    pub is_over: AtomicBool,
}

impl RankDoor {
    pub fn new(world: &Arc<World>, part: Part) -> RankDoor {
        let (is_closed, is_over) = Default::default();
        RankDoor { world: world.clone(), part, is_closed, is_over }
    }
}

thread_local! {
    static HERE: RefCell<Option<(Arc<World>, u32)>> = const { RefCell::new(None) };
}

/// This thread is that process.
pub fn enter(world: Arc<World>, process: u32) {
    HERE.set(Some((world, process)));
}

/// The process that this thread is, and its job.
pub fn here() -> Option<(Arc<World>, u32)> {
    HERE.with_borrow(Clone::clone)
}

pub static TABLE: DoorTable = DoorTable {
    interface_version: INTERFACE_VERSION,
    capabilities: CAN_PACK,
    allgather,
    broadcast,
    sum,
    intersect,
    stock,
    world_ranks,
    isend,
    irecv,
    poll,
    cancel,
    close,
    sum_over_world,
    take_leave,
};

/// # Safety
/// It is the pointer that `polycast_attach` got.
unsafe fn door<'a>(communicator: *mut c_void) -> &'a RankDoor {
    // SAFETY: the caller's promise.
    unsafe { &*communicator.cast::<RankDoor>() }
}

/// # Safety
/// `data` has as many bytes; it may be NULL if that is none.
unsafe fn copied(data: *const c_void, bytes: usize) -> Vec<u8> {
    if bytes == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) }.to_vec()
}

/// # Safety
/// `place` has room for `data`.
unsafe fn write(data: &[u8], place: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place.cast(), data.len()) };
}

/// What a function of the door does and gives; what it allocates is not counted.
fn code(work: impl FnOnce() -> Result<(), c_int>) -> c_int {
    if !is_programs() {
        return MISUSED;
    }
    outside(work).err().unwrap_or(0)
}

unsafe extern "C" fn allgather(
    communicator: *mut c_void,
    mine: *const c_void,
    all: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        let meet = || world.meet(*part, Collective::Allgather { bytes }, copied(mine, bytes));
        code(|| meet().map(|outcome| write(&outcome, all)))
    }
}

unsafe extern "C" fn broadcast(
    communicator: *mut c_void,
    buffer: *mut c_void,
    bytes: usize,
    root: c_int,
) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        let what = Collective::Broadcast { bytes, root: root as u32 };
        let meet = || world.meet(*part, what, copied(buffer, bytes));
        code(|| meet().map(|outcome| write(&outcome, buffer)))
    }
}

unsafe extern "C" fn intersect(communicator: *mut c_void, words: *mut u64, count: usize) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        combine(world, *part, words, count, Collective::Intersect { words: count })
    }
}

/// Nobody looks at the data. It takes some time: the MPI is not always the fastest.
unsafe extern "C" fn stock(
    communicator: *mut c_void,
    call: *const CollectiveCall,
    _: *const c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: as polycast.h says.
    let (RankDoor { world, part, .. }, call) = unsafe { (door(communicator), &*call) };
    let what = Collective::Measured { collective: call.collective, bytes: call.bytes, root: call.root };
    let took = std::time::Duration::from_nanos(2000 * call.bytes as u64);
    code(|| world.meet(*part, what, Vec::new()).map(|_| crate::machine::sleep(took)))
}

unsafe extern "C" fn world_ranks(communicator: *mut c_void, ranks: *mut c_int) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        for (index, rank) in outside(|| world.members(part.communicator)).into_iter().enumerate() {
            ranks.add(index).write(rank as c_int);
        }
    }
    0
}

unsafe extern "C" fn isend(
    communicator: *mut c_void,
    data: *const c_void,
    bytes: usize,
    peer: c_int,
    tag: c_int,
    slot: u32,
) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        let place = Place { address: data.expose_provenance(), bytes };
        code(|| world.send(*part, peer as u32, tag, slot, place))
    }
}

unsafe extern "C" fn irecv(
    communicator: *mut c_void,
    place: *mut c_void,
    bytes: usize,
    peer: c_int,
    tag: c_int,
    slot: u32,
) -> c_int {
    // SAFETY: as polycast.h says.
    let RankDoor { world, part, .. } = unsafe { door(communicator) };
    let place = Place { address: place.expose_provenance(), bytes };
    code(|| world.receive(*part, peer as u32, tag, slot, place))
}

unsafe extern "C" fn poll(
    communicator: *mut c_void,
    completions: *mut Completion,
    completed: *mut u32,
) -> c_int {
    // SAFETY: as polycast.h says: there is room for all slots in use.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        code(|| {
            let done = world.poll(*part)?;
            for (index, completion) in done.iter().enumerate() {
                completions.add(index).write(*completion);
            }
            completed.write(done.len() as u32);
            Ok(())
        })
    }
}

unsafe extern "C" fn cancel(communicator: *mut c_void, slots: *const u32, count: u32) {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        world.cancel(*part, std::slice::from_raw_parts(slots, count as usize));
    }
}

unsafe extern "C" fn close(communicator: *mut c_void) {
    // SAFETY: as polycast.h says.
    let RankDoor { is_closed, is_over, .. } = unsafe { door(communicator) };
    if !is_over.load(Ordering::Relaxed) {
        is_closed.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn sum(communicator: *mut c_void, values: *mut u64, count: usize) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, part, .. } = door(communicator);
        combine(world, *part, values, count, Collective::Sum)
    }
}

unsafe extern "C" fn sum_over_world(values: *mut u64, count: usize) -> c_int {
    let Some((world, process)) = HERE.with_borrow(Clone::clone) else { return MISUSED };
    // SAFETY: as polycast.h says.
    unsafe {
        let part = Part { communicator: 0, process };
        combine(&world, part, values, count, Collective::Sum)
    }
}

/// # Safety
/// The values are as many.
unsafe fn combine(world: &World, part: Part, values: *mut u64, count: usize, what: Collective) -> c_int {
    // SAFETY: the caller's promise.
    let mine = unsafe { copied(values.cast(), 8 * count) };
    // SAFETY: the same.
    code(|| world.meet(part, what, mine).map(|outcome| unsafe { write(&outcome, values.cast()) }))
}

unsafe extern "C" fn take_leave() {}
