//! `scripts/measure-machine.py`: what it writes is whole whatever the time sufficed for, and the next run goes on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::job::alone;
use crate::common::{checkout, library_directory};
use serde_json::Value;
use tempfile::TempDir;

/// The files of one machine, in a folder of their own.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Machine {
        Machine { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, end: &str) -> String {
        self.folder.path().join(format!("machine{end}")).to_string_lossy().into_owned()
    }

    fn script(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("python3");
        command.arg(checkout().join("scripts/measure-machine.py")).arg(self.file("")).args(arguments);
        command.args(["--tool", env!("CARGO_BIN_EXE_polycast")]).env("POLYCAST_LIBDIR", library_directory());
        command.output().unwrap()
    }

    /// Measures what has `only` in its name, and returns what was begun.
    fn measure(&self, minutes: &str, only: &str) -> BTreeSet<String> {
        let output = self.script(&["--minutes", minutes, "--only", only]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let begun = said.lines().filter_map(|line| line.split_once(" s  ").map(|(_, name)| name.to_owned()));
        begun.collect()
    }

    fn found(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.file(".json")).unwrap()).unwrap()
    }

    fn page(&self) -> String {
        fs::read_to_string(self.file(".md")).unwrap()
    }
}

fn list<'a>(found: &'a Value, name: &str) -> &'a [Value] {
    found[name].as_array().unwrap_or_else(|| panic!("{name}: {found}"))
}

/// Every way that the task is to measure has calls.
fn assert_whole(point: &Value, ways: &[&str]) {
    for way in ways {
        let figures = &point["ways"][way];
        assert!(figures["us"][0].as_f64().is_some_and(|us| us > 0.0), "{way}: {point}");
        assert!(figures["samples"].as_u64() > Some(0) && figures.get("wrong").is_none(), "{way}: {point}");
    }
}

#[test]
fn a_page_is_whole_without_any_time_and_the_next_run_goes_on() {
    let _alone = alone();
    let machine = Machine::new();
    assert!(machine.measure("0", "").is_empty());
    let found = machine.found();
    let processors = found["machine"]["processors"].as_u64().unwrap();
    assert!(list(&found, "points").is_empty() && list(&found, "costs").is_empty());
    let bound = format!("bound {} barrier", processors.max(2));
    let is_told = |wanted: &str| {
        list(&found, "could_not")
            .iter()
            .any(|what| what[0].as_str().unwrap().ends_with(wanted) && what[1] == "the time was up")
    };
    assert!(is_told(&bound) && is_told("cost multicast-pull") && is_told("lab 8 10 alltoall"), "{found}");
    assert!(machine.page().starts_with(&format!("# {processors} processors of ")), "{}", machine.page());

    let begun = machine.measure("60", &bound);
    assert!(!begun.is_empty());
    let first = machine.found();
    assert_eq!(list(&first, "points").len(), begun.len(), "{first}");
    for point in list(&first, "points") {
        assert_eq!((&point["collective"], &point["place"]), (&"barrier".into(), &"node".into()));
        let is_alone = !point["component"].is_null();
        let ways = ["stock", "polycast", "cells", "two-level"];
        assert_whole(point, if is_alone { &ways[..1] } else { &ways });
    }
    assert!(list(&first, "could_not").is_empty(), "{first}");
    let page = machine.page();
    assert!(page.contains("\n`barrier`: ") && page.contains(" ranks, bound\n"), "{page}");

    // What is there is not measured again.
    assert!(machine.measure("60", &bound).is_empty());
    let second = machine.found();
    assert_eq!((&second["points"], &second["tasks"]), (&first["points"], &first["tasks"]));
    assert_eq!(list(&second, "runs").len(), 3);
    assert!(!Path::new(&machine.file(".json.new")).exists());
}

#[test]
fn what_a_broadcast_costs_is_told_by_rank() {
    let _alone = alone();
    let machine = Machine::new();
    let begun = machine.measure("60", "cost stock");
    assert_eq!(begun.len(), 1, "{begun:?}");
    let found = machine.found();
    let [cost] = list(&found, "costs") else { panic!("{found}") };
    for rank in ["root", "other"] {
        let used = |part: &str| cost[rank][part].as_f64().unwrap();
        assert!(used("outside_ns_per_byte") + used("kernel_ns_per_byte") > 0.0, "{cost}");
    }
    assert!(machine.page().contains("| `stock` | 40 of 16 MiB |"), "{}", machine.page());
}

#[test]
fn another_machine_or_no_mpi_is_refused() {
    let machine = Machine::new();
    machine.measure("0", "");
    let mut found = machine.found();
    found["machine"]["model"] = "another".into();
    fs::write(machine.file(".json"), found.to_string()).unwrap();
    let refused = machine.script(&["--minutes", "0"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("expected measurements of this machine"), "{said}");

    let refused = Machine::new().script(&["--mpi", "/nowhere/mpiexec"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("expected an MPI"), "{said}");
}
