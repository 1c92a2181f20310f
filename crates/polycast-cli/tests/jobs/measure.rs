//! `polycast measure` end to end, in small labs. What is checked is what holds on any machine however busy: which classes
//! there are, that the file is one, that nothing is faster than the links; never how long something takes at most.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::job::wait_for;
use crate::common::library_directory;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polycast_core::collective::Collective;
use polycast_core::model::{ClassParameters, LinkClass, Parameters};

fn measure(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
    command.arg("measure").args(arguments).env("POLYCAST_LIBDIR", library_directory());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Two hosts on one switch, one on another.
fn two_switches(folder: &Path) -> PathBuf {
    let file = folder.join("topology.conf");
    let lines =
        "SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c\nSwitchName=top Switches=s0,s1 LinkSpeed=20\n";
    fs::write(&file, lines).unwrap();
    file
}

/// Every curve has the sizes that were asked for, and enough samples.
fn assert_complete(class: LinkClass, parameters: &ClassParameters) {
    for curve in parameters.curves() {
        let points = curve.expect("all curves are measured").points();
        assert_eq!(points.iter().map(|point| point.bytes).collect::<Vec<_>>(), [1024, 65_536], "{class}");
        assert!(points.iter().all(|point| point.samples >= 4), "{class}: {points:?}");
    }
}

#[test]
fn every_link_class_of_a_lab_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("params.json");
    let lab = format!("topology={},rate=20mbit", two_switches(folder.path()).display());
    let output = measure(&["--lab", &lab, "--ranks-per-host", "2", "--mpi", "openmpi", "--time", "300ms"])
        .args(["--sizes", "64KiB,1KiB", "--most-sizes", "2", "--force", "-o", file.to_str().unwrap()])
        .output()
        .unwrap();
    succeeded(&output);
    let parameters = Parameters::parse_all(&fs::read_to_string(&file).unwrap(), "params.json").unwrap();
    let classes: Vec<_> = parameters.classes().map(|(class, _)| class).collect();
    assert_eq!(classes, LinkClass::ALL);
    parameters.classes().for_each(|(class, parameters)| assert_complete(class, parameters));
    // 64 KiB need 26 ms on the wire, which no link of the lab gives away.
    for class in [LinkClass::SameSwitch, LinkClass::AcrossSwitches] {
        let parameters = parameters.class(class);
        for curve in [&parameters.gap, parameters.end.as_ref().expect("it is measured")] {
            assert!(curve.at(65_536) > 20e6, "{class}: {:?}", curve.points());
        }
    }
    // Two ranks share a host; that broadcast leaves out the network.
    let sharing = parameters.sharing_of(Collective::Broadcast, 2);
    let sharing = sharing.unwrap_or_else(|| panic!("not measured: {}", text(&output.stderr)));
    let sizes: Vec<u64> = sharing.cost.points().iter().map(|point| point.bytes).collect();
    assert_eq!(sizes, [1024, 65_536]);
    let learned: Vec<Collective> = parameters.sharing().iter().map(|one| one.collective).collect();
    assert_eq!(learned, [Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter]);
    let measured = parameters.measured();
    assert!(measured.how.contains("bcast by two-level on 2 ranks of a host"), "{measured:?}");
    assert!(text(&output.stdout).contains("smcc(m)"), "a table is shown");
    assert!(measured.place.contains("20mbit") && measured.place.contains("3 hosts"), "{measured:?}");
    assert!(measured.how.contains("across-switches by ranks 0 and 4 (a and c)"), "{measured:?}");
    assert!(text(&output.stdout).contains("g(m)"), "a table is shown");
}

#[test]
fn hosts_of_one_rank_have_nothing_to_share() {
    let output = measure(&["--lab", "hosts=2,rate=20mbit", "--mpi", "openmpi", "--time", "200ms"])
        .args(["--sizes", "1KiB", "--force"])
        .output()
        .unwrap();
    succeeded(&output);
    let parameters = Parameters::parse_all(&text(&output.stdout), "standard output").unwrap();
    assert!(parameters.sharing().is_empty());
    let said = text(&output.stderr);
    assert!(
        said.contains("what ranks of a host share is not measured") && said.contains("--ranks-per-host 4"),
        "{said}"
    );
}

