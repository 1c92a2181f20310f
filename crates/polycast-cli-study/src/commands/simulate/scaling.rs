use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::BINOMIAL;
use polycast_core::units::Bytes;
use polycast_protocol::{Form, Multicast};
use polycast_sim::protocol::{Cluster, Completion, Failure, Scaling};
use serde_json::json;

use super::{Args, cluster, picture, require_memory};
use crate::commands::{Outcome, print, print_json, write_file};
use crate::terminal::{margin, nanoseconds};

const NODES: &str = "16,128,1024,8192";
const BYTES: &[Bytes] = &[Bytes(8 << 10)];

/// Completions of one size, by algorithm and number of nodes.
struct OfSize {
    bytes: Bytes,
    completions: Vec<Completion>,
}

/// Runs `polycast simulate --scaling`. Large communicators take minutes, so each row is printed as it comes.
pub fn run(args: &Args) -> Outcome {
    let nodes = args.node_counts(NODES)?;
    let sizes = if args.bytes.is_empty() { BYTES } else { &args.bytes };
    let cluster = args.cluster.cluster()?;
    for bytes in sizes {
        nodes.iter().try_for_each(|nodes| require_memory(*bytes, *nodes))?;
    }
    let algorithms = algorithms();
    let progress = progress(sizes.len() * algorithms.len() * nodes.len())?;
    let says = |text: String| progress.suspend(|| print(&text));
    let mut found = Vec::new();
    for bytes in sizes {
        let scaling = Scaling {
            bytes: bytes.0,
            loss: args.loss(),
            broadcasts: args.broadcasts(),
            seed: args.seed.unwrap_or(0),
            cluster,
        };
        if !args.json {
            let title = if sizes.len() > 1 { format!("{bytes}\n") } else { String::new() };
            let space = if found.is_empty() { "" } else { "\n" };
            says(format!("{space}{title}{}", row(HEADER.map(str::to_owned))))?;
        }
        let mut completions: Vec<Completion> = Vec::new();
        let all = algorithms.iter().flat_map(|algorithm| nodes.iter().map(move |count| (algorithm, *count)));
        for (algorithm, count) in all {
            progress.set_message(format!("{algorithm} of {bytes} on {count} nodes"));
            let completion = completion(&scaling, algorithm, count)?;
            // The first of its form stands for all of them.
            let first = completions.get(completions.len() / nodes.len() * nodes.len()).unwrap_or(&completion);
            if !args.json {
                says(row(cells(&completion, first)))?;
            }
            completions.push(completion);
            progress.inc(1);
        }
        found.push(OfSize { bytes: *bytes, completions });
    }
    progress.finish_and_clear();
    let object = json(args, &found, &cluster);
    if let (Some(file), Some(completions)) = (&args.wormhole.svg, object["completions"].as_array()) {
        write_file(file, picture::of_scaling(completions, cluster::note(&cluster))?.to_svg()?)?;
    }
    if args.json {
        print_json(&object)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A progress bar, which hides itself where standard error is no terminal.
fn progress(rows: usize) -> Result<ProgressBar, Box<dyn std::error::Error>> {
    let progress = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
    progress.set_style(ProgressStyle::with_template("{spinner} {wide_msg} {pos}/{len}  {elapsed}")?);
    Ok(progress)
}

/// The algorithms that are compared: both forms of multicast, without parity and with it, and a tree.
fn algorithms() -> Vec<Algorithm> {
    let spec = |form, parity| Multicast { parity, ..Multicast::from(form) };
    let of_form = |form| [false, true].map(|parity| Algorithm::from(spec(form, parity)));
    [Form::Push, Form::Pull].into_iter().flat_map(of_form).chain([BINOMIAL]).collect()
}

fn completion(scaling: &Scaling, algorithm: &Algorithm, nodes: u32) -> Result<Completion, Failure> {
    match algorithm.multicast() {
        Some(spec) => scaling.multicast(spec, nodes),
        None => Ok(scaling.tree(*algorithm, nodes)),
    }
}

const HEADER: [&str; 8] = ["ALGORITHM", "NODES", "LAST NODE", "99 %", "GROWTH", "FIRST", "MEDIAN", "SKEW"];

fn cells(completion: &Completion, first: &Completion) -> [String; 8] {
    let of_nodes = &completion.of_nodes;
    let [least, median, most] = [of_nodes.least_us, of_nodes.median_us, of_nodes.most_us];
    [
        completion.algorithm.clone(),
        completion.nodes.to_string(),
        margin(completion.mean_us * 1e3, completion.interval_us * 1e3),
        nanoseconds(completion.percentile_99_us * 1e3),
        format!("{:.2}", completion.mean_us / first.mean_us),
        nanoseconds(least * 1e3),
        nanoseconds(median * 1e3),
        format!("{:.2}", most / least),
    ]
}

/// Widths are fixed, for nobody knows what comes.
fn row([algorithm, nodes, last, most, growth, least, median, skew]: [String; 8]) -> String {
    format!("{algorithm:<21} {nodes:>5} {last:>15} {most:>8} {growth:>6} {least:>7} {median:>7} {skew:>5}\n")
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
