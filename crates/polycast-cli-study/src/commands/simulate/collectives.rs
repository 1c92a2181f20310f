use std::error::Error;
use std::num::NonZeroU64;
use std::process::ExitCode;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::{Call, Collective};
use polycast_core::schedule::{Buffer, Contract};
use polycast_core::topology::Placed;
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Rank, Rate};
use polycast_sim::{Network, Simulation};
use serde_json::json;

use super::{Args, cluster, picture, require_memory, require_room};
use crate::commands::{Outcome, print, print_json, write_file};
use crate::operation::Operation;
use crate::place;
use crate::terminal::{nanoseconds, table};
use crate::usage::wrong;
use crate::variant;

const BYTES: &[Bytes] = &[Bytes(64 << 10)];
/// The size of an element to combine: a number of 64 bits, as `polycast bench` has them.
const ELEMENT: NonZeroU64 = NonZeroU64::new(8).unwrap();

/// Runs `polycast simulate --collective`.
pub fn run(args: &Args, collective: Collective) -> Outcome {
    let each = args.ranks_per_host.unwrap_or(1);
    let algorithms = algorithms(collective, args.algorithms.as_deref(), each)?;
    let cluster = args.cluster.cluster()?;
    let network = cluster.network();
    let sizes = match (collective, &args.bytes[..]) {
        (Collective::Barrier, []) => &[Bytes(0)],
        (Collective::Barrier, _) => return Err(wrong("--bytes changes nothing with --collective barrier")),
        (_, []) => BYTES,
        (_, sizes) => sizes,
    };
    let placements = placements(args, each)?;
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    for bytes in sizes {
        for placed in &placements {
            let (ranks, nodes) = (placed.host_of.len() as u32, placed.topology.hosts.len());
            let call = call(collective, ranks, *bytes)?;
            let (wire_bytes, wire_ns) = wire(&call, placed, &network);
            let mut first_ns = f64::NAN;
            for algorithm in &algorithms {
                let simulation = Simulation::new(network, call, *algorithm).site(Site::new(placed));
                let outcome = simulation.run_checked().map_err(|wrong| {
                    format!("{collective} by {algorithm}, {bytes} on {nodes} nodes: {wrong}")
                })?;
                let took_ns = outcome.completion_ns as f64;
                first_ns = if first_ns.is_nan() { took_ns } else { first_ns };
                let ratio = took_ns / wire_ns;
                let or_dash = |value: f64, text: String| if value.is_nan() { "-".to_owned() } else { text };
                rows.push(vec![
                    algorithm.to_string(),
                    bytes.to_string(),
                    if each > 1 { format!("{nodes} × {each}") } else { nodes.to_string() },
                    nanoseconds(took_ns),
                    or_dash(wire_ns, nanoseconds(wire_ns)),
                    or_dash(ratio, format!("{ratio:.2}")),
                    format!("{:.2}", took_ns / first_ns),
                ]);
                objects.push(json!({
                    "algorithm": algorithm.to_string(),
                    "bytes": bytes,
                    "nodes": nodes,
                    "ranks": ranks,
                    "completion_us": took_ns / 1e3,
                    "wire_bytes": wire_bytes,
                    "wire_us": wire_ns / 1e3,
                    "ratio_to_wire": ratio,
                    "messages": outcome.messages,
                }));
            }
        }
    }
    if let Some(file) = &args.wormhole.svg {
        let chart = picture::of_collective(collective.name(), &objects, cluster::note(&cluster));
        write_file(file, chart.to_svg()?)?;
    }
    if args.json {
        let told = cluster::told(&cluster);
        print_json(&json!({ "collective": collective.name(), "cluster": told, "results": objects }))?;
    } else {
        let header = ["ALGORITHM", "BYTES", "NODES", "LAST NODE", "WIRE", "× WIRE", "× FIRST"];
        print(&table(header, rows, 1))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The ranks of each number of nodes, on what carries them and no more.
fn placements(args: &Args, each: u32) -> Result<Vec<Placed>, Box<dyn Error>> {
    let counts = match (&args.topology, &args.nodes) {
        (Some(_), None) => vec![None],
        _ => args.node_counts("16")?.into_iter().map(|nodes| Some(nodes * each)).collect(),
    };
    let of = |ranks: Option<u32>| {
        let placed = place::placed(args.topology.as_deref(), None, ranks, Some(each))?;
        Ok(placed.only(&(0..placed.host_of.len() as u32).collect::<Vec<u32>>()))
    };
    counts.into_iter().map(of).collect()
}

fn algorithms(
    collective: Collective,
    list: Option<&str>,
    each: u32,
) -> Result<Vec<Algorithm>, Box<dyn Error>> {
    let is_between_nodes =
        |algorithm: &Algorithm| algorithm.entry.has_schedules() && !algorithm.entry.is_on_one_node();
    let Some(list) = list else {
        let on_levels = Registry::BUILT_IN.of(collective).filter(|entry| each > 1 && entry.shares_memory());
        let mut on_levels: Vec<Algorithm> =
            on_levels.flat_map(|entry| entry.tried(2)).filter(is_between_nodes).collect();
        // Of each algorithm between nodes the first has nothing else that is not usual.
        on_levels.dedup_by_key(|algorithm| algorithm.given("between"));
        return Ok([Registry::BUILT_IN.compared_schedules(collective), on_levels].concat());
    };
    let read = |item: String| Registry::BUILT_IN.read(collective, &item).map_err(wrong);
    let algorithms: Vec<Algorithm> = variant::split(list).into_iter().map(read).collect::<Result<_, _>>()?;
    match algorithms.iter().find(|algorithm| !is_between_nodes(algorithm)) {
        Some(other) => Err(wrong(format_args!(
            "--algorithms {other}: expected algorithms of messages between nodes; multicast is in --scaling"
        ))),
        None => Ok(algorithms),
    }
}

fn call(collective: Collective, ranks: u32, bytes: Bytes) -> Result<Call, Box<dyn Error>> {
    require_memory(bytes, ranks)?;
    let plain = Call::new(collective, ranks, Rank(0), bytes);
    let call = match collective.combines() {
        true => Call { bytes: Bytes(bytes.0.next_multiple_of(ELEMENT.get())), element: ELEMENT, ..plain },
        false => plain,
    };
    let contract = Contract { call };
    let of = |rank| contract.size(Rank(rank), Buffer::Input) + contract.size(Rank(rank), Buffer::Output);
    require_room(bytes, ranks, Some((0..ranks).map(of).sum()))?;
    Ok(call)
}

/// The bytes that the busiest link must carry, whatever the algorithm, and the time for that in
/// nanoseconds. The link is that of a host, or one between switches.
fn wire(call: &Call, placed: &Placed, network: &Network) -> (u64, f64) {
    let contract = Contract { call: *call };
    let largest = contract.size(call.root, Buffer::Input).max(contract.size(call.root, Buffer::Output));
    let operation = Operation::of(call.collective);
    let on = |rate: Option<Rate>, side_of: &[usize]| {
        let bytes = operation.wire_bytes(largest, side_of, call.root.index());
        let ns = if bytes > 0 { network.at(rate).occupancy_ns(bytes) as f64 } else { f64::NAN };
        (bytes, ns)
    };
    let Placed { topology, host_of, .. } = placed;
    // The fastest host's: slower ones may need longer.
    let of_hosts = on(topology.hosts.iter().filter_map(|host| host.link.rate).max(), host_of);
    let between = topology.switches.iter().enumerate().filter(|(_, switch)| switch.parent.is_some());
    let between = between.map(|(index, switch)| {
        let is_below = |host: usize| {
            let mut above = Some(topology.hosts[host].switch);
            while above.is_some_and(|above| above != index) {
                above = above.and_then(|above| topology.switches[above].parent);
            }
            usize::from(above.is_some())
        };
        on(switch.uplink.rate, &host_of.iter().map(|host| is_below(*host)).collect::<Vec<usize>>())
    });
    between.fold(of_hosts, |most, other| if other.1 > most.1 || most.1.is_nan() { other } else { most })
}
