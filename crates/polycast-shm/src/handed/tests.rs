use std::sync::Arc;

use super::*;

const UP: Way = Way { writer: 0, channel: 1 };

/// In every order that loom finds: a reader before the tray is filled, and two that fill it.
#[cfg(loom)]
mod every_order {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    struct Model {
        refused: AtomicU64,
        slip: Slip,
        tray: [UnsafeCell<u8>; 2],
    }

    // SAFETY: loom looks whether the tray is used by two at a time.
    unsafe impl Sync for Model {}
    // SAFETY: as above.
    unsafe impl Send for Model {}

    impl Trays for Model {
        fn tray_bytes(&self) -> usize {
            self.tray.len()
        }

        fn has_refused(&self) -> &AtomicU64 {
            &self.refused
        }

        fn slip(&self, _: u32) -> &Slip {
            &self.slip
        }

        unsafe fn lay(&self, _: u32, source: *const u8, bytes: usize) {
            for (at, cell) in self.tray[..bytes].iter().enumerate() {
                // SAFETY: the caller's promise; loom looks at the cell.
                cell.with_mut(|cell| unsafe { *cell = *source.add(at) });
            }
        }

        unsafe fn pick_up(&self, _: u32, place: *mut u8, bytes: usize) {
            for (at, cell) in self.tray[..bytes].iter().enumerate() {
                // SAFETY: as above.
                cell.with(|cell| unsafe { *place.add(at) = *cell });
            }
        }
    }

    fn model() -> Arc<Model> {
        let number = || AtomicU64::new(0);
        let [asked, handed, stream, operation, address, bytes] = std::array::from_fn(|_| number());
        let slip = Slip { asked, handed, stream, operation, address, bytes };
        Arc::new(Model { refused: number(), slip, tray: std::array::from_fn(|_| UnsafeCell::new(0)) })
    }

    fn take_all(reader: &mut Handed<Arc<Model>>, of: (Way, u64), address: u64, count: usize) -> Vec<u8> {
        let mut found = vec![0; count];
        let mut done = 0;
        while done < count {
            let rest = &mut found[done..];
            // SAFETY: it is as long.
            let got = unsafe { reader.take(of, address + done as u64, rest.as_mut_ptr(), rest.len()) };
            if got == 0 {
                thread::yield_now();
            }
            done += got;
        }
        found
    }

    fn check(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(run);
    }

    #[test]
    fn all_pieces_are_handed() {
        static BYTES: [u8; 3] = [7, 8, 9];
        check(|| {
            let memory = model();
            let writer = Handed::new(memory.clone(), 0);
            let hands = thread::spawn(move || {
                let mut pieces = 0;
                while pieces < 2 {
                    // SAFETY: it is as long.
                    if unsafe { writer.hand((1, 5), &[2], BYTES.as_ptr(), 3) } {
                        pieces += 1;
                    } else {
                        thread::yield_now();
                    }
                }
            });
            let mut reader = Handed::new(memory, 2);
            assert_eq!(take_all(&mut reader, (UP, 5), BYTES.as_ptr() as u64, 3), BYTES);
            hands.join().unwrap();
        });
    }

    #[test]
    fn what_was_left_may_be_on_its_way_and_spoils_nothing() {
        static BYTES: [u8; 2] = [3, 4];
        check(|| {
            let memory = model();
            let (first, second) = (Handed::new(memory.clone(), 0), Handed::new(memory.clone(), 1));
            // SAFETY: it is as long.
            let left = thread::spawn(move || unsafe { first.hand((1, 5), &[2], BYTES.as_ptr(), 1) });
            let mut reader = Handed::new(memory, 2);
            // SAFETY: a byte has room.
            assert_eq!(unsafe { reader.take((UP, 5), BYTES.as_ptr() as u64, &mut 0, 1) }, 0);
            reader.leave(5);
            let (of, address) = ((Way { writer: 1, channel: 0 }, 6), BYTES.as_ptr() as u64 + 1);
            let mut found = 0;
            // The other writer hands in this thread: orders of three are too many.
            // SAFETY: a byte has room.
            while unsafe { reader.take(of, address, &mut found, 1) } == 0 {
                // SAFETY: it is as long.
                if !unsafe { second.hand((0, 6), &[2], BYTES.as_ptr().wrapping_add(1), 1) } {
                    thread::yield_now();
                }
            }
            assert_eq!(found, 4);
            left.join().unwrap();
        });
    }
}

#[cfg(not(loom))]
mod of_a_segment {
    use super::*;
    use crate::{Arena, MAX_SLOTS, Raw};

    #[derive(Clone)]
    struct Mapped(Arc<(Raw, Arena)>);

