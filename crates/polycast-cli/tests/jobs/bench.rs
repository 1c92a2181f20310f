//! `polycast bench` end to end: a few ranks on this machine. What is checked is that figures are complete and
//! consistent, never how large they are.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::job::wait_for;
use crate::common::library_directory;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
    command.arg("bench").args(arguments).env("POLYCAST_LIBDIR", library_directory());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    bench(arguments).output().unwrap()
}

/// The environment and the points.
pub fn read_json(file: &Path) -> (Value, Vec<Value>) {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut first = lines.next().expect("the environment comes first");
    (first["environment"].take(), lines.collect())
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Times that must be in this order whatever they are.
fn assert_ordered(point: &Value, fields: &[&str]) {
    let times: Vec<f64> = fields
        .iter()
        .map(|field| point[field].as_f64().unwrap_or_else(|| panic!("{field}: {point}")))
        .collect();
    assert!(times.is_sorted(), "{fields:?}: {times:?}");
}

fn assert_figures_under(mpi: &str, ranks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let svg = folder.path().join("results.svg");
    let output = run(&[
        "--mpi",
        mpi,
        "-n",
        &ranks.to_string(),
        "--sizes",
        "1KiB,65537",
        "--variants",
        "stock,polycast,chain:segment=8KiB,ready",
        "--time",
        "400ms",
        "--launches",
        "2",
        "--root",
        "rotate",
        "--rate",
        "1gbit",
        "--json",
        json.to_str().unwrap(),
        "--svg",
        svg.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (environment, points) = read_json(&json);
    assert_eq!(environment["mpi"], mpi);
    assert_eq!((&environment["ranks"], &environment["nodes"]), (&ranks.into(), &1.into()));
    assert_eq!(environment["clock"]["method"], "shared");
    assert_eq!(environment["clock"]["error_us"], 0.0);
    let (from, has_spread) = match environment["oversubscribed"].as_bool().unwrap() {
        true => ("root's call", true),
        false => ("first call", false),
    };
    assert_eq!(
        (&environment["time_from"], environment["wake_up_spread_us"].is_number()),
        (&from.into(), has_spread)
    );
    assert!(points.iter().all(|point| point["time_from"] == from));
    let names: Vec<_> =
        points.iter().map(|point| (&point["bytes"], point["variant"].as_str().unwrap())).collect();
    let variants = ["stock", "polycast", "chain:segment=8KiB,ready"];
    let expected: Vec<_> =
        [1024, 65537].iter().flat_map(|bytes| variants.map(|name| (*bytes, name))).collect();
    assert_eq!(names.len(), expected.len());
    for ((bytes, name), expected) in names.into_iter().zip(expected) {
        assert_eq!((bytes.as_u64().unwrap(), name), expected);
    }
    points.iter().for_each(|point| assert_complete(point, ranks));
    let samples = fs::read_to_string(folder.path().join("results.json.samples")).unwrap();
    let kept = samples.lines().filter(|line| line.starts_with("repetition")).count() as u64;
    let reported = |field: &str| points.iter().map(|point| point[field].as_u64().unwrap()).sum::<u64>();
    assert!(
        points.iter().all(|point| point["algorithm"] == point["variant"] || point["variant"] == "polycast")
    );
    // What is faster here is for trials to find out.
    for point in points.iter().filter(|point| point["variant"] == "polycast") {
        let remark = point["remark"].as_str().unwrap_or_default();
        assert_eq!(point["algorithm"] == "stock", remark.contains("left to the MPI"), "{point}");
    }
    let same = run(&["compare", json.to_str().unwrap(), json.to_str().unwrap()]);
    assert!(same.status.success(), "{}", text(&same.stderr));
    assert!(
        text(&same.stdout).contains("1.00") && !text(&same.stdout).contains("faster"),
        "{}",
        text(&same.stdout)
    );
    let unlike = folder.path().join("unlike.json");
    fs::write(&unlike, fs::read_to_string(&json).unwrap().replace("\"nodes\":1", "\"nodes\":2")).unwrap();
    let refused = run(&["compare", json.to_str().unwrap(), unlike.to_str().unwrap()]);
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("nodes: 1 and 2"),
        "{}",
        text(&refused.stderr)
    );
    assert!(run(&["compare", json.to_str().unwrap(), unlike.to_str().unwrap(), "--force"]).status.success());
    assert!(fs::read_to_string(&svg).unwrap().contains("polycast"), "the plot");
    assert_eq!(kept, reported("samples") + reported("dropped"), "every repetition is in the file of samples");
}

/// What a call finds of the one before it, which had another root, is no difference between variants.
#[test]
fn each_variant_comes_first_with_each_root() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let words =
        ["--mpi", "openmpi", "-n", "2", "--sizes", "8", "--variants", "stock,binomial", "--root", "rotate"];
    let output = run(&[&words[..], &["--time", "300ms", "--json", json.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let samples = fs::read_to_string(folder.path().join("results.json.samples")).unwrap();
    let repetitions = samples.lines().filter_map(|line| line.strip_prefix("repetition "));
    let numbers = repetitions.map(|line| {
        let mut words = line.split(' ').map(|word| word.parse::<u64>().unwrap());
        [(); 3].map(|()| words.next().unwrap())
    });
    let mut firsts = [[0; 2]; 2];
    let mut before: Option<[u64; 3]> = None;
    for now @ [cycle, variant, root] in numbers {
        if before.is_none_or(|before| before[0] != cycle) {
            firsts[variant as usize][root as usize] += 1;
            assert!(before.is_none_or(|before| before[2] != root || before[0] + 1 < cycle), "{now:?}");
        }
        before = Some(now);
    }
    let of_each = firsts.as_flattened();
    assert!(*of_each.iter().min().unwrap() * 2 >= *of_each.iter().max().unwrap(), "{firsts:?}");
}

fn assert_complete(point: &Value, ranks: usize) {
    assert_eq!(point["collective"], "bcast");
    assert_eq!((&point["root"], &point["arrival"]), (&"rotate".into(), &"none".into()));
    assert_eq!((&point["verified"], &point["wrong"]), (&true.into(), &0.into()), "{point}");
    assert!(point["samples"].as_u64().unwrap() > 0, "{point}");
    assert_ordered(point, &["min_us", "median_us", "p90_us", "p99_us", "max_us"]);
    if !point["ci_low_us"].is_null() {
        assert_ordered(point, &["min_us", "ci_low_us", "median_us", "ci_high_us", "max_us"]);
    }
    let ratio = point["median_us"].as_f64().unwrap() / point["wire_us"].as_f64().unwrap();
    assert!((point["ratio_to_wire"].as_f64().unwrap() - ratio).abs() < 1e-9);
    assert!(point["skew_ratio"].as_f64().unwrap() >= 1.0);
    assert_eq!(point["per_rank_median_us"].as_array().unwrap().len(), ranks);
    assert_eq!(point["launch_median_us"].as_array().unwrap().len(), 2);
    assert_eq!(point["reference"], "stock");
    // On a busy machine it may be withheld, with the reason.
    let has_none = point["variant"] == "stock" || point["speedup_withheld"].is_string();
    assert_eq!(point["speedup_vs_stock"].is_null(), has_none, "{point}");
}

#[test]
fn figures_are_complete_under_openmpi() {
    assert_figures_under("openmpi", 3);
}

/// Two ranks: Debian's MPICH spins while it waits, and comes to nothing where ranks outnumber cores.
#[test]
fn figures_are_complete_under_mpich() {
    assert_figures_under("mpich", 2);
}

/// More ranks than cores everywhere: the times of the file of samples run from the root's call, for which receivers wait.
#[test]
fn receivers_wait_for_the_root_where_ranks_share_cores() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let ranks = (std::thread::available_parallelism().unwrap().get() + 1).to_string();
    let arguments =
        ["--mpi", "openmpi", "-n", &ranks, "--sizes", "8", "--variants", "stock", "--time", "300ms"];
    let output = run(&[&arguments[..], &["--json", json.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (environment, points) = read_json(&json);
    let least_us = 500.0;
    assert!(environment["wake_up_spread_us"].as_f64().unwrap() >= least_us, "{environment}");
    assert!(!points[0]["median_us"].is_null(), "{}", points[0]);
    let samples = fs::read_to_string(folder.path().join("results.json.samples")).unwrap();
    let mut completions = Vec::new();
    for line in samples.lines().filter(|line| line.starts_with("repetition") && line.contains(" ok ")) {
        let times: Vec<f64> = line.split_whitespace().skip(6).map(|word| word.parse().unwrap()).collect();
        let (root, last_return) =
            (times[0], times.iter().skip(1).step_by(2).copied().fold(f64::MIN, f64::max));
        let tolerance = points[0]["tolerance_us"].as_f64().unwrap() * 1e3;
        assert!(times.iter().step_by(2).all(|call| *call <= root + tolerance), "{line}");
        completions.push((last_return - root) / 1e3);
    }
    if points[0]["late"] == 0 {
        completions.sort_by(f64::total_cmp);
        assert_eq!(points[0]["samples"], completions.len());
        assert_eq!(points[0]["min_us"].as_f64(), completions.first().copied());
        assert_eq!(points[0]["max_us"].as_f64(), completions.last().copied());
    }
}

/// The labs that find the rate are gone when the measurement begins.
#[test]
fn a_lab_without_a_rate_gets_one_that_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments =
        ["--lab", "hosts=2", "--mpi", "openmpi", "--sizes", "1KiB", "--variants", "stock", "--time", "200ms"];
    let output = run(&[&arguments[..], &["--json", json.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (environment, _) = read_json(&json);
    let mbit = environment["rate_bits_per_second"].as_u64().unwrap() / 1_000_000;
    assert!([5, 10, 20, 50, 100, 200, 500, 1000].contains(&mbit), "{mbit}");
    assert_eq!(
        environment["lab"]["calibration"]["rate_bits_per_second"],
        environment["rate_bits_per_second"]
    );
    let reason = environment["rate_choice"].as_str().unwrap();
    assert!(reason.contains("this machine forwards"), "{reason}");
    assert!(text(&output.stderr).contains("the links of the lab get"), "{}", text(&output.stderr));
}

#[test]
fn wrong_data_on_one_rank_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments = ["--mpi", "openmpi", "-n", "3", "--sizes", "1", "--variants", "stock", "--time", "200ms"];
    let output = run(&[&arguments[..], &["--corrupt", "2", "--json", json.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("wrong data"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("WRONG DATA"), "{}", text(&output.stdout));
    let (_, points) = read_json(&json);
    assert_eq!(points[0]["verified"], false);
    let measured = points[0]["samples"].as_u64().unwrap() + points[0]["dropped"].as_u64().unwrap();
    assert_eq!(points[0]["wrong"].as_u64(), Some(measured));
}

const NINE: [&str; 9] =
    ["bcast", "scatter", "gather", "allgather", "allgatherv", "alltoall", "barrier", "reduce", "allreduce"];

/// Three ranks, with sizes that no number of ranks or doubles divides.
#[test]
fn nine_collectives_are_measured_and_right() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments =
        ["--mpi", "openmpi", "-n", "3", "--sizes", "1,10007", "--variants", "stock", "--time", "100ms"];
    let more = ["--collective", "all", "--root", "1", "--json", json.to_str().unwrap()];
    let output = run(&[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (_, points) = read_json(&json);
    let expected = NINE.iter().flat_map(|name| {
        if *name == "barrier" { vec![(*name, 0)] } else { vec![(*name, 1), (*name, 10007)] }
    });
    let found =
        points.iter().map(|point| (point["collective"].as_str().unwrap(), point["bytes"].as_u64().unwrap()));
    assert!(found.eq(expected), "{points:?}");
    for point in &points {
        assert_eq!((&point["verified"], &point["wire_bytes"]), (&true.into(), &0.into()), "{point}");
        assert!(point["median_us"].as_f64().unwrap() > 0.0, "{point}");
        let ends_at_root = ["gather", "reduce"].contains(&point["collective"].as_str().unwrap());
        assert_eq!(point["time_to"], if ends_at_root { "root's return" } else { "last return" });
    }
    let blocks =
        points.iter().filter(|point| point["bytes"] == 10007).map(|point| point["block_bytes"].as_u64());
    assert!(blocks.eq([10007, 3336, 3336, 3336, 3336, 3336, 10008, 10008].map(Some)), "{points:?}");
}

/// Rank 1 damages what it has received, where it receives something.
#[test]
fn wrong_data_of_every_collective_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments = ["--mpi", "openmpi", "-n", "3", "--sizes", "24", "--variants", "stock", "--time", "50ms"];
    let more = ["--collective", "all", "--root", "1", "--corrupt", "1", "--json", json.to_str().unwrap()];
    let output = run(&[&arguments[..], &more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for point in read_json(&json).1 {
        assert_eq!(point["verified"], point["collective"] == "barrier", "{point}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_starts() {
    for (arguments, expected) in [
        (&["--variants", "stock,bianry"][..], "unknown algorithm \"bianry\", expected one of flat, chain"),
        (&["--collective", "scan"], "unknown collective \"scan\", expected all or a list of bcast"),
        (&["--collective", "reduce", "--variants", "stock,ring"], "ring serves allgather"),
        (
            &["--collective", "reduce", "--env", "POLYCAST_REDUCE=binomial"],
            "name it: --variants stock,binomial",
        ),
        (&["--sizes", "1KiB..2"], "FROM <= TO"),
        (&["--arrival", "late"], "root-first"),
        (&["--time", "3"], "its unit is missing"),
        (&["--sizes", "1TiB"], "at most 2147483647 bytes"),
        (&["--env", "POLYCAST_BCAST=chain"], "name it: --variants stock,chain"),
        (&["--mpi", "openmpi", "-n", "3", "--root", "3"], "expected a rank below 3"),
        (&["--mpi", "nompi"], "found no such program"),
        (&["--lab", "hosts=2,color=red"], "color=red"),
    ] {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// Half a round trip bounds the error of an offset. On one machine the truth is known: the clocks are one.
#[test]
fn the_clock_error_is_within_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments = ["--mpi", "openmpi", "-n", "3", "--sizes", "8", "--variants", "stock", "--time", "200ms"];
    let output = run(&[&arguments[..], &["--clock", "pingpong", "--json", json.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (environment, _) = read_json(&json);
    assert_eq!(
        (&environment["clock"]["method"], &environment["clock"]["clocks"]),
        (&"pingpong".into(), &3.into())
    );
    assert_ordered(&environment["clock"], &["observed_error_us", "error_us"]);
}

#[test]
fn the_delay_of_an_arrival_pattern_is_in_the_completion() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let arguments = ["--mpi", "openmpi", "-n", "3", "--sizes", "8", "--variants", "stock", "--time", "300ms"];
    for pattern in ["root-first", "root-last", "one-late", "random"] {
        let arrival = format!("{pattern}:20ms");
        let output =
            run(&[&arguments[..], &["--arrival", &arrival, "--json", json.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (_, points) = read_json(&json);
        assert_eq!((&points[0]["arrival"], &points[0]["delay_us"]), (&pattern.into(), &20_000.0.into()));
        // However busy the machine is, nobody calls before its time: the last call is never before the delay.
        let samples = fs::read_to_string(folder.path().join("results.json.samples")).unwrap();
        let repetitions = samples.lines().filter(|line| line.starts_with("repetition"));
        for line in repetitions.filter(|_| pattern != "random") {
            let starts = line.split_whitespace().skip(6).step_by(2).map(|word| word.parse::<i64>().unwrap());
            assert!(starts.max() >= Some(20_000_000), "{pattern}: {line}");
        }
    }
}

/// The point that was complete and the one that was under way are both kept.
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let samples = folder.path().join("samples");
    let arguments = ["--mpi", "openmpi", "-n", "2", "--sizes", "8", "--variants", "stock", "--time", "10m"];
    // Delays make the interval too wide to stop early.
    let files =
        ["--arrival", "random:5ms", "--json", json.to_str().unwrap(), "--raw", samples.to_str().unwrap()];
    let mut child = bench(&[&arguments[..], &files].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if wait_for(&mut child, || fs::read_to_string(&samples).is_ok_and(|text| text.contains("repetition"))) {
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let (_, points) = read_json(&json);
    assert!(points[0]["samples"].as_u64().unwrap() > 0);
    assert!(text(&output.stdout).contains("stock"));
    assert!(text(&output.stderr).contains("interrupted: 0 of 1 size"), "{}", text(&output.stderr));
}
