//! `polycast lab calibrate`: for which sizes and loads a lab is to be believed.

use std::process::ExitCode;
use std::time::Duration;

use polycast_core::units::Bytes;
use polycast_lab::{Calibration, CalibrationOptions, Lab, Lifetime};

use super::Shape;
use crate::commands::{Outcome, print, print_json};
use crate::numbers::whole;
use crate::terminal::{nanoseconds, paragraph, table};

/// Arguments of `polycast lab calibrate`.
#[derive(clap::Args)]
pub struct Args {
    /// An existing lab; without it one is made and removed
    #[arg(long, value_name = "NAME", conflicts_with_all = super::SHAPE)]
    lab: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Sizes of single transfers, separated by commas
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB"
    )]
    sizes: Vec<Bytes>,
    /// Transfers of each size
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(1usize..))]
    repetitions: usize,
    /// Seconds for which all links are loaded at once
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_seconds)]
    load_time: f64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let lab = match &args.lab {
        Some(name) => Lab::open(name)?,
        None => Lab::up(&args.shape.spec().plan()?, None, Lifetime::Caller)?,
    };
    let mut sizes: Vec<u64> = args.sizes.iter().map(|size| size.0).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let load_time = Duration::from_secs_f64(args.load_time);
    let calibration =
        lab.calibrate(&CalibrationOptions { sizes, repetitions: args.repetitions, load_time })?;
    if args.json {
        print_json(&calibration)?;
    } else {
        print(&report(&calibration))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds from 0.1 to 60".to_owned())
}

fn report(calibration: &Calibration) -> String {
    let rows = calibration.transfers.iter().map(|transfer| {
        vec![
            if transfer.believable { String::new() } else { "not to be believed".to_owned() },
            Bytes(transfer.bytes).to_string(),
            nanoseconds(transfer.median_us * 1e3),
            nanoseconds(transfer.wire_us * 1e3),
            format!("{:.2}", transfer.ratio_to_wire),
        ]
    });
    let table = table(["", "SIZE", "MEDIAN", "WIRE", "RATIO"], rows.collect(), 1);
    let load = &calibration.load;
    let megabits = |bits_per_second: u64| bits_per_second as f64 / 1e6;
    format!(
        "one way, from idle, {} hosts at {}, bucket of {} bytes:\n{table}\nall {} links at once: {:.0} of {:.0} Mb/s, {:.2}\n\n{}",
        calibration.hosts,
        calibration.rate_bits_per_second,
        calibration.burst_bytes,
        load.flows,
        megabits(load.achieved_bits_per_second),
        megabits(load.expected_bits_per_second),
        load.ratio,
        verdict(calibration)
    )
}

fn verdict(calibration: &Calibration) -> String {
    let believed = calibration.transfers.iter().filter(|transfer| transfer.believable);
    let sizes: Vec<String> = believed.map(|transfer| Bytes(transfer.bytes).to_string()).collect();
    if sizes.is_empty() {
        let nothing = "Believe nothing: no single transfer takes the time of the wire. Choose a lower --rate or larger --sizes.";
        return paragraph(nothing) + "\n";
    }
    let load = &calibration.load;
    let each = load.achieved_bits_per_second as f64 / 1e6 / load.flows as f64;
    let algorithms = if load.believable {
        "Believe all algorithms: the machine carries all links at once, as pipelined chains and trees load them.".to_owned()
    } else {
        format!(
            "Believe single flows and multicast only: of all links at once this machine carries {each:.0} Mb/s each, so \
             that pipelined chains and trees look slower than they are. Choose --rate {:.0}mbit or fewer hosts for those.",
            each * 0.8
        )
    };
    let sizes = format!("Believe sizes of {}.", sizes.join(", "));
    format!("{}\n{}\n", paragraph(&sizes), paragraph(&algorithms))
}
