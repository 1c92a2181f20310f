//! Jobs that know the switches between their hosts, or the times of messages: real MPI programs on the hosts of a lab.
//!
//! Data must be right from every root, whatever is wrong with what a job is told; and what chose is what the report says.

use std::fs;

use crate::cluster::Labs;
use crate::common::job::Output;
use crate::common::mpi::Mpi;
use crate::job::{self, LabJob, expect_warning, lab, warnings};
use tempfile::TempDir;

const RANKS: usize = 6;

/// Rank i is on host ni, so that every hop of a chain in the order of ranks crosses between the switches.
const SHUFFLED: &str = "\
SwitchName=left Nodes=n0,n2,n4 LinkSpeed=1000
SwitchName=right Nodes=n1,n3,n5 LinkSpeed=1000
SwitchName=top Switches=left,right LinkSpeed=1000
";

/// Files for jobs, gone at the end of the test.
struct Files(TempDir);

impl Files {
    fn write(&self, name: &str, text: &str) -> String {
        let file = self.0.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

/// A lab with the switches of [`SHUFFLED`], and that file among others.
fn shuffled() -> Option<(Labs, Files, String)> {
    let (labs, files) = (Labs::new(), Files(tempfile::tempdir().unwrap()));
    let topology = files.write("shuffled.conf", SHUFFLED);
    let shape = [job::LAB, "--topology", &topology, "--rate", "200mbit", "--burst", "16KiB"];
    labs.up(&shape).then_some((labs, files, topology))
}

fn roots(labs: &Labs, mpi: Mpi) -> LabJob<'_> {
    LabJob::stock(labs, mpi, RANKS, "bcast_roots")
}

/// The program in a shell that has set other variables before, on some hosts.
fn roots_in_shell<'a>(labs: &'a Labs, script: &str) -> LabJob<'a> {
    let program = Mpi::OpenMpi.built("bcast_roots");
    let script = format!("{script}\nexec \"$0\"");
    LabJob::of(labs, Mpi::OpenMpi, RANKS, &["sh", "-c", &script, &program.to_string_lossy()])
}

/// The line that says by what choices are made.
fn choices(output: &Output) -> &str {
    let prefix = "polycast: report: choices ";
    let found: Vec<&str> = output.stderr.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    match found[..] {
        [] => "",
        [line] => line,
        _ => output.fail(&format!("expected one line of choices, found {found:?}")),
    }
}

#[test]
fn every_tree_from_every_root_over_two_switches() {
    let Some((labs, _files, _)) = shuffled() else { return };
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for algorithm in [
            "contention-free-chain:segment=4KiB,ready",
            "contention-free-binary:segment=4KiB",
            "contention-free-k-ary:k=3",
            "opt-tree",
            "alpha-port:ports=3",
            "block-binomial",
            "chain:segment=4KiB,ready",
            "binomial",
        ] {
            let output = roots(&labs, mpi).forced(algorithm).expect_ok();
            assert!(output.report().served_by(algorithm) > 0, "{algorithm}: {}", output.stderr);
            let said = choices(&output);
            assert!(said.contains("by=forced") && said.ends_with("switches=2"), "the lab tells: {said}");
        }
    }
    labs.succeeds(&["down", "--all"]);
}

/// What comes is compared by the program, for every root.
#[test]
fn planned_trees_of_other_collectives_over_two_switches() {
    let Some((labs, _files, _)) = shuffled() else { return };
    let planned = [
        ("scatter", "contention-free-binary:segment=1KiB"),
        ("gather", "contention-free-k-ary:k=3"),
        ("reduce", "contention-free-chain:segment=1KiB"),
    ];
    let job = LabJob::stock(&labs, Mpi::OpenMpi, RANKS, "collective_values").polycast();
    let of = |collective: &str| format!("POLYCAST_{}", collective.to_uppercase());
    let job = planned.iter().fold(job, |job, (collective, by)| job.variable(&of(collective), by));
    let output = job.expect_ok();
    for (collective, by) in planned {
        let line = format!("polycast: report: {collective} {by} calls=");
        assert!(output.stderr.contains(&line), "{line} is missing: {}", output.stderr);
    }
    assert!(output.stderr.contains(" switches=2\n"), "the lab tells: {}", output.stderr);
    labs.succeeds(&["down", "--all"]);
}

