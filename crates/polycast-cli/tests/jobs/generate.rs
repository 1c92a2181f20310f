//! Generated routines: read by compilers and by clang-format, and in the place of `MPI_Bcast` in the programs of
//! `tests/mpi`, whose promises they must keep as well as the library does.

mod routine;

use crate::cluster::{self, Labs};
use crate::common::job::{Job, LIMIT, Output};
use crate::common::mpi::Mpi;
use routine::{Workshop, is_formatted};

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

const TWO_SWITCHES: &str =
    "SwitchName=left Nodes=a,b\nSwitchName=right Nodes=c,d\nSwitchName=top Switches=left,right\n";

/// A switch with hosts between two others.
const LINE: &str =
    "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n[3-4] Switches=s0,s2\nSwitchName=s2 Nodes=n[5-7]\n";

/// Broadcasts of a few thousand bytes go by the routine.
const EAGER: [&str; 2] = ["--params", "network.json"];

/// The number behind `name=` in the routine's own report.
fn routine(output: &Output, name: &str) -> f64 {
    output.number("ROUTINE", name)
}

/// Runs the job. Fails unless the program is content and the routine carried something.
fn conforms(job: Job, program: &str) -> Output {
    let output = job.run().expect_ok(program);
    if routine(&output, "messages") < 10.0 {
        output.fail("the routine carried next to nothing");
    }
    output
}

#[test]
fn two_ranks_on_each_host_of_two_switches() {
    let workshop = Workshop::new(TWO_SWITCHES);
    let text = workshop.make(&[&EAGER[..], &["--hosts", "a,b,c,d", "--ranks-per-host", "2"]].concat());
    assert!(text.contains("#define TREES 2") && text.contains("RANKS = 8,"), "{text}");
    // By host, dealt out in turn, and in no order; by names with a domain.
    for (mpi, hosts) in [
        (Mpi::OpenMpi, "a a b b c c d d"),
        (Mpi::OpenMpi, "a b c d a b c d"),
        (Mpi::OpenMpi, "d a c b.cluster.org a d c b"),
        (Mpi::Mpich, "d a c b.cluster.org a d c b"),
    ] {
        workshop.compile(mpi);
        let hosts: Vec<&str> = hosts.split(' ').collect();
        conforms(workshop.job(mpi, "bcast_roots", &hosts), "bcast_roots");
    }
}

#[test]
fn every_datatype_down_trees_and_along_chains() {
    let workshop = Workshop::new(LINE);
    workshop.make(&[&EAGER[..], &["--hosts", "n[0-7]"]].concat());
    let all = ["n3", "n0", "n7", "n1", "n5", "n4", "n2", "n6"];
    // Without some of the hosts there is no tree. MPICH's ranks spin while they wait: eight take half a minute on two cores.
    for (mpi, hosts) in [(Mpi::OpenMpi, &all[..]), (Mpi::OpenMpi, &all[..4]), (Mpi::Mpich, &all[..4])] {
        workshop.compile(mpi);
        conforms(workshop.job(mpi, "bcast_datatypes", hosts), "bcast_datatypes");
    }
}

#[test]
#[ignore = "make test-all: half a minute"]
fn hosts_with_different_numbers_of_ranks() {
    let workshop = Workshop::new(LINE);
    let text = workshop.make(&[&EAGER[..], &["--hosts", "n0,n1:2,n3,n5:2,n6"]].concat());
    // n0 and n1 are not alike, nor n5 and n6.
    assert!(text.contains("#define TREES 5"), "{text}");
    for mpi in BOTH {
        workshop.compile(mpi);
        conforms(
            workshop.job(mpi, "bcast_roots", &["n5", "n1", "n6", "n0", "n5", "n3", "n1"]),
            "bcast_roots",
        );
    }
}

#[test]
fn a_tree_for_one_root_and_chains_for_the_others() {
    let workshop = Workshop::new(TWO_SWITCHES);
    let text = workshop.make(&[&EAGER[..], &["--ranks-per-host", "2", "--root", "3"]].concat());
    assert!(text.contains("#define TREES 1\n"), "{text}");
    for mpi in BOTH {
        workshop.compile(mpi);
        let hosts = ["a", "b", "c", "d", "d", "c", "b", "a"];
        conforms(workshop.job(mpi, "bcast_roots", &hosts), "bcast_roots");
    }
}

#[test]
#[ignore = "make test-all: half a minute"]
fn communicators_come_and_go() {
    let workshop = Workshop::new(TWO_SWITCHES);
    // These programs' messages are short.
    workshop.make(&["--params", "near.json"]);
    for mpi in BOTH {
        workshop.compile(mpi);
        let hosts = ["c", "a", "d", "b"];
        let few = workshop.job(mpi, "bcast_communicators", &hosts).arguments(&["30"]);
        conforms(few, "bcast_communicators");
        conforms(workshop.job(mpi, "bcast_mixed", &hosts), "bcast_mixed");
    }
}

#[test]
fn threads_broadcast_on_communicators_of_their_own() {
    let workshop = Workshop::new(TWO_SWITCHES);
    workshop.make(&EAGER);
    for (mpi, hosts, broadcasts) in
        [(Mpi::OpenMpi, &["a", "c", "b"][..], "100"), (Mpi::Mpich, &["a", "c"][..], "40")]
    {
        workshop.compile(mpi);
        let job = workshop.job(mpi, "bcast_threads", hosts).arguments(&[broadcasts]);
        conforms(job, "bcast_threads");
    }
}

