//! Traces as the ranks of a job leave them.

use std::fs;
use std::path::Path;

use polycast_trace::{About, Clock, Ending, Event, Kind, NOT_NAMED, Recorder};

/// Calls of a job.
pub const CALLS: u32 = 6;

/// Of so many ranks on two hosts, whose clocks are 1 s apart: broadcasts from rank 0, of 1 KiB, 2 KiB … by multicast, of which the first is by stock. Rank 1
/// is 40 µs late each time, and the call takes 100 µs more.
pub fn leave(folder: &Path, ranks: u32) {
    leave_calls(folder, ranks, CALLS);
}

/// The same with so many calls, whose sizes begin again after some.
pub fn leave_calls(folder: &Path, ranks: u32, calls: u32) {
    fs::create_dir_all(folder).unwrap();
    for rank in 0..ranks {
        fs::write(folder.join(format!("rank-{rank:06}.trace")), file(rank, ranks, calls, true)).unwrap();
    }
    let trial = r#""stays":"multicast-pull","is_remembered":false,
        "times":[{"choice":"multicast-pull","median_seconds":0.0001},{"choice":"stock","median_seconds":0.0003}]"#;
    let trial = format!(r#"{{"collective":"bcast","first_bytes":2048,"ranks":{ranks},{trial}}}"#);
    fs::write(
        folder.join("report.json"),
        format!(r#"{{"rank_0":{{"networks":[{{"nodes":{ranks},"rate":"1gbit"}}],"trials":[{trial}]}}}}"#),
    )
    .unwrap();
}

/// The same without a comparison of the two clocks.
pub fn leave_uncompared(folder: &Path, ranks: u32) {
    leave(folder, ranks);
    for rank in 0..ranks {
        fs::write(folder.join(format!("rank-{rank:06}.trace")), file(rank, ranks, CALLS, false)).unwrap();
    }
}

/// Of two ranks that have recorded numbers that no clock shows.
pub fn leave_absurd(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for rank in 0..2 {
        let about = About {
            rank,
            ranks: 2,
            job: 78,
            clock: rank.into(),
            process: 1,
            began_ns: 1 << 63,
            began_1970_ns: u64::MAX,
            host: "n",
            program: "p",
            polycast: "0.2.0",
            mpi: "",
            command: "",
        };
        let recorder = Recorder::new(&about, 8);
        recorder.clock(Clock { local_ns: 0, offset_ns: i64::MIN, error_ns: u64::MAX }, false);
        let communicator = recorder.communicator(1, 0, 2, rank, 0);
        for (at_ns, kind) in [
            (0, Kind::Call),
            (0, Kind::Wait),
            (0, Kind::Datagrams),
            (0, Kind::Repairs),
            (u64::MAX, Kind::Return),
        ] {
            let (a, b, c) = (u64::MAX, u32::MAX, u32::MAX);
            recorder.record(Event { at_ns, kind, detail: 0, communicator, call: 1, a, b, c });
        }
        fs::write(folder.join(format!("rank-{rank}.trace")), written(&recorder, u64::MAX)).unwrap();
    }
}

fn written(recorder: &Recorder, ended_ns: u64) -> Vec<u8> {
    let mut file = Vec::new();
    recorder.write(Ending::Finalized, ended_ns, |part| {
        file.extend_from_slice(part);
        true
    });
    file
}

fn file(rank: u32, ranks: u32, calls: u32, has_clock: bool) -> Vec<u8> {
    let is_far = rank >= ranks.div_ceil(2);
    let clock_ns = if is_far { 1_000_000_000 } else { 2_000_000_000 };
    let about = About {
        rank,
        ranks,
        job: 77,
        clock: u64::from(is_far),
        process: 4000 + rank,
        began_ns: clock_ns,
        began_1970_ns: 1_700_000_000_000_000_000,
        host: if is_far { "far</script>" } else { "near" },
        program: "a solver & more",
        polycast: "0.2.0",
        mpi: "Open MPI v4.1.4",
        command: "'a solver' --steps <7>",
    };
    let recorder = Recorder::new(&about, 8 * calls as usize + 1);
    if has_clock && is_far && rank == ranks.div_ceil(2) {
        for (at, is_at_end) in [(0, false), (50_000_000, true)] {
            let local_ns = clock_ns + at;
            recorder.clock(Clock { local_ns, offset_ns: 1_000_000_000, error_ns: 3_000 }, is_at_end);
        }
    }
    let communicator = recorder.communicator(5, 0, ranks, rank, 0);
    let [stock, pull] = ["stock", "multicast-pull"].map(|name| recorder.name(name));
    let [small, large] = ["it is small", "it is large"].map(|name| recorder.name(name));
    for call in 1..=calls {
        let called = clock_ns + u64::from(call) * 1_000_000 + if rank == 1 { 40_000 } else { 0 };
        let at = |at_ns, kind, detail, (a, b, c)| {
            recorder.record(Event { at_ns, kind, detail, communicator, call, a, b, c });
        };
        let (choice, reason) = if call == 1 { (stock, small) } else { (pull, large) };
        at(called, Kind::Call, 0, (512 << (call % 16), 0, 0));
        at(called + 500, Kind::Chosen, 0, (0, choice.into(), reason.into()));
        if call > 1 {
            at(called + 1_000, Kind::Wait, 0, (20_000, 0, 0));
            at(called + 30_000, Kind::FirstDatagram, u8::from(rank == 0), (0, 0, 0));
            at(called + 60_000, Kind::LastDatagram, u8::from(rank == 0), (0, 0, 0));
            at(called + 70_000, Kind::Datagrams, 0, if rank == 0 { (0, 0, 9) } else { (9, 8, 0) });
            if rank == 2 {
                at(called + 71_000, Kind::Repairs, 0, (2, 1, 1));
            }
        }
        let end = clock_ns + u64::from(call) * 1_000_000 + 140_000 + u64::from(rank) * 1_000;
        at(end, Kind::Return, 0, (if call > 1 { 25_000 } else { 0 }, 2, 0));
    }
    let b = recorder.name("on communicators of one rank").into();
    let communicator = NOT_NAMED;
    recorder.record(Event {
        at_ns: clock_ns,
        kind: Kind::Left,
        detail: 0,
        communicator,
        call: 0,
        a: 8,
        b,
        c: 0,
    });
    written(&recorder, clock_ns + 50_000_000 + u64::from(calls) * 1_000_000)
}
