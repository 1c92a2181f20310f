use std::sync::Arc;

use super::*;
const UP: Way = Way { writer: 0, channel: 0 };

/// In every order that loom finds: the cells of a ring tell of a reader before it is filled, and of a writer over what is not read.
#[cfg(loom)]
mod every_order {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;
    use crate::memory::{Head, Taken};
    use crate::sync::AtomicU64;

    struct Model {
        ring: Vec<UnsafeCell<u8>>,
        written: AtomicU64,
        heads: [Head; SLOTS],
        taken: Vec<Taken>,
    }

    // SAFETY: loom looks whether the cells are used by two at a time.
    unsafe impl Sync for Model {}
    // SAFETY: as above.
    unsafe impl Send for Model {}

    impl Model {
        fn new(bytes: usize, readers: usize, position: u64, operation: u64) -> Arc<Model> {
            let number = AtomicU64::new;
            let head = |_| Head {
                operation: number(operation),
                start: number(0),
                total: number(0),
                state: number(0),
            };
            let taken = || Taken { position: number(position), finished: number(operation) };
            Arc::new(Model {
                ring: (0..bytes).map(|_| UnsafeCell::new(0)).collect(),
                written: number(position),
                heads: std::array::from_fn(head),
                taken: (0..readers).map(|_| taken()).collect(),
            })
        }

        fn cells(&self, position: u64, bytes: usize) -> impl Iterator<Item = &UnsafeCell<u8>> {
            (0..bytes).map(move |at| &self.ring[position.wrapping_add(at as u64) as usize % self.ring.len()])
        }
    }

    impl Memory for Model {
        fn ring_bytes(&self) -> u64 {
            self.ring.len() as u64
        }

        fn written(&self, _: Way) -> &AtomicU64 {
            &self.written
        }

        fn head(&self, _: Way, slot: usize) -> &Head {
            &self.heads[slot]
        }

        fn taken(&self, _: Way, reader: u32) -> &Taken {
            &self.taken[reader as usize - 1]
        }

        unsafe fn put(&self, _: Way, position: u64, source: *const u8, bytes: usize) {
            for (at, cell) in self.cells(position, bytes).enumerate() {
                // SAFETY: the caller's promise; loom looks at the cell.
                cell.with_mut(|cell| unsafe { *cell = *source.add(at) });
            }
        }

        unsafe fn get(&self, _: Way, position: u64, place: *mut u8, bytes: usize) {
            for (at, cell) in self.cells(position, bytes).enumerate() {
                // SAFETY: as above.
                cell.with(|cell| unsafe { *place.add(at) = *cell });
            }
        }
    }

