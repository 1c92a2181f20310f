//! What readers do while the writer looks how far they are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::memory::{Head, Taken};
use crate::sync::AtomicU64;

type Event = Box<dyn FnOnce()>;

/// Memory of a node in which something happens when the writer looks at its readers for the nth time.
pub(super) struct Eventful {
    heap: Arc<Heap>,
    looks: Cell<usize>,
    event: RefCell<Option<(usize, Event)>>,
}

impl Eventful {
    pub(super) fn new(heap: Arc<Heap>) -> Rc<Eventful> {
        Rc::new(Eventful { heap, looks: Cell::new(0), event: RefCell::default() })
    }

    /// Counted from now.
    pub(super) fn at_look(&self, look: usize, event: impl FnOnce() + 'static) {
        *self.event.borrow_mut() = Some((self.looks.get() + look, Box::new(event)));
    }
}

impl Memory for Eventful {
    fn ring_bytes(&self) -> u64 {
        self.heap.raw.ring_bytes()
    }

    fn written(&self, way: Way) -> &AtomicU64 {
        self.heap.raw.written(way)
    }

    fn head(&self, way: Way, slot: usize) -> &Head {
        self.heap.raw.head(way, slot)
    }

    fn taken(&self, way: Way, reader: u32) -> &Taken {
        self.looks.set(self.looks.get() + 1);
        let event = self.event.borrow_mut().take_if(|(look, _)| *look == self.looks.get());
        if let Some((_, event)) = event {
            event();
        }
        self.heap.raw.taken(way, reader)
    }

    unsafe fn put(&self, way: Way, position: u64, source: *const u8, bytes: usize) {
        // SAFETY: handed on from the caller.
        unsafe { self.heap.raw.put(way, position, source, bytes) };
    }

    unsafe fn get(&self, way: Way, position: u64, place: *mut u8, bytes: usize) {
        // SAFETY: as above.
        unsafe { self.heap.raw.get(way, position, place, bytes) };
    }
}

fn put(writer: &mut Streams<Rc<Eventful>>, operation: u64, bytes: &[u8]) -> usize {
    // SAFETY: there are as many.
    unsafe { writer.put(0, operation, bytes.as_ptr(), bytes.len()) }
}

/// One reader finishes a stream, and may have begun with the next, of which it needs only the end, whenever the writer looks. The other has not
/// begun with that, and finds it whole.
#[test]
fn who_goes_on_to_the_next_stream_says_nothing_of_others() {
    for (look, has_begun) in (1..=12).flat_map(|look| [(look, false), (look, true)]) {
        let heap = Heap::new(3);
        let ring = heap.raw.ring_bytes() as usize;
        let first = vec![7; ring / 2];
        let second: Vec<u8> = (0..2 * ring).map(|at| (at % 251) as u8).collect();
        let [mut early, mut late] = [1, 2].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10));
        let memory = Eventful::new(heap);
        let mut writer = Streams::new(memory.clone(), 0, 1 << 10);
        writer.announce(0, 1, first.len() as u64, Style::Data, [1, 2].into());
        assert_eq!(put(&mut writer, 1, &first), first.len());
        assert!(writer.close(0, 1));
        for reader in [&mut early, &mut late] {
            assert_eq!(get_all(reader, UP, 1, 0, first.len()), first);
        }
        late.finish(UP, 1);
        memory.at_look(look, move || {
            early.finish(UP, 1);
            early.expect(UP, 2);
            if let Some(opening) = early.hear(UP, 2).filter(|_| has_begun) {
                early.release(UP, opening, 2 * ring as u64 - 16);
            }
        });
        writer.announce(0, 2, second.len() as u64, Style::Data, [1, 2].into());
        let mut done = 0;
        for _ in 0..16 {
            done += put(&mut writer, 2, &second[done..]);
        }
        assert!(memory.event.borrow().is_none(), "it was not looked so often: {look}");
        assert_eq!(done, ring, "look {look}");
        assert_eq!(get_all(&mut late, UP, 2, 0, ring), second[..ring]);
    }
}
