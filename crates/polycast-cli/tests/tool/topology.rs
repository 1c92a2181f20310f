//! `polycast topology`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::fake::{World, error};

const TWO_LEAVES: &str = "\
# of the cluster
SwitchName=leaf0 Nodes=dev[0-3] LinkSpeed=1000
SwitchName=leaf1 Nodes=dev[4-7] LinkSpeed=1000
SwitchName=core Switches=leaf[0-1] LinkSpeed=10000
";

const TWO_SPINES: &str = "\
SwitchName=leaf0 Nodes=a
SwitchName=leaf1 Nodes=b
SwitchName=spine0 Switches=leaf[0-1]
SwitchName=spine1 Switches=leaf[0-1]
";

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn topology(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("polycast").unwrap();
        command.current_dir(self.path()).arg("topology").args(arguments);
        command
    }

    /// Standard output and standard error of a run that must succeed.
    fn said(&self, arguments: &[&str]) -> (String, String) {
        let output = self.topology(arguments).assert().success().get_output().clone();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// The same of one that must end with status 1.
    fn refused(&self, arguments: &[&str]) -> (String, String) {
        let output = self.topology(arguments).assert().code(1).get_output().clone();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn show_draws_the_tree() {
    let folder = Folder::with(&[("t.conf", TWO_LEAVES)]);
    let expected = "core
├─ leaf0  10gbit
│       dev[0-3]  1gbit
└─ leaf1  10gbit
        dev[4-7]  1gbit

3 switches in 2 levels, 8 hosts; links of 1gbit and 10gbit
";
    assert_eq!(folder.said(&["show", "t.conf"]).0, expected);
    let input =
        folder.topology(&["show", "-"]).write_stdin(TWO_LEAVES).assert().success().get_output().clone();
    assert_eq!(String::from_utf8(input.stdout).unwrap(), expected);

    let json: Value = serde_json::from_str(&folder.said(&["show", "t.conf", "--json"]).0).unwrap();
    assert_eq!(json["format"], "polycast-topology");
    assert_eq!(json["hosts"][7]["link"]["bits_per_second"], 1_000_000_000u64);
}

#[test]
fn check_names_every_mistake_with_its_line() {
    let folder = Folder::with(&[(
        "t.conf",
        "SwitchName=s Nodes=a/b\nColour=red\nSwitchName=t Nodes=c[0-3 LinkSpeed=fast\n",
    )]);
    let (said, _) = folder.refused(&["check", "t.conf"]);
    let starts: Vec<_> = said.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["t.conf:1:", "t.conf:2:", "t.conf:3:", "t.conf:"]);
    assert!(said.ends_with("t.conf: 3 mistakes to mend\n"), "{said}");

    let (said, _) = folder.refused(&["check", "t.conf", "--json"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["mistakes"][1]["line"], 2);
    assert_eq!(report["topology"], Value::Null);
}

#[test]
fn check_says_what_was_found() {
    let folder = Folder::with(&[("t.conf", TWO_LEAVES)]);
    let (said, _) = folder.said(&["check", "t.conf"]);
    assert_eq!(said, "t.conf: 3 switches in 2 levels, 8 hosts; links of 1gbit and 10gbit\n");
}

#[test]
fn what_is_no_tree_is_a_warning_and_a_spanning_tree() {
    let folder = Folder::with(&[("t.conf", TWO_SPINES)]);
    let (said, _) = folder.said(&["check", "t.conf"]);
    assert!(said.starts_with("t.conf:4: switch leaf0 is below spine0 already, in line 3"), "{said}");
    assert!(said.contains("note: switch spine1 leads to no host") && said.contains("3 switches"), "{said}");
    let (said, _) = folder.said(&["show", "t.conf"]);
    assert!(said.starts_with("spine0\n├─ leaf0\n"), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("left out with its links to leaf0 (line 4), leaf1 (line 4)"), "{said}");
}

#[test]
fn formats_are_converted_there_and_back() {
    let folder = Folder::with(&[("t.conf", TWO_LEAVES)]);
    folder.said(&["convert", "t.conf", "--to", "json", "-o", "t.json"]);
    let (conf, _) = folder.said(&["convert", "t.json", "--to", "slurm-conf"]);
    assert_eq!(conf, TWO_LEAVES.split_once('\n').unwrap().1, "all but the comment");

    let (yaml, lost) = folder.said(&["convert", "t.conf", "--to", "slurm-yaml"]);
    assert_eq!(lost, "polycast: not in slurm-yaml: the format has no link rates\n");
    fs::write(folder.path().join("t.yaml"), &yaml).unwrap();
    let (conf, _) = folder.said(&["convert", "t.yaml", "--to", "slurm-conf"]);
    assert_eq!(
        conf,
        "SwitchName=leaf0 Nodes=dev[0-3]\nSwitchName=leaf1 Nodes=dev[4-7]\nSwitchName=core Switches=leaf[0-1]\n"
    );

    let (dot, _) = folder.said(&["convert", "t.json", "--to", "dot"]);
    assert!(dot.starts_with("graph topology {") && dot.contains("[label=\"10gbit\"]"), "{dot}");
    folder.topology(&["convert", "t.json", "--to", "png"]).assert().code(2);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder =
        Folder::with(&[("bad.conf", "SwitchName=s\n"), ("ring.yaml", "- topology: r\n  ring: {}\n")]);
    assert!(folder.refused(&["show", "none.conf"]).1.contains("cannot read none.conf"));
    assert!(
        folder
            .refused(&["show", "bad.conf"])
            .1
            .contains("bad.conf:1: switch s has neither nodes nor switches")
    );
    assert!(folder.refused(&["show", "ring.yaml"]).1.contains("ring.yaml:2: topology r is a ring"));
}

const SEES_LEAF: &str = r#"{ "lldp": [ { "interface": [ { "name": "eth0",
  "chassis": [ { "id": [ { "type": "mac", "value": "00:01" } ], "name": [ { "value": "LEAF" } ],
                 "capability": [ { "type": "Bridge", "enabled": true } ] } ],
  "port": [ { "auto-negotiation": [ { "current": [ { "value": "10GigBaseLR - fibre" } ] } ] } ] } ] } ] }"#;

