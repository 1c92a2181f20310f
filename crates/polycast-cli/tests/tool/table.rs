//! `polycast table`.

use std::fs;

use crate::fake::{World, error, output};

const TABLE: &str = "version=1\n[[rule]]\nuse = 'flat' # measured\ncollective = 'bcast'\n[[rule]]\ncollective = 'bcast'\nuse = 'chain'\n";

#[test]
fn a_table_is_checked_and_brought_into_form() {
    let world = World::with_doors(&[]);
    let file = world.path().join("cluster.toml");
    fs::write(&file, TABLE).unwrap();
    let said = output(&mut world.polycast(&["table", "check", "cluster.toml"]));
    let expected = "cluster.toml:5: never decides: the rule in line 2 is for all its calls (warning)\ncluster.toml: 2 rules\n";
    assert_eq!(said, expected);

    let formatted = output(&mut world.polycast(&["table", "format", "cluster.toml"]));
    assert!(formatted.starts_with(
        "version = 1\n\n# measured\n[[rule]]\ncollective = \"bcast\"\nuse = \"flat\"\n\n[[rule]]"
    ));
    assert_eq!(fs::read_to_string(&file).unwrap(), TABLE);
    output(&mut world.polycast(&["table", "format", "cluster.toml", "--write"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), formatted);

    fs::write(&file, "version = 1\n[[rule]]\nuse = 'flat'\n").unwrap();
    for verb in ["check", "format"] {
        let said = error(&mut world.polycast(&["table", verb, "cluster.toml"]), 1);
        assert!(said.contains("cluster.toml:2:1: missing field `collective`"), "{said}");
    }
}

#[test]
fn the_shipped_table_is_one_to_start_from() {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("mine.toml"), output(&mut world.polycast(&["table", "shipped"]))).unwrap();
    assert!(!output(&mut world.polycast(&["table", "check", "mine.toml"])).contains("warning"));
}

#[test]
fn rules_for_any_collective_decide() {
    let world = World::with_doors(&[]);
    let table = "version = 1\n[[rule]]\ncollective = 'bcast'\nuse = 'flat'\n[[rule]]\ncollective = 'allreduce'\nuse = 'recursive-doubling'\n";
    fs::write(world.path().join("cluster.toml"), table).unwrap();
    let said = output(&mut world.polycast(&["table", "check", "cluster.toml"]));
    let expected = "cluster.toml: 2 rules\n";
    assert_eq!(said, expected);
}

/// A table of ours becomes a file of the stock library's, which is shown, checked, and written in its other format.
#[test]
fn files_of_stock_libraries_are_read_and_written() {
    let world = World::with_doors(&[]);
    let table =
        "version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"64KiB..\"\nuse = \"chain:segment=8KiB\"\n";
    fs::write(world.path().join("mine.toml"), table).unwrap();
    let convert = |file: &str, to: &str, more: &[&str]| {
        output(&mut world.polycast(&[&["table", "convert", file, "--to", to], more].concat()))
    };
    let classic = convert("mine.toml", "openmpi", &["--ranks", "16"]);
    fs::write(world.path().join("rules"), &classic).unwrap();
    fs::write(world.path().join("rules.json"), convert("rules", "openmpi-json", &[])).unwrap();
    for file in ["rules", "rules.json"] {
        let shown = output(&mut world.polycast(&["table", "show", file]));
        assert!(
            shown.contains("bcast, 16 ranks and more\n  from        0  as the library decides\n"),
            "{shown}"
        );
        assert!(shown.contains("  from    64KiB  pipeline, segments of 8KiB\nbcast, 17 ranks"), "{shown}");
        assert_eq!(output(&mut world.polycast(&["table", "check", file])), format!("{file}: 4 rules\n"));
    }
    assert_eq!(convert("rules.json", "openmpi", &[]), classic);
    fs::write(world.path().join("rules"), classic.replace("65536 3", "65536 33")).unwrap();
    let said = error(&mut world.polycast(&["table", "check", "rules"]), 1);
    assert!(said.contains("rules: line 10: bcast has no algorithm 33"), "{said}");
    let said = error(&mut world.polycast(&["table", "convert", "mine.toml", "--to", "openmpi"]), 2);
    assert!(said.contains("--ranks: expected"), "{said}");
    let crowded = ["table", "convert", "mine.toml", "--to", "mpich", "--ranks", "16", "--nodes", "4"];
    let said = error(&mut world.polycast(&crowded), 2);
    assert!(said.contains("--nodes: expected one for each of 16 ranks, found 4"), "{said}");
}
