//! `polycast tune` where nothing can be measured, or where a launcher says what was.

use std::fs;

use crate::fake::{OPEN_MPI_4, World, error, output};

/// A launcher that starts nothing, and does this.
fn world(does: &str) -> World {
    let world = World::with_doors(&["openmpi"]);
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

/// What the measuring program says of two ranks on two hosts, and of a barrier of stock's.
const JOB: &str = "cat <<.
polycast-bench 3
mpi Some MPI 1.0
rank 0 host a kernel 0 cores 2
rank 1 host b kernel 1 cores 2
clock shared 1 0 0
oversubscribed 0
point 0
repetition 1 0 0 ok 0 0 10 0 20
block 1 5
.
";
/// And that this was all.
const END: &str = "echo point-end 0 0 0 0\necho end\n";

const BARRIER: [&str; 9] =
    ["tune", "-n", "2", "--program", "measures", "--collective", "barrier", "-o", "table.toml"];

/// In a batch job mpiexec knows the nodes, and nobody else does.
#[test]
fn rules_are_not_written_for_other_nodes_than_the_jobs() {
    let world = world(&format!("PATH=/bin:/usr/bin\n{JOB}{END}"));
    let said = error(&mut world.polycast(&BARRIER), 1);
    let expected = "--hosts: expected a job on as many nodes as the rules would be for, 1, found one on 2: name the hosts";
    assert!(said.contains(expected), "{said}");
    assert!(!world.path().join("table.toml").exists());
}

/// What is measured beforehand only leaves something out.
#[test]
fn where_messages_cannot_be_measured_all_ways_are_tried() {
    let world = world(&format!("PATH=/bin:/usr/bin\n{JOB}{END}"));
    let words =
        ["tune", "--hosts", "a,b", "--program", "measures", "--collective", "barrier", "-o", "table.toml"];
    let mut command = world.polycast(&words);
    let output = command.env("OMPI_MCA_plm_rsh_agent", "none").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("polycast: messages are not measured, so more ways are tried: "), "{said}");
    assert!(
        world.path().join("table.toml").exists() && !world.path().join("table.toml.params.json").exists()
    );
}

/// Whatever asks for them: here the same shape again and again.
#[test]
fn more_rules_than_a_table_may_have_are_not_written() {
    let world =
        world(&format!("PATH=/bin:/usr/bin\n{}{END}", JOB.replace("host b kernel 1", "host a kernel 0")));
    let shapes = ["1x2"; 1000].join(",");
    let words = ["tune", "--hosts", "a,b", "--program", "measures", "--collective", "barrier", "--shapes"];
    let mut command = world.polycast(&[&words[..], &[&shapes, "-o", "table.toml"]].concat());
    let said = error(command.env("OMPI_MCA_plm_rsh_agent", "none"), 1);
    let expected =
        ["the table:", "expected at most 1024 rules, found 1", "fewer --shapes", "table.toml.found"];
    assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
    assert!(!world.path().join("table.toml").exists());
}

/// The next run goes on with what was found, unless it was found with other settings.
#[test]
fn what_was_found_is_measured_once() {
    let job = format!("PATH=/bin:/usr/bin\necho >> launches\n{JOB}{END}");
    let world = world(&job.replace("host b kernel 1", "host a kernel 0"));
    let none: &[&str] = &[];
    for (more, launches) in [(none, 1), (none, 1), (&["--env", "A=1"], 2), (&["--time", "1s"], 3), (none, 3)]
    {
        output(&mut world.polycast(&[&BARRIER[..], more].concat()));
        let made = fs::read_to_string(world.path().join("launches")).unwrap();
        assert_eq!(made.lines().count(), launches, "{more:?}");
    }
    // Whatever stands on the command line, which the table quotes.
    output(&mut world.polycast(&[&BARRIER[..], &["--env", "A=a\nb"]].concat()));
    output(&mut world.polycast(&["table", "check", "table.toml"]));
}

/// A launch that was interrupted tells nothing: stock may have had a call, and others none. The next run measures it.
#[test]
fn what_was_interrupted_is_not_taken_for_found() {
    let does = format!("{JOB}sleep 1\nkill -INT $PPID\nexec sleep 600")
        .replace("host b kernel 1", "host a kernel 0");
    let world = world(&format!("PATH=/bin:/usr/bin\n{does}"));
    let said = error(&mut world.polycast(&BARRIER), 130);
    assert!(said.contains("interrupted before anything was measured"), "{said}");
    assert!(!world.path().join("table.toml.found").exists(), "{said}");
}

#[test]
fn what_cannot_be_tuned_is_said_before_anything_is_measured() {
    let world = world("exit 1");
    let said = |words: &[&str], status| {
        let mut command = world.polycast(&[&["tune", "--program", "measures"], words].concat());
        error(command.env("OMPI_MCA_plm_rsh_agent", "none"), status)
    };
    for native in ["--native", "--budget=1m"] {
        let nowhere = said(&[native, "-n", "2", "-o", "there/is/none"], 1);
        assert!(nowhere.contains("cannot write there/is/none: there is no folder there/is"), "{nowhere}");
        let alone = said(&[native, "-n", "2", "--collective", "allgatherv", "-o", "t"], 2);
        assert!(alone.contains("--collective: expected allgather"), "{alone}");
    }
    for unused in [&["--topology", "x"][..], &["--no-topology"], &["--params", "x"]] {
        let mut command = world.polycast(&[&TUNE[..], unused].concat());
        assert!(error(&mut command, 2).contains("cannot be used with"), "{unused:?}");
    }
    let many = said(&["--hosts", "a,b", "--shapes", "2,3", "-o", "t"], 2);
    assert!(many.contains("--shapes: expected at most 2 hosts, as are there, found 3"), "{many}");
}
