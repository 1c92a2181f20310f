//! `polycast topology discover` end to end, in a lab whose switches are known.

use std::fs;
use std::process::{Command, Output};

use crate::common::library_directory;
use polycast_core::topology::{Reading, Topology};

fn discover(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polycast"))
        .args(["topology", "discover", "--mpi", "openmpi"])
        .args(arguments)
        .env("POLYCAST_LIBDIR", library_directory())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names that alternate between the switches: nothing follows from their order.
#[test]
fn two_switches_with_a_narrow_link_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, found) = (folder.path().join("truth.conf"), folder.path().join("found.conf"));
    let lines = "SwitchName=even Nodes=n0,n2,n4\nSwitchName=odd Nodes=n1,n3,n5\n\
                 SwitchName=top Switches=even,odd LinkSpeed=20\n";
    fs::write(&truth, lines).unwrap();
    let lab = format!("topology={},rate=20mbit", truth.display());
    let output = discover(&["--lab", &lab, "--to", "slurm-conf", "-o", found.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("15 of 15 pairs of hosts are together or apart as in truth"), "{shown}");
    assert!(shown.contains("cannot be seen") && shown.contains("link above s1"), "{shown}");
    let found =
        Topology::parse(&fs::read_to_string(&found).unwrap(), "found.conf", Reading::default()).unwrap();
    assert_eq!((found.switches.len(), found.hosts.len()), (2, 6));
    let switch_of = |name: &str| found.hosts.iter().find(|host| host.name == name).unwrap().switch;
    for (a, b, together) in [("n0", "n4", true), ("n1", "n5", true), ("n0", "n1", false)] {
        assert_eq!(switch_of(a) == switch_of(b), together, "{a} and {b}: {shown}");
    }
}

#[test]
fn too_few_hosts_and_several_ranks_on_one_are_refused() {
    for (arguments, expected) in [
        (&["--lab", "hosts=3"][..], "at least 4 hosts, found 3"),
        (&["--lab", "hosts=2", "--ranks-per-host", "2"], "one rank on each host"),
        (&["--truth", "/nowhere/t.conf"], "/nowhere/t.conf"),
    ] {
        let output = discover(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}
