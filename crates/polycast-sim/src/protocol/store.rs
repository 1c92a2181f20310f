use polycast_protocol::wire::{self, Header, Reject};
use polycast_protocol::{KEY_BYTES, Key};

/// A datagram or a message in the store.
pub(super) type Id = u32;

/// The job that is run.
pub(super) const JOB: u32 = 7;

/// The key of the job's group.
pub(super) fn key() -> Key {
    Key::from_bytes([0x5a; KEY_BYTES])
}

/// The datagrams and messages under way. A multicast datagram exists once, and memory is used
/// again.
pub(super) struct Store {
    entries: Vec<Entry>,
    free: Vec<Id>,
    key: Key,
}

struct Entry {
    bytes: Vec<u8>,
    copies: u32,
    /// The result of [`wire::open`], which is asked once: it always says the same for the same
    /// bytes.
    opened: Option<Result<Header, Reject>>,
    is_genuine: bool,
}

impl Store {
    pub fn new() -> Store {
        Store { entries: Vec::new(), free: Vec::new(), key: key() }
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Forgets all that is under way, and keeps the memory.
    pub fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.entries.len() as Id).rev());
    }

    /// Keeps the bytes until as many copies as have been made are released; there is one now.
    pub fn put(&mut self, bytes: &[u8], is_genuine: bool) -> Id {
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { bytes: Vec::new(), copies: 0, opened: None, is_genuine });
            self.entries.len() as Id - 1
        });
        let entry = &mut self.entries[id as usize];
        entry.bytes.clear();
        entry.bytes.extend_from_slice(bytes);
        (entry.copies, entry.opened, entry.is_genuine) = (1, None, is_genuine);
        id
    }

    /// Counts one copy more of an entry.
    pub fn copy(&mut self, id: Id) -> Id {
        self.entries[id as usize].copies += 1;
        id
    }

    /// Counts one copy less of an entry, which is free after its last.
    pub fn release(&mut self, id: Id) {
        let entry = &mut self.entries[id as usize];
        entry.copies -= 1;
        if entry.copies == 0 {
            self.free.push(id);
        }
    }

    pub fn bytes(&self, id: Id) -> &[u8] {
        &self.entries[id as usize].bytes
    }

    /// The datagram as a receiver sees it, and whether one of the job's nodes has sent it so.
    pub fn open(&mut self, id: Id) -> (Result<(Header, &[u8]), Reject>, bool) {
        let Entry { bytes, opened, is_genuine, .. } = &mut self.entries[id as usize];
        let key = &self.key;
        let header = *opened.get_or_insert_with(|| wire::open(bytes, JOB, key).map(|(header, _)| header));
        (header.map(|header| (header, &bytes[wire::HEADER_BYTES..])), *is_genuine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_the_last_copy_has_gone() {
        let mut store = Store::new();
        let first = store.put(b"one", true);
        store.copy(first);
        store.release(first);
        assert_eq!(store.bytes(first), b"one");
        assert_ne!(store.put(b"two", true), first);
        store.release(first);
        assert_eq!(store.put(b"three", true), first);
        assert_eq!(store.open(first), (Err(Reject::Short), true));
    }
}
