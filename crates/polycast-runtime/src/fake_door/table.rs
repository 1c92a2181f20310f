use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::world::{Collective, World};
use crate::door::{CAN_PACK, DoorTable, INTERFACE_VERSION};

/// What a communicator is to the door: one rank's view of the world.
pub struct RankDoor {
    pub world: Arc<World>,
    pub rank: u32,
    pub is_closed: AtomicBool,
}

pub const TABLE: DoorTable = DoorTable {
    interface_version: INTERFACE_VERSION,
    capabilities: CAN_PACK,
    allgather,
    broadcast,
    open_private,
    isend,
    irecv,
    poll,
    abandon,
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

fn code(outcome: Result<(), c_int>) -> c_int {
    outcome.err().unwrap_or(0)
}

unsafe extern "C" fn allgather(
    communicator: *mut c_void,
    mine: *const c_void,
    all: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, rank, .. } = door(communicator);
        let parts = world.meet(*rank, Collective::Allgather { bytes }, copied(mine, bytes));
        code(parts.map(|parts| write(&parts.concat(), all)))
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
        let RankDoor { world, rank, .. } = door(communicator);
        let what = Collective::Broadcast { bytes, root: root as u32 };
        let parts = world.meet(*rank, what, copied(buffer, bytes));
        code(parts.map(|parts| write(&parts[root as usize], buffer)))
    }
}

unsafe extern "C" fn open_private(communicator: *mut c_void, opened: *mut c_int) -> c_int {
    // SAFETY: as polycast.h says.
    unsafe {
        let RankDoor { world, rank, .. } = door(communicator);
        let met = world.meet(*rank, Collective::OpenPrivate, Vec::new());
        code(met.map(|_| opened.write(world.has_private.into())))
    }
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
        let RankDoor { world, rank, .. } = door(communicator);
        code(world.send(*rank, peer as u32, tag, slot, copied(data, bytes)))
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
    let RankDoor { world, rank, .. } = unsafe { door(communicator) };
    code(world.receive(*rank, peer as u32, tag, slot, place.expose_provenance(), bytes))
}

unsafe extern "C" fn poll(
    communicator: *mut c_void,
    slots: *mut u32,
    received: *mut usize,
    completed: *mut u32,
) -> c_int {
    // SAFETY: as polycast.h says: there is room for all slots in use.
    unsafe {
        let RankDoor { world, rank, .. } = door(communicator);
        code(world.poll(*rank).map(|done| {
            for (index, (slot, bytes)) in done.iter().enumerate() {
                slots.add(index).write(*slot);
                received.add(index).write(*bytes);
            }
            completed.write(done.len() as u32);
        }))
    }
}

unsafe extern "C" fn abandon(communicator: *mut c_void) {
    // SAFETY: as polycast.h says.
    let RankDoor { world, rank, .. } = unsafe { door(communicator) };
    world.abandon(*rank);
}

unsafe extern "C" fn close(communicator: *mut c_void) {
    // SAFETY: as polycast.h says.
    unsafe { door(communicator) }.is_closed.store(true, Ordering::Relaxed);
}

/// No job here ends by `polycast_finalize`, which is the whole process's.
unsafe extern "C" fn sum_over_world(_: *mut u64, _: usize) -> c_int {
    super::MISUSED
}

unsafe extern "C" fn take_leave() {}
