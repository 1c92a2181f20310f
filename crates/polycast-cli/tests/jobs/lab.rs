//! Labs end to end: made, entered, measured, removed; as the user that runs the tests.
//!
//! Every test has a directory of its own for state files, so that no lab but its own is seen or removed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::cluster::{self, Labs};
use crate::common::cannot_run;
use crate::common::job::{LIMIT, place, wait_until};
use crate::common::mpi::Mpi;
use crate::datagram;
use crate::small;

#[test]
fn hosts_have_names_and_reach_each_other() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    for (host, other) in [("h0", "h1"), ("h1", "h2"), ("h2", "h0")] {
        let said = labs.exec("box", host, &format!("hostname; ls /sys/class/net; ping -c1 -W60 {other}"));
        assert!(said.starts_with(&format!("{host}\ne0\nlo\n")) && said.contains("1 received"), "{said}");
    }
    let status = labs.command(&["exec", "box", "h0", "--", "sh", "-c", "exit 7"]).status().unwrap();
    assert_eq!(status.code(), Some(7));
    labs.fails(&["exec", "box", "h3", "--", "true"], "no host \"h3\"; its hosts are h0 … h2");
    labs.fails(&["exec", "bix", "h0", "--", "true"], "no lab named \"bix\"; there are box");
    labs.succeeds(&["down", "box"]);
    labs.are_gone();
}

/// Of what a launcher says Open MPI's warning about groups of its daemons is left out; the rest comes at once, whole lines or not.
#[test]
fn a_launcher_says_what_it_says_without_a_lab() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2"]) {
        return;
    }
    let noise = "[h0:1] plm:rsh: Warning: setpgid(2,2) failed in parent with errno=Permission denied(13)";
    let script = format!(
        "echo '{noise}' >&2; echo one >&2; echo '{noise}' >&2; printf half >&2; read go; printf ' two' >&2; exit 7"
    );
    let mut command = labs.command(&["exec", "--launcher", "box", "h0", "--", "sh", "-c", &script]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut first, mut rest) = ([0; 8], String::new());
    // It says no more before it has heard something.
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"one\nhalf");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.stderr.as_mut().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*rest), (Some(7), " two"));

    let program = Mpi::OpenMpi.built("bcast_roots");
    let words = ["run", "--lab", "box", "-n", "2", "--mpi", "openmpi", "--", program.to_str().unwrap()];
    let _place = place();
    let output = labs.command(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("setpgid"), "{said}");
    labs.succeeds(&["down", "box"]);
}

#[test]
fn a_link_takes_the_time_of_its_rate() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3", "--rate", "20mbit"]) {
        return;
    }
    let text =
        labs.succeeds(&["calibrate", "--lab", "box", "--sizes", "64KiB", "--load-time", "0.2", "--json"]);
    let calibration: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Whatever the load, nothing is faster than the rate that is set, and the rate that is set is the one that was asked for.
    let ratio = calibration["transfers"][0]["ratio_to_wire"].as_f64().unwrap();
    assert!(ratio > 0.9, "{text}");
    for host in ["h0", "h1", "h2"] {
        let set = labs.exec("box", host, "tc qdisc show dev e0");
        assert!(set.contains("rate 20Mbit"), "{set}");
    }
    assert_eq!(calibration["load"]["flows"], 3);
}

#[test]
fn two_labs_do_not_see_each_other() {
    let labs = Labs::new();
    if !labs.up(&["one", "--hosts", "2"]) {
        return;
    }
    assert!(labs.up(&["two", "--hosts", "3"]));
    labs.fails(&["up", "one"], "a lab named \"one\" exists already");
    let names = |labs: &Labs| -> Vec<String> {
        let list: serde_json::Value = serde_json::from_str(&labs.succeeds(&["list", "--json"])).unwrap();
        let list = list.as_array().unwrap().iter();
        list.map(|lab| format!("{} {}", lab["name"].as_str().unwrap(), lab["alive"])).collect()
    };
    assert_eq!(names(&labs), ["one true", "two true"]);
    // 10.77.0.3 is a host of the second lab only.
    assert!(labs.exec("two", "h0", "ping -c1 -W60 10.77.0.3").contains("1 received"));
    assert!(labs.exec("one", "h0", "ping -c1 -W1 10.77.0.3 || true").contains(" 0 received"));
    labs.succeeds(&["down", "one"]);
    assert_eq!(names(&labs), ["two true"]);
    assert!(labs.exec("two", "h2", "ping -c1 -W60 h0").contains("1 received"));
    labs.succeeds(&["down", "--all"]);
    labs.are_gone();
}

