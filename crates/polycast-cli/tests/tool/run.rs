//! `polycast run`, with launchers that print what they were asked.

use std::fs;

use crate::fake::{MPICH_5, OPEN_MPI_4, World, error, output};

/// Both families with their doors.
fn world() -> World {
    World::with_doors(&["openmpi", "mpich"])
        .launcher("mpiexec.openmpi", OPEN_MPI_4)
        .launcher("mpiexec.mpich", MPICH_5)
}

/// What the launcher was asked, as one line. Its exit status is the tool's.
fn asked(world: &World, arguments: &[&str]) -> String {
    let assert = world.polycast(arguments).assert().code(7);
    let lines = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    lines.lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_launcher_is_the_one_that_the_program_is_linked_for() {
    for (soname, between, launcher_option) in [
        ("libmpi.so.40", None, "-x LD_PRELOAD="),
        ("libmpi.so.12", None, "-genv LD_PRELOAD "),
        ("libmpich.so.12", Some("libsolver.so"), "-genv LD_PRELOAD "),
        ("libmpi.so.40", Some("libsolver.so"), "-x LD_PRELOAD="),
    ] {
        let world = world();
        world.program(soname, between);
        let line = asked(&world, &["run", "-n", "2", "--", "./program", "-n", "5"]);
        let expected = format!("{launcher_option}{}", world.preload().display());
        assert!(line.contains(&expected), "{soname}: {line}");
        assert!(line.ends_with("./program -n 5"), "{line}");
    }
}

#[test]
fn a_launcher_of_another_family_is_refused() {
    let world = world();
    world.program("libmpi.so.40", None);
    let said = error(&mut world.polycast(&["run", "-n", "2", "--mpi", "mpich", "--", "./program"]), 2);
    assert!(said.contains("linked with openmpi (libmpi.so.40)") && said.contains("--mpi openmpi"), "{said}");
}

#[test]
fn scripts_get_the_mpiexec_on_path() {
    let world = World::with_doors(&["mpich"]).launcher("mpiexec", MPICH_5);
    world.executable("script", "#!/bin/sh\n");
    let line = asked(&world, &["run", "-n", "2", "--", "./script"]);
    assert!(line.contains("-genv LD_PRELOAD"), "{line}");
}

#[test]
fn everything_after_the_program_is_its_own() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    for start in [&["--", "./script"][..], &["./script"]] {
        let arguments =
            [&["run", "-n", "2", "--mpi", "mpich"], start, &["--off", "-n", "9", "--", "x"]].concat();
        let line = asked(&world, &arguments);
        assert!(line.ends_with("./script --off -n 9 -- x") && line.contains("LD_PRELOAD"), "{line}");
    }
}

#[test]
fn options_become_variables_of_the_ranks() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    let table = world.path().join("cluster.toml");
    fs::write(&table, "version = 1\n").unwrap();
    let line = asked(
        &world,
        &[
            "run",
            "--hosts=127.0.0.[1-2]:2",
            "--mpi=openmpi",
            "--table=cluster.toml",
            "--algorithm=chain:segment=8192",
            "--report",
            "--mpiexec-args=--tag-output --output-filename 'a b'",
            "--",
            "./script",
        ],
    );
    for expected in [
        "--host 127.0.0.1:2,127.0.0.2:2",
        "-n 4",
        "-x POLYCAST_BCAST=chain:segment=8KiB",
        "-x POLYCAST_REPORT=1",
        &format!("-x POLYCAST_TABLE={}", table.canonicalize().unwrap().display()),
        "--tag-output --output-filename a b ./script",
    ] {
        assert!(line.contains(expected), "{expected}: {line}");
    }
}

#[test]
fn what_the_user_set_goes_along_and_options_win() {
    let world = world();
    let mut command = world.polycast(&["run", "--print-env", "--algorithm", "binomial"]);
    command.env("POLYCAST_BCAST", "flat").env("POLYCAST_REPORT", "1").env("LD_PRELOAD", "");
    let preload = world.preload();
    let expected = format!("POLYCAST_REPORT=1 POLYCAST_BCAST=binomial LD_PRELOAD={}\n", preload.display());
    assert_eq!(output(&mut command), expected);
}

#[test]
fn a_shell_hands_the_variables_on_as_they_are() {
    let world = world();
    let in_a_shell = |value: &str, line: &str| {
        let mut shell = assert_cmd::Command::new("/bin/sh");
        let tool = assert_cmd::cargo::cargo_bin!("polycast").parent().unwrap();
        shell.args(["-c", line]).env_clear().current_dir(world.path());
        shell.env("PATH", format!("{}:/usr/bin:/bin", tool.display()));
        shell.env("POLYCAST_LIBDIR", world.library()).env("POLYCAST_NET", value);
        shell
    };
    let shown = "printenv POLYCAST_BCAST POLYCAST_NET LD_PRELOAD";
    let said = |value: &str| format!("chain:segment=8KiB\n{value}\n{}\n", world.preload().display());
    let words = format!(
        "POLYCAST_BCAST='chain:segment=8KiB' && export POLYCAST_BCAST && env $(polycast run --print-env) {shown}"
    );
    assert_eq!(output(&mut in_a_shell("^docker", &words)), said("^docker"));
    let eval = format!(
        "POLYCAST_BCAST='chain:segment=8KiB' && export POLYCAST_BCAST && eval \"env $(polycast run --print-env=sh) {shown}\""
    );
    assert_eq!(output(&mut in_a_shell("it's * a", &eval)), said("it's * a"));
    let refused = error(&mut in_a_shell("eth*", "polycast run --print-env"), 1);
    assert!(refused.contains("POLYCAST_NET=eth* has '*'") && refused.contains("--print-env=sh"), "{refused}");
}

