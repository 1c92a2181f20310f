use std::process::ExitCode;

use polycast_core::algorithm::Algorithm;
use polycast_core::units::Bytes;
use polycast_sim::protocol::{Cluster, Completion, Scaling};
use serde_json::json;

use super::{Args, cluster, picture, require_memory};
use crate::commands::{Outcome, print, print_json, write_file};
use crate::terminal::{margin, nanoseconds, table};

const NODES: &str = "16,128,1024,8192";
const BYTES: &[Bytes] = &[Bytes(8 << 10)];
const FORMS: [&str; 4] =
    ["multicast-push", "multicast-push:parity", "multicast-pull", "multicast-pull:parity"];
const TREE: &str = "binomial";

/// Completions of one size, by algorithm and number of nodes.
struct OfSize {
    bytes: Bytes,
    completions: Vec<Completion>,
}

/// Runs `polycast simulate --scaling`.
pub fn run(args: &Args) -> Outcome {
    let nodes = args.node_counts(NODES)?;
    let sizes = if args.bytes.is_empty() { BYTES } else { &args.bytes };
    let cluster = args.cluster.cluster()?;
    let mut found = Vec::new();
    for bytes in sizes {
        nodes.iter().try_for_each(|nodes| require_memory(*bytes, *nodes))?;
        let scaling = Scaling {
            bytes: bytes.0,
            loss: args.loss(),
            broadcasts: args.broadcasts(),
            seed: args.seed.unwrap_or(0),
            cluster,
        };
        found.push(OfSize { bytes: *bytes, completions: completions(&scaling, &nodes)? });
    }
    let object = json(args, &found, &cluster);
    if let (Some(file), Some(completions)) = (&args.wormhole.svg, object["completions"].as_array()) {
        write_file(file, picture::of_scaling(completions, cluster::note(&cluster))?.to_svg()?)?;
    }
    if args.json {
        print_json(&object)?;
    } else {
        print(&report(&found, &nodes))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn completions(scaling: &Scaling, nodes: &[u32]) -> Result<Vec<Completion>, Box<dyn std::error::Error>> {
    let mut completions = Vec::new();
    for form in FORMS {
        let spec = form.parse::<Algorithm>()?.multicast().expect("a multicast");
        for count in nodes {
            completions.push(scaling.multicast(spec, *count)?);
        }
    }
    let tree = TREE.parse()?;
    completions.extend(nodes.iter().map(|count| scaling.tree(tree, *count)));
    Ok(completions)
}

fn report(found: &[OfSize], nodes: &[u32]) -> String {
    let texts = found.iter().map(|OfSize { bytes, completions }| {
        let rows = completions.iter().enumerate().map(|(index, completion)| {
            // The first of its form stands for all of them.
            let first = &completions[index / nodes.len() * nodes.len()];
            let of_nodes = &completion.of_nodes;
            let [least, median, most] = [of_nodes.least_us, of_nodes.median_us, of_nodes.most_us];
            vec![
                completion.algorithm.clone(),
                completion.nodes.to_string(),
                margin(completion.mean_us * 1e3, completion.interval_us * 1e3),
                nanoseconds(completion.percentile_99_us * 1e3),
                format!("{:.2}", completion.mean_us / first.mean_us),
                nanoseconds(least * 1e3),
                nanoseconds(median * 1e3),
                format!("{:.2}", most / least),
            ]
        });
        let header = ["ALGORITHM", "NODES", "LAST NODE", "99 %", "GROWTH", "FIRST", "MEDIAN", "SKEW"];
        let table = table(header, rows.collect(), 1);
        if found.len() > 1 { format!("{bytes}\n{table}") } else { table }
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn json(args: &Args, found: &[OfSize], cluster: &Cluster) -> serde_json::Value {
    let rows = found.iter().flat_map(|OfSize { bytes, completions }| {
        completions.iter().map(move |completion| {
            json!({
                "bytes": bytes,
                "algorithm": completion.algorithm,
                "nodes": completion.nodes,
                "median_us": completion.median_us,
                "mean_us": completion.mean_us,
                "interval_us": completion.interval_us,
                "percentile_99_us": completion.percentile_99_us,
                "broadcasts": completion.broadcasts,
                "of_nodes": {
                    "least_us": completion.of_nodes.least_us,
                    "median_us": completion.of_nodes.median_us,
                    "most_us": completion.of_nodes.most_us,
                },
            })
        })
    });
    json!({
        "cluster": cluster::told(cluster),
        "loss": args.loss(),
        "seed": args.seed.unwrap_or(0),
        "completions": rows.collect::<Vec<_>>(),
    })
}
