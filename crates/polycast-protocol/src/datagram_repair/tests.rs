use super::*;
use crate::data::Data;

const MILLI: u64 = 1_000_000;

/// 64 fragments of 16 bytes, of which those at `missing` have not come, though multicast is over.
fn receiver(missing: &[u32]) -> Receiver {
    let cut = cut();
    let mut receiver = Receiver::new(cut, false);
    let mut memory = [0; 1024];
    for fragment in (0..64).filter(|fragment| !missing.contains(fragment)) {
        receiver.take(fragment, &[1; 16], &mut Data::Sink(&mut memory));
    }
    receiver.saw_end();
    receiver
}

fn cut() -> Fragmentation {
    Fragmentation::new(1024, 16).unwrap()
}

fn repair(position: u32) -> DatagramRepair {
    DatagramRepair::new(Form::Pull, cut(), position, 4, 9, AnswerTime::default())
}

fn payload(runs: &[Run]) -> Vec<u8> {
    let mut payload = Vec::new();
    runs.iter().for_each(|run| run.write(&mut payload));
    payload
}

#[test]
fn a_node_asks_after_silence_a_few_times_and_again_after_news() {
    let (mut repair, receiver) = (repair(2), receiver(&[3, 7, 8, 20]));
    assert_eq!(repair.ask_at(&receiver), None, "nothing of the message has come");
    repair.news(&receiver, Nanos(0));
    let mut times = Vec::new();
    while let Some(at) = repair.ask_at(&receiver) {
        assert_eq!(repair.due(at - Nanos(1), &receiver), None);
        assert_eq!(repair.due(at, &receiver), Some(Due::Request));
        let mut asked = Vec::new();
        repair.take_request(at, &receiver, &mut asked);
        let runs: Vec<Run> = read_request(&asked).unwrap().iter().collect();
        assert_eq!(runs, [Run { first: 3, count: 1 }, Run { first: 7, count: 2 }], "two fit");
        times.push(at.0 / MILLI);
    }
    assert_eq!(times, [8, 16, 32, 64, 128, 257], "and up to 0.4 ms more each");
    repair.news(&receiver, Nanos(300 * MILLI));
    assert!(repair.ask_at(&receiver).is_some());
}

#[test]
fn pauses_of_a_slow_network_are_no_silence() {
    let (mut repair, receiver) = (repair(2), receiver(&[3]));
    for step in 0..4 {
        repair.streams(Nanos(20 * step * MILLI));
    }
    repair.news(&receiver, Nanos(60 * MILLI));
    assert!(repair.ask_at(&receiver).unwrap() >= Nanos(100 * MILLI), "twice the pause");
}

#[test]
fn neighbours_that_are_slow_are_waited_for_and_so_is_a_root() {
    let mut answers = AnswerTime::default();
    for asked in 0..40 {
        answers.begin();
        answers.asked(Nanos(100 * asked * MILLI));
        answers.asked(Nanos((100 * asked + 1) * MILLI));
        answers.answered(Nanos((100 * asked + 5) * MILLI));
        answers.answered(Nanos((100 * asked + 90) * MILLI));
    }
    let patience = |is_over: bool| {
        let mut receiver = receiver(&[3]);
        if !is_over {
            receiver = Receiver::new(cut(), false);
        }
        let mut repair = DatagramRepair::new(Form::Pull, cut(), 2, 4, 9, answers);
        repair.news(&receiver, Nanos(0));
        repair.ask_at(&receiver).unwrap().0 / MILLI
    };
    assert!((18..=20).contains(&patience(true)), "four times 5 ms: {}", patience(true));
    assert!((74..=80).contains(&patience(false)), "and four times that: {}", patience(false));
}

#[test]
fn who_is_nearer_to_the_root_asks_for_those_behind() {
    let receiver = receiver(&[3, 7]);
    let heard = |position, runs: &[Run]| {
        let mut repair = repair(2);
        repair.news(&receiver, Nanos(0));
        let payload = payload(runs);
        let runs = read_request(&payload).unwrap();
        repair.heard_request(position, 2, runs, true, &receiver, Nanos(5 * MILLI));
        repair.ask_at(&receiver).unwrap() >= Nanos(13 * MILLI)
    };
    assert!(heard(1, &[Run { first: 2, count: 2 }]));
    assert!(!heard(1, &[Run { first: 7, count: 1 }]), "not the first one");
    assert!(!heard(3, &[Run { first: 3, count: 1 }]), "further away");
}

#[test]
fn a_fragment_is_answered_once_in_a_while_and_all_within_a_limit() {
    let (mut repair, receiver) = (repair(1), receiver(&[5]));
    let all = payload(&[Run { first: 0, count: u32::MAX }]);
    let mut answers = |now: u64| {
        repair.successor_asks(read_request(&all).unwrap(), true, true, &receiver, Nanos(now));
        std::iter::from_fn(|| repair.take_answer()).count()
    };
    assert_eq!(answers(10 * MILLI), 63, "what it has");
    assert_eq!(answers(13 * MILLI), 0, "a moment ago");
    assert_eq!(answers(14 * MILLI), 9, "an eighth of the message and 64 are 72");
    assert_eq!(answers(99 * MILLI), 0);
}

#[test]
fn what_others_answer_counts_as_well() {
    let (mut repair, receiver) = (repair(2), receiver(&[3]));
    repair.news(&receiver, Nanos(0));
    for _ in 0..71 {
        repair.heard_answer();
        assert!(repair.ask_at(&receiver).is_some());
    }
    repair.heard_answer();
    assert_eq!(repair.ask_at(&receiver), None, "the ring brings the rest");
    let one = payload(&[Run { first: 0, count: 1 }]);
    repair.successor_asks(read_request(&one).unwrap(), true, true, &receiver, Nanos(9 * MILLI));
    assert!(!repair.is_due());
}

#[test]
fn what_does_not_exist_is_not_answered() {
    // Memory of a longer message, all of which was there.
    let longer = Receiver::new(Fragmentation::new(9000, 16).unwrap(), true);
    let receiver = longer.renewed(cut(), true);
    for run in [Run { first: 64, count: 1 }, Run { first: u32::MAX, count: u32::MAX }] {
        let (mut repair, payload) = (repair(0), payload(&[run]));
        repair.successor_asks(read_request(&payload).unwrap(), true, true, &receiver, Nanos(9 * MILLI));
        assert!(!repair.is_due(), "{run:?}");
    }
}

#[test]
fn who_knows_the_end_tells_who_asks_for_it() {
    let (mut repair, receiver) = (repair(1), receiver(&[]));
    let none = Vec::new();
    let runs = read_request(&none).unwrap();
    repair.successor_asks(runs, true, true, &receiver, Nanos(9 * MILLI));
    repair.successor_asks(runs, false, false, &receiver, Nanos(9 * MILLI));
    assert_eq!(repair.due(Nanos(9 * MILLI), &receiver), None);
    repair.successor_asks(runs, false, true, &receiver, Nanos(9 * MILLI));
    assert_eq!(repair.due(Nanos(9 * MILLI), &receiver), Some(Due::End));
    repair.take_end();
    repair.successor_asks(runs, false, true, &receiver, Nanos(10 * MILLI));
    assert!(!repair.is_due(), "a moment ago");
}

#[test]
fn payloads_that_are_none_are_refused() {
    assert!(read_request(&[0; 7]).is_none());
    assert_eq!(read_done(&[0; 7]), None);
    assert_eq!(read_done(&9u64.to_le_bytes()), Some(9));
}
