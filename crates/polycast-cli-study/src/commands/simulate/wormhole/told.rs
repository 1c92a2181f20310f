//! Figures of those who measured multicast broadcasts, in virtual time.

use std::time::Instant;

use polycast_core::units::Bytes;
use polycast_study::multicast_figures::{Published, Shows};
use serde_json::{Value, json};

use super::report;
use crate::plot::{Axis, Chart, Curve, Point};
use crate::terminal::{digits, nanoseconds, table};

/// The results of a figure.
pub struct Told {
    pub chart: Chart,
    pub object: Value,
    pub text: String,
}

/// Broadcasts of each point with `--quick`.
const QUICK: u32 = 5;

/// Runs all points of a figure.
pub fn run(args: &super::super::Args, figure: &Published) -> Result<Told, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let broadcasts = if args.wormhole.quick { args.broadcasts().min(QUICK) } else { args.broadcasts() };
    let x = if figure.shows == Shows::EachNode { "node" } else { "nodes" };
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let mut chart = Chart::new(title.clone(), Axis::linear(x), Axis::nanoseconds("time"));
    let quick = if args.wormhole.quick { ", few of them: --quick" } else { "" };
    chart.notes = vec![format!(
        "Simulated by polycast {}, at most {broadcasts} broadcasts{quick}, {} lost; dotted: read from the paper",
        env!("CARGO_PKG_VERSION"),
        format_args!("{} %", digits(100.0 * args.loss())),
    )];
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for (bytes, nodes) in
        figure.bytes.iter().flat_map(|bytes| figure.nodes.iter().map(move |nodes| (*bytes, *nodes)))
    {
        for completion in figure.run(bytes, nodes, broadcasts, args.loss(), args.seed.unwrap_or(0))? {
            let name = format!("{} {}", completion.algorithm, Bytes(bytes));
            let values = figure.shows.of(&completion);
            for (x, us) in &values {
                report::add(&mut chart, &name, Point::new(*x, us * 1e3));
            }
            let of_nodes = &completion.of_nodes;
            rows.push(vec![
                completion.algorithm.clone(),
                Bytes(bytes).to_string(),
                nodes.to_string(),
                if values.len() == 1 { nanoseconds(values[0].1 * 1e3) } else { "-".to_owned() },
                nanoseconds(of_nodes.least_us * 1e3),
                nanoseconds(of_nodes.median_us * 1e3),
                nanoseconds(of_nodes.most_us * 1e3),
                format!("{:.2}", of_nodes.most_us / of_nodes.least_us),
            ]);
            points.push(json!({
                "algorithm": completion.algorithm,
                "bytes": bytes,
                "nodes": nodes,
                "broadcasts": completion.broadcasts,
                "x": values.iter().map(|(x, _)| *x).collect::<Vec<f64>>(),
                "us": values.iter().map(|(_, us)| *us).collect::<Vec<f64>>(),
                "least_us": of_nodes.least_us,
                "median_us": of_nodes.median_us,
                "most_us": of_nodes.most_us,
            }));
        }
    }
    for (way, bytes, told) in figure.told {
        let name = format!("{} {}", way.algorithm(), Bytes(*bytes));
        let points = told.iter().map(|(x, us)| Point::new(f64::from(*x), us * 1e3)).collect();
        chart.curves.push(Curve::published(&name, points));
    }
    let header = ["ALGORITHM", "BYTES", "NODES", "SHOWN", "FIRST", "MEDIAN", "LAST", "SKEW"];
    Ok(Told {
        chart,
        text: format!("{title}\n{}\n", table(header, rows, 1)),
        object: json!({
            "figure": figure.number,
            "title": figure.title,
            "seconds": started.elapsed().as_secs_f64(),
            "points": points,
        }),
    })
}
