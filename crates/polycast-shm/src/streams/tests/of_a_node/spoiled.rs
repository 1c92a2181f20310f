//! What becomes of the streams behind one in which something went wrong.

use super::overtaken::Eventful;
use super::*;

fn pair() -> [Streams<Shared>; 2] {
    let heap = Heap::new(2);
    [0, 1].map(|me| Streams::new(Shared(heap.clone()), me, 1 << 10))
}

fn announce(writer: &mut Streams<impl Deref<Target: Memory>>, operations: std::ops::RangeInclusive<u64>) {
    operations.for_each(|operation| writer.announce(0, operation, 0, Style::Data, [1].into()));
}

fn get(reader: &Streams<Shared>, operation: u64, at: u64) -> Got {
    let opening = reader.hear(UP, operation).unwrap();
    // SAFETY: there is room.
    unsafe { reader.get((UP, operation), opening, at, [0; 16].as_mut_ptr(), 16) }
}

/// Its readers hear of it as soon as its turn has come, though this rank has no later one.
#[test]
fn who_reads_what_was_abandoned_before_its_turn_is_told() {
    let [mut writer, mut reader] = pair();
    // The first that has to wait for the head of another, the fourth.
    let last = 4 + SLOTS as u64;
    (1..=last).for_each(|operation| reader.expect(UP, operation));
    announce(&mut writer, 1..=3);
    assert!(writer.is_open(0, 1));
    writer.abandon(0, 2);
    writer.abandon(0, 3);
    assert!(writer.close(0, 1));
    reader.finish(UP, 1);
    for operation in [2, 3] {
        assert_eq!(get(&reader, operation, 0), Got::Spoiled);
        reader.finish(UP, operation);
    }
    // The same where its turn comes only when the reader has gone on.
    announce(&mut writer, 4..=last);
    assert!((4..last).all(|operation| writer.close(0, operation)));
    writer.abandon(0, last);
    (4..last).for_each(|operation| reader.finish(UP, operation));
    assert!(reader.hear(UP, last).is_none());
    writer.tell_of_abandoned();
    assert_eq!(get(&reader, last, 0), Got::Spoiled);
}

/// A reader waits for the end of a stream that is abandoned: nobody takes that for what it has read of the next.
#[test]
fn where_a_reader_waited_in_vain_says_nothing_of_the_next_stream() {
    let [mut writer, mut reader] = pair();
    let ring = writer.memory().ring_bytes();
    let bytes: Vec<u8> = (0..2 * ring).map(|at| (at % 251) as u8).collect();
    (1..=3).for_each(|operation| reader.expect(UP, operation));
    announce(&mut writer, 1..=3);
    assert!(writer.is_open(0, 1));
    assert_eq!(get(&reader, 1, 8 * ring), Got::Bytes(0));
    writer.abandon(0, 1);
    // SAFETY: there are as many bytes.
    assert_eq!(unsafe { writer.put(0, 2, bytes.as_ptr(), 16) }, 16);
    assert!(!writer.is_taken(0, 2), "the reader is still in the first");
    reader.finish(UP, 1);
    assert!(!writer.is_taken(0, 2));
    assert_eq!(get(&reader, 2, 0), Got::Bytes(16));
    assert!(writer.is_taken(0, 2) && writer.close(0, 2));
    reader.finish(UP, 2);
    let mut done = 0;
    for _ in 0..4 {
        // SAFETY: there are as many bytes.
        done += unsafe { writer.put(0, 3, bytes[done..].as_ptr(), bytes.len() - done) };
    }
    assert_eq!(done as u64, ring, "what the reader has not seen stays");
}

/// The writer waits until a pair of numbers was taken, and the reader takes nothing that is worth nothing.
#[test]
fn what_is_worth_nothing_need_not_be_taken() {
    let [mut writer, mut reader] = pair();
    (1..=2).for_each(|operation| reader.expect(UP, operation));
    announce(&mut writer, 1..=2);
    assert_eq!(writer.put_nothing(0, 1, 16), 16);
    assert!(!writer.is_taken(0, 1));
    let opening = reader.hear(UP, 1).unwrap();
    assert_eq!(reader.look((UP, 1), opening, 0, &mut [0; 16]), Got::Spoiled);
    assert!(writer.is_taken(0, 1) && writer.close(0, 1));
    // SAFETY: there are as many bytes.
    assert_eq!(unsafe { writer.put(0, 2, [3; 16].as_ptr(), 16) }, 16);
    assert!(!writer.is_taken(0, 2));
    reader.finish(UP, 1);
    assert!(!writer.is_taken(0, 2));
    reader.finish(UP, 2);
    assert!(writer.is_taken(0, 2));
}

/// Whenever the reader makes room for it, it is told that it is worth nothing before it can take it for data.
#[test]
fn what_is_worth_nothing_is_never_taken_for_data() {
    let operations = SLOTS as u64 + 1;
    for look in 1..=3 {
        let heap = Heap::new(2);
        let mut reader = Streams::new(Shared(heap.clone()), 1, 1 << 10);
        (1..=operations).for_each(|operation| reader.expect(UP, operation));
        let memory = Eventful::new(heap.clone());
        let mut writer = Streams::new(memory.clone(), 0, 1 << 10);
        announce(&mut writer, 1..=operations);
        assert!((1..operations).all(|operation| writer.close(0, operation)));
        memory.at_look(look, move || (1..operations).for_each(|operation| reader.finish(UP, operation)));
        let done = (0..4).map(|_| writer.put_nothing(0, operations, 16)).find(|done| *done > 0);
        assert_eq!(done, Some(16));
        let mut reader = Streams::new(Shared(heap), 1, 1 << 10);
        reader.expect(UP, operations);
        assert_eq!(get(&reader, operations, 0), Got::Spoiled, "look {look}");
    }
}
