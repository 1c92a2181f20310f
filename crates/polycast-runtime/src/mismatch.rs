//! What polycast says of a call whose ranks gave different sizes, or may have: MPI's error names neither the call nor the sizes, and who waits for ever
//! names nothing.

use std::sync::Once;

use polycast_core::policy::{Call, Choice};
use polycast_core::units::Rank;

use crate::of_process::of_process;
use crate::say;

/// Warns, once per process, of a call whose ranks gave different sizes. `told`: the size that
/// another rank called with, if it is known.
pub fn say_sizes(call: &Call, rank: Rank, told: Option<u64>) {
    of_process! { static ONCE: Once = Once::new(); }
    ONCE.with(|once| once.call_once(|| say::text(&text(call, rank, told))));
}

fn text(call: &Call, rank: Rank, told: Option<u64>) -> String {
    let (function, bytes) = (call.collective.function(), call.bytes.0);
    let other = told.map_or("another size".to_owned(), |told| format!("{told} bytes"));
    format!(
        "polycast: error: {function}: rank {rank} calls with blocks of {bytes} bytes, another rank with blocks of {other}. \
         MPI forbids that, and the call ends with MPI_ERR_TRUNCATE where data would be missing. Some MPIs tolerate it: \
         POLYCAST=off leaves all calls to the MPI\n"
    )
}

/// Warns, once per process, of a call in which this rank has waited for `seconds`, where another answer holds for calls of its size than a few
/// calls before: ranks that gave another size may have kept to the old one. `way`: what serves this call, if it is known.
pub fn say_waiting(call: &Call, rank: Rank, way: Option<Choice>, seconds: u64) {
    of_process! { static ONCE: Once = Once::new(); }
    ONCE.with(|once| once.call_once(|| say::text(&waiting_text(call, rank, way, seconds))));
}

fn waiting_text(call: &Call, rank: Rank, way: Option<Choice>, seconds: u64) -> String {
    let (function, bytes) = (call.collective.function(), call.bytes.0);
    let way = way.map_or("polycast".to_owned(), |way| way.to_string());
    format!(
        "polycast: warning: {function}: rank {rank} calls with blocks of {bytes} bytes and has waited for other ranks for {seconds} s; \
         few calls of this size have been served by {way} yet. If no rank is late, ranks gave different sizes, of which some are served in \
         another way. MPI forbids that, and some MPIs tolerate it: POLYCAST=off leaves all calls to the MPI\n"
    )
}

#[cfg(test)]
mod tests {
    use polycast_core::policy::Collective;
    use polycast_core::units::Bytes;

    use super::*;

    #[test]
    fn who_waits_names_call_size_and_way_out() {
        let call = Call::new(Collective::Broadcast, Bytes(128));
        let said = waiting_text(&call, Rank(1), Some(Choice::Algorithm("chain".parse().unwrap())), 20);
        for word in ["MPI_Bcast: rank 1", "128 bytes", "20 s", "by chain", "POLYCAST=off"] {
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn both_sizes_are_named() {
        let call = Call::new(Collective::Gather, Bytes(8));
        let said = text(&call, Rank(2), Some(4));
        assert!(
            said.starts_with("polycast: error: MPI_Gather: rank 2 calls with blocks of 8 bytes,"),
            "{said}"
        );
        assert!(said.contains("another rank with blocks of 4 bytes."), "{said}");
        assert!(said.contains("POLYCAST=off"), "{said}");
    }
}
