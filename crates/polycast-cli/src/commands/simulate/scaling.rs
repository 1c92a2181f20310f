use std::process::ExitCode;

use polycast_core::algorithm::Algorithm;
use polycast_sim::protocol::{Completion, Scaling};
use serde_json::json;

use super::{Args, node_count};
use crate::commands::{Outcome, print, print_json};
use crate::terminal::{margin, nanoseconds, table};

const NODES: &str = "16,128,1024,8192";
const BYTES: u64 = 8 << 10;
const FORMS: [&str; 4] =
    ["multicast-push", "multicast-push:parity", "multicast-pull", "multicast-pull:parity"];
const TREE: &str = "binomial";

/// Runs `polycast simulate --scaling`.
pub fn run(args: &Args) -> Outcome {
    let nodes = args.nodes.as_deref().unwrap_or(NODES).split(',').map(node_count);
    let nodes = nodes.collect::<Result<Vec<u32>, String>>()?;
    let scaling = Scaling {
        bytes: args.bytes.map_or(BYTES, |bytes| bytes.0),
        loss: args.loss,
        broadcasts: args.broadcasts,
        seed: args.seed.unwrap_or(0),
    };
    let mut completions = Vec::new();
    for form in FORMS {
        let spec = form.parse::<Algorithm>()?.multicast().expect("a multicast");
        for count in &nodes {
            completions.push(scaling.multicast(spec, *count)?);
        }
    }
    let tree = TREE.parse()?;
    completions.extend(nodes.iter().map(|count| scaling.tree(tree, *count)));
    if args.json {
        print_json(&json(&scaling, &completions))?;
    } else {
        print(&report(&completions, &nodes))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(completions: &[Completion], nodes: &[u32]) -> String {
    let rows = completions.iter().enumerate().map(|(index, completion)| {
        // The first of its form stands for all of them.
        let first = &completions[index / nodes.len() * nodes.len()];
        vec![
            completion.algorithm.clone(),
            completion.nodes.to_string(),
            nanoseconds(completion.median_us * 1e3),
            margin(completion.mean_us * 1e3, completion.interval_us * 1e3),
            nanoseconds(completion.percentile_99_us * 1e3),
            format!("{:.2}", completion.mean_us / first.mean_us),
        ]
    });
    table(["ALGORITHM", "NODES", "MEDIAN", "MEAN", "99 %", "GROWTH"], rows.collect(), 1)
}

fn json(scaling: &Scaling, completions: &[Completion]) -> serde_json::Value {
    let rows: Vec<_> = completions
        .iter()
        .map(|completion| {
            json!({
                "algorithm": completion.algorithm,
                "nodes": completion.nodes,
                "median_us": completion.median_us,
                "mean_us": completion.mean_us,
                "interval_us": completion.interval_us,
                "percentile_99_us": completion.percentile_99_us,
                "broadcasts": completion.broadcasts,
            })
        })
        .collect();
    json!({ "bytes": scaling.bytes, "loss": scaling.loss, "seed": scaling.seed, "completions": rows })
}
