//! What every verb has in common: help that fits, errors in the same words, readers that go.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command as System, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::cannot_run;
use crate::fake::{OPEN_MPI_4, World, error, output};

/// All verbs, found in the help of the tool and in that of verbs that have verbs themselves.
fn verbs(world: &World, above: &[String]) -> Vec<Vec<String>> {
    let mut arguments: Vec<&str> = above.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = output(&mut world.polycast(&arguments));
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = commands
        .filter(is_name)
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help");
    let below = names.flat_map(|name| verbs(world, &[above, &[name.to_owned()]].concat()));
    std::iter::once(above.to_vec()).chain(below).collect()
}

#[test]
fn help_fits_the_narrowest_terminal() {
    let world = World::with_doors(&[]);
    let verbs = verbs(&world, &[]);
    assert!(
        verbs.len() > 20 && verbs.contains(&vec!["topology".to_owned(), "check".to_owned()]),
        "{verbs:?}"
    );
    for verb in verbs {
        let mut arguments: Vec<&str> = verb.iter().map(String::as_str).collect();
        arguments.push("--help");
        for line in output(&mut world.polycast(&arguments)).lines() {
            assert!(line.chars().count() <= 80, "{verb:?}: {line}");
        }
        // A wide terminal: nothing is broken that was not meant to be.
        for line in output(world.polycast(&arguments).env("COLUMNS", "150")).lines() {
            assert!(line.chars().count() <= 150, "{verb:?}: {line}");
        }
    }
}

#[test]
fn numbers_are_refused_with_what_was_expected() {
    let world = World::with_doors(&[]);
    for (arguments, expected) in [
        (
            &["explain", "--ranks", "0"][..],
            "'0' for '--ranks <N>': expected a whole number from 1 to 1048576",
        ),
        (&["explain", "--ranks", "-5"], "'-5' for '--ranks <N>': expected a whole number from 1 to 1048576"),
        (
            &["predict", "-n", "0", "--params", "p"],
            "'0' for '-n, --ranks <N>': expected a whole number from 1 to 1048576",
        ),
        (&["predict", "-n", "-1", "--params", "p"], "'-1' for '-n, --ranks <N>': expected"),
        (
            &["simulate", "--protocol", "--seeds", "0"],
            "'0' for '--seeds <N>': expected a whole number of at least 1",
        ),
        (&["generate", "--topology", "t", "--name", "int"], "expected a name that neither C nor MPI nor"),
        (&["tree", "study", "--per-switch", "0"], "expected a whole number from 1 to 65536"),
        (&["bench", "--time", "5"], "its unit is missing (ns, us, ms, s, min, h)"),
        (&["explain", "--ranks", "4", "--bytes", "1e9"], "\"e9\" is no unit (B, KiB, MiB, GiB, TiB"),
        (
            &["explain", "--ranks", "4", "--bytes", "-1"],
            "'-1' for '--bytes <SIZE>': expected a size such as 512",
        ),
    ] {
        let said = error(&mut world.polycast(arguments), 2);
        assert!(said.starts_with("polycast: ") && said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("tip:") && !said.contains("error:"), "{arguments:?}: {said}");
    }
}

#[test]
fn the_operation_may_be_named_as_in_programs() {
    let world = World::with_doors(&[]);
    for name in ["bcast", "MPI_Bcast", "mpi_bcast"] {
        let text = output(&mut world.polycast(&[
            "explain",
            "--ranks",
            "4",
            "--collective",
            name,
            "--bytes",
            "1TiB",
        ]));
        assert!(text.starts_with("bcast of 1TiB, "), "{text}");
    }
}

