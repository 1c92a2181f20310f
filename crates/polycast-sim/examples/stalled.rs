//! How long broadcasts take where single messages of the ring stand still for 200 ms, as TCP's do that have lost a packet twice: 16 nodes on
//! gigabit Ethernet that loses 2 % of the datagrams on their way to a node, 100 ms from one broadcast to the next.
//!
//! `cargo run --release -p polycast-sim --example stalled`

use polycast_core::units::Nanos;
use polycast_sim::protocol::{Arrivals, Delay, Failure, Faults, Hardware, Scenario, Simulator, Stalled};

const MILLI: u64 = 1_000_000;
const BROADCASTS: usize = 6;

fn main() -> Result<(), Failure> {
    println!("{:>8} {:>8} {:>5} {:>10} {:>10} {:>10}", "BYTES", "STALLED", "N", "MEDIAN", "95 %", "LONGEST");
    for (bytes, part, seeds) in [
        (128 << 10, 0.0, 40),
        (128 << 10, 0.01, 40),
        (128 << 10, 0.05, 40),
        (4 << 20, 0.0, 10),
        (4 << 20, 4e-4, 10),
    ] {
        let mut took = Vec::new();
        for seed in 0..seeds {
            let outcome = Simulator::for_measuring().run(&scenario(seed, bytes, part))?;
            // In the first one nobody knows of losses yet.
            took.extend(
                outcome.broadcasts[1..].iter().map(|timing| timing.completion().0 as f64 / MILLI as f64),
            );
        }
        took.sort_by(f64::total_cmp);
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
        let (median, most, longest) = (at(0.5), at(0.95), at(1.0));
        println!("{bytes:>8} {part:>8} {:>5} {median:>7.1} ms {most:>7.1} ms {longest:>7.1} ms", took.len());
    }
    Ok(())
}

fn scenario(seed: u64, bytes: u64, part: f64) -> Scenario {
    Scenario {
        seed,
        payload_bytes: 1440,
        batch_datagrams: 42,
        hardware: Hardware::gigabit(),
        faults: Faults {
            loss: 0.02,
            multicast_delay: Delay::constant(Nanos(25_000)),
            message_delay: Delay::constant(Nanos(25_000)),
            arrivals: Arrivals { period: Nanos(100 * MILLI), ..Arrivals::default() },
            stalled: Some(Stalled { part, by: Nanos(200 * MILLI), only: None }),
            ..Faults::default()
        },
        ..Scenario::calm(16, &[("multicast-pull:sync=none", 0, bytes); BROADCASTS])
    }
}
