//! Memory for messages whose data does not go straight to or from the program's buffer: announcements with what travels with
//! them, and what is thrown away.
//!
//! Invariant: memory that MPI has is neither moved nor freed before MPI is through with it. So it belongs to the communicator and not
//! to the broadcast, which an error may end.

use std::collections::HashMap;

/// Kept for reuse.
const SPARE_MOST: usize = 8;
/// Longer memory is not kept.
const SPARE_BYTES_MOST: usize = 64 << 10;

/// See the module.
#[derive(Default)]
pub struct Scratch {
    /// By the slots of their messages.
    receiving: HashMap<u32, Vec<u8>>,
    sending: HashMap<u32, Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl Scratch {
    /// Empty memory to write a message into.
    pub fn take(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Memory for a message of at most `bytes` that will come in this slot.
    pub fn receive(&mut self, slot: u32, bytes: usize) -> *mut u8 {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.resize(bytes, 0);
        let memory = self.receiving.entry(slot).insert_entry(memory).into_mut();
        memory.as_mut_ptr()
    }

    /// Keeps a message that goes out in this slot.
    pub fn send(&mut self, slot: u32, message: Vec<u8>) -> *const u8 {
        self.sending.entry(slot).insert_entry(message).into_mut().as_ptr()
    }

    /// A message has come.
    pub fn received(&mut self, slot: u32) -> Option<Vec<u8>> {
        self.receiving.remove(&slot)
    }

    /// A message has gone out.
    pub fn sent(&mut self, slot: u32) {
        if let Some(memory) = self.sending.remove(&slot) {
            self.give_back(memory);
        }
    }

    /// Memory that is not needed any more.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        if self.spare.len() < SPARE_MOST && memory.capacity() <= SPARE_BYTES_MOST {
            self.spare.push(memory);
        }
    }

    /// After the door has abandoned everything: no receive is in flight any more; sends may be, so their memory is left to MPI.
    pub fn forget(&mut self) {
        self.receiving.clear();
        self.sending.drain().for_each(|(_, message)| std::mem::forget(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_where_it_is_until_its_message_is_through() {
        let mut scratch = Scratch::default();
        let place = scratch.receive(3, 10);
        (10..110).for_each(|slot| assert!(!scratch.send(slot, vec![0; 5]).is_null()));
        assert_eq!(
            scratch.received(3).map(|memory| (memory.as_ptr().cast_mut(), memory.len())),
            Some((place, 10))
        );
        assert_eq!(scratch.received(3), None);
        (10..110).for_each(|slot| scratch.sent(slot));
        assert_eq!(scratch.spare.len(), SPARE_MOST);
        assert!(scratch.take().is_empty());
    }
}