#[test]
fn a_directory_that_the_loader_would_split_is_refused() {
    for name in ["with space", "with:colon"] {
        let world = world();
        world.executable("script", "#!/bin/sh\n");
        let split = world.path().join(name);
        fs::rename(world.library(), &split).unwrap();
        for arguments in [&["run", "--print-env"][..], &["run", "-n", "2", "--", "./script"]] {
            let said = error(world.polycast(arguments).env("POLYCAST_LIBDIR", &split), 1);
            assert!(said.contains(name) && said.contains("splits LD_PRELOAD"), "{said}");
        }
    }
}

#[test]
fn a_file_of_hosts_is_read_in_both_ways_of_writing() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    fs::write(world.path().join("nodes"), "127.0.0.1 slots=2   # two\n127.0.0.2:1\n").unwrap();
    for (mpi, expected) in
        [("openmpi", "--host 127.0.0.1:2,127.0.0.2:1"), ("mpich", "-hosts 127.0.0.1:2,127.0.0.2:1")]
    {
        let line = asked(&world, &["run", "--mpi", mpi, "--hostfile", "nodes", "--", "./script"]);
        assert!(line.contains(expected) && line.contains("-n 3"), "{line}");
    }
}

#[test]
fn in_an_allocation_mpiexec_says_how_many_ranks_there_are() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    let nodes = world.path().join("nodes");
    fs::write(&nodes, "n1\nn1\nn0\n").unwrap();
    let line = |mpi: &str, name: &str, value: &str| {
        let mut command = world.polycast(&["run", "--off", "--mpi", mpi, "--", "./script"]);
        let assert = command.env(name, value).assert().code(7);
        let words = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
        words.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("mpich", "SLURM_JOB_ID", "7"), "-genv POLYCAST off ./script");
    assert_eq!(line("openmpi", "SLURM_JOB_ID", "7"), "-x POLYCAST=off ./script");
    let nodes = nodes.to_str().unwrap();
    assert_eq!(line("mpich", "PBS_NODEFILE", nodes), "-genv POLYCAST off ./script");
    // Open MPI is often built without PBS's library, and would start as many ranks here as there are cores.
    let of_open_mpi = line("openmpi", "PBS_NODEFILE", nodes);
    // The two ranks of n1 outnumber a single processor.
    let is_single = std::thread::available_parallelism().unwrap().get() == 1;
    let yields = if is_single { "--mca mpi_yield_when_idle 1 " } else { "" };
    assert!(of_open_mpi.starts_with(&format!("{yields}--host n1:2,n0:1 ")), "{of_open_mpi}");
}

#[test]
fn hosts_that_an_agent_of_the_user_knows_are_left_to_it() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    let option = "--mpiexec-args=--mca plm_rsh_agent /opt/kubexec.sh";
    let line = asked(&world, &["run", "--mpi=openmpi", "--hosts=pod-0.invalid", option, "--", "./script"]);
    assert!(line.contains("--host pod-0.invalid:1"), "{line}");
}

#[test]
fn off_starts_the_program_without_polycast() {
    let world = World::with_doors(&[]).launcher("mpiexec.openmpi", OPEN_MPI_4);
    world.program("libmpi.so.40", None);
    let line = asked(&world, &["run", "-n", "2", "--off", "--", "./program"]);
    assert!(line.contains("-x POLYCAST=off") && !line.contains("LD_PRELOAD"), "{line}");
}

/// A site may preload it for all jobs, which not all hosts need have.
#[test]
fn off_takes_it_out_of_what_is_preloaded() {
    let world = World::with_doors(&[]).launcher("mpiexec.openmpi", OPEN_MPI_4);
    world.program("libmpi.so.40", None);
    let mut command = world.polycast(&["run", "-n", "2", "--off", "--", "./program"]);
    let preloaded = format!("/nowhere/site.so:{}", world.preload().display());
    let assert = command.env("LD_PRELOAD", preloaded).assert().code(7);
    let line = String::from_utf8(assert.get_output().stdout.clone()).unwrap().replace('\n', " ");
    assert!(line.contains("-x LD_PRELOAD=/nowhere/site.so "), "{line}");
}

