//! Where algorithms cross over as the number of nodes grows: what the default table rests on beyond the sizes of cluster
//! that can be measured here.
//!
//! ```text
//! cargo run --release -p polycast-sim --example crossover [BITS_PER_SECOND]
//! ```
//! Completion of a broadcast in virtual time, in multiples of the wire; the best of each row is marked. The root
//! arrives with everybody else.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Call;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Simulation};

const ALGORITHMS: [&str; 9] = [
    "binomial",
    "scatter-ring",
    "binary:segment=2KiB",
    "binary:segment=8KiB",
    "chain:segment=1KiB",
    "chain:segment=2KiB",
    "chain:segment=4KiB",
    "chain:segment=8KiB",
    "chain:segment=16KiB",
];
const RANKS: [u32; 6] = [4, 8, 16, 64, 256, 1024];
const SIZES: [u64; 8] = [4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate: f64 = std::env::args().nth(1).map_or(Ok(1e9), |text| text.parse())?;
    let network = Network::ethernet(rate);
    print!("{:>6} {:>7}", "ranks", "size");
    ALGORITHMS.iter().for_each(|name| print!(" {name:>20}"));
    println!();
    for ranks in RANKS {
        for bytes in SIZES {
            let wire_ns = bytes as f64 * 8e9 / rate;
            let mut multiples = Vec::new();
            for name in ALGORITHMS {
                let algorithm: Algorithm = name.parse()?;
                let call = Call::broadcast(ranks, Rank(0), Bytes(bytes));
                let outcome = Simulation::new(network, call, algorithm).run()?;
                multiples.push(outcome.completion_ns as f64 / wire_ns);
            }
            let best = multiples.iter().copied().fold(f64::INFINITY, f64::min);
            print!("{ranks:>6} {:>7}", Bytes(bytes).to_string());
            for multiple in multiples {
                print!(" {:>19.2}{}", multiple, if multiple == best { '*' } else { ' ' });
            }
            println!();
        }
    }
    Ok(())
}
