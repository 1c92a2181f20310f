//! Where algorithms cross over as the number of nodes grows: what the default table rests on beyond the sizes of cluster
//! that can be measured here.
//!
//! ```text
//! cargo run --release -p polycast-sim --example crossover [BITS_PER_SECOND]
//! ```
//! Completion of a broadcast in virtual time, in multiples of the wire, by two trees that take the message whole and, with
//! the best length of a segment, by two that pipeline; the best of each row is marked. The root arrives with everybody
//! else.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Call;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Simulation};

const WHOLE: [&str; 2] = ["binomial", "scatter-ring"];
const PIPELINED: [&str; 2] = ["binary", "chain"];
const SEGMENTS: [u64; 10] =
    [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10];
const RANKS: [u32; 6] = [4, 8, 16, 64, 256, 1024];
const SIZES: [u64; 8] = [4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Beyond so many segments of a message nothing is gained, and the simulation is long.
const MOST_SEGMENTS: u64 = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate: f64 = std::env::args().nth(1).map_or(Ok(1e9), |text| text.parse())?;
    let network = Network::ethernet(rate);
    print!("{:>6} {:>7}", "ranks", "size");
    WHOLE.iter().for_each(|name| print!(" {name:>13}"));
    PIPELINED.iter().for_each(|name| print!(" {name:>13} (segment)"));
    println!();
    for ranks in RANKS {
        for bytes in SIZES {
            let call = Call::broadcast(ranks, Rank(0), Bytes(bytes));
            let multiple = |name: &str| -> Result<f64, Box<dyn std::error::Error>> {
                let algorithm: Algorithm = name.parse()?;
                let outcome = Simulation::new(network, call, algorithm).run()?;
                Ok(outcome.completion_ns as f64 / (bytes as f64 * 8e9 / rate))
            };
            let mut row = Vec::new();
            for name in WHOLE {
                row.push((multiple(name)?, None));
            }
            for name in PIPELINED {
                let mut best = (f64::INFINITY, None);
                for segment in
                    SEGMENTS.into_iter().filter(|segment| bytes.div_ceil(*segment) <= MOST_SEGMENTS)
                {
                    let segment = Bytes(segment);
                    let found = multiple(&format!("{name}:segment={segment}"))?;
                    if found < best.0 {
                        best = (found, Some(segment));
                    }
                }
                row.push(best);
            }
            let best = row.iter().map(|cell| cell.0).fold(f64::INFINITY, f64::min);
            print!("{ranks:>6} {:>7}", Bytes(bytes).to_string());
            for (multiple, segment) in row {
                let mark = if multiple == best { '*' } else { ' ' };
                print!(" {multiple:>12.2}{mark}");
                if let Some(segment) = segment {
                    print!(" {:>9}", segment.to_string());
                }
            }
            println!();
        }
    }
    Ok(())
}
