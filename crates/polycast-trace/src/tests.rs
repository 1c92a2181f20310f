use fastrand::Rng;
use proptest::prelude::*;

use crate::layout::{text_of, text_words};
use crate::{
    About, Clock, DecodeError, Ending, Event, Job, JobError, Kind, NOT_NAMED, Recorder, Trace, calls, decode,
    phases, skew,
};

fn about(rank: u32, ranks: u32) -> About<'static> {
    About {
        rank,
        ranks,
        job: 7,
        clock: 70,
        process: 100 + rank,
        began_ns: 1000,
        began_1970_ns: 5,
        host: "node00",
        program: "solver",
        polycast: "0.2.0",
        mpi: "Open MPI v4.1.4",
        command: "solver -n 7",
    }
}

fn written(recorder: &Recorder) -> Vec<u8> {
    let mut file = Vec::new();
    assert!(recorder.write(Ending::Finalized, 9000, |part| {
        file.extend_from_slice(part);
        true
    }));
    file
}

fn event(kind: Kind, at_ns: u64) -> Event {
    Event { at_ns, kind, detail: 0, communicator: 0, call: 1, a: 0, b: 0, c: 0 }
}

fn any_event() -> impl Strategy<Value = Event> {
    let kinds = prop::sample::select(vec![
        Kind::Call,
        Kind::Chosen,
        Kind::Return,
        Kind::Wait,
        Kind::FirstDatagram,
        Kind::LastDatagram,
        Kind::Datagrams,
        Kind::Repairs,
        Kind::Left,
        Kind::Unserved,
    ]);
    (any::<u64>(), kinds, any::<(u8, u16, u32)>(), any::<(u64, u32, u32)>()).prop_map(
        |(at_ns, kind, (detail, communicator, call), (a, b, c))| Event {
            at_ns,
            kind,
            detail,
            communicator,
            call,
            a,
            b,
            c,
        },
    )
}

proptest! {
    #[test]
    fn what_is_recorded_is_read(events in prop::collection::vec(any_event(), 0..40), room in 1usize..40) {
        let recorder = Recorder::new(&about(1, 3), room);
        events.iter().for_each(|event| recorder.record(*event));
        let index = recorder.communicator(11, 2, 3, 1, 0);
        prop_assert_eq!(recorder.name("chain:segment=8KiB"), 0);
        let trace = decode(&written(&recorder)).unwrap();
        let kept = events.len().min(room);
        prop_assert_eq!(&trace.events, &events[events.len() - kept..]);
        prop_assert_eq!((trace.recorded, index, trace.met), (events.len() as u64, 0, 1));
        prop_assert_eq!((trace.rank, trace.ranks, trace.process, trace.ending), (1, 3, 101, Ending::Finalized));
        prop_assert_eq!((&trace.host[..], &trace.program[..], &trace.polycast[..]), ("node00", "solver", "0.2.0"));
        prop_assert_eq!(trace.names, vec!["chain:segment=8KiB"]);
    }

    /// Whatever stands in a file, it is read or refused; one bit of what was written is never overlooked.
    #[test]
    fn damage_is_found(seed in any::<u64>()) {
        let mut random = Rng::with_seed(seed);
        let recorder = Recorder::new(&about(0, 1), 8);
        (0..random.u64(..12)).for_each(|at| recorder.record(event(Kind::Call, at)));
        recorder.communicator(1, 0, 1, 0, 0);
        let file = written(&recorder);
        let mut other = file.clone();
        other[random.usize(..file.len())] ^= 1 << random.u8(..8);
        prop_assert!(decode(&other).is_err());
        prop_assert!(decode(&file[..random.usize(..file.len())]).is_err());
        let mut longer = file.clone();
        longer.push(0);
        prop_assert!(decode(&longer).is_err());
    }
}

