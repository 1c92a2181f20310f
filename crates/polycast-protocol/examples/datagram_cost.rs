//! What sealing and opening a datagram takes of a processor, tag and all, whatever else the machine does.
//!
//! ```sh
//! cargo run --release -p polycast-protocol --example datagram_cost
//! ```

use std::fs;
use std::hint::black_box;

use polycast_protocol::wire::{HEADER_BYTES, Header, Kind, open, seal};
use polycast_protocol::{KEY_BYTES, Key};

const ROUNDS: u32 = 200_000;
/// Time on a processor, in nanoseconds, is the first number there.
const USED: &str = "/proc/self/schedstat";

fn used() -> f64 {
    let text = fs::read_to_string(USED).expect("Linux tells how long a process ran");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

fn main() {
    let key = Key::from_bytes([7; KEY_BYTES]);
    let header = Header { kind: Kind::Data, flags: 0, job: 1, communicator: 1, operation: 1, fragment: 0 };
    for datagram_bytes in [1024, 1472, 2048, 4096] {
        let payload = vec![0x5a; datagram_bytes - HEADER_BYTES];
        let mut datagram = Vec::with_capacity(datagram_bytes);
        let begin = used();
        for _ in 0..ROUNDS {
            datagram.clear();
            seal(black_box(&header), &payload, &key, &mut datagram);
        }
        let sealed = used();
        for _ in 0..ROUNDS {
            assert!(open(black_box(&datagram), 1, &key).is_ok());
        }
        let [seal_ns, open_ns] = [sealed - begin, used() - sealed].map(|took| took / f64::from(ROUNDS));
        println!("{datagram_bytes} bytes: seal {seal_ns:.0} ns, open {open_ns:.0} ns");
    }
}
