//! Jobs on hosts whose links differ: they find the slowest one, and say whose it is.

use std::fs;

use serde_json::Value;

use crate::cluster::Labs;
use crate::common::mpi::Mpi;
use crate::job::{LAB, LabJob};

/// Of six hosts one is a hundredth as fast as three, and two a tenth.
const MIXED: &str = "\
SwitchName=s0 Nodes=h[0-2] LinkSpeed=1000
SwitchName=s1 Nodes=h[3-4] LinkSpeed=100
SwitchName=s2 Nodes=h5 LinkSpeed=10
SwitchName=top Switches=s[0-2] LinkSpeed=1000
";

/// A rule about the rate, so that jobs ask.
const TABLE: &str = "version = 1\n[[rule]]\ncollective = \"bcast\"\nrate = \"8kbit..\"\nuse = \"binomial\"\n";

/// What so many jobs find: the rate, and who is slow how, in a lab of these links.
fn found(jobs: usize, mpi: Mpi, burst: &[&str]) -> Option<Vec<(String, String)>> {
    let (labs, folder) = (Labs::new(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("mixed.conf"), MIXED).unwrap();
    fs::write(at("table.toml"), TABLE).unwrap();
    if !labs.up(&[&[LAB, "--topology", &at("mixed.conf")], burst].concat()) {
        return None;
    }
    let job = |_| {
        let job = LabJob::stock(&labs, mpi, 6, "bcast_attach").arguments(&["dup", "3000", "1"]).unwatched();
        let job = job.variable("POLYCAST_MULTICAST", "off").variable("POLYCAST_TABLE", &at("table.toml"));
        let output = job.variable("POLYCAST_REPORT", &at("job.json")).expect_ok();
        let text = fs::read_to_string(at("job.json")).unwrap_or_else(|error| output.fail(&error.to_string()));
        let report: Value = serde_json::from_str(&text).unwrap();
        let network = &report["rank_0"]["networks"][0];
        let links = network["links"].as_array().unwrap_or_else(|| output.fail(&text)).iter();
        let links: Vec<String> = links.map(|alike| format!("{} {}", alike["hosts"], alike["rate"])).collect();
        (network["rate"].to_string(), links.join(", ").replace('"', ""))
    };
    let found = (0..jobs).map(job).collect();
    labs.succeeds(&["down", "--all"]);
    Some(found)
}

#[test]
fn a_job_names_the_host_that_holds_all_up() {
    let Some(found) = found(1, Mpi::OpenMpi, &["--burst", "64KiB"]) else { return };
    assert!(found[0].1.starts_with("h5 "), "{found:?}");
}

/// Nine of ten, with buckets and without.
#[test]
#[ignore = "make test-all: takes minutes, and needs the machine for itself"]
fn jobs_find_the_same_class() {
    for (mpi, burst) in [
        (Mpi::OpenMpi, &[][..]),
        (Mpi::Mpich, &[]),
        (Mpi::OpenMpi, &["--burst", "64KiB"]),
        (Mpi::Mpich, &["--burst", "64KiB"]),
    ] {
        let Some(found) = found(10, mpi, burst) else { return };
        let same =
            found.iter().filter(|(rate, links)| rate == "\"10mbit\"" && links.starts_with("h5 10mbit,"));
        assert!(same.count() >= 9, "{mpi:?} {burst:?}: {found:?}");
    }
}
