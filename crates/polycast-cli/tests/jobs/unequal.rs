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

/// What jobs find in a lab of these links, until one is `enough`, or so many have run: the rate,
/// and who is slow how.
fn found(
    jobs: usize,
    enough: impl Fn(&str) -> bool,
    mpi: Mpi,
    burst: &[&str],
) -> Option<Vec<(String, String)>> {
    let (labs, folder) = (Labs::new(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("mixed.conf"), MIXED).unwrap();
    fs::write(at("table.toml"), TABLE).unwrap();
    if !labs.up(&[&[LAB, "--topology", &at("mixed.conf")], burst].concat()) {
        return None;
    }
    let job = || {
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
    let mut found = Vec::new();
    while found.len() < jobs && !found.last().is_some_and(|(_, links): &(String, String)| enough(links)) {
        found.push(job());
    }
    labs.succeeds(&["down", "--all"]);
    Some(found)
}

/// One of five: a rank that waits for a processor while its link is measured may find nothing.
#[test]
fn a_job_names_the_host_that_holds_all_up() {
    let names_it = |links: &str| links.starts_with("h5 ");
    let Some(found) = found(5, names_it, Mpi::OpenMpi, &["--burst", "64KiB"]) else { return };
    assert!(found.iter().any(|(_, links)| names_it(links)), "{found:?}");
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
        let Some(found) = found(10, |_| false, mpi, burst) else { return };
        let same =
            found.iter().filter(|(rate, links)| rate == "\"10mbit\"" && links.starts_with("h5 10mbit,"));
        assert!(same.count() >= 9, "{mpi:?} {burst:?}: {found:?}");
    }
}
