use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use polycast_study::wormhole::{Along, Experiment, FIGURES, Figure, Quantity};
use serde_json::{Value, json};

use super::Figures;
use super::report::{self, Done};
use super::store::Store;
use super::told;
use crate::commands::{Outcome, print, print_json, write_file};
use crate::plot::{Axis, Chart, Point};

/// Runs `polycast simulate --figure`.
pub fn run(args: &super::super::Args) -> Outcome {
    let wanted = args.wormhole.figure.iter().flat_map(|figures| match figures {
        Figures::All => FIGURES.iter().collect(),
        Figures::One(figure) => vec![*figure],
        Figures::Told(_) => Vec::new(),
    });
    let out = args.wormhole.out.as_deref();
    let file = |figure: &Figure, ending: &str| {
        out.map(|directory| directory.join(format!("figure-{}.{ending}", figure.number)))
    };
    let effort = args.wormhole.effort();
    let figures: Vec<(&Figure, Vec<PlannedCurve>)> =
        wanted.map(|figure| (figure, curves(figure, effort))).collect();
    let mut store = Store::open(out)?;
    let all: Vec<Experiment> = figures.iter().flat_map(|(_, curves)| experiments(curves)).collect();
    let progress = report::progress(store.missing(&all))?;
    let mut objects = Vec::new();
    for (figure, curves) in &figures {
        let started = Instant::now();
        let done = store.measure(&experiments(curves), &progress)?;
        let mut chart = chart(figure, curves, &done);
        chart.notes = vec![report::effort(&args.wormhole)];
        let seconds = started.elapsed().as_secs_f64();
        let object = json!({
            "figure": figure.number,
            "title": figure.title,
            "seconds": seconds,
            "points": done.iter().map(report::json).collect::<Vec<Value>>(),
        });
        if let Some(file) = file(figure, "svg") {
            write_file(&file, chart.to_svg()?)?;
        }
        if let Some(file) = file(figure, "json") {
            save(&file, &object)?;
        }
        if args.json {
            objects.push(object);
        } else {
            let text = format!(
                "Figure {}: {}, {seconds:.0} s\n{}\n",
                figure.number,
                figure.title,
                report::text(&done)
            );
            progress.suspend(|| print(&text))?;
        }
    }
    progress.finish_and_clear();
    let told = args.wormhole.figure.iter().filter_map(|figure| match figure {
        Figures::Told(told) => Some(*told),
        _ => None,
    });
    for told in told {
        let figure = told::run(args, told)?;
        if let Some(directory) = out {
            write_file(&directory.join(format!("figure-{}.svg", told.number)), figure.chart.to_svg()?)?;
            save(&directory.join(format!("figure-{}.json", told.number)), &figure.object)?;
        }
        if args.json {
            objects.push(figure.object);
        } else {
            print(&figure.text)?;
        }
    }
    if args.json {
        print_json(&json!({ "figures": objects }))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn save(file: &Path, object: &Value) -> Result<(), Box<dyn std::error::Error>> {
    Ok(write_file(file, serde_json::to_string_pretty(object)? + "\n")?)
}

struct PlannedCurve {
    name: &'static str,
    points: Vec<polycast_study::wormhole::Planned>,
}

fn curves(figure: &Figure, effort: polycast_study::wormhole::Effort) -> Vec<PlannedCurve> {
    let pairs =
        figure.networks.iter().flat_map(|network| figure.trees.iter().map(move |tree| (*network, *tree)));
    let many = figure.networks.len() > 1;
    pairs
        .map(|(network, tree)| {
            let on_mesh = matches!(network, polycast_study::wormhole::Topology::Mesh { .. });
            let name = match (many, on_mesh) {
                (false, _) => tree.title(network),
                (true, true) => "Mesh",
                (true, false) => "BMIN",
            };
            PlannedCurve { name, points: figure.curve(network, tree, effort) }
        })
        .collect()
}

fn experiments(curves: &[PlannedCurve]) -> Vec<Experiment> {
    curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.experiment)).collect()
}

fn chart(figure: &Figure, curves: &[PlannedCurve], done: &[Done]) -> Chart {
    let x = match figure.axis {
        Along::Bytes(_) => Axis::linear("message (bytes)"),
        Along::Nodes(_) => Axis::linear("nodes"),
        Along::Load(_) => Axis::linear("accepted background traffic"),
    };
    let y = match figure.quantity {
        Quantity::ContentionRate => "contention rate",
        Quantity::RootQueue => "delay in the root's send queue (units of 10 ns)",
        Quantity::Latency => "latency (units of 10 ns; mean, 95 % interval)",
        Quantity::HoldAndEnd => "latency (units of 10 ns)",
    };
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let mut chart = Chart::new(title, x, Axis::linear(y));
    let points = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve.name, point.x)));
    for ((name, x), Done { measured, .. }) in points.zip(done) {
        let x = if matches!(figure.axis, Along::Load(_)) { measured.accepted } else { x };
        match figure.quantity {
            Quantity::Latency => report::add(&mut chart, name, report::point(x, measured)),
            Quantity::ContentionRate => {
                report::add(&mut chart, name, Point::new(x, measured.contention_rate()));
            }
            Quantity::RootQueue => report::add(&mut chart, name, Point::new(x, measured.root_queue)),
            Quantity::HoldAndEnd => {
                report::add(&mut chart, "t_hold", Point::new(x, measured.hold));
                report::add(&mut chart, "t_end", Point::new(x, measured.end));
            }
        }
    }
    chart
}
