//! The bare multicast beside the broadcasts, on labs with and without faults: what is lost is counted, never timed.

use std::fs;
use std::process::{Command, Output};

use crate::cluster::forbids_namespaces;
use crate::common::library_directory;
use serde_json::Value;

/// The points of a measurement on a lab; `None` where the kernel allows none and such tests may be left out.
fn measure(lab: &str, arguments: &[&str]) -> Option<Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = run(lab, &[arguments, &["--json", json.to_str().unwrap()]].concat(), folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    if forbids_namespaces(&errors) {
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let text = fs::read_to_string(&json).unwrap();
    Some(text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn run(lab: &str, arguments: &[&str], labs: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
    command.args(["bench", "--lab", lab, "--no-calibration", "--mpi", "openmpi"]).args(arguments);
    command.env("POLYCAST_LIBDIR", library_directory()).env("POLYCAST_LAB_DIRECTORY", labs).output().unwrap()
}

fn count(point: &Value, field: &str) -> u64 {
    point[field].as_u64().unwrap()
}

/// Sizes around a datagram (1472 bytes) and a row of them (64,768), and nothing at all.
#[test]
fn all_sizes_arrive() {
    let sizes = "0,1,1471,1472,1473,64768,64769,100003";
    let arguments = ["--sizes", sizes, "--variants", "blast", "--time", "1s", "--root", "rotate"];
    let Some(points) = measure("hosts=3,rate=200mbit,burst=64KiB", &arguments) else { return };
    assert_eq!(points.len(), 8);
    for point in &points {
        assert_eq!((&point["variant"], &point["reliable"]), (&"blast".into(), &false.into()));
        assert!(count(point, "samples") > 0 && point["verified"] == true, "{point}");
        assert_eq!(count(point, "wrong"), 0, "{point}");
    }
}

/// 713 datagrams, each lost with 2 % on its way over two links: one blast in two million is complete. If whole rows of 44
/// were lost, 7 of 10 would be.
#[test]
fn a_lossy_lab_loses_single_datagrams() {
    let arguments = ["--sizes", "1MiB", "--variants", "stock,blast", "--time", "3s"];
    let Some(points) = measure("hosts=2,rate=1gbit,burst=64KiB,loss=1%", &arguments) else { return };
    let [stock, blast] = &points[..] else { panic!("{points:?}") };
    assert!(stock["verified"] == true && count(stock, "lost") == 0, "{stock}");
    assert!(count(blast, "samples") == 0 && count(blast, "lost") > 0, "{blast}");
    assert!(blast["verified"] == false && count(blast, "wrong") == 0, "{blast}");
    assert!(blast["median_us"].is_null(), "{blast}");
}

#[test]
fn a_blocked_host_gets_stock_only() {
    let arguments = ["--sizes", "1KiB", "--variants", "stock,blast", "--time", "1s"];
    let Some(points) = measure("hosts=3,rate=100mbit,block=h2", &arguments) else { return };
    assert!(points[0]["verified"] == true && count(&points[0], "samples") > 0, "{}", points[0]);
    assert!(count(&points[1], "samples") == 0 && count(&points[1], "lost") > 0, "{}", points[1]);
}

#[test]
fn two_ranks_on_a_host_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--sizes", "1", "--variants", "blast", "--ranks-per-host", "2"];
    let output = run("hosts=2", &arguments, folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(forbids_namespaces(&errors) || errors.contains("blast needs one rank per host"), "{errors}");
}

#[test]
fn variables_reach_the_ranks() {
    let arguments = ["--sizes", "1", "--variants", "polycast", "--time", "100ms", "--env", "POLYCAST=off"];
    let folder = tempfile::tempdir().unwrap();
    let output = run("hosts=2", &arguments, folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "a switched-off polycast cannot be measured");
    assert!(forbids_namespaces(&errors) || errors.contains("variant polycast"), "{errors}");
}
