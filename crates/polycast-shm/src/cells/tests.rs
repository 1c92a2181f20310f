use std::sync::Arc;

use super::*;

/// In every order that loom finds: a reader before a cell is filled, and a writer over what is not read.
#[cfg(loom)]
mod every_order {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    struct Model {
        reached: Vec<AtomicU64>,
        stamps: Vec<AtomicU64>,
        totals: Vec<AtomicU64>,
        bells: Vec<Bell>,
        bytes: Vec<UnsafeCell<u8>>,
    }

    // SAFETY: loom looks whether the bytes are used by two at a time.
    unsafe impl Sync for Model {}
    // SAFETY: as above.
    unsafe impl Send for Model {}

    impl Model {
        fn new(ranks: u32, moment: u64) -> Arc<Model> {
            let numbers = |value: u64| (0..ranks).map(|_| AtomicU64::new(value)).collect();
            let bytes = (0..ranks).map(|_| UnsafeCell::new(0)).collect();
            let (reached, stamps, totals) = (numbers(moment), numbers(moment), numbers(0));
            let bell = |_| Bell { rung: AtomicU32::new(0), sleepers: AtomicU32::new(0) };
            Arc::new(Model { reached, stamps, totals, bells: (0..ranks).map(bell).collect(), bytes })
        }
    }

    impl Board for Model {
        fn room(&self) -> u64 {
            1
        }

        fn reached(&self, rank: u32) -> &AtomicU64 {
            &self.reached[rank as usize]
        }

        fn bell(&self, rank: u32) -> &Bell {
            &self.bells[rank as usize]
        }

        /// For ever: loom sees if nobody wakes who sleeps.
        fn sleep(&self, rank: u32, rung: u32, _: Duration) {
            while self.bells[rank as usize].rung.load(Relaxed) == rung {
                thread::yield_now();
            }
        }

        fn wake(&self, _: u32) {}

        fn stamp(&self, rank: u32, _: usize) -> &AtomicU64 {
            &self.stamps[rank as usize]
        }

        fn total(&self, rank: u32, _: usize) -> &AtomicU64 {
            &self.totals[rank as usize]
        }

        unsafe fn fill(&self, (rank, _): (u32, usize), _: u64, source: *const u8, _: usize) {
            // SAFETY: the caller's promise; loom looks at the cell.
            self.bytes[rank as usize].with_mut(|byte| unsafe { *byte = *source });
        }

        unsafe fn read<R>(
            &self,
            (rank, _): (u32, usize),
            _: u64,
            _: usize,
            use_it: impl FnOnce(*const u8) -> R,
        ) -> R {
            self.bytes[rank as usize].with(use_it)
        }
    }

    const FIRST: u32 = u32::MAX;

