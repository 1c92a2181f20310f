//! Lanes of a call in the memory that the ranks of a node share.
//!
//! What the ring has room for goes through it: then the writer waits for nobody, and no system call is made. What is longer goes by address: the stream
//! has pairs of numbers, where the bytes are and how many, and each reader copies them from there, once; the writer's step is over when all have.
//! A reader that the kernel refuses this is handed them by the writer, which waits for it anyway.
//! Through the ring a reader and the writer would go by turns as often as it is filled, which takes long where they share a processor.

use std::sync::Arc;

use polycast_core::executor::{Share, Shared as Went};
use polycast_core::schedule::{Kind, LaneIndex, RankOrder};
use polycast_core::units::Rank;
use polycast_shm::{Got, Opening, Style, Way};

use crate::call::Failure;
use crate::node_memory::NodeMemory;

/// Most bytes that are read by address at a time, so that other things go on.
const READ_MOST_BYTES: u64 = 1 << 20;
/// Size in bytes of a pair of numbers: where a step's bytes are, and how many.
const PAIR_BYTES: usize = 16;

/// State of a call's lanes in shared memory.
#[derive(Default)]
pub struct SharedLanes {
    operation: u64,
    lanes: Vec<SharedLane>,
}

#[derive(Default)]
struct SharedLane {
    /// Size in bytes that this rank was called with, on a lane on which it publishes.
    total: u64,
    /// Readers of what this rank publishes.
    readers: Option<Arc<[u32]>>,
    style: Option<Style>,
    opening: Option<Opening>,
    /// Bytes of the step under way that are published or fetched.
    done: u64,
    /// Bytes published of the pair that tells of a step.
    told: usize,
    /// Position in the stream of the first pair that was not read to its end, and the number of
    /// bytes that the pairs before it are about.
    pair: (u64, u64),
}

impl SharedLane {
    /// True if the lane's data is read by address, because the ring never has room for all of it.
    fn is_by_address(&self) -> bool {
        self.style == Some(Style::Addresses)
    }
}

/// The place of a step's bytes in this process.
#[derive(Clone, Copy)]
pub struct Place {
    pub address: *mut u8,
    pub bytes: u64,
}

impl SharedLanes {
    /// Begins an operation. The lanes are those of the call before, if there was one.
    pub fn begin(&mut self, operation: u64) {
        self.operation = operation;
        for lane in &mut self.lanes {
            *lane = SharedLane { readers: lane.readers.take(), ..SharedLane::default() };
        }
    }

    /// Goes on with the operation on other lanes, those of another size.
    pub fn adopt(&mut self) {
        self.lanes.clear();
    }

    /// Announces anew, on a lane on which this rank publishes, to readers that have not heard it:
    /// `announcement` of the bytes that this rank was called with.
    pub fn retell(
        &self,
        lane: LaneIndex,
        channel: u8,
        memory: &mut NodeMemory,
        announcement: impl FnOnce(u64) -> u64,
    ) {
        let total = self.lanes.get(lane).map_or(0, |lane| lane.total);
        memory.streams().retell(channel, self.operation, announcement(total));
    }

    /// Carries out a step in shared memory: [`polycast_core::executor::Transport::share`]. `place`
    /// has the bytes that a step publishes, or gets those that it fetches.
    ///
    /// # Safety
    /// The place is readable if the step publishes it, and writable if it fetches.
    pub unsafe fn share(
        &mut self,
        (lane, kind): (LaneIndex, &Kind),
        what: Share<'_>,
        place: Place,
        memory: &mut NodeMemory,
        local: &RankOrder,
    ) -> Result<Went, Failure> {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, SharedLane::default);
        }
        let (operation, state) = (self.operation, &mut self.lanes[lane]);
        let position = |rank: &Rank| local.position(*rank).0;
        match (kind, what) {
            (Kind::Publish { channel, readers, .. }, Share::Open { total, first_bytes }) => {
                let to_local = || readers.iter().map(position).collect();
                let readers = state.readers.get_or_insert_with(to_local).clone();
                let style = style_of(first_bytes, memory);
                (state.style, state.total) = (Some(style), total);
                memory.streams().announce(*channel, operation, total, style, readers);
                Ok(Went::Done)
            }
            (Kind::Publish { channel, readers, .. }, Share::OpenAgain { total, first_bytes }) => {
                state.readers = Some(readers.iter().map(position).collect());
                let style = style_of(first_bytes, memory);
                (state.style, state.total) = (Some(style), total);
                memory.streams().announce_again(*channel, operation, total, style);
                Ok(Went::Done)
            }
            (Kind::Publish { channel, .. }, Share::Publish { is_spoiled, .. }) => {
                // SAFETY: handed on from the caller.
                Ok(unsafe { state.publish((*channel, operation), place, is_spoiled, memory) })
            }
            (Kind::Publish { channel, .. }, Share::Close) => {
                let is_over = memory.streams().close(*channel, operation);
                Ok(if is_over { Went::Done } else { Went::Waits })
            }
            (Kind::Fetch { channel, writer, .. }, _) => {
                let way = Way { writer: position(writer), channel: *channel };
                match what {
                    Share::Expect => memory.streams().expect(way, operation),
                    Share::Hear => {
                        state.opening = memory.streams().hear(way, operation);
                        return Ok(state.opening.map_or(Went::Waits, |opening| Went::Heard(opening.total)));
                    }
                    Share::Fetch { at, .. } => {
                        // SAFETY: handed on from the caller.
                        return unsafe { state.fetch((way, operation), at, place, memory) };
                    }
                    Share::Finish => memory.streams().finish(way, operation),
                    _ => return Err(Failure::Internal),
                }
                Ok(Went::Done)
            }
            _ => Err(Failure::Internal),
        }
    }
}

