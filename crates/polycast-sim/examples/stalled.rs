//! How long broadcasts take where single messages of the ring stand still for 200 ms, as TCP's do that have lost a packet twice: 16 nodes on
//! gigabit Ethernet.
//!
//! `cargo run --release -p polycast-sim --example stalled`

use polycast_core::units::Nanos;
use polycast_sim::protocol::{
    Arrivals, Delay, Failure, Faults, Hardware, Saying, Scenario, Simulator, Stalled,
};

const MILLI: u64 = 1_000_000;

/// A line of the table.
struct Case {
    /// The name of the messages that may stand still.
    what: &'static str,
    only: Option<Saying>,
    spec: &'static str,
    bytes: u64,
    /// The part of them that does.
    part: f64,
    /// The part of datagrams that is lost on the way to each node.
    loss: f64,
    /// The time from one broadcast to the next.
    period: Nanos,
    seeds: u64,
    broadcasts: usize,
    /// The last ones do not count: behind them nobody broadcasts any more who could answer.
    last: usize,
}

const ANY: Case = Case {
    what: "any",
    only: None,
    spec: "multicast-pull:sync=none",
    bytes: 128 << 10,
    part: 0.0,
    loss: 0.02,
    period: Nanos(100 * MILLI),
    seeds: 40,
    broadcasts: 6,
    last: 0,
};
/// A case in which nothing is lost but the dones' packets.
const DONE: Case =
    Case { what: "done", only: Some(Saying::Done), part: 0.01, loss: 0.0, broadcasts: 40, last: 30, ..ANY };
const ARRIVED: Case = Case {
    what: "arrived",
    only: Some(Saying::Arrived),
    spec: "multicast-pull:sync=random",
    part: 0.2,
    ..ANY
};
const PUSHED: Case = Case {
    what: "pushed",
    spec: "multicast-push:sync=none",
    bytes: 8 << 10,
    part: 0.01,
    broadcasts: 40,
    last: 30,
    ..ANY
};

const CASES: [Case; 12] = [
    ANY,
    Case { part: 0.01, ..ANY },
    Case { part: 0.05, ..ANY },
    Case { bytes: 4 << 20, seeds: 10, ..ANY },
    Case { bytes: 4 << 20, part: 4e-4, seeds: 10, ..ANY },
    DONE,
    Case { period: Nanos(20 * MILLI), ..DONE },
    Case { period: Nanos(0), ..DONE },
    ARRIVED,
    Case { spec: "multicast-push:sync=random", bytes: 8 << 10, ..ARRIVED },
    PUSHED,
    Case { period: Nanos(10 * MILLI), ..PUSHED },
];

fn main() -> Result<(), Failure> {
    println!(
        "{:>8} {:>27} {:>8} {:>8} {:>7} {:>5} {:>10} {:>10} {:>10}",
        "STALLED", "BY", "BYTES", "PART", "PERIOD", "N", "MEDIAN", "95 %", "LONGEST"
    );
    for case in &CASES {
        let mut took = Vec::new();
        for seed in 0..case.seeds {
            let outcome = Simulator::for_measuring().run(&case.scenario(seed))?;
            took.extend(
                outcome.broadcasts[..case.broadcasts - case.last]
                    .iter()
                    .map(|timing| timing.completion().0 as f64 / MILLI as f64),
            );
        }
        took.sort_by(f64::total_cmp);
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
        let (median, most, longest) = (at(0.5), at(0.95), at(1.0));
        let Case { what, spec, bytes, part, period, .. } = case;
        let (period, count) = (period.0 / MILLI, took.len());
        println!(
            "{what:>8} {spec:>27} {bytes:>8} {part:>8} {period:>4} ms {count:>5} {median:>7.1} ms {most:>7.1} ms {longest:>7.1} ms"
        );
    }
    Ok(())
}

impl Case {
    fn scenario(&self, seed: u64) -> Scenario {
        Scenario {
            seed,
            payload_bytes: 1440,
            batch_datagrams: 42,
            hardware: Hardware::gigabit(),
            faults: Faults {
                loss: self.loss,
                multicast_delay: Delay::constant(Nanos(25_000)),
                message_delay: Delay::constant(Nanos(25_000)),
                arrivals: Arrivals { period: self.period, ..Arrivals::default() },
                stalled: Some(Stalled { part: self.part, by: Nanos(200 * MILLI), only: self.only }),
                ..Faults::default()
            },
            ..Scenario::calm(16, &vec![(self.spec, 0, self.bytes); self.broadcasts])
        }
    }
}
