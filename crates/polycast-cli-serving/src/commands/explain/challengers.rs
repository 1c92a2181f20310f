//! The ways that jobs compare with the MPI where no rule says what serves.

use std::fmt::Write;

use polycast_core::policy::{Call, Capabilities, Collective, Policy};
use polycast_core::units::Bytes;
use serde::Serialize;

use super::decision::from_call;
use crate::terminal::{exact_size, hanging, nanoseconds, paragraph};

/// Sizes that are shown where none was asked for.
const SHOWN: [u64; 5] = [8, 1 << 10, 16 << 10, 128 << 10, 1 << 20];

/// The comparison of calls of a size, as `--json` says it.
#[derive(Serialize)]
pub struct Comparison {
    bytes: u64,
    /// The number of earlier calls from which on the ways are compared.
    earlier_calls: u64,
    /// The one that is predicted to be the fastest first.
    challengers: Vec<ChallengerAnswer>,
}

#[derive(Serialize)]
struct ChallengerAnswer {
    choice: String,
    predicted_ns: u64,
}

impl Comparison {
    /// The comparison of calls of a size; `None` if nothing is compared with the MPI because no
    /// rule says what serves.
    pub fn of(
        policy: &Policy,
        collective: Collective,
        there: Capabilities,
        bytes: Bytes,
    ) -> Option<Comparison> {
        let call = Call::new(collective, bytes);
        let mut epochs = policy.epochs(collective).map(|(calls, epoch)| {
            let challengers = policy.challengers(policy.sameness(&call, there, epoch));
            (calls, challengers)
        });
        let (earlier_calls, challengers) = epochs.find(|(_, challengers)| !challengers.is_empty())?;
        let way = |one: &polycast_core::policy::challengers::Challenger| ChallengerAnswer {
            choice: one.choice.to_string(),
            predicted_ns: one.predicted.0,
        };
        let challengers = challengers.iter().map(way).collect();
        Some(Comparison { bytes: bytes.0, earlier_calls, challengers })
    }

    /// The comparisons of calls of several sizes.
    pub fn of_some(policy: &Policy, collective: Collective, there: Capabilities) -> Vec<Comparison> {
        let shown = if collective == Collective::Barrier { &[0][..] } else { &SHOWN };
        shown.iter().filter_map(|bytes| Comparison::of(policy, collective, there, Bytes(*bytes))).collect()
    }

    /// Writes the comparison of the call that was asked about.
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let text = format!("compared with the MPI {}: {}", from_call(self.earlier_calls), self.ways());
        writeln!(out, "{}", hanging("  ", "    ", &text))
    }

    /// Writes comparisons of some sizes.
    pub fn write_all(all: &[Comparison], out: &mut String) -> std::fmt::Result {
        let Some(most) = all.iter().map(|one| one.earlier_calls).max() else { return Ok(()) };
        let heading = format!(
            "compared with the MPI, {} at the latest (predicted times, which may be far off)",
            from_call(most)
        );
        writeln!(out, "{}", paragraph(&heading))?;
        for one in all {
            let first = format!("  {:>13}   ", exact_size(one.bytes));
            writeln!(out, "{}", hanging(&first, "                  ", &one.ways()))?;
        }
        Ok(())
    }

    fn ways(&self) -> String {
        let way =
            |way: &ChallengerAnswer| format!("{} ({})", way.choice, nanoseconds(way.predicted_ns as f64));
        self.challengers.iter().map(way).collect::<Vec<_>>().join(", ")
    }
}