#[test]
fn what_is_wrong_is_said() {
    let file = written(&Recorder::new(&about(0, 1), 1));
    assert_eq!(decode(b""), Err(DecodeError::Foreign));
    assert_eq!(decode(&[0; 600]), Err(DecodeError::Foreign));
    assert!(matches!(
        decode(&file[..file.len() - 8]),
        Err(DecodeError::Length { found: 520, expected: 528 })
    ));
    let mut newer = file.clone();
    newer[8] = 2;
    assert_eq!(decode(&newer), Err(DecodeError::Version(2)));
    let mut damaged = file;
    damaged[400] ^= 1;
    assert_eq!(decode(&damaged), Err(DecodeError::Checksum));
}

#[test]
fn tables_that_are_full_name_nothing_more() {
    let recorder = Recorder::new(&about(0, 1), 1);
    let names: Vec<u16> = (0..600).map(|index| recorder.name(&format!("choice {index}"))).collect();
    assert_eq!((names[0], names[511], names[512], recorder.name("choice 3")), (0, 511, NOT_NAMED, 3));
    let met: Vec<u16> = (0..1100).map(|group| recorder.communicator(group, 0, 2, 0, 0)).collect();
    assert_eq!((met[0], met[1023], met[1024]), (0, 1023, NOT_NAMED));
    let trace = decode(&written(&recorder)).unwrap();
    assert_eq!((trace.names.len(), trace.communicators.len(), trace.met), (512, 1024, 1100));
}

#[test]
fn a_long_name_is_cut_between_characters_and_shows_it() {
    for (text, kept) in [("1234567é", "12345…"), ("1234é678", "1234…"), ("12345678", "12345678"), ("", "")]
    {
        assert_eq!(text_of(&text_words::<1>(text)), kept, "{text}");
    }
}

#[test]
fn an_event_that_is_not_complete_is_left_out() {
    let recorder = Recorder::new(&about(0, 1), 4);
    recorder.record(event(Kind::Call, 1));
    let mut words = event(Kind::Call, 2).words();
    assert_eq!(Event::from_words(words).map(|event| event.at_ns), Some(2));
    words[1] = 0;
    assert_eq!(Event::from_words(words), None);
    assert_eq!(decode(&written(&recorder)).unwrap().events.len(), 1);
}

/// Three ranks, of which the last has a clock that is 500 ns behind at first and 700 ns at last.
fn job(times: [(u64, u64); 3], root: u32) -> Job {
    let traces = (0..).zip(times).map(|(rank, (called, returned))| {
        let mut about = about(rank, 3);
        about.clock = if rank == 2 { 71 } else { 70 };
        let recorder = Recorder::new(&about, 16);
        if rank == 2 {
            recorder.clock(Clock { local_ns: 1000, offset_ns: 500, error_ns: 20 }, false);
            recorder.clock(Clock { local_ns: 1_001_000, offset_ns: 700, error_ns: 30 }, true);
        }
        recorder.communicator(1, 0, 3, rank, 0);
        let (choice, reason) = (recorder.name("chain"), recorder.name("a rule"));
        recorder.record(Event { a: 64, b: root, ..event(Kind::Call, called) });
        let chosen = event(Kind::Chosen, called + 10);
        recorder.record(Event { b: choice.into(), c: reason.into(), ..chosen });
        recorder.record(Event { a: 30, b: 1, ..event(Kind::Wait, called + 20) });
        recorder.record(Event { a: 40, b: 2, ..event(Kind::Return, returned) });
        decode(&written(&recorder)).unwrap()
    });
    Job::new(traces.collect()).unwrap()
}

#[test]
fn ranks_are_put_on_one_clock() {
    let job = job([(2000, 9000), (2000, 9000), (2000, 9000)], 0);
    assert_eq!((job.clock_error_ns, &job.missing[..], &job.without_clock[..]), (30, &[][..], &[][..]));
    assert_eq!(
        [job.common_ns(0, 2000), job.common_ns(2, 1000), job.common_ns(2, 501_000)],
        [1000, 500, 500_600]
    );
}

