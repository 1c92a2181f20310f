//! `polycast bench` and `polycast measure` with a measuring program that only says what a job would.

use std::fs::OpenOptions;
use std::process::{Command as System, Stdio};

use crate::fake::{OPEN_MPI_4, World, error};

/// Runs `does` where a job would be measured.
fn world(does: &str) -> World {
    let world = World::with_doors(&["openmpi"]);
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  echo '{OPEN_MPI_4}'\n  exit\nfi\nPATH=/bin:/usr/bin\n{does}\n"
    );
    world.executable("bin/mpiexec", &script);
    world.executable("measures", "");
    world
}

/// What the measuring program says of two ranks on one host, and of a barrier of stock's.
const JOB: &str = "cat <<.
polycast-bench 3
mpi Some MPI 1.0
rank 0 host a kernel 0 cores 2
rank 1 host a kernel 0 cores 2
clock shared 1 0 0
oversubscribed 0
point 0
repetition 1 0 0 ok 0 0 10 0 20
block 1 5
.
echo point-end 0 0 0 0
echo end
";

const BENCH: [&str; 8] =
    ["bench", "-n", "2", "--program", "./measures", "--collective", "barrier", "--variants=stock"];

/// As `| head -1` is gone, wherever the rows come from.
#[test]
fn a_reader_that_is_gone_is_no_error_of_a_measurement() {
    let world = world(JOB);
    for more in [&[][..], &["--json", "-"], &["--format", "csv"]] {
        let mut tool = System::new(assert_cmd::cargo::cargo_bin!("polycast"))
            .args([&BENCH[..], more].concat())
            .current_dir(world.path())
            .env("PATH", world.path().join("bin"))
            .env("POLYCAST_LIBDIR", world.library())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nobody reads from the first byte on.
        drop(tool.stdout.take());
        let ended = tool.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && said.is_empty(), "{more:?}: {said}");
    }
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let tool = System::new(assert_cmd::cargo::cargo_bin!("polycast"))
        .args(BENCH)
        .current_dir(world.path())
        .env("PATH", world.path().join("bin"))
        .env("POLYCAST_LIBDIR", world.library())
        .stdout(full)
        .output()
        .unwrap();
    assert!(!tool.status.success(), "what is lost is a failure");
}

/// Users have not heard of the files beside theirs.
#[test]
fn the_file_of_samples_is_named_with_its_option() {
    let world = world(JOB);
    std::fs::create_dir(world.path().join("x.json.samples")).unwrap();
    let said = error(&mut world.polycast(&[&BENCH[..], &["--json", "x.json"]].concat()), 1);
    assert!(said.contains("cannot write x.json.samples") && said.contains("--raw names another"), "{said}");
    let said = error(&mut world.polycast(&[&BENCH[..], &["--json", "/dev/full"]].concat()), 1);
    assert!(said.contains("cannot write /dev/full: No space left"), "{said}");
}

#[test]
fn who_interrupts_a_measurement_hears_what_is_kept() {
    let world = world("kill -INT $PPID\nexec sleep 600");
    let words = ["measure", "-n", "2", "--program", "./measures", "-o", "p.json"];
    let said = error(&mut world.polycast(&words), 130);
    assert!(said.contains("interrupted before anything was measured: nothing is written"), "{said}");
    assert!(!world.path().join("p.json").exists());
}