#[test]
fn nothing_stays_when_the_maker_of_a_lab_is_killed() {
    let labs = Labs::new();
    if !labs.up(&["probe", "--hosts", "1"]) {
        return;
    }
    labs.succeeds(&["down", "probe"]);
    let mut maker = labs.command(&["calibrate", "--hosts", "2", "--load-time", "60"]);
    let mut maker = maker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let keeper = labs.wait_for_keeper("lab0");
    maker.kill().unwrap();
    maker.wait().unwrap();
    // By itself: `down` would kill it.
    wait_until("the keeper is gone", || !cluster::is_alive(keeper));
    labs.succeeds(&["down", "--all"]);
    labs.are_gone();
}

#[test]
fn a_lab_whose_keeper_was_killed_can_be_removed_and_its_name_used_again() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2"]) {
        return;
    }
    let mut sleeper = labs.command(&["exec", "box", "h1", "--", "sh", "-c", "echo ready; sleep 600"]);
    let mut sleeper = sleeper.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut sleeper), "ready\n");
    let keeper = labs.wait_for_keeper("box");
    cluster::kill(keeper);
    // The sleeper was in the lab, so it ends with it.
    assert!(!sleeper.wait().unwrap().success());
    assert!(labs.succeeds(&["list"]).contains("dead"));
    assert!(labs.up(&["box", "--hosts", "1"]), "a dead lab holds its name");
    cluster::kill(labs.wait_for_keeper("box"));
    labs.succeeds(&["down", "--all"]);
    labs.are_gone();
}