    /// A writer's operations, each of these bytes, over a ring of so many, for so many readers; the numbers wrap around meanwhile. So often at most
    /// a thread stops where it could go on.
    fn run(preemptions: usize, ring: usize, readers: u32, operations: &'static [&'static [u8]]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 100_000;
        builder.check(move || {
            let (position, first) = (0u64.wrapping_sub(LINE), u64::MAX);
            let model = Model::new(ring, readers as usize, position, first.wrapping_sub(1));
            let threads: Vec<_> = (1..=readers)
                .map(|me| {
                    let model = model.clone();
                    thread::spawn(move || {
                        read(Streams::starting_at(model, me, 1, position), first, operations)
                    })
                })
                .collect();
            let mut own = Streams::starting_at(model, 0, 1, position);
            for (index, bytes) in operations.iter().enumerate() {
                let operation = first.wrapping_add(index as u64);
                own.announce(0, operation, bytes.len() as u64, Style::Data, (1..=readers).collect());
                let mut done = 0;
                while done < bytes.len() {
                    let rest = &bytes[done..];
                    // SAFETY: the rest is as long.
                    let count = unsafe { own.put(0, operation, rest.as_ptr(), rest.len()) };
                    if count == 0 {
                        thread::yield_now();
                    }
                    done += count;
                }
                assert!(own.close(0, operation));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    fn read(mut own: Streams<Arc<Model>>, first: u64, operations: &[&[u8]]) {
        for (index, bytes) in operations.iter().enumerate() {
            let operation = first.wrapping_add(index as u64);
            own.expect(UP, operation);
            let opening = loop {
                match own.hear(UP, operation) {
                    Some(opening) => break opening,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(opening.total, bytes.len() as u64);
            let mut found = vec![0; bytes.len()];
            let mut done = 0;
            while done < found.len() {
                let rest = &mut found[done..];
                // SAFETY: the rest is as long.
                match unsafe { own.get((UP, operation), opening, done as u64, rest.as_mut_ptr(), rest.len()) }
                {
                    Got::Bytes(0) => thread::yield_now(),
                    Got::Bytes(count) => done += count,
                    Got::Spoiled => panic!("nobody has spoiled it"),
                }
            }
            own.finish(UP, operation);
            assert_eq!(found, *bytes);
        }
    }

    #[test]
    fn a_ring_is_used_again() {
        run(2, 2, 1, &[&[1, 2, 3]]);
    }

    #[test]
    fn a_head_is_used_again() {
        run(2, 1, 1, &[&[1], &[2], &[3]]);
    }

    /// While a reader finishes one, the writer is in the next.
    #[test]
    fn streams_follow_each_other() {
        run(1, 2, 1, &[&[1], &[2, 3, 4]]);
    }
}

#[cfg(not(loom))]
mod of_a_node {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;
    use std::thread;

    use super::*;
    use crate::raw::{Raw, Shape};

    mod overtaken;
    mod spoiled;

    /// Memory of this process.
    struct Heap {
        raw: Raw,
        base: NonNull<u8>,
        layout: Layout,
    }

    // SAFETY: as a segment is shared by processes.
    unsafe impl Sync for Heap {}
    // SAFETY: nothing belongs to a thread.
    unsafe impl Send for Heap {}

    impl Heap {
        fn new(ranks: u32) -> Arc<Heap> {
            let shape = Shape::new(ranks);
            // Miri goes through it byte by byte.
            let shape = if cfg!(miri) { shape.with_ring(4096) } else { shape };
            let layout = Layout::from_size_align(shape.bytes(), 4096).unwrap();
            // SAFETY: it is not empty.
            let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
            // SAFETY: it stays as long, and is zero.
            Arc::new(Heap { raw: unsafe { Raw::new(base, shape) }, base, layout })
        }
    }

    impl Drop for Heap {
        fn drop(&mut self) {
            // SAFETY: it was allocated like this.
            unsafe { dealloc(self.base.as_ptr(), self.layout) };
        }
    }

    #[derive(Clone)]
    struct Shared(Arc<Heap>);

    impl Deref for Shared {
        type Target = Raw;

        fn deref(&self) -> &Raw {
            &self.0.raw
        }
    }

    fn put_all(own: &mut Streams<Shared>, operation: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            // SAFETY: the rest is as long.
            done += unsafe { own.put(0, operation, bytes[done..].as_ptr(), bytes.len() - done) };
            thread::yield_now();
        }
    }

    fn get_all(own: &mut Streams<Shared>, way: Way, operation: u64, at: u64, bytes: usize) -> Vec<u8> {
        own.expect(way, operation);
        let opening = loop {
            match own.hear(way, operation) {
                Some(opening) => break opening,
                None => thread::yield_now(),
            }
        };
        let mut found = vec![0; bytes];
        let mut done = 0;
        while done < bytes {
            let rest = &mut found[done..];
            // SAFETY: the rest is as long.
            let got = unsafe {
                own.get((way, operation), opening, at + done as u64, rest.as_mut_ptr(), rest.len())
            };
            let Got::Bytes(count) = got else { panic!("{got:?}") };
            done += count;
            thread::yield_now();
        }
        found
    }

    /// Every rank publishes to all others in every operation; the last reads only a part of each, and all lengths differ.
    #[test]
    fn all_publish_and_all_read() {
        let (ranks, operations) = if cfg!(miri) { (3, 6) } else { (4, 60) };
        let bytes = |writer: u32, operation: u64| -> Vec<u8> {
            let length =
                (operation as usize * 4097 + writer as usize * 511) % if cfg!(miri) { 300 } else { 150_000 };
            (0..length).map(|at| (at as u64 * 7 + operation + u64::from(writer)) as u8).collect()
        };
        let heap = Heap::new(ranks);
        let rank = |me: u32| {
            let mut own = Streams::new(Shared(heap.clone()), me, 1 << 10);
            move || {
                for operation in 1..=operations {
                    let mine = bytes(me, operation);
                    let readers = (0..ranks).filter(|other| *other != me).collect();
                    own.announce(0, operation, mine.len() as u64, Style::Data, readers);
                    thread::scope(|scope| {
                        // What a rank does in turns, two threads of it do here, one after the other for each stream.
                        let memory = Shared(own.memory().0.clone());
                        scope.spawn(move || {
                            let mut reader = Streams::new(memory, me, 1 << 10);
                            for writer in (0..ranks).filter(|other| *other != me) {
                                let way = Way { writer, channel: 0 };
                                let expected = bytes(writer, operation);
                                let part = if me == ranks - 1 {
                                    expected.len() / 2..expected.len() * 3 / 4
                                } else {
                                    0..expected.len()
                                };
                                let found =
                                    get_all(&mut reader, way, operation, part.start as u64, part.len());
                                assert!(found == expected[part], "{me} of {writer} in {operation}");
                                reader.finish(way, operation);
                            }
                        });
                        put_all(&mut own, operation, &mine);
                        while !own.close(0, operation) {
                            thread::yield_now();
                        }
                    });
                }
                while !own.is_quiet() {
                    thread::yield_now();
                }
            }
        };
        thread::scope(|scope| {
            let ranks: Vec<_> = (0..ranks).map(|me| scope.spawn(rank(me))).collect();
            ranks.into_iter().for_each(|rank| rank.join().unwrap());
        });
    }

    #[test]
    fn later_operations_wait_for_their_turn_and_a_full_ring_for_its_readers() {
        let heap = Heap::new(2);
        let heads = SLOTS as u64;
        let [mut writer, mut reader] = [0, 1].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10));
        (1..=heads + 2).for_each(|operation| reader.expect(UP, operation));
        let ring = heap.raw.ring_bytes() as usize;
        let data = vec![5; ring + 1];
        for operation in 1..=heads + 2 {
            writer.announce(0, operation, 0, Style::Data, [1].into());
        }
        // SAFETY: there are as many bytes.
        unsafe {
            assert_eq!(writer.put(0, 2, data.as_ptr(), 1), 0, "the first is not over");
            assert_eq!(writer.put(0, 1, data.as_ptr(), ring + 1), ring);
        }
        assert!(reader.hear(UP, 2).is_none());
        let opening = reader.hear(UP, 1).unwrap();
        assert!(!writer.is_taken(0, 1));
        let mut found = [0; 16];
        assert_eq!(reader.look((UP, 1), opening, 0, &mut found), Got::Bytes(16));
        // SAFETY: there are as many bytes.
        unsafe {
            assert_eq!(writer.put(0, 1, data.as_ptr(), 1), 0, "looked at, but not taken");
            reader.release(UP, opening, 16);
            assert_eq!(writer.put(0, 1, data.as_ptr(), 17), 16);
        }
        assert!(writer.close(0, 1) && !writer.is_quiet());
        // As many heads as there are, the reader having finished none.
        assert!((2..=heads).all(|operation| writer.close(0, operation)));
        assert!(!writer.close(0, heads + 1), "the head of the first is needed");
        reader.finish(UP, 2);
        assert!(
            reader.hear(UP, 3).is_none() && !writer.close(0, heads + 1),
            "so it is when a later one is over"
        );
        reader.finish(UP, 1);
        assert!(reader.hear(UP, 3).is_some() && writer.close(0, heads + 1) && writer.close(0, heads + 2));
        (3..heads + 2).for_each(|operation| reader.finish(UP, operation));
        assert!(!writer.is_quiet() && !reader.is_quiet());
        reader.finish(UP, heads + 2);
        assert!(writer.is_quiet() && reader.is_quiet());
    }

    /// It takes the end of what does not fit into the ring, and waits there; the writer needs no room for what lies before.
    #[test]
    fn a_reader_may_wait_for_what_comes_later() {
        let heap = Heap::new(2);
        let [mut writer, mut reader] = [0, 1].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10));
        let ring = heap.raw.ring_bytes() as usize;
        let data = vec![5; 3 * ring];
        reader.expect(UP, 1);
        writer.announce(0, 1, 0, Style::Data, [1].into());
        assert!(writer.is_open(0, 1));
        let opening = reader.hear(UP, 1).unwrap();
        let (mut found, last) = ([0; 16], (3 * ring - 16) as u64);
        // SAFETY: there are as many bytes.
        unsafe {
            assert_eq!(reader.get((UP, 1), opening, last, found.as_mut_ptr(), 16), Got::Bytes(0));
            assert_eq!(writer.put(0, 1, data.as_ptr(), 3 * ring), 3 * ring);
            assert_eq!(reader.get((UP, 1), opening, last, found.as_mut_ptr(), 16), Got::Bytes(16));
        }
        assert_eq!(found, [5; 16]);
    }