    impl Deref for Mapped {
        type Target = Raw;

        fn deref(&self) -> &Raw {
            &self.0.0
        }
    }

    fn ranks() -> Vec<Handed<Mapped>> {
        let (arena, _) = Arena::create(Arena::MAX_BYTES, 7).unwrap();
        let slot = arena.take(3, MAX_SLOTS).unwrap();
        // SAFETY: the arena is kept beside it, and nothing is given back.
        let memory = unsafe { arena.memory(slot, 3) }.unwrap();
        let memory = Mapped(Arc::new((memory, arena)));
        (0..3).map(|me| Handed::new(memory.clone(), me)).collect()
    }

    fn take(reader: &mut Handed<Mapped>, of: (Way, u64), from: &[u8], place: &mut [u8]) -> usize {
        // SAFETY: the place is as long.
        unsafe { reader.take(of, from.as_ptr() as u64, place.as_mut_ptr(), place.len()) }
    }

    fn hand(writer: &Handed<Mapped>, of: (u8, u64), shown: &[u8]) -> bool {
        // SAFETY: it is as long.
        unsafe { writer.hand(of, &[1, 2], shown.as_ptr(), shown.len() as u64) }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn only_what_is_shown_is_handed_and_only_once() {
        let [writer, one, two] = &mut ranks()[..] else { panic!("three ranks") };
        let bytes: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
        let mut place = vec![0; bytes.len()];
        assert!(!writer.has_refused() && !hand(writer, (1, 5), &bytes));
        assert_eq!(take(one, (UP, 5), &bytes[100..], &mut place[100..]), 0);
        assert!(writer.has_refused());
        for (other, shown) in
            [((0, 5), &bytes[..]), ((1, 6), &bytes), ((1, 5), &bytes[101..]), ((1, 5), &bytes[..101])]
        {
            assert!(!hand(writer, other, shown), "{other:?} of {}", shown.len());
        }
        assert_eq!(take(one, (UP, 5), &bytes[100..], &mut place[100..]), 0);
        assert_eq!(take(two, (UP, 5), &bytes[..9], &mut place[..9]), 0);
        assert!(hand(writer, (1, 5), &bytes) && !hand(writer, (1, 5), &bytes));
        let got = take(one, (UP, 5), &bytes[100..], &mut place[100..]);
        assert!(got > 1000 && place[100..][..got] == bytes[100..][..got]);
        assert_eq!(take(two, (UP, 5), &bytes[..9], &mut place[..9]), 9);
        assert_eq!(place[..9], bytes[..9]);
    }

    /// Who comes later in the same memory does not take for an answer what was handed to those before.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn later_parts_get_what_they_ask_for() {
        let [writer, one, _] = &mut ranks()[..] else { panic!("three ranks") };
        let (bytes, mut place) = ([1, 2, 3, 4], [0; 4]);
        for round in 0..3 {
            let of = (UP, 5 + round);
            let later = &mut Handed::after(one.memory.clone(), 1);
            for first in [0, 0] {
                assert_eq!(take(later, of, &bytes, &mut place), first, "{round}");
            }
            assert!(hand(writer, (1, 5 + round), &bytes));
            assert_eq!(take(later, of, &bytes, &mut place), 4, "{round}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn one_asks_for_one_thing_at_a_time_and_may_leave_it() {
        let [writer, one, _] = &mut ranks()[..] else { panic!("three ranks") };
        let (bytes, mut place) = ([1, 2, 3, 4], [0; 4]);
        let (first, second) = ((UP, 5), (Way { writer: 0, channel: 0 }, 6));
        assert_eq!(take(one, first, &bytes, &mut place), 0);
        assert_eq!(take(one, second, &bytes, &mut place), 0);
        assert!(!hand(writer, (0, 6), &bytes) && hand(writer, (1, 5), &bytes));
        assert_eq!(take(one, second, &bytes, &mut place), 0, "it is for another");
        assert_eq!(take(one, first, &bytes, &mut place), 4);
        // Before it was handed, and behind that.
        for is_late in [false, true] {
            assert_eq!(take(one, first, &bytes, &mut place), 0);
            assert!(!is_late || hand(writer, (1, 5), &bytes));
            one.leave(5);
            assert!(!hand(writer, (1, 5), &bytes));
            assert_eq!(take(one, second, &bytes[1..], &mut place[..2]), 0);
            assert!(hand(writer, (0, 6), &bytes));
            place = [0; 4];
            assert_eq!(take(one, second, &bytes[1..3], &mut place[..2]), 2);
            assert_eq!(place, [2, 3, 0, 0]);
        }
    }
}
