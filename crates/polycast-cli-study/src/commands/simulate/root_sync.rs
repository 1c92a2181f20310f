use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use polycast_core::units::{Bytes, Nanos};
use polycast_protocol::{Form, RootSync};
use polycast_sim::protocol::{Late, RecordedCall, RootSyncTrial};
use serde_json::json;

use super::{Args, node_count, recorded, require_memory};
use crate::commands::{Outcome, print, print_json};
use crate::terminal::{nanoseconds, table};

const BYTES: u64 = 256 << 10;
/// A quarter of the message, so that it matters whether somebody reads.
const BUFFER_PART: u64 = 4;
const SYNCS: [RootSync; 4] =
    [RootSync::None, RootSync::Delay(Nanos::from_micros(50)), RootSync::Random, RootSync::Adaptive];

/// Runs `polycast simulate --root-sync`.
pub fn run(args: &Args) -> Outcome {
    let bytes = args.bytes.first().map_or(BYTES, |bytes| bytes.0);
    let arrivals = match &args.arrival {
        Some(file) => vec![("as recorded", Late::Recorded(recorded(file)?))],
        None => arrivals().to_vec(),
    };
    let nodes = match &arrivals[0].1 {
        Late::Recorded(calls) => {
            node_count(&calls[0].late.len().to_string()).map_err(|error| error.to_string())?
        }
        _ => args.nodes.as_deref().map_or(Ok(16), node_count)?,
    };
    require_memory(Bytes(bytes), nodes)?;
    let trial = RootSyncTrial {
        nodes,
        bytes,
        receive_buffer_bytes: (bytes / BUFFER_PART).max(2048) as usize,
        broadcasts: args.broadcasts(),
        seed: args.seed.unwrap_or(0),
    };
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    let forms = [("pull", Form::Pull), ("push", Form::Push)];
    let cases = forms.into_iter().flat_map(|form| arrivals.iter().map(move |arrival| (form, arrival)));
    for ((name, form), (arrival, late)) in cases {
        for sync in SYNCS {
            let result = trial.run(form, sync, late)?;
            rows.push(vec![
                name.to_owned(),
                (*arrival).to_owned(),
                sync.to_string(),
                nanoseconds(result.completion_us * 1e3),
                nanoseconds(result.after_last_call_us * 1e3),
                format!("{:.2}", result.repaired),
            ]);
            objects.push(json!({
                "form": name,
                "arrival": arrival,
                "sync": sync.to_string(),
                "completion_us": result.completion_us,
                "after_last_call_us": result.after_last_call_us,
                "repaired_per_receiver": result.repaired,
            }));
        }
    }
    let header = ["FORM", "ARRIVAL", "SYNC", "COMPLETION", "AFTER LAST CALL", "REPAIRED EACH"];
    if args.json {
        print_json(&json!({ "bytes": bytes, "results": objects }))?;
    } else {
        print(&table(header, rows, 3))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The calls that a job's traces recorded, read from a file.
fn recorded(file: &Path) -> Result<Arc<[RecordedCall]>, String> {
    let wrong = |error: &dyn Display| format!("--arrival {}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    Ok(recorded::read(&text).map_err(|error| wrong(&error))?.into())
}

fn arrivals() -> [(&'static str, Late); 5] {
    let millis = |millis: u64| Nanos::from_micros(1000 * millis);
    [
        ("all together", Late::Nobody),
        ("all within 100 µs", Late::All(Nanos::from_micros(100))),
        ("one 2 ms late", Late::One(millis(2))),
        ("all within 2 ms", Late::All(millis(2))),
        ("root 3 ms early", Late::Receivers(millis(3))),
    ]
}
