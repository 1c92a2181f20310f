use std::num::NonZeroU64;
use std::process::ExitCode;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::schedule::{Buffer, Contract};
use polycast_core::units::{Bytes, Rank};
use polycast_sim::Simulation;
use serde_json::json;

use super::{Args, require_memory, require_room};
use crate::bench::operation::Operation;
use crate::bench::variant;
use crate::commands::{Outcome, print, print_json};
use crate::terminal::{nanoseconds, table};

const BYTES: &[Bytes] = &[Bytes(64 << 10)];
/// Of what is combined: a number of 64 bits, as `polycast bench` has them.
const ELEMENT: NonZeroU64 = NonZeroU64::new(8).unwrap();

/// Runs `polycast simulate --collective`.
pub fn run(args: &Args, collective: Collective) -> Outcome {
    let algorithms = algorithms(collective, args.algorithms.as_deref())?;
    let network = args.cluster.cluster().network();
    let sizes = match (collective, &args.bytes[..]) {
        (Collective::Barrier, []) => &[Bytes(0)],
        (Collective::Barrier, _) => return Err("--bytes changes nothing with --collective barrier".into()),
        (_, []) => BYTES,
        (_, sizes) => sizes,
    };
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    for bytes in sizes {
        for nodes in args.node_counts("16")? {
            let call = call(collective, nodes, *bytes)?;
            let wire_bytes = wire_bytes(&call);
            let wire_ns = if wire_bytes > 0 { network.occupancy_ns(wire_bytes) as f64 } else { f64::NAN };
            let mut first_ns = f64::NAN;
            for algorithm in &algorithms {
                let outcome = Simulation::new(network, call, *algorithm).run_checked();
                let outcome = outcome.map_err(|wrong| {
                    format!("{collective} by {algorithm}, {bytes} on {nodes} nodes: {wrong}")
                })?;
                let took_ns = outcome.completion_ns as f64;
                first_ns = if first_ns.is_nan() { took_ns } else { first_ns };
                let ratio = took_ns / wire_ns;
                let or_dash = |value: f64, text: String| if value.is_nan() { "-".to_owned() } else { text };
                rows.push(vec![
                    algorithm.to_string(),
                    bytes.to_string(),
                    nodes.to_string(),
                    nanoseconds(took_ns),
                    or_dash(wire_ns, nanoseconds(wire_ns)),
                    or_dash(ratio, format!("{ratio:.2}")),
                    format!("{:.2}", took_ns / first_ns),
                ]);
                objects.push(json!({
                    "algorithm": algorithm.to_string(),
                    "bytes": bytes,
                    "nodes": nodes,
                    "completion_us": took_ns / 1e3,
                    "wire_bytes": wire_bytes,
                    "wire_us": wire_ns / 1e3,
                    "ratio_to_wire": ratio,
                    "messages": outcome.messages,
                }));
            }
        }
    }
    if args.json {
        print_json(&json!({ "collective": collective.name(), "results": objects }))?;
    } else {
        let header = ["ALGORITHM", "BYTES", "NODES", "LAST NODE", "WIRE", "× WIRE", "× FIRST"];
        print(&table(header, rows, 1))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn algorithms(
    collective: Collective,
    list: Option<&str>,
) -> Result<Vec<Algorithm>, Box<dyn std::error::Error>> {
    let Some(list) = list else { return Ok(Registry::BUILT_IN.compared_schedules(collective)) };
    let read = |item: String| Registry::BUILT_IN.read(collective, &item);
    let algorithms: Vec<Algorithm> = variant::split(list).into_iter().map(read).collect::<Result<_, _>>()?;
    match algorithms.iter().find(|algorithm| !algorithm.entry.is_of_messages()) {
        Some(other) => Err(format!(
            "--algorithms {other}: expected algorithms of messages; nodes have one rank each, and multicast is in --scaling"
        )
        .into()),
        None => Ok(algorithms),
    }
}

fn call(collective: Collective, nodes: u32, bytes: Bytes) -> Result<Call, String> {
    require_memory(bytes, nodes)?;
    let plain = Call::new(collective, nodes, Rank(0), bytes);
    let call = match collective.combines() {
        true => Call { bytes: Bytes(bytes.0.next_multiple_of(ELEMENT.get())), element: ELEMENT, ..plain },
        false => plain,
    };
    let contract = Contract { call };
    let of = |rank| contract.size(Rank(rank), Buffer::Input) + contract.size(Rank(rank), Buffer::Output);
    require_room(bytes, nodes, Some((0..nodes).map(of).sum()))?;
    Ok(call)
}

/// What the busiest link must carry, whatever the algorithm.
fn wire_bytes(call: &Call) -> u64 {
    let contract = Contract { call: *call };
    let largest = contract.size(call.root, Buffer::Input).max(contract.size(call.root, Buffer::Output));
    let host_of: Vec<usize> = (0..call.ranks as usize).collect();
    let is_it = |operation: &Operation| operation.collective() == call.collective;
    let operation = Operation::ALL.into_iter().find(is_it).unwrap_or_default();
    operation.wire_bytes(largest, &host_of, call.root.index())
}
