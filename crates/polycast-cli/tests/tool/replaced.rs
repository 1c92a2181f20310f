//! The tool's file is replaced while it runs, as by an upgrade.

use std::process::Command;

use crate::fake::{OPEN_MPI_4, World};

/// A launcher is asked for its version first; what the tool needs of its own place, it looks for later.
#[test]
fn what_is_in_its_place_serves() {
    let world = World::with_doors(&["openmpi"]);
    let tool = world.path().join("tool");
    // As for `World::executable`, another process writes it.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_polycast")).arg(&tool).status().unwrap().success());
    let replaces = "cp tool new && mv new tool && touch replaced";
    let launcher = format!(
        "#!/bin/sh\nPATH=/bin:/usr/bin\ncase $1 in\n--version) {replaces} && echo '{OPEN_MPI_4}' ;;\n*) exit 7 ;;\nesac\n"
    );
    world.executable("bin/mpiexec", &launcher);
    world.executable("measures", "#!/bin/sh\n");
    let arguments = ["measure", "--mpi", "bin/mpiexec", "-n", "2", "--program", "measures"];
    let mut command = Command::new(&tool);
    command.args(arguments).current_dir(world.path()).env("POLYCAST_LIBDIR", world.library());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ended early") && world.path().join("replaced").exists(), "{said}");
}