#[test]
fn each_of_several_programs_gets_the_variables() {
    let world = world();
    world.program("libmpi.so.40", None);
    let line = asked(&world, &["run", "-n", "1", "--", "./program", "0", ":", "-n", "3", "./program", "1"]);
    let preload = format!("-x LD_PRELOAD={}", world.preload().display());
    let (first, second) = line.split_once(" : ").unwrap();
    assert!(first.contains("-n 1 ") && first.contains(&preload) && first.ends_with("./program 0"), "{line}");
    assert!(
        second.starts_with("-n 3 ") && second.contains(&preload) && second.ends_with("./program 1"),
        "{line}"
    );
    let refused = |words: &[&str], status| error(&mut world.polycast(&[&["run"], words].concat()), status);
    let said = refused(&["-n", "1", "--", "./program", ":", "./program"], 2);
    assert!(said.contains("need a number of ranks each") && said.contains("found \"./program\""), "{said}");
    let said = refused(&["--hosts", "localhost:4", "--", "./program", ":", "-n", "1", "./program"], 2);
    assert!(said.contains("polycast run -n 1 ./a : -n 3 ./b"), "{said}");
}

/// Without an MPI nobody reports; the status is the launcher's.
#[test]
fn where_no_rank_reports_one_line_says_why() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    let words = ["run", "-n", "2", "--mpi", "openmpi", "--report", "--", "./script"];
    let said = error(&mut world.polycast(&words), 7);
    assert!(said.starts_with("polycast: report: nothing is reported: no rank of ./script came by"), "{said}");
    assert!(said.contains("(exit status: 7)"), "{said}");
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    fs::write(world.path().join("plain"), "").unwrap();
    fs::write(world.path().join("bad.toml"), "version = 1\n[[rule]]\nuse = \"stock\"\n").unwrap();
    for (arguments, status, expected) in [
        (&["--algorithm", "chian", "--", "./script"][..], 2, "--algorithm: unknown algorithm \"chian\""),
        (&["--table", "bad.toml", "--", "./script"], 1, "table bad.toml:2:1: missing field `collective`"),
        (&["--table", "none.toml", "--", "./script"], 1, "table none.toml: No such file"),
        (&["--mpiexec-args", "'a", "--", "./script"], 2, "--mpiexec-args"),
        (&["--mpi", "/nowhere/mpiexec", "--", "./script"], 2, "expected openmpi, mpich or the path"),
        (&["--hosts", "a:2", "--", "./script"], 2, "4 ranks are to run, but the hosts take 2"),
        (
            &["--hosts", "localhost,n[3-4].invalid,n3.invalid", "--", "./script"],
            2,
            "found none for n3.invalid,n4.invalid;",
        ),
        (&["--hostfile", "none", "--", "./script"], 1, "cannot read hosts from none"),
        (&["--", "script"], 1, "did you mean ./script?"),
        (&["--", "plain"], 1, "not executable"),
        (&["--", "absent"], 1, "program absent not found"),
    ] {
        let said = error(&mut world.polycast(&[&["run", "-n", "4"], arguments].concat()), status);
        assert!(said.starts_with("polycast: ") && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let without_launcher = World::with_doors(&["openmpi"]);
    without_launcher.program("libmpi.so.40", None);
    let said = error(&mut without_launcher.polycast(&["run", "-n", "2", "--", "./program"]), 1);
    assert!(
        said.contains("no mpiexec of openmpi on PATH") && said.contains("apt-get install openmpi-bin"),
        "{said}"
    );

    let without_door = World::with_doors(&["mpich"]).launcher("mpiexec", OPEN_MPI_4);
    without_door.program("libmpi.so.40", None);
    let said = error(&mut without_door.polycast(&["run", "-n", "2", "--", "./program"]), 1);
    assert!(said.contains("make doors MPICC=mpicc.openmpi"), "{said}");

    let mut without_library = without_door.polycast(&["run", "-n", "2", "--", "./program"]);
    let said = error(without_library.env("POLYCAST_LIBDIR", "/nowhere"), 1);
    assert!(said.contains("no libpolycast-mpi.so in /nowhere") && said.contains("make build"), "{said}");
}

#[test]
fn variables_that_nobody_reads_are_named_before_the_start() {
    let world = world();
    world.executable("script", "#!/bin/sh\n");
    let mut command = world.polycast(&["run", "-n", "2", "--mpi", "openmpi", "--", "./script"]);
    command.env("POLYCAST_BCST", "chain").env("POLYCAST", "maybe").env("POLYCAST_NET", "=");
    let said = error(&mut command, 7);
    assert!(
        said.starts_with("polycast: warning: POLYCAST=maybe: expected on or off; taken for on; "),
        "{said}"
    );
    assert!(
        said.contains("; POLYCAST_BCST is unknown: did you mean POLYCAST_BCAST?; POLYCAST_NET==: "),
        "{said}"
    );
}

#[test]
fn ranks_and_a_program_are_needed() {
    let said = error(&mut world().polycast(&["run", "--", "./program"]), 2);
    assert!(said.contains("give -n N, --hosts or --hostfile"), "{said}");
    let said = error(&mut world().polycast(&["run", "-n", "0", "--", "./program"]), 2);
    assert!(said.contains("expected a whole number from 1"), "{said}");
    let said = error(&mut world().polycast(&["run", "-n", "2"]), 2);
    assert!(said.contains("<PROGRAM>"), "{said}");
}