/// Debian's MPICH spins while it waits: two ranks, on this machine.
#[test]
fn mpich_on_this_machine_to_standard_output() {
    let output = measure(&["--mpi", "mpich", "-n", "2", "--time", "300ms"])
        .args(["--sizes", "1KiB,64KiB", "--most-sizes", "2", "--force"])
        .output()
        .unwrap();
    succeeded(&output);
    let parameters = Parameters::parse_all(&text(&output.stdout), "standard output").unwrap();
    assert_eq!(parameters.classes().map(|(class, _)| class).collect::<Vec<_>>(), [LinkClass::SameNode]);
    assert!(text(&output.stderr).contains("no --topology"), "{}", text(&output.stderr));
    assert!(parameters.measured().how.contains("taken to be on one switch"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (arguments, expected) in [
        (&["--mpi", "openmpi", "-n", "1"][..], "at least two ranks"),
        (&["--topology", "/nowhere/t.conf"], "/nowhere/t.conf"),
        (&["--sizes", "4KiB..1KiB"], "FROM <= TO"),
        (&["--mpi", "openmpi", "-n", "2", "--program", "/bin/true"], "ended early"),
    ] {
        let output = measure(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn an_interrupt_leaves_neither_lab_nor_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("params.json");
    let name = format!("measure-{}", std::process::id());
    let lab = format!("hosts=2,rate=20mbit,name={name}");
    let mut child =
        measure(&["--lab", &lab, "--mpi", "openmpi", "--time", "1m", "-o", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let labs = || {
        let list = Command::new(env!("CARGO_BIN_EXE_polycast")).args(["lab", "list"]).output().unwrap();
        text(&list.stdout)
    };
    if wait_for(&mut child, || labs().contains(&name)) {
        thread::sleep(Duration::from_secs(2));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(!file.exists());
    assert!(!labs().contains(&name));
}

/// Obeys orders as the measuring program does, with times of which every other one is a hundred times as long.
const SCATTERED: &str = r#"#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
echo polycast-measure 1
echo mpi Scattered 1.0
echo rank 0 host h0 kernel 0 cores 2
echo rank 1 host h0 kernel 0 cores 2
echo ready
while read -r kind from to bytes a b samples; do
    case $kind in
    stream) numbers=$((2 * samples)) ;;
    pingpong) numbers=$((3 * samples)) ;;
    *) echo end; exit ;;
    esac
    answer=answer
    for number in $(seq "$numbers"); do
        [ $((number / 3 % 2)) = 0 ] && answer="$answer 200000000" || answer="$answer 2000000"
    done
    echo "$answer"
done
"#;

#[test]
fn what_could_not_be_measured_is_not_written_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let (program, file) = (folder.path().join("scattered"), folder.path().join("params.json"));
    fs::write(&program, SCATTERED).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments =
        ["--mpi", "openmpi", "-n", "2", "--sizes", "1KiB,64KiB", "--most-sizes", "2", "--time", "1s"];
    let run = |more: &[&str]| {
        let files = ["--program", program.to_str().unwrap(), "-o", file.to_str().unwrap()];
        measure(&[&arguments[..], &files, more].concat()).output().unwrap()
    };
    let refused = run(&[]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    for expected in
        ["nothing written", "50 %", "same-node, t_end(m) of 1KiB (", "64KiB (", "--time 4s", "--force"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(text(&refused.stdout).contains("t_end(m)"), "the table shows what was measured");
    assert!(!file.exists());
    let forced = run(&["--force"]);
    succeeded(&forced);
    assert!(text(&forced.stderr).contains("intervals reach further"), "{}", text(&forced.stderr));
    Parameters::parse_all(&fs::read_to_string(&file).unwrap(), "params.json").unwrap();
}