#[test]
fn phases_of_a_broadcast() {
    let of = |times, root| {
        let calls = calls(&job(times, root));
        assert_eq!(calls.len(), 1);
        (phases(&calls[0]).unwrap(), skew(&calls[0]).unwrap())
    };
    let (phases, skew) = of([(3000, 9000), (5000, 8000), (1500, 6000)], 0);
    assert_eq!((phases.startup_ns, phases.intermediate_ns, phases.final_ns), (1000, 2000, 4000));
    assert_eq!((skew.first, skew.last, skew.in_ns, skew.after_last_ns), (2, 1, 3000, 4000));
    assert_eq!(skew.out_ns, 9000 - 6501, "the drift counts, too");
    let (root_last, _) = of([(3000, 9000), (5000, 8000), (1500, 6000)], 1);
    assert_eq!((root_last.startup_ns, root_last.intermediate_ns), (3000, 0));
}

#[test]
fn a_call_has_what_its_ranks_say() {
    let job = job([(3000, 9000), (5000, 8000), (1500, 6000)], 0);
    let call = &calls(&job)[0];
    assert_eq!((call.size, call.number, call.collective, call.bytes, call.root), (3, 1, 0, 64, 0));
    let part = &call.parts[1];
    assert_eq!((part.rank, part.called_ns, part.returned_ns), (1, 4000, Some(7000)));
    assert_eq!((part.waited_ns, &part.waits[..]), (40, &[(4020, 30)][..]));
    assert_eq!([part.choice, part.reason].map(|name| &job.names[usize::from(name)][..]), ["chain", "a rule"]);
}

#[test]
fn ranks_that_are_missing_are_named() {
    let job = job([(3000, 9000), (5000, 8000), (1500, 6000)], 0);
    let without =
        |rank: u32| -> Vec<Trace> { job.traces.iter().filter(|trace| trace.rank != rank).cloned().collect() };
    let of_two = Job::new(without(1)).unwrap();
    assert_eq!(of_two.missing, [1]);
    assert!(!calls(&of_two)[0].is_whole() && skew(&calls(&of_two)[0]).is_none());
    assert_eq!(Job::new(vec![]).unwrap_err(), JobError::Nothing);
    let twice = [job.traces.clone(), without(1)].concat();
    assert_eq!(Job::new(twice).unwrap_err(), JobError::Twice(0));
    let mut strangers = job.traces.clone();
    strangers[2].job = 9;
    assert_eq!(Job::new(strangers).unwrap_err(), JobError::SeveralJobs(vec![(7, 2), (9, 1)]));
    let mut alone = without(2);
    alone[1].clock = 99;
    assert_eq!(Job::new(alone).unwrap().without_clock, [1]);
}

#[test]
fn times_of_clocks_that_were_not_compared_are_not_held_against_each_other() {
    let compared = job([(3000, 9000), (5000, 8000), (1500, 6000)], 0);
    let mut traces = compared.traces.clone();
    // Hours ahead.
    let ahead = 5 * 3_600_000_000_000;
    traces[2].clocks = [None, None];
    traces[2].began_ns += ahead;
    traces[2].ended_ns += ahead;
    traces[2].events.iter_mut().for_each(|event| event.at_ns += ahead);
    let job = Job::new(traces.clone()).unwrap();
    assert_eq!((&job.without_clock[..], job.length_ns), (&[2][..], 8000));
    let call = &calls(&job)[0];
    assert!(call.is_whole() && skew(call).is_none() && phases(call).is_none());
    assert_eq!(call.parts[2].called_ns, 500);
    // Ranks on one clock have it among themselves, whether it was compared or not.
    traces[1].clock = 71;
    assert!(!calls(&Job::new(traces.clone()).unwrap())[0].has_one_clock);
    for trace in &mut traces {
        trace.rank += 1;
        trace.ranks = 4;
    }
    let of = |trace: usize| calls(&Job::new(traces[trace..].to_vec()).unwrap())[0].has_one_clock;
    assert_eq!([of(0), of(1)], [false, true]);
}
