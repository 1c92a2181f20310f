use polycast_trace::{About, Job, Recorder, calls, decode, phases, skew};

/// Words of a file's end: the checksum, and what says that it is one.
const END_BYTES: usize = 16;

/// Files that ranks leave. A damaged one has a wrong checksum almost always, so the same bytes are also read with the right one.
pub fn trace(bytes: &[u8]) {
    one(bytes);
    if let Some(mended) = with_checksum(bytes) {
        one(&mended);
    }
}

fn one(bytes: &[u8]) {
    let Ok(trace) = decode(bytes) else { return };
    assert!(trace.events.len() * 32 <= bytes.len() && trace.rank < trace.ranks);
    let Ok(job) = Job::new(vec![trace]) else { panic!("one rank is a job") };
    for call in calls(&job) {
        assert!(call.parts.iter().all(|part| usize::from(part.choice) < job.names.len()));
        let (phases, skew) = (phases(&call), skew(&call));
        assert!(phases.is_none() || skew.is_some());
    }
}

/// As a rank would have ended these bytes.
fn with_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let content = bytes.get(..bytes.len().checked_sub(END_BYTES)?)?;
    let (words, []) = content.as_chunks::<8>() else { return None };
    let sum = words.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
        let mixed = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 29
    });
    Some([content, &sum.to_le_bytes(), b"tr-end\0\0"].concat())
}

/// Files of ranks with so few events that the corpus stays small.
pub fn trace_seeds() -> Vec<Vec<u8>> {
    (0..10).map(seed).collect()
}

fn seed(number: u64) -> Vec<u8> {
    use polycast_trace::{Clock, Ending, Event, Kind};
    let about = About {
        rank: number as u32 % 3,
        ranks: 3,
        job: number,
        clock: number % 2,
        process: 9,
        began_ns: 1000,
        began_1970_ns: 5,
        host: "node",
        program: "solver",
        polycast: "0.2.0",
        mpi: "Open MPI v4.1.4",
        command: "solver -n 7",
    };
    let recorder = Recorder::new(&about, 8);
    if number % 2 == 1 {
        recorder.clock(Clock { local_ns: 1000, offset_ns: -(number as i64), error_ns: 3 }, false);
        recorder.clock(Clock { local_ns: 9000, offset_ns: 7, error_ns: 2 }, number % 4 == 1);
    }
    let communicator = recorder.communicator(number, 0, 1 + number as u32 % 2, 0, 0);
    let b = recorder.name("chain").into();
    let kinds = [
        Kind::Call,
        Kind::Chosen,
        Kind::Wait,
        Kind::FirstDatagram,
        Kind::Datagrams,
        Kind::Repairs,
        Kind::Return,
    ];
    for (at, kind) in kinds.into_iter().enumerate().take(2 + number as usize) {
        let at_ns = 1000 + at as u64 * 100;
        recorder.record(Event { at_ns, kind, detail: 0, communicator, call: 1, a: 64, b, c: 0 });
    }
    let mut file = Vec::new();
    recorder.write(Ending::Finalized, 9000, |part| {
        file.extend_from_slice(part);
        true
    });
    file
}
