use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use indicatif::ProgressBar;
use polycast_sim::wormhole::{Along, FIGURES, Figure, Quantity};
use serde_json::{Value, json};

use super::Figures;
use super::report::{self, Done};
use crate::commands::{Outcome, print, print_json, write_file};
use crate::plot::{Axis, Chart, Point};

/// Runs `polycast simulate --figure`.
pub fn run(args: &super::super::Args) -> Outcome {
    let wanted = args.wormhole.figure.iter().flat_map(|figures| match figures {
        Figures::All => FIGURES.iter().collect(),
        Figures::One(figure) => vec![*figure],
    });
    let out = args.wormhole.out.as_deref();
    if let Some(directory) = out {
        fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    }
    let file = |figure: &Figure, ending: &str| {
        out.map(|directory| directory.join(format!("figure-{}.{ending}", figure.number)))
    };
    let is_missing = |figure: &&Figure| !file(figure, "json").is_some_and(|file| file.exists());
    let figures: Vec<&Figure> = wanted.filter(is_missing).collect();
    let effort = args.wormhole.effort();
    let points =
        |figure: &&Figure| curves(figure, effort).iter().map(|curve| curve.points.len()).sum::<usize>();
    let progress = report::progress(figures.iter().map(points).sum())?;
    let mut objects = Vec::new();
    for figure in figures {
        let started = Instant::now();
        let curves = curves(figure, effort);
        let (chart, done) = measure(figure, curves, &progress);
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
    if args.json {
        print_json(&json!({ "figures": objects }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that is there is whole.
fn save(file: &Path, object: &Value) -> Result<(), Box<dyn std::error::Error>> {
    let beside = file.with_extension("part");
    write_file(&beside, serde_json::to_string_pretty(object)? + "\n")?;
    Ok(fs::rename(&beside, file)?)
}

struct Planned {
    name: &'static str,
    points: Vec<polycast_sim::wormhole::Planned>,
}

fn curves(figure: &Figure, effort: polycast_sim::wormhole::Effort) -> Vec<Planned> {
    let pairs =
        figure.networks.iter().flat_map(|network| figure.trees.iter().map(move |tree| (*network, *tree)));
    let many = figure.networks.len() > 1;
    pairs
        .map(|(network, tree)| {
            let on_mesh = matches!(network, polycast_sim::wormhole::Topology::Mesh { .. });
            let name = match (many, on_mesh) {
                (false, _) => tree.name(network),
                (true, true) => "mesh",
                (true, false) => "multistage",
            };
            Planned { name, points: figure.curve(network, tree, effort) }
        })
        .collect()
}

fn measure(figure: &Figure, curves: Vec<Planned>, progress: &ProgressBar) -> (Chart, Vec<Done>) {
    let x = match figure.axis {
        Along::Bytes(_) => Axis::linear("message (bytes)"),
        Along::Nodes(_) => Axis::linear("nodes"),
        Along::Load(_) => Axis::linear("accepted background traffic"),
    };
    let y = match figure.quantity {
        Quantity::ContentionRate => "contention rate",
        Quantity::RootQueue => "delay in the root's send queue (units of time)",
        Quantity::Latency | Quantity::HoldAndEnd => "latency (units of time)",
    };
    let title = format!("Figure {}: {}", figure.number, figure.title);
    let mut chart = Chart::new(title, x, Axis::linear(y));
    let mut all = Vec::new();
    for curve in curves {
        for planned in curve.points {
            let done = report::measure(planned.experiment, progress);
            let x = if matches!(figure.axis, Along::Load(_)) { done.measured.accepted } else { planned.x };
            match figure.quantity {
                Quantity::Latency => report::add(&mut chart, curve.name, report::point(x, &done.measured)),
                Quantity::ContentionRate => {
                    report::add(&mut chart, curve.name, Point::new(x, done.measured.contention_rate()));
                }
                Quantity::RootQueue => {
                    report::add(&mut chart, curve.name, Point::new(x, done.measured.root_queue));
                }
                Quantity::HoldAndEnd => {
                    report::add(&mut chart, "t_hold", Point::new(x, done.measured.hold));
                    report::add(&mut chart, "t_end", Point::new(x, done.measured.end));
                }
            }
            all.push(done);
        }
    }
    (chart, all)
}
