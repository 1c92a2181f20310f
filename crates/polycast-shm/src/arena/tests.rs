use std::os::fd::AsFd;

use rustix::fs::fstat;

use super::*;
use crate::memory::{Memory, Way};

fn arena(bytes: usize) -> (Arena, Arena) {
    let (arena, offer) = Arena::create(bytes, 7).unwrap();
    let other = Arena::open(offer).unwrap();
    (arena, other)
}

fn kib(arena: &Arena) -> usize {
    fstat(arena.segment().file().as_fd()).unwrap().st_blocks as usize / 2
}

#[test]
fn a_slot_survives_the_wire() {
    for is_small in [false, true] {
        let slot = Slot { number: MAX_SLOTS as u32 - 1, page: (MAX_BLOCKS * WORD) as u32 - 1, is_small };
        assert_eq!(Slot::from_word(slot.to_word()), Some(slot));
    }
    assert_eq!(Slot::from_word(0), None);
}

#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn what_one_writes_in_a_slot_another_reads() {
    let (arena, other) = arena(Arena::MAX_BYTES);
    let (one, two) = (arena.take(3, MAX_SLOTS).unwrap(), other.take(3, MAX_SLOTS).unwrap());
    assert_ne!(one.number, two.number);
    // SAFETY: nobody gives them back.
    let raws = unsafe { [arena.memory(one, 3), other.memory(one, 3), other.memory(two, 3)] };
    let [here, there, elsewhere] = raws.map(Option::unwrap);
    let way = Way { writer: 2, channel: 1 };
    here.written(way).store(5, Relaxed);
    assert_eq!([&there, &elsewhere].map(|raw| raw.written(way).load(Relaxed)), [5, 0]);
    let mut found = [0; 3];
    // SAFETY: nobody else uses either.
    unsafe {
        there.put(way, here.ring_bytes() - 1, [1, 2, 3].as_ptr(), 3);
        here.get(way, here.ring_bytes() - 1, found.as_mut_ptr(), 3);
    }
    assert_eq!(found, [1, 2, 3]);
}

/// The first ones have some hundred kibibytes, the others what there is.
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn ten_thousand_communicators_fit_and_their_memory_is_given_back() {
    let (arena, other) = arena(Arena::MAX_BYTES);
    let before = kib(&arena);
    assert!(before <= 20, "nothing but its front: {before} KiB");
    let slots: Vec<Slot> =
        (0..10_000).map(|at| [&arena, &other][at % 2].take(2, MAX_SLOTS).expect("a slot")).collect();
    let mut pages: Vec<Range<usize>> = slots.iter().map(|slot| slot.pages(2)).collect();
    pages.sort_by_key(|pages| pages.start);
    assert!(pages.windows(2).all(|pair| pair[0].end <= pair[1].start), "each has its own");
    let full = slots.iter().filter(|slot| !slot.is_small).count();
    assert!((100..200).contains(&full), "{full} of the usual shape");
    assert!(kib(&arena) < 300 << 10, "{} KiB", kib(&arena));
    slots.into_iter().for_each(|slot| arena.give_back(slot, 2));
    assert_eq!(arena.segment.word(PAGES_IN_USE).load(Relaxed), 0);
    assert!(kib(&arena) <= before + KEPT_BLOCKS * BLOCK_BYTES / 1024, "{} KiB", kib(&arena));
}

#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn communicators_of_256_ranks_fit_until_the_arena_is_full() {
    let (arena, _) = arena(Arena::MAX_BYTES);
    let slots: Vec<Slot> = std::iter::from_fn(|| arena.take(256, MAX_SLOTS)).collect();
    assert!(slots.len() > 30 && !slots[0].is_small, "{}", slots.len());
    assert!(arena.take(200, MAX_SLOTS).is_none(), "full");
    arena.give_back(slots[0], 256);
    assert!(arena.take(200, MAX_SLOTS).is_some());
    assert!(arena.take(2, 3).is_none(), "no number so low");
}

/// Memory that was another slot's has zeros.
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_slot_begins_with_zeros() {
    let (arena, _) = arena(Arena::MAX_BYTES);
    let slot = arena.take(4, MAX_SLOTS).unwrap();
    let bytes = |slot: Slot, ranks| {
        let first = arena.segment.at(FRONT_BYTES + slot.page as usize * PAGE);
        // SAFETY: the slot's own pages, which nobody else uses.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), slot.pages(ranks).len() * PAGE) }
    };
    bytes(slot, 4).fill(0xff);
    arena.give_back(slot, 4);
    let next = arena.take(3, MAX_SLOTS).unwrap();
    assert_eq!(next.page, slot.page, "so this can fail");
    assert!(bytes(next, 3).iter().all(|byte| *byte == 0));
}

#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_small_arena_has_little() {
    assert!(Arena::create(BLOCK_BYTES, 7).is_err());
    let (arena, _) = arena(FRONT_BYTES + 3 * BLOCK_BYTES);
    assert!(arena.take(128, MAX_SLOTS).is_none());
    let slot = arena.take(8, MAX_SLOTS).unwrap();
    assert!(slot.is_small, "{slot:?}");
}