/// As file names may be; they are shown as far as they can be.
#[test]
fn arguments_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::with_doors(&[]);
    let odd = OsStr::from_bytes(b"x\xff");
    for arguments in [&[odd][..], &[OsStr::new("explain"), OsStr::new("--ranks"), odd]] {
        let said = error(world.polycast(&[]).args(arguments), 2);
        assert!(said.starts_with("polycast: "), "{arguments:?}: {said}");
    }
    fs::write(world.path().join("cluster.conf"), "SwitchName=s0 Nodes=n[0-3]\n").unwrap();
    output(world.polycast(&["generate", "--topology", "cluster.conf", "-o"]).arg(odd));
    assert!(fs::read_to_string(world.path().join(odd)).unwrap().contains("polycast generate"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::with_doors(&[]);
    let mut tool = System::new(assert_cmd::cargo::cargo_bin!("polycast"))
        .args(["tree", "study", "--machines", "16,32", "--topologies", "2000"])
        .env("POLYCAST_LIBDIR", world.library())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed while the tool still computes.
    drop(tool.stdout.take());
    let mut said = String::new();
    BufReader::new(tool.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((tool.wait().unwrap().success(), said.as_str()), (true, ""));
}

#[test]
fn what_standard_output_does_not_take_is_a_failure() {
    for arguments in [&["--help"][..], &["--version"], &["tree", "--help"], &["table", "shipped"]] {
        let onto = |out: Stdio| {
            let mut tool = System::new(assert_cmd::cargo::cargo_bin!("polycast"));
            let ended = tool.args(arguments).stdout(out).output().unwrap();
            (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
        };
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, said) = onto(full.into());
        assert!(status == Some(1) && said.starts_with("polycast: No space left on device"), "{said}");
        let (reader, nobody_reads) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(onto(nobody_reads.into()), (Some(0), String::new()), "{arguments:?}");
    }
}

/// Every verb that reads a file says what it expected, what it found, and who writes what it wants.
#[test]
fn a_file_of_another_kind_is_named() {
    let world = World::with_doors(&[]);
    let write = |name: &str, content: &[u8]| fs::write(world.path().join(name), content).unwrap();
    write("binary", b"\x7fELF\x02\xff\xfe");
    write("empty", b"");
    write("table.toml", b"version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"stock\"\n");
    write("cluster.conf", b"SwitchName=s0 Nodes=n[0-3]\n");
    let table = "expected a table of rules in TOML";
    let topology =
        "expected Slurm's topology.conf or topology.yaml, or the JSON that `polycast topology convert`";
    let parameters = "expected the JSON of measured parameters that `polycast measure -o FILE` writes";
    for (arguments, expected) in [
        (&["explain", "--ranks", "4", "--table"][..], table),
        (&["explain", "--ranks", "4", "--topology"], topology),
        (&["explain", "--ranks", "4", "--params"], parameters),
        (&["predict", "--ranks", "4", "--params"], parameters),
        (&["topology", "check"], topology),
        (&["topology", "show"], topology),
        (&["topology", "convert"], topology),
        (&["topology", "from-addresses"], "expected lines with a host and its SLURM_TOPOLOGY_ADDR"),
        (&["tree", "--topology"], topology),
        (&["generate", "--topology", "cluster.conf", "--params"], parameters),
    ] {
        let other = if expected == table { "cluster.conf" } else { "table.toml" };
        for (file, found) in
            [("binary", "found binary data"), ("empty", "found an empty file"), (other, "found ")]
        {
            let said = error(&mut world.polycast(&[arguments, &[file]].concat()), 1);
            assert!(said.contains(expected) && said.contains(found), "{arguments:?} {file}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn methods_that_cannot_measure_something_say_so() {
    let world = World::with_doors(&[]);
    for (arguments, expected) in [
        (["--method", "responder", "--collective", "allreduce"], "expected bcast or scatter"),
        (["--method", "loop", "--arrival", "random"], "--arrival is for --method clock"),
        (["--method", "loop", "--variants", "stock,blast"], "blast is for --method clock"),
        (["--method", "loop", "--cold", "--no-topology"], "--cold is for --method clock"),
        (["--method=responder", "--collective", "scatter", "--cold"], "--cold is for --method clock"),
        (
            ["--collective", "allreduce,barrier", "--root", "1"],
            "--root 1: expected a --collective that has a root",
        ),
        (["--variants", "stock,chain", "--interface", "e0"], "--interface is for --variants blast"),
        (["--suite", "never-slower", "--json", "-"], "expected a file, which the next run goes on with"),
        (["--mpi", "openmpi,mpich", "--program", "p"], "--program: expected one MPI in --mpi, found 2"),
        (["--mpi", "openmpi,mpich", "--format", "osu"], "--format osu and imb: expected one MPI in --mpi"),
        (["--mpi", "openmpi,mpich", "--ranks", "2,4"], "several --ranks: expected one MPI in --mpi, found 2"),
    ] {
        let said = error(&mut world.polycast(&[&["bench"][..], &arguments].concat()), 2);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn several_mpis_are_there_and_different() {
    let world = World::with_doors(&["openmpi"]).launcher("mpiexec", OPEN_MPI_4);
    for (arguments, status, expected) in [
        (["bench", "openmpi,mpich"], 1, "no mpiexec of mpich on PATH"),
        (["bench", "openmpi,no/mpiexec"], 2, "--mpi no/mpiexec: expected openmpi, mpich or the path"),
        (["bench", "openmpi,openmpi"], 2, "expected each MPI once, found Open MPI 4.1.4 again"),
        (["measure", "openmpi,mpich"], 2, "--mpi: expected one: only `polycast bench` measures several"),
    ] {
        let [verb, list] = arguments;
        let file = if verb == "measure" { &["-o", "p.json"][..] } else { &[] };
        let said = error(&mut world.polycast(&[&[verb, "-n", "2", "--mpi", list], file].concat()), status);
        assert!(said.replace("\n", " ").contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_page_for_standard_output_is_in_no_file() {
    let world = World::with_doors(&[]);
    let suite = ["bench", "--suite", "never-slower", "--budget", "1ns", "--page"];
    let page = output(&mut world.polycast(&[&suite[..], &["-"]].concat()));
    assert!(page.starts_with("# polycast beside the MPI below\n"), "{page}");
    assert!(!world.path().join("-").exists());
    let said = error(&mut world.polycast(&[&suite[..], &["no/page.md"]].concat()), 1);
    assert!(said.contains("cannot write no/page.md: there is no folder no"), "{said}");
}

/// Minutes of measurement would be lost.
#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let world = World::with_doors(&[]);
    fs::create_dir(world.path().join("folder")).unwrap();
    // Into which nobody, root included, writes.
    let verbs: [&[&str]; 5] = [
        &["measure", "-o"],
        &["topology", "discover", "-o"],
        &["tune", "-o"],
        &["bench", "--svg"],
        &["tree", "study", "--svg"],
    ];
    for verb in verbs {
        for (file, expected) in [
            ("no/x.json", "there is no folder no"),
            ("folder", "found a folder"),
            ("/proc/self/x.json", "No such file"),
        ] {
            let mut command = world.polycast(&[verb, &[file]].concat());
            let said = error(command.env("POLYCAST_LIBDIR", world.library()), 1);
            assert!(said.contains(&format!("cannot write {file}: ")) && said.contains(expected), "{said}");
        }
    }
}

/// What was asked for cannot be: 2, in every verb. What failed: 1.
#[test]
fn wrong_values_end_every_verb_with_the_same_status() {
    let world = World::with_doors(&["openmpi"]).launcher("mpiexec", OPEN_MPI_4);
    fs::write(world.path().join("cluster.conf"), "SwitchName=s0 Nodes=n[0-3]\n").unwrap();
    fs::create_dir(world.library().join("bench")).unwrap();
    fs::write(world.library().join("bench/polycast-bench-openmpi"), "").unwrap();
    let params = common_params();
    let lines = "\
        explain --ranks 8 --hosts n[0-
        explain --ranks 2 --nodes 3
        explain --ranks 8 --nodes 5 --topology cluster.conf
        predict --params PARAMS --ranks 4 --algorithms foo
        predict --params PARAMS --ranks 4 --root 4
        predict --params PARAMS --hosts n[0-
        predict --params PARAMS
        bench -n 2 --variants stok
        bench -n 2 --root 2
        bench --hosts n[0-
        bench --lab hosts=100000
        bench --hosts nobody.invalid
        measure --hosts nobody.invalid -o p.json
        measure --hosts n[0- -o p.json
        tune -n 2 --sizes 1KiB --hosts n[0- -o t.toml
        run -n 2 --algorithm foo -- /bin/true
        run --hosts n[0- -- /bin/true
        lab run --lab nosuchlab -n 2 -- /bin/true
        lab down nosuchlab
        tree --topology cluster.conf --root 9
        tree --topology cluster.conf --ranks 9
        tree --topology cluster.conf --shape scatter-ring
        tree --topology cluster.conf --hosts n[0-
        generate --topology cluster.conf --root 9
        generate --topology cluster.conf --hosts n[0-
        generate --topology cluster.conf --hosts elsewhere,n0
        topology discover --hosts n[0-
        simulate --collective foo
        simulate --collective bcast --nodes 0
        simulate --collective bcast --algorithms foo
        simulate --collective bcast --bytes 1TiB
        simulate --mesh 4x4 --group 100
        simulate --figure 6.7 --seed 4
        cp --lab hosts=1 a b
        cp --hosts n0 --launcher ' a b
        cp --hosts localhost a out/%x
        doctor --lab nosuchlab
        doctor --hosts n0 --launch-agent '";
    for line in lines.lines() {
        let line = line.trim().replace("PARAMS", &params);
        let words: Vec<&str> = line.split(' ').collect();
        let ended = world.polycast(&words).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && said.starts_with("polycast: "), "{line}: {said}");
    }
    for line in [
        "explain --ranks 2 --table none.toml",
        "topology show none.conf",
        "run --hostfile none -- x",
        "cp --hostfile none a b",
        "cp --hosts localhost --topology none.conf a b",
        "simulate --root-sync --arrival none",
    ] {
        let said = error(&mut world.polycast(&line.split(' ').collect::<Vec<_>>()), 1);
        assert!(said.contains("No such file"), "{line}: {said}");
    }
}

fn common_params() -> String {
    crate::common::checkout().join("examples/params/lab-20mbit.json").display().to_string()
}

#[test]
fn of_options_that_do_not_go_together_those_are_named_that_were_given() {
    let world = World::with_doors(&[]);
    for (line, expected) in [
        (
            "simulate --collective bcast --trace f",
            "--collective <NAME>' cannot be used with '--trace <FILE>'",
        ),
        ("simulate --scaling --trace f", "'--scaling' cannot be used with '--trace <FILE>'"),
    ] {
        let said = error(&mut world.polycast(&line.split(' ').collect::<Vec<_>>()), 2);
        let first = said.lines().next().unwrap();
        assert!(first.contains(expected), "{said}");
        assert!(!said.contains("--tree") && !said.contains("--group"), "{said}");
    }
}

#[test]
fn letters_that_changed_places_are_put_right() {
    let world = World::with_doors(&[]);
    for (line, meant) in [
        ("rnu", "'run'"),
        ("nifo", "'info'"),
        ("topology shwo", "'show'"),
        ("info --josn", "'--json'"),
        ("completions zhs", "'zsh'"),
    ] {
        let said = error(&mut world.polycast(&line.split(' ').collect::<Vec<_>>()), 2);
        assert!(said.contains("similar") && said.contains(meant), "{line}: {said}");
    }
    let far = error(&mut world.polycast(&["xyzzy"]), 2);
    assert!(!far.contains("similar"), "{far}");
}

/// Whatever the terminal has; COLUMNS says it where there is none.
#[test]
fn text_is_as_wide_as_the_terminal() {
    let world = World::with_doors(&[]);
    let widest = |columns: &str| {
        let arguments = ["explain", "--ranks", "64", "--nodes", "1", "--bytes", "64KiB"];
        let text = output(world.polycast(&arguments).env("COLUMNS", columns));
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest("40") <= 40 && (41..=80).contains(&widest("")));
    assert!((81..=120).contains(&widest("120")), "{}", widest("120"));
    let help = output(world.polycast(&["cache", "--help"]).env("COLUMNS", "40"));
    let prose = help.lines().take_while(|line| *line != "Examples:");
    assert!(prose.clone().count() > 3 && prose.clone().all(|line| line.chars().count() <= 40), "{help}");
}

#[test]
fn tcsh_completes_too() {
    let world = World::with_doors(&[]);
    let script = output(&mut world.polycast(&["completions", "tcsh"]));
    assert!(
        script.contains("complete polycast ") && script.contains("`polycast complete-words`"),
        "{script}"
    );
    let words = output(world.polycast(&["complete-words"]).env("COMMAND_LINE", "polycast cache "));
    assert_eq!(words, "show\nclear\n");
    let Ok(tcsh) = System::new("tcsh").arg("--version").output() else { return };
    assert!(tcsh.status.success());
    fs::write(world.path().join("polycast.tcsh"), script).unwrap();
    let mut asked = System::new("tcsh");
    asked.args(["-f", "-c", "source polycast.tcsh; complete polycast"]).current_dir(world.path());
    let listed = asked.output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("n/topology/"), "{listed:?}");
}

/// For so long queries of a querier are heard; that is the advice where none was.
#[test]
fn a_doctor_of_one_host_watches_as_long_as_it_is_told() {
    let world = World::with_doors(&[]);
    let began = Instant::now();
    let examined = world.polycast(&["doctor", "--watch", "2", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&examined.stdout).unwrap();
    if report["hosts"][0]["socket"].is_null() {
        return cannot_run("there is no network for multicast");
    }
    assert!(began.elapsed() >= Duration::from_secs(2), "{report:#}");
}