/// A caller sees the errors that it sees without the routine.
#[test]
fn errors_are_those_of_the_library() {
    let workshop = Workshop::new(TWO_SWITCHES);
    workshop.make(&EAGER);
    for mpi in BOTH {
        workshop.compile(mpi);
        let stock = Job::stock(mpi, 3, "bcast_errors").run().expect_ok("bcast_errors");
        let output = workshop.job(mpi, "bcast_errors", &["d", "b", "a"]).run().expect_ok("bcast_errors");
        assert_eq!(output.lines_of("ERR"), stock.lines_of("ERR"), "under {}", mpi.name());
    }
}

/// One line says why; the program runs on the library's broadcast.
#[test]
#[ignore = "make test-all: half a minute"]
fn hosts_that_were_not_planned_for_are_left_to_the_library() {
    let workshop = Workshop::new(TWO_SWITCHES);
    workshop.make(&EAGER);
    for mpi in BOTH {
        workshop.compile(mpi);
        let output = workshop.job(mpi, "bcast_roots", &["a", "x", "b"]).run().expect_ok("bcast_roots");
        assert_eq!(routine(&output, "messages"), 0.0);
        let said = output.stderr.matches("host x is not among those planned for").count();
        assert_eq!(said, 1, "{}", output.stderr);
    }
}

/// Loaded under a program that was built without it.
#[test]
fn a_shared_object_serves_a_program_that_was_built_before() {
    let workshop = Workshop::new("SwitchName=s Nodes=a,b,c,d\n");
    workshop.make(&EAGER);
    for mpi in BOTH {
        let object = workshop.share(mpi);
        let job = Job::stock(mpi, 4, "bcast_roots").preload(object).variable("PRETENDED_HOSTS", "b,a,d,c");
        conforms(job, "bcast_roots");
    }
}

/// Ranks that are where they say they are.
#[test]
fn hosts_of_a_lab_are_found_by_their_names() {
    let (labs, workshop) = (Labs::new(), Workshop::new(TWO_SWITCHES));
    let topology = workshop.file("cluster.conf").to_string_lossy().into_owned();
    if !labs.up(&["box", "--topology", &topology, "--rate", "1gbit", "--burst", "64KiB"]) {
        return;
    }
    workshop.make(&[&EAGER[..], &["--ranks-per-host", "2"]].concat());
    // MPICH's ranks spin while they wait, which takes minutes where they outnumber cores.
    let mpi = Mpi::OpenMpi;
    workshop.compile(mpi);
    let program = workshop.program(mpi, "bcast_roots").to_string_lossy().into_owned();
    let run =
        ["run", "--lab", "box", "--mpi", mpi.name(), "--ranks-per-host", "2", "-n", "8", "--", &program];
    let output = cluster::output_within(&mut labs.command(&run), LIMIT);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("OK bcast_roots"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("ROUTINE messages=") && !said.contains("messages=0 "), "{said}");
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn text_is_clean_for_every_topology() {
    let nodes = "SwitchName=s Nodes=a-host-with-a-rather-long-name[000-199]\n";
    let tall: String = (1..60).map(|n| format!("SwitchName=s{n} Nodes=n{n} Switches=s{}\n", n - 1)).collect();
    let tall = format!("SwitchName=s0 Nodes=n0\n{tall}");
    for topology in [TWO_SWITCHES, LINE, nodes, &tall] {
        let workshop = Workshop::new(topology);
        for arguments in [&EAGER[..], &[], &["--name", "my_bcast", "--ranks-per-host", "3"]] {
            let text = workshop.make(arguments);
            is_formatted(&workshop.file("bcast.c"));
            // The names of the cluster may be of any length, and the heading has them in its drawing.
            let code = &text[text.find("#include").expect("code")..];
            assert_eq!(code.lines().find(|line| line.len() > 110), None);
            for mpi in BOTH {
                workshop.compile(mpi);
            }
        }
    }
}

#[test]
fn the_same_request_gives_the_same_text() {
    let workshop = Workshop::new(LINE);
    let text = workshop.make(&EAGER);
    assert_eq!(text, workshop.make(&EAGER));
    assert!(
        text.contains("1970-01-01T00:00:00Z") && text.contains("polycast generate --topology cluster.conf"),
        "{text}"
    );
    // Without -o it is printed.
    let printed = workshop.generate(&EAGER);
    let body = |text: &str| text[text.find("#include").expect("code")..].to_owned();
    assert_eq!(body(&String::from_utf8_lossy(&printed.stdout)), body(&text));
}

#[test]
fn mistakes_say_what_to_do() {
    let workshop = Workshop::new(TWO_SWITCHES);
    workshop.write("bad.conf", "SwitchName=s Nodes=a\nSwitchName=t Nodes=b\n");
    workshop.write("hosts", "a\nb slots=none\n");
    for (arguments, words) in [
        (&["--hosts", "a,e,f"][..], "cluster.conf has no host e, f; correct the name"),
        (&["--hosts", "a"], "--ranks-per-host"),
        (&["--hosts", "a[0-"], "hosts: brackets do not match in \"a[0-\""),
        (&["--hosts", "a:40000,b:40000"], "80000 ranks are too many"),
        (&["--hostfile", "hosts"], "hosts:2: expected `host`, `host:2`"),
        (&["--hostfile", "none"], "cannot read hosts from none: "),
        (&["--params", "none.json"], "cannot read none.json: "),
        (&["--params", "hosts"], "hosts: "),
        (&["--root", "4"], "--root 4: expected a rank from 0 to 3"),
        (&["--name", "7up"], "expected a name of C"),
        (&["-o", "no/such/folder.c"], "cannot write no/such/folder.c: "),
    ] {
        let output = workshop.generate(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}
