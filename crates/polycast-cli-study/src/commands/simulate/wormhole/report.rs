use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polycast_study::wormhole::{Experiment, Measured, Topology};
use serde_json::{Value, json};

use super::store::{self, Store};
use super::trace;
use crate::commands::{Outcome, print, print_json, write_file};
use crate::plot::{Axis, Chart, Curve, Point};
use crate::terminal::{digits, table};

/// An experiment that has been run.
pub struct Done {
    pub experiment: Experiment,
    pub measured: Measured,
}

/// Runs `polycast simulate --mesh` or `--min`.
pub fn run(args: &super::super::Args, topology: Topology) -> Outcome {
    let experiments =
        args.wormhole.experiments(topology, args.bytes.first().copied(), args.seed.unwrap_or(1))?;
    if let (Some(file), Some(first)) = (&args.wormhole.trace, experiments.first()) {
        trace::draw(first, file)?;
    }
    let progress = progress(experiments.len())?;
    let done = Store::open(None)?.measure(&experiments, &progress)?;
    progress.finish_and_clear();
    if let Some(file) = &args.wormhole.svg {
        let mut chart = chart(&done, topology);
        chart.notes = vec![effort(&args.wormhole)];
        write_file(file, chart.to_svg()?)?;
    }
    if args.json {
        print_json(
            &json!({ "network": topology.to_string(), "points": done.iter().map(json).collect::<Vec<_>>() }),
        )?;
    } else {
        print(&text(&done))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A progress bar, which hides itself where standard error is no terminal.
pub fn progress(points: usize) -> Result<ProgressBar, Box<dyn std::error::Error>> {
    let progress = ProgressBar::with_draw_target(Some(points as u64), ProgressDrawTarget::stderr());
    progress.set_style(ProgressStyle::with_template("[{bar:40}] {pos}/{len} points  {elapsed}, {eta} left")?);
    Ok(progress)
}

/// A line for each point.
pub fn text(done: &[Done]) -> String {
    let rows = done.iter().map(|Done { experiment, measured }| {
        let accepted =
            format!("{:.3}{}", measured.accepted, if measured.is_saturated() { " full" } else { "" });
        vec![
            experiment.traffic.tree.name(experiment.topology),
            experiment.traffic.group_nodes.to_string(),
            experiment.traffic.bytes.to_string(),
            format!("{:.3}", measured.offered),
            accepted,
            format!("{:.0}{}", measured.latency, if measured.is_exact { "" } else { " ?" }),
            if measured.interval.is_finite() { format!("{:.0}", measured.interval) } else { "-".to_owned() },
            format!("{:.0}", measured.bound),
            format!("{}%", digits(100.0 * measured.contention_rate())),
        ]
    });
    let header = ["TREE", "NODES", "BYTES", "OFFERED", "ACCEPTED", "LATENCY", "±", "ALONE", "WAITING"];
    table(header, rows.collect(), 1)
}

/// A point as `--json` has it.
pub fn json(Done { experiment, measured }: &Done) -> Value {
    let mut point = json!({
        "network": experiment.topology.to_string(),
        "tree": experiment.traffic.tree.name(experiment.topology),
        "group_nodes": experiment.traffic.group_nodes,
        "bytes": experiment.traffic.bytes,
    });
    if let (Value::Object(point), Value::Object(measured)) = (&mut point, store::value(measured)) {
        point.extend(measured);
    }
    point
}

/// A sentence on how well the means are known, for under the title.
pub fn effort(args: &super::Args) -> String {
    let means = if args.is_quick() { "coarse means: --quick" } else { "the published method" };
    format!("Simulated by polycast {}, {means}", env!("CARGO_PKG_VERSION"))
}

fn chart(done: &[Done], topology: Topology) -> Chart {
    let mut chart = Chart::new(
        format!("Multicast on {topology}"),
        Axis::linear("accepted background traffic"),
        Axis::linear("latency (units of time; mean, 95 % interval)"),
    );
    for Done { experiment, measured } in done {
        let name = experiment.traffic.tree.title(topology);
        add(&mut chart, name, point(measured.accepted, measured));
    }
    chart
}

/// A latency with its interval.
pub fn point(x: f64, measured: &Measured) -> Point {
    let point = Point::new(x, measured.latency);
    if measured.interval.is_finite() {
        point.between(measured.latency - measured.interval, measured.latency + measured.interval)
    } else {
        point
    }
}

/// Adds a point to the curve of that name.
pub fn add(chart: &mut Chart, name: &str, point: Point) {
    match chart.curves.iter_mut().find(|curve| curve.name() == name) {
        Some(curve) => curve.push(point),
        None => chart.curves.push(Curve::measured(name, vec![point])),
    }
}