#[test]
fn a_signal_to_the_tool_reaches_the_program() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "1"]) {
        return;
    }
    let script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = labs.command(&["exec", "box", "h0", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready\n");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    labs.succeeds(&["down", "box"]);
}

#[test]
fn a_topology_file_becomes_a_tree_of_switches() {
    let labs = Labs::new();
    let file = labs.directory().join("t.conf");
    let text = "SwitchName=leaf0 Nodes=a[0-1]\nSwitchName=leaf1 Nodes=b0 LinkSpeed=50\nSwitchName=top Switches=leaf[0-1]\n";
    fs::write(&file, text).unwrap();
    if !labs.up(&["tree", "--topology", file.to_str().unwrap(), "--rate", "30mbit"]) {
        return;
    }
    let said = labs.exec("tree", "b0", "ping -c1 -W60 a1; tc qdisc show dev e0");
    assert!(said.contains("1 received") && said.contains("rate 50Mbit"), "{said}");
    assert!(labs.exec("tree", "a0", "tc qdisc show dev e0").contains("rate 30Mbit"));
    fs::write(&file, "SwitchName=s Nodes=a\nSwitchName=s Nodes=b\n").unwrap();
    labs.fails(
        &["up", "--topology", file.to_str().unwrap()],
        "t.conf:2: switch s is described already, in line 1",
    );
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn loss_loses_packets() {
    let labs = Labs::new();
    if !labs.up(&["lossy", "--hosts", "2", "--loss", "10%"]) {
        return;
    }
    // Where the other host is, is asked first, and may get lost, too: three times in a row in one of 25 runs. A question and its answer
    // cross four links: of 200, 131 come back on the average, with a standard deviation of 7.
    let found = "for i in $(seq 20); do ping -q -c1 -W1 h1 >/dev/null && break; done";
    let said = labs.exec("lossy", "h0", &format!("{found}; ping -q -c200 -i0.01 -W1 h1 || true"));
    let received = said.split(", ").find_map(|part| part.strip_suffix(" received")?.parse::<u32>().ok());
    assert!(received.is_some_and(|received| (90..=170).contains(&received)), "{said}");
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn a_blocked_host_hears_no_multicast_and_is_not_heard() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "4", "--block-multicast", "h2"]) {
        return;
    }
    assert!(labs.succeeds(&["list"]).contains("h2"));
    for family in ["ipv4", "ipv6"] {
        let expected = [("h1", true), ("h2", false), ("h3", true)];
        datagram::are_heard(&labs, "box", family, "h0", &expected);
        datagram::are_heard(&labs, "box", family, "h2", &[("h0", false), ("h1", false)]);
    }
    let said = labs.exec("box", "h0", "ping -c1 -W60 h2; ping -c1 -W60 fe80::a4d:3%e0");
    assert_eq!(said.matches("1 received").count(), 2, "unicast still works: {said}");
    labs.fails(&["up", "--hosts", "2", "--block-multicast", "h1,h2"], "one of h0 … h1, found \"h2\"");
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn multicast_reaches_every_host_across_switches() {
    let labs = Labs::new();
    let file = labs.directory().join("t.conf");
    fs::write(&file, "SwitchName=l0 Nodes=a[0-1]\nSwitchName=l1 Nodes=b0\nSwitchName=top Switches=l[0-1]\n")
        .unwrap();
    if !labs.up(&["tree", "--topology", file.to_str().unwrap()]) {
        return;
    }
    for family in ["ipv4", "ipv6"] {
        datagram::are_heard(&labs, "tree", family, "a0", &[("a1", true), ("b0", true)]);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn hosts_have_the_buffers_of_the_machine() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "1"]) {
        return;
    }
    let limits = "cat /proc/sys/net/core/rmem_max /proc/sys/net/core/wmem_max";
    let outside = Command::new("sh").args(["-c", limits]).output().unwrap().stdout;
    assert_eq!(labs.exec("box", "h0", limits), String::from_utf8(outside).unwrap());
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn mpiexec_starts_ranks_on_the_hosts() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    for mpi in ["openmpi", "mpich"] {
        // mpiexec.openmpi starts any program; what counts here is where.
        let run = ["run", "--lab", "box", "--mpi", mpi, "--ranks-per-host", "2", "--env", "SIGN=yes"];
        let program = ["-n", "5", "--", "sh", "-c", "echo $(hostname) $SIGN"];
        let mut command = labs.command(&[&run[..], &program[..]].concat());
        let output = cluster::output_within(&mut command, LIMIT);
        let said = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<_> = said.lines().collect();
        lines.sort_unstable();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(lines, ["h0 yes", "h0 yes", "h1 yes", "h1 yes", "h2 yes"], "{mpi}: {errors}");
    }
    labs.fails(&["run", "--lab", "box", "-n", "4", "--", "true"], "choose fewer ranks or --ranks-per-host 2");
    let run =
        ["run", "--lab", "box", "--mpi", "openmpi", "-n", "1", "--polycast", "--env", "LD_PRELOAD=libm.so.6"];
    let said = labs.succeeds(&[&run[..], &["--", "sh", "-c", "echo $LD_PRELOAD"]].concat());
    assert!(said.starts_with("libm.so.6:/") && said.ends_with("/libpolycast-mpi.so\n"), "{said}");
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn missing_tools_are_named_with_their_package() {
    let labs = Labs::new();
    // A mount namespace in which /usr/sbin is empty stands for a system without them.
    let script = "mount -t tmpfs none /usr/sbin && PATH=/nowhere exec \"$0\" lab up";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, cluster::TOOL]).env("POLYCAST_LAB_DIRECTORY", labs.directory());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if cluster::forbids_namespaces(&errors) {
        return;
    }
    assert!(!output.status.success());
    assert!(errors.contains("ip was not found") && errors.contains("apt-get install iproute2"), "{errors}");
    labs.are_gone();
}

#[test]
fn a_kernel_that_gives_no_namespaces_is_explained() {
    let labs = Labs::new();
    let script = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$0\" lab up";
    let mut command = Command::new("unshare");
    command.args(["-r", "sh", "-c", script, cluster::TOOL]).env("POLYCAST_LAB_DIRECTORY", labs.directory());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if cluster::forbids_namespaces(&errors) {
        return;
    }
    assert!(!output.status.success());
    assert!(errors.contains("user.max_net_namespaces"), "{errors}");
    labs.are_gone();
}

#[test]
fn a_program_gets_the_mpiexec_that_it_is_linked_for() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2"]) {
        return;
    }
    for family in ["openmpi", "mpich"] {
        let program = small::compile(family, labs.directory(), small::WHO);
        let said = labs.succeeds(&["run", "--lab", "box", "-n", "2", "--", program.to_str().unwrap()]);
        assert_eq!(said.trim(), "2 ranks, sum 1, on h0", "{family}");
        fs::remove_file(program).unwrap();
    }
    let program = small::compile("mpich", labs.directory(), small::WHO);
    let run = ["run", "--lab", "box", "-n", "2", "--mpi", "openmpi", "--", program.to_str().unwrap()];
    labs.fails(&run, "linked with mpich");
    labs.succeeds(&["down", "box"]);
}

