//! `polycast tune` where nothing can be measured.

use crate::fake::{OPEN_MPI_4, World, error};

/// A launcher that starts nothing, and does this.
fn world(does: &str) -> World {
    let world = World::with_doors(&[]);
    let script =
        format!("#!/bin/sh\nif [ \"$1\" = --version ]; then\n  echo '{OPEN_MPI_4}'\n  exit\nfi\n{does}\n");
    world.executable("bin/mpiexec", &script);
    world.executable("measures", "#!/bin/sh\n");
    world
}

const TUNE: [&str; 10] =
    ["tune", "--native", "-n", "2", "--program", "measures", "--collective", "bcast", "-o", "rules"];

#[test]
fn interrupted_before_anything_was_measured_it_writes_nothing() {
    let world = world("kill -INT $PPID\nexec /bin/sleep 600");
    let said = error(&mut world.polycast(&TUNE), 130);
    assert!(said.contains("interrupted before anything was measured: nothing is written"), "{said}");
    assert!(!world.path().join("rules").exists());
}

#[test]
fn without_time_it_writes_nothing() {
    let world = world("exit 1");
    let said = error(&mut world.polycast(&[&TUNE[..], &["--budget", "1ns"]].concat()), 1);
    assert!(said.contains("nothing was measured"), "{said}");
    assert!(!world.path().join("rules").exists());
}