    fn run(preemptions: usize, ranks: u32, part: fn(Cells<Arc<Model>>, u32)) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 100_000;
        builder.check(move || {
            let before = Moment { operation: FIRST - 1, round: 0 }.number();
            let model = Model::new(ranks, before);
            let own = |me: u32| Cells::starting_at(model.clone(), me, ranks, before);
            let others: Vec<_> = (1..ranks)
                .map(|me| {
                    let cells = own(me);
                    thread::spawn(move || part(cells, me))
                })
                .collect();
            part(own(0), 0);
            others.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    fn fill(cells: &mut Cells<Arc<Model>>, at: Moment, byte: u8) {
        while !cells.may_fill(at) {
            thread::yield_now();
        }
        // SAFETY: it is allowed, and one byte.
        unsafe { cells.fill(at, 0, &byte, 1) };
        cells.tell(at, Some(u64::from(byte)));
    }

    fn expect(cells: &Cells<Arc<Model>>, writer: u32, at: Moment, byte: u8) {
        loop {
            match cells.look(writer, at) {
                Look::NotYet => thread::yield_now(),
                other => break assert_eq!(other, Look::Filled(u64::from(byte))),
            }
        }
        // SAFETY: it is filled, and this rank has not passed.
        let found = unsafe { cells.read(writer, at, (0, 1), |place| *place) };
        assert_eq!(found, byte);
    }

    /// Two operations of two ranks, each of which tells the other something; the only cell is used again, the numbers wrap around.
    #[test]
    fn all_tell_all() {
        run(3, 2, |mut cells, me| {
            for operation in [FIRST, FIRST.wrapping_add(1)] {
                cells.begin(operation);
                let at = Moment { operation, round: 0 };
                fill(&mut cells, at, 10 * operation.wrapping_sub(FIRST) as u8 + me as u8);
                expect(&cells, 1 - me, at, 10 * operation.wrapping_sub(FIRST) as u8 + 1 - me as u8);
                cells.end(operation);
            }
        });
    }

    /// Two rounds from one rank to another, which tells nothing but how far it is. (With two others loom takes more than five minutes.)
    #[test]
    fn one_tells_another() {
        run(3, 2, |mut cells, me| {
            cells.begin(FIRST);
            for round in [0, 1] {
                let at = Moment { operation: FIRST, round };
                match me {
                    0 => fill(&mut cells, at, round as u8 + 1),
                    _ => expect(&cells, 0, at, round as u8 + 1),
                }
                cells.reach(Moment { operation: FIRST, round: round + 1 });
            }
            cells.end(FIRST);
        });
    }

    /// Two operations from one rank to another; both sleep where they cannot go on, with nothing else to wake them.
    #[test]
    fn nobody_sleeps_for_ever() {
        run(3, 2, |mut cells, me| {
            for operation in [FIRST, FIRST.wrapping_add(1)] {
                cells.begin(operation);
                let at = Moment { operation, round: 0 };
                if me == 0 {
                    while !cells.may_fill(at) {
                        cells.sleep(Duration::MAX);
                    }
                    // SAFETY: it is allowed, and one byte.
                    unsafe { cells.fill(at, 0, &1, 1) };
                    cells.tell(at, Some(1));
                } else {
                    while cells.look(0, at) == Look::NotYet {
                        cells.sleep(Duration::MAX);
                    }
                    assert_eq!(cells.look(0, at), Look::Filled(1));
                }
                cells.end(operation);
            }
        });
    }

    /// One leaves an operation; the other sees whether it has filled its cell, and waits for nothing.
    #[test]
    fn one_leaves() {
        run(3, 2, |mut cells, me| {
            cells.begin(FIRST);
            let at = Moment { operation: FIRST, round: 0 };
            if me == 0 {
                cells.end(FIRST);
            } else {
                while cells.look(0, at) == Look::NotYet {
                    thread::yield_now();
                }
                assert_eq!(cells.look(0, at), Look::Nothing);
            }
        });
    }
}

#[cfg(not(loom))]
mod of_a_node {
    use std::ptr::NonNull;
    use std::thread;

    use super::*;
    use crate::raw::{Raw, Shape};

    struct Heap {
        raw: Raw,
        _memory: Vec<u64>,
    }

    // SAFETY: as a segment is shared by processes.
    unsafe impl Sync for Heap {}

    #[derive(Clone)]
    struct Shared(Arc<Heap>);

    impl Deref for Shared {
        type Target = Raw;

        fn deref(&self) -> &Raw {
            &self.0.raw
        }
    }

    fn cells(ranks: u32) -> Vec<Cells<Shared>> {
        let shape = Shape::new(ranks);
        let mut memory = vec![0u64; shape.bytes().div_ceil(8) + 512];
        let base = memory.as_mut_ptr().cast::<u8>();
        let base = base.wrapping_add(base.align_offset(4096));
        // SAFETY: so much is there from the page on; it stays as long, and is zero.
        let raw = unsafe { Raw::new(NonNull::new(base).unwrap(), shape) };
        let shared = Shared(Arc::new(Heap { raw, _memory: memory }));
        (0..ranks).map(|me| Cells::new(shared.clone(), me, ranks)).collect()
    }

    fn tell(cells: &mut Cells<Shared>, at: Moment, bytes: &[u8]) {
        assert!(cells.may_fill(at));
        // SAFETY: it is allowed, and as long.
        unsafe { cells.fill(at, 0, bytes.as_ptr(), bytes.len()) };
        cells.tell(at, Some(bytes.len() as u64));
    }

    #[test]
    fn a_writer_is_as_many_rounds_ahead_as_it_has_cells() {
        let mut all = cells(3);
        let at = |operation, round| Moment { operation, round };
        for round in 0..CELLS as u32 {
            tell(&mut all[0], at(1, round), &[round as u8]);
        }
        assert!(!all[0].may_fill(at(1, CELLS as u32)));
        all[1].reach(at(1, 1));
        assert!(!all[0].may_fill(at(1, CELLS as u32)), "the third has not read it");
        all[2].reach(at(2, 0));
        assert!(all[0].may_fill(at(1, CELLS as u32)));
        assert!(!all[0].may_fill(at(1, CELLS as u32 + 1)));
        assert_eq!(all[1].look(0, at(1, 1)), Look::Filled(1));
        // SAFETY: it is filled.
        assert_eq!(unsafe { all[1].read(0, at(1, 1), (0, 1), |byte| *byte) }, 1);
    }

    /// By the kernel: the test ends long before it would wake by itself.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn who_sleeps_is_woken() {
        let mut all = cells(2);
        let (mut reader, mut writer) = (all.remove(0), all.remove(0));
        let at = |operation| Moment { operation, round: 0 };
        let sleeper = thread::spawn(move || {
            for operation in 1..200 {
                while reader.look(1, at(operation)) == Look::NotYet {
                    reader.sleep(Duration::from_secs(3600));
                }
                reader.begin(operation);
                reader.end(operation);
            }
        });
        for operation in 1..200 {
            while !writer.may_fill(at(operation)) {
                writer.sleep(Duration::from_secs(3600));
            }
            writer.tell(at(operation), Some(0));
        }
        sleeper.join().unwrap();
    }

    #[test]
    fn what_is_spoiled_or_left_is_nothing() {
        let mut all = cells(2);
        let at = |operation| Moment { operation, round: 0 };
        all[0].begin(1);
        all[0].begin(2);
        assert!(all[0].is_under_way(1) && !all[0].is_under_way(2));
        assert_eq!(all[1].look(0, at(1)), Look::NotYet);
        all[0].tell(at(1), None);
        assert_eq!(all[1].look(0, at(1)), Look::Nothing);
        all[0].end(2);
        assert_eq!(all[1].look(0, at(2)), Look::NotYet, "the first is not over");
        all[0].end(1);
        assert_eq!(all[1].look(0, at(2)), Look::Nothing);
        assert!(all[0].is_quiet());
    }

    /// One fills a cell, and then none for as many operations as it takes until their numbers seem to lie before it, and until they come again.
    #[test]
    fn what_was_filled_long_ago_is_no_matter_of_later_operations() {
        let mut all = cells(2);
        let at = |operation| Moment { operation, round: 0 };
        tell(&mut all[0], at(1), &[7]);
        for cells in &mut all {
            cells.begin(1);
            cells.end(1);
        }
        let pass = |all: &mut Vec<Cells<Shared>>, times: std::ops::RangeInclusive<u32>| {
            for operation in times.map(|times| FORGETS_EVERY.wrapping_mul(times)) {
                all.iter_mut().for_each(|cells| cells.pass(operation));
            }
        };
        let half = (1 << 31) / FORGETS_EVERY;
        pass(&mut all, 1..=half);
        let later = at((1 << 31) + 1 + CELLS as u32);
        assert_eq!(all[1].look(0, later), Look::NotYet, "nobody has passed it");
        assert!(all[0].may_fill(later), "the cell is free");
        pass(&mut all, half + 1..=2 * half);
        assert_eq!(all[1].look(0, at(1)), Look::NotYet, "it was another operation of this number");
        assert!(all[0].may_fill(at(1)));
        tell(&mut all[0], at(1), &[8]);
        assert_eq!(all[1].look(0, at(1)), Look::Filled(1));
        assert!(!all[0].may_fill(at(1 + CELLS as u32)), "the other has not read it");
    }

    /// What others still need is kept.
    #[test]
    fn what_is_not_read_is_not_forgotten() {
        let mut all = cells(3);
        let last = Moment { operation: FORGETS_EVERY - 1, round: 0 };
        all.iter_mut().for_each(|cells| cells.begin(last.operation));
        tell(&mut all[0], last, &[7]);
        all[1].end(last.operation);
        all.iter_mut().for_each(|cells| cells.pass(FORGETS_EVERY));
        assert_eq!(all[2].look(0, last), Look::Filled(1));
        let again = Moment { operation: last.operation + CELLS as u32, round: 0 };
        assert!(!all[0].may_fill(again));
        all[2].end(last.operation);
        assert!(all[0].may_fill(again));
    }

    /// Threads that run as they like, one of which thinks that it has a processor: all tell all, two thousand times, in cells of which each is
    /// used again and again.
    #[test]
    #[cfg_attr(miri, ignore = "takes long")]
    fn many_operations_of_many_ranks() {
        let threads: Vec<_> = cells(3)
            .into_iter()
            .zip(0u8..)
            .map(|(mut cells, me)| {
                thread::spawn(move || {
                    cells.set_processors(if me == 1 { Processors::Own } else { Processors::Shared });
                    for operation in 1..2000u32 {
                        let at = Moment { operation, round: 0 };
                        let byte = |rank: u8| (operation as u8).wrapping_mul(3).wrapping_add(rank);
                        cells.begin(operation);
                        while !cells.may_fill(at) {
                            thread::yield_now();
                        }
                        tell(&mut cells, at, &[byte(me); 100]);
                        for writer in (0..3).filter(|writer| *writer != me) {
                            while cells.look(writer.into(), at) == Look::NotYet {
                                thread::yield_now();
                            }
                            let mut found = [0; 100];
                            // SAFETY: it is filled, and `found` is as long.
                            unsafe {
                                cells.read(writer.into(), at, (0, 100), |place| {
                                    found.as_mut_ptr().copy_from_nonoverlapping(place, 100);
                                });
                            }
                            assert_eq!(found, [byte(writer); 100]);
                        }
                        cells.end(operation);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