/// The tool as a user without rights, who owns the folder of these labs.
fn as_nobody(labs: &Labs, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", cluster::TOOL]).args(words);
    command.env("POLYCAST_LAB_DIRECTORY", labs.directory()).env("HOME", labs.directory());
    command
}

/// Labs of a user without rights. `None` where that cannot be tried.
fn labs_of_nobody() -> Option<Labs> {
    let labs = Labs::new();
    let user = 65_534;
    std::os::unix::fs::chown(labs.directory(), Some(user), Some(user)).unwrap();
    if as_nobody(&labs, &["--version"]).output().unwrap().status.success() {
        return Some(labs);
    }
    cannot_run(&format!("user {user} cannot execute {}", cluster::TOOL));
    None
}

#[test]
fn an_ordinary_user_needs_no_rights() {
    if !nix::unistd::geteuid().is_root() {
        // Then all tests show it.
        return;
    }
    let Some(labs) = labs_of_nobody() else { return };
    let as_user = |words: &[&str]| as_nobody(&labs, &[&["lab"], words].concat()).output().unwrap();
    let output = as_user(&["up", "mine", "--hosts", "2"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    if cluster::forbids_namespaces(&errors) {
        return;
    }
    assert!(output.status.success(), "{errors}");
    let output = as_user(&["exec", "mine", "h0", "--", "sh", "-c", "ping -c1 -W60 h1; ls /sys/class/net"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 received") && said.ends_with("e0\nlo\n"), "{said}");
    assert!(as_user(&["down", "mine"]).status.success());
    labs.are_gone();
}

#[test]
fn jobs_of_two_users_on_hosts_of_the_same_names_do_not_meet() {
    if !nix::unistd::geteuid().is_root() {
        // One user cannot be two; labs of one user meet in the same way, which is tried below by root.
        return;
    }
    let roots = Labs::new();
    let Some(others) = labs_of_nobody() else { return };
    if !roots.up(&["box", "--hosts", "2"]) {
        return;
    }
    // A job whose sessions are there while the others run. `sleep` does not end by itself in the time of the test.
    let stay =
        ["run", "--lab", "box", "-n", "2", "--mpi", "openmpi", "--", "sh", "-c", "echo up; exec sleep 1000"];
    let mut stays = roots.command(&stay).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut stays), "up\n");
    let run = |command: &mut Command, who: &str| {
        let output = cluster::output_within(command, LIMIT);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{who}: {errors}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "2 ranks, sum 1, on h0",
            "{who}: {errors}"
        );
    };
    let program = small::compile("openmpi", others.directory(), small::WHO);
    let job = ["lab", "run", "-n", "2", "--", program.to_str().unwrap()];
    run(&mut as_nobody(&others, &job), "another user");
    run(&mut roots.command(&job[1..]), "the same user");
    Command::new("kill").arg(stays.id().to_string()).status().unwrap();
    stays.wait().unwrap();
    roots.succeeds(&["down", "box"]);
    roots.are_gone();
}

#[test]
fn temporary_files_and_shared_memory_go_with_the_lab() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2"]) {
        return;
    }
    let mark = format!("polycast-test-{}", std::process::id());
    labs.exec("box", "h0", &format!("echo here > $TMPDIR/{mark} && echo here > /dev/shm/{mark}"));
    // Hosts of one lab share them as they share all files.
    assert_eq!(labs.exec("box", "h1", &format!("cat $TMPDIR/{mark} /dev/shm/{mark}")), "here\nhere\n");
    assert!(!Path::new("/dev/shm").join(&mark).exists(), "the machine's shared memory is another");
    labs.succeeds(&["down", "box"]);
    labs.are_gone();
}

#[test]
fn sixteen_hosts_come_and_go() {
    let labs = Labs::new();
    let began = Instant::now();
    if labs.up(&["box", "--hosts", "16"]) {
        labs.succeeds(&["down", "box"]);
        println!("16 hosts up and down in {:?}", began.elapsed());
        labs.are_gone();
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}