    #[test]
    fn what_is_told_anew_before_a_stream_is_open_is_heard() {
        let heap = Heap::new(2);
        let [mut writer, mut reader] = [0, 1].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10));
        for operation in 1..=2 {
            reader.expect(UP, operation);
            writer.announce(0, operation, 10, Style::Data, [1].into());
            writer.retell(0, operation, 10 + operation);
        }
        assert!(writer.is_open(0, 1));
        writer.retell(0, 1, 20);
        assert_eq!(reader.hear(UP, 1).map(|opening| opening.total), Some(11), "as it was when it was opened");
        assert!(writer.close(0, 1) && writer.close(0, 2));
        reader.finish(UP, 1);
        assert_eq!(reader.hear(UP, 2).map(|opening| opening.total), Some(12));
    }

    #[test]
    fn who_has_nothing_to_publish_says_so() {
        let heap = Heap::new(2);
        let [mut writer, mut reader] = [0, 1].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10));
        (1..=6).for_each(|operation| reader.expect(UP, operation));
        for operation in 1..=3 {
            writer.announce(0, operation, 9, Style::Data, [1].into());
        }
        let mut found = [0; 4];
        let mut get = |operation, at| {
            (1..operation).for_each(|earlier| reader.finish(UP, earlier));
            let opening = reader.hear(UP, operation)?;
            // SAFETY: there is room.
            Some(unsafe { reader.get((UP, operation), opening, at, found.as_mut_ptr(), 4) })
        };
        // SAFETY: there are as many bytes.
        unsafe { writer.put(0, 1, [1, 2, 3, 4].as_ptr(), 4) };
        assert_eq!(get(1, 0), Some(Got::Bytes(4)));
        assert_eq!(writer.put_nothing(0, 1, 4), 4);
        assert_eq!(get(1, 4), Some(Got::Spoiled));
        // Of an operation that goes wrong before its turn.
        writer.abandon(0, 2);
        assert_eq!(get(2, 0), None);
        assert!(writer.close(0, 1) && writer.is_open(0, 3));
        assert_eq!(get(2, 0), Some(Got::Spoiled));
        assert_eq!(get(3, 0), Some(Got::Bytes(0)));
        writer.abandon(0, 3);
        assert_eq!(get(3, 0), Some(Got::Spoiled));
    }
}