/// What is longer than the ring goes by address, where ranks may read each other's memory.
fn style_of(first_bytes: u64, memory: &mut NodeMemory) -> Style {
    let is_long = first_bytes > memory.ring_bytes() && memory.reads_others();
    if is_long { Style::Addresses } else { Style::Data }
}

impl SharedLane {
    /// # Safety
    /// The place is readable.
    unsafe fn publish(
        &mut self,
        (channel, operation): (u8, u64),
        place: Place,
        is_spoiled: bool,
        memory: &mut NodeMemory,
    ) -> Went {
        let streams = memory.streams();
        if self.is_by_address() {
            let pair = [place.address as u64, place.bytes].map(u64::to_le_bytes);
            let rest = &pair.as_flattened()[self.told..];
            let count = match is_spoiled {
                true => streams.put_nothing(channel, operation, rest.len()),
                // SAFETY: it is as long.
                false => unsafe { streams.put(channel, operation, rest.as_ptr(), rest.len()) },
            };
            self.told += count;
            if self.told < PAIR_BYTES || !streams.is_taken(channel, operation) {
                // SAFETY: the caller's promise.
                let has_handed = unsafe { self.hand((channel, operation), place, is_spoiled, memory) };
                return if count > 0 || has_handed { Went::Moved } else { Went::Waits };
            }
            self.told = 0;
            return Went::Done;
        }
        let rest = (place.bytes - self.done) as usize;
        let count = match is_spoiled {
            true => streams.put_nothing(channel, operation, rest),
            // SAFETY: the caller's promise.
            false => unsafe {
                streams.put(channel, operation, place.address.wrapping_add(self.done as usize), rest)
            },
        };
        self.go_on(count, place.bytes)
    }

    /// Hands data to readers that may not read this process; true if some was handed.
    ///
    /// # Safety
    /// The place is readable, unless it is spoiled.
    unsafe fn hand(&self, of: (u8, u64), place: Place, is_spoiled: bool, memory: &mut NodeMemory) -> bool {
        let readers = self.readers.as_deref().unwrap_or_default();
        let handed = memory.handed();
        // SAFETY: the caller's promise.
        !is_spoiled && handed.has_refused() && unsafe { handed.hand(of, readers, place.address, place.bytes) }
    }

    fn go_on(&mut self, count: usize, bytes: u64) -> Went {
        self.done += count as u64;
        match count {
            _ if self.done == bytes => {
                self.done = 0;
                Went::Done
            }
            0 => Went::Waits,
            _ => Went::Moved,
        }
    }

    /// # Safety
    /// The place is writable.
    unsafe fn fetch(
        &mut self,
        (way, operation): (Way, u64),
        at: u64,
        place: Place,
        memory: &mut NodeMemory,
    ) -> Result<Went, Failure> {
        let opening = self.opening.ok_or(Failure::Internal)?;
        let address = place.address.wrapping_add(self.done as usize);
        let rest = place.bytes - self.done;
        if opening.style == Style::Data {
            // SAFETY: the caller's promise.
            let got = unsafe {
                memory.streams().get((way, operation), opening, at + self.done, address, rest as usize)
            };
            return Ok(match got {
                Got::Spoiled => self.spoiled(),
                Got::Bytes(count) => self.go_on(count, place.bytes),
            });
        }
        if rest == 0 {
            return Ok(self.go_on(0, place.bytes));
        }
        let (pair_at, before) = self.pair;
        let mut pair = [0; PAIR_BYTES];
        match memory.streams().look((way, operation), opening, pair_at, &mut pair) {
            Got::Spoiled => {
                memory.handed().leave(operation);
                return Ok(self.spoiled());
            }
            Got::Bytes(0) => return Ok(Went::Waits),
            Got::Bytes(_) => {}
        }
        let [from, bytes] =
            [0, 8].map(|first| u64::from_le_bytes(std::array::from_fn(|byte| pair[first + byte])));
        let within = at + self.done - before;
        let mut count = bytes.saturating_sub(within).min(rest).min(READ_MOST_BYTES);
        if count > 0 {
            // SAFETY: the caller's promise.
            let to = unsafe { std::slice::from_raw_parts_mut(address, count as usize) };
            count = memory.read((way, operation), from + within, to) as u64;
            if count == 0 {
                return Ok(Went::Waits);
            }
        }
        if within + count >= bytes {
            self.pair = (pair_at + PAIR_BYTES as u64, before + bytes);
            memory.streams().release(way, opening, self.pair.0);
        }
        Ok(match self.go_on(count as usize, place.bytes) {
            Went::Waits => Went::Moved,
            went => went,
        })
    }

    fn spoiled(&mut self) -> Went {
        self.done = 0;
        Went::Spoiled
    }
}