#[test]
fn leaf_switches_come_from_lldp() {
    let (one, two) =
        (SEES_LEAF.replace("LEAF", "leaf1"), SEES_LEAF.replace("LEAF", "leaf2").replace("00:01", "00:02"));
    let folder = Folder::with(&[
        ("lldp/dev10.json", &two),
        ("lldp/dev2.json", &one),
        ("lldp/README", "no host"),
        ("other.json", &one),
        ("broken.json", "{"),
    ]);
    let (conf, notes) = folder.said(&["from-lldp", "lldp", "login=other.json", "--to", "slurm-conf"]);
    let expected = "SwitchName=leaf1 Nodes=dev2,login LinkSpeed=10000\nSwitchName=leaf2 Nodes=dev10 LinkSpeed=10000\n\
                    SwitchName=top Switches=leaf[1-2]\n";
    assert_eq!(conf, expected);
    assert!(notes.contains("nothing is known of what joins leaf1, leaf2"), "{notes}");
    assert!(
        folder.refused(&["from-lldp", "x=broken.json"]).1.contains("broken.json:1: expected what `lldpcli")
    );
    fs::remove_dir_all(folder.path().join("lldp")).unwrap();
    assert!(folder.refused(&["from-lldp", "lldp"]).1.contains("cannot read lldp"));
    assert!(folder.refused(&["from-lldp", "."]).0.is_empty());
}

#[test]
fn switches_come_from_slurms_addresses() {
    let lines = "# of a job\ndev0 s2.s0.dev0\ns2.s1.dev1\n\ndev0 s2.s0.dev0\n";
    let folder = Folder::with(&[("addresses", lines), ("wrong", "dev0 s0.dev0\na b c\n")]);
    let (conf, _) = folder.said(&["from-addresses", "addresses", "--to", "slurm-conf"]);
    assert_eq!(conf, "SwitchName=s2 Switches=s[0-1]\nSwitchName=s0 Nodes=dev0\nSwitchName=s1 Nodes=dev1\n");
    assert!(folder.refused(&["from-addresses", "wrong"]).1.contains("wrong:2: expected a host"));
}

/// One mistake is one message, and names are folded as they are written.
#[test]
fn mistakes_do_not_cascade() {
    let world = World::with_doors(&[]);
    for (text, status, said) in [
        (
            "SwitchNam=s0 Nodes=n[0-7]\nSwitchName=s1 Nodes=n[8-15]\nSwitchName=top Switches=s[0-1]\n",
            1,
            "t:1: expected SwitchName, Nodes, Switches, LinkSpeed or BlockName, found the key \"SwitchNam\"\n\
             t: 1 mistake to mend\n",
        ),
        (
            "SwitchName=top Switches=s[0-7]\n",
            1,
            "t:1: switch top has the switches s[0-7] below it, but no entry describes them\nt: 1 mistake to mend\n",
        ),
        (
            "SwitchName=s0 Nodes=n[0-7]\nSwitchName=s1 Nodes=n[4-9]\nSwitchName=top Switches=s[0-1]\n",
            0,
            "t:2: hosts n[4-7] are on switch s0 already, in line 1: their links to s1 are left out (warning)\n\
             t: 3 switches in 2 levels, 10 hosts; links of unknown rate\n",
        ),
    ] {
        fs::write(world.path().join("t"), text).unwrap();
        let assertion = world.polycast(&["topology", "check", "t"]).assert().code(status);
        assert_eq!(String::from_utf8_lossy(&assertion.get_output().stdout), said);
    }
}

/// A file that is none of them: its first line says nothing of what is wrong.
#[test]
fn what_is_no_topology_is_told_what_one_is() {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("bc.c"), "#include <mpi.h>\n\nstatic int x = 3;\n").unwrap();
    for line in [
        "topology show bc.c",
        "topology check bc.c",
        "tree --topology bc.c",
        "explain --ranks 4 --topology bc.c",
    ] {
        let ended = world.polycast(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
        let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{line}: {said}");
        assert!(
            said.contains("expected Slurm's topology.conf") && said.contains("found none of these"),
            "{line}: {said}"
        );
    }
    // One with a mistake is still told which.
    fs::write(world.path().join("t.conf"), "SwitchName=s0 Nodes=a\nNonsense\n").unwrap();
    let said = error(&mut world.polycast(&["topology", "show", "t.conf"]), 1);
    assert!(said.contains("t.conf:2: expected KEY=VALUE") && !said.contains("none of these"), "{said}");
}