/// Several ranks per host, dealt out in turn.
#[test]
fn several_ranks_on_each_host() {
    let Some((labs, _files, _)) = shuffled() else { return };
    for algorithm in ["contention-free-binary:segment=8KiB", "contention-free-chain", "multicast-pull"] {
        let job = LabJob::stock(&labs, Mpi::OpenMpi, 2 * RANKS, "bcast_roots").ranks_per_host(2);
        let output = job.forced(algorithm).expect_ok();
        assert!(output.report().served_by(algorithm) > 0, "{algorithm}: {}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn files_of_no_use_are_said_once_and_all_goes_on() {
    let Some((labs, files, _)) = shuffled() else { return };
    let broken = files.write("broken.conf", "SwitchName=s0 Nodes=n[0-\n");
    for (variable, value, words) in [
        ("POLYCAST_TOPOLOGY", "/no/such.conf", &["POLYCAST_TOPOLOGY=/no/such.conf", "one switch"][..]),
        ("POLYCAST_TOPOLOGY", &broken, &["broken.conf:1", "one switch"]),
        ("POLYCAST_PARAMS", "/no/such.json", &["POLYCAST_PARAMS=/no/such.json", "tables choose"]),
        ("POLYCAST_PARAMS", &broken, &["broken.conf", "tables choose"]),
    ] {
        let output = roots(&labs, Mpi::OpenMpi).polycast().variable(variable, value).expect_ok();
        expect_warning(&output, words);
        let switches = if variable == "POLYCAST_TOPOLOGY" { "" } else { "switches=2" };
        assert!(choices(&output).ends_with(switches), "{}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn hosts_that_the_file_lacks_are_placed_apart() {
    let Some((labs, files, _)) = shuffled() else { return };
    let partial = files.write("partial.conf", "SwitchName=left Nodes=n0,n2,n4\n");
    let job = roots(&labs, Mpi::OpenMpi).forced("contention-free-chain:segment=8KiB");
    let output = job.variable("POLYCAST_TOPOLOGY", &partial).expect_ok();
    expect_warning(&output, &["partial.conf", "n1, n3, n5", "placed apart"]);
    assert!(choices(&output).ends_with("switches=4"), "{}", output.stderr);
    labs.succeeds(&["down", "--all"]);
}

/// Neither capitals nor domains nor ends of lines keep a host from being found.
#[test]
fn hosts_are_found_however_their_names_are_written() {
    let Some((labs, files, _)) = shuffled() else { return };
    let capitals = SHUFFLED.to_uppercase().replace('\n', "\r\n");
    let capitals = files.write("capitals.conf", &capitals);
    let full = files.write("full.conf", "SwitchName=left Nodes=n0.Cl.example,n2.Cl.example,n4.Cl.example\nSwitchName=right Nodes=n1.Cl.example,n3.Cl.example,n5.Cl.example\nSwitchName=top Switches=left,right\n");
    let program = Mpi::OpenMpi.built("bcast_roots");
    for (file, domain) in [(&capitals, ""), (&capitals, ".cl.example"), (&full, ""), (&full, ".CL.Example")] {
        let script = format!("hostname $(hostname){domain}; exec \"$0\"");
        let words = ["unshare", "--uts", "sh", "-c", &script, &program.to_string_lossy()];
        let job = LabJob::of(&labs, Mpi::OpenMpi, RANKS, &words).forced("contention-free-chain:segment=8KiB");
        let output = job.variable("POLYCAST_TOPOLOGY", file).expect_ok();
        assert!(choices(&output).ends_with("switches=2"), "{file} {domain}: {}", output.stderr);
        assert!(warnings(&output).is_empty(), "{file} {domain}: {}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

/// Ranks of one machine that each call it otherwise, as in containers: what is said names the reason.
#[test]
fn ranks_that_only_look_like_several_nodes_are_told_so() {
    let Some(labs) = lab(1, &[]) else { return };
    let program = Mpi::OpenMpi.built("bcast_roots");
    let script = "hostname c$$; exec \"$0\"";
    let words = ["unshare", "--uts", "sh", "-c", script, &program.to_string_lossy()];
    let job = LabJob::of(&labs, Mpi::OpenMpi, 4, &words).ranks_per_host(4);
    let output = job.forced("multicast-pull").expect_ok();
    expect_warning(&output, &["only look like several nodes", "one kernel", "and 1 more", "--uts=host"]);
    labs.succeeds(&["down", "--all"]);
}

/// Rank 0's file counts, also on a host that has another one or none.
#[test]
fn ranks_that_were_told_different_things() {
    let Some((labs, files, topology)) = shuffled() else { return };
    let other = files.write("other.conf", "SwitchName=s0 Nodes=n[0-5]\n");
    let script = format!(
        "case $(hostname) in
           n1) export POLYCAST_TOPOLOGY={other} ;;
           n2) export POLYCAST_TOPOLOGY=/no/such.conf ;;
           n3) unset POLYCAST_TOPOLOGY ;;
         esac"
    );
    let output = roots_in_shell(&labs, &script)
        .forced("contention-free-binary:segment=8KiB")
        .variable("POLYCAST_TOPOLOGY", &topology)
        .expect_ok();
    assert_eq!(choices(&output), format!("by=forced topology={topology} switches=2"));
    assert!(warnings(&output).is_empty(), "rank 0 has nothing to complain of: {}", output.stderr);
    labs.succeeds(&["down", "--all"]);
}

/// Slurm tells each rank where its host is.
#[test]
fn addresses_of_slurm() {
    let Some(labs) = lab(RANKS, &[]) else { return };
    let script = |but: &str| {
        format!(
            "case $(hostname) in
               {but}) ;;
               h0|h2|h4) export SLURM_TOPOLOGY_ADDR=top.left.$(hostname) SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node ;;
               *) export SLURM_TOPOLOGY_ADDR=top.right.$(hostname) SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node ;;
             esac"
        )
    };
    let run = |but: &str| {
        roots_in_shell(&labs, &script(but)).forced("contention-free-chain:segment=8KiB").expect_ok()
    };
    let output = run("nobody");
    assert_eq!(choices(&output), "by=forced topology=SLURM_TOPOLOGY_ADDR switches=2");
    assert!(warnings(&output).is_empty(), "{}", output.stderr);
    let output = run("h3");
    assert_eq!(choices(&output), "by=forced topology=SLURM_TOPOLOGY_ADDR switches=3");
    expect_warning(&output, &["SLURM_TOPOLOGY_ADDR", "host h3", "placed apart"]);
    labs.succeeds(&["down", "--all"]);
}

/// Parameters by whose measure a chain is best from the smallest size that was measured on.
#[test]
fn parameters_choose_by_prediction() {
    let Some((labs, files, topology)) = shuffled() else { return };
    let point = |bytes: u64, ns: u64| {
        format!("{{\"bytes\":{bytes},\"ns\":{ns},\"low\":{ns},\"high\":{ns},\"samples\":36}}")
    };
    let class = format!(
        "{{\"latency\":[{}],\"gap\":[{},{}]}}",
        point(1, 50_000),
        point(1024, 10_000),
        point(1 << 20, 10_000_000)
    );
    let parameters = files.write(
        "parameters.json",
        &format!(
            "{{\"format\":\"polycast-parameters\",\"version\":1,\
             \"measured\":{{\"when\":\"\",\"where\":\"\",\"how\":\"\"}},\
             \"classes\":{{\"same-switch\":{class}}}}}"
        ),
    );
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = roots(&labs, mpi).polycast().variable("POLYCAST_MULTICAST", "off");
        let output = job.variable("POLYCAST_PARAMS", &parameters).expect_ok();
        let said = choices(&output);
        assert!(said.starts_with(&format!("by=prediction params={parameters}")), "{said}");
        assert!(said.ends_with("switches=2"), "{said}");
        let report = output.report();
        assert!(report.stock() > 0, "small messages stay with stock: {report:?}");
        assert!(report.served() > 0, "{report:?}\n{}", output.stderr);
    }
    let table = files.write(
        "table.toml",
        "version = 1\n[[rule]]\ncollective = \"bcast\"\nswitches = \"2..\"\nuse = \"binomial\"\n",
    );
    // What the user says in a table is not overruled.
    let job = roots(&labs, Mpi::OpenMpi).polycast().variable("POLYCAST_PARAMS", &parameters);
    let job = job.variable("POLYCAST_TOPOLOGY", &topology);
    let output = job.variable("POLYCAST_TABLE", &table).expect_ok();
    assert!(output.report().served_by("binomial") > 0, "{}", output.stderr);
    assert!(choices(&output).starts_with(&format!("by=table table={table}")), "{}", output.stderr);
    labs.succeeds(&["down", "--all"]);
}
