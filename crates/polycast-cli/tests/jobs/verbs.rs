//! Multicast over InfiniBand and RoCE, against stand-ins for the libraries of both (`tests/verbs`): no such device has run it yet.
//!
//! A job counts only when polycast's report says that its datagrams went over verbs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::sync::OnceLock;

use crate::cluster::Labs;
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::{FORMS, LabJob, expect_multicast, lab, warnings};

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The stand-ins and their programs, once per test run; these flags go to the compiler.
fn built(folder: &str, flags: &[&str]) -> Option<PathBuf> {
    let folder = checkout().join("build/tests").join(folder);
    let output =
        Command::new(checkout().join("tests/verbs/build.sh")).arg(&folder).args(flags).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("infiniband/verbs.h") {
        cannot_run("no headers of libibverbs: scripts/setup.sh test installs them");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(folder)
}

fn stand_ins() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| built("verbs", &[])).as_deref()
}

fn says_that_all_is_well(program: &Path) {
    let output = Command::new(program).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("all is as it should be"), "{said}");
}

#[test]
fn members_of_groups_keep_their_rules() {
    let Some(folder) = stand_ins() else { return };
    says_that_all_is_well(&folder.join("exercise"));
}

#[test]
fn the_headers_are_those_that_the_stand_ins_follow() {
    let Some(folder) = stand_ins() else { return };
    says_that_all_is_well(&folder.join("layout"));
}

#[test]
fn members_of_groups_are_clean() {
    let Some(folder) = built("verbs-sanitized", &SANITIZERS) else { return };
    says_that_all_is_well(&folder.join("exercise"));
}

/// Every version of a symbol that the object asks for is one that the stand-ins have: else the job below would run without it.
#[test]
fn the_stand_ins_have_what_the_object_needs() {
    let Some(folder) = stand_ins() else { return };
    let object = checkout().join("build/lib/polycast/polycast-verbs.so");
    assert!(object.exists(), "{} is missing: `make build` builds it where the headers are", object.display());
    let listed = |arguments: &[&str], file: &Path| {
        let output = Command::new("nm")
            .args(["-D", "--with-symbol-versions"])
            .args(arguments)
            .arg(file)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last = |line: &str| line.split_whitespace().last().unwrap_or("").replace("@@", "@");
        text.lines().map(last).collect::<Vec<String>>()
    };
    let there: Vec<String> = ["libibverbs.so.1", "librdmacm.so.1"]
        .iter()
        .flat_map(|name| listed(&["--defined-only"], &folder.join(name)))
        .collect();
    let needed = listed(&["--undefined-only"], &object);
    let needed: Vec<_> =
        needed.iter().filter(|name| name.starts_with("ibv_") || name.starts_with("rdma_")).collect();
    assert!(needed.len() > 20, "{needed:?}");
    for name in needed {
        assert!(there.contains(name), "{name} is not among {there:?}");
    }
}

fn job<'a>(labs: &'a Labs, mpi: Mpi, ranks: usize, program: &str, emulation: &str) -> Option<LabJob<'a>> {
    stand_ins()?;
    Some(LabJob::stock(labs, mpi, ranks, program).over(emulation))
}

impl<'a> LabJob<'a> {
    /// With the stand-ins in place of a device, told what goes wrong.
    fn over(self, emulation: &str) -> LabJob<'a> {
        let folder = stand_ins().expect("they were built");
        let objects = ["libibverbs.so.1", "librdmacm.so.1"].map(|name| folder.join(name));
        self.beside(&objects).variable("VERBS_EMULATION", emulation).variable("POLYCAST_MULTICAST", "verbs")
    }
}

/// Runs a program with its arguments, a rank on each host, and returns how many of them had their datagrams go over verbs.
fn over_verbs(
    labs: &Labs,
    mpi: Mpi,
    ranks: usize,
    form: &str,
    program: &[&str],
    emulation: &str,
) -> Option<u64> {
    let job = job(labs, mpi, ranks, program[0], emulation)?;
    let output = job.arguments(&program[1..]).forced(form).expect_ok();
    let report = expect_multicast(&output, form);
    let verbs = report.multicast("verbs");
    if verbs > 0 {
        assert!(warnings(&output).is_empty(), "{}", output.stderr);
    }
    Some(verbs)
}

#[test]
fn jobs_go_over_verbs() {
    let Some(labs) = lab(4, &[]) else { return };
    for (mpi, form, program, emulation) in [
        (Mpi::Mpich, FORMS[1], &["bcast_stress", "40"][..], "roce,lose=20"),
        (Mpi::OpenMpi, FORMS[0], &["bcast_communicators", "12"], "ib,lose=10"),
    ] {
        let Some(verbs) = over_verbs(&labs, mpi, 4, form, program, emulation) else { return };
        assert!(verbs >= 4, "{program:?} with {emulation}: {verbs}");
    }
    labs.succeeds(&["down", "--all"]);
}

/// On one node something is missing: all agree on IP multicast. What is known before anybody joins is told to who has asked for verbs.
fn all_use_ip(emulations: &[&str]) {
    let Some(labs) = lab(4, &[]) else { return };
    for emulation in emulations {
        let Some(job) = job(&labs, Mpi::OpenMpi, 4, "bcast_late", emulation) else { return };
        let output = job.arguments(&["0", "3000"]).forced(FORMS[0]).expect_ok();
        let report = expect_multicast(&output, FORMS[0]);
        assert_eq!(report.multicast("verbs"), 0, "{emulation}: {}", output.stderr);
        let said = warnings(&output);
        let is_told =
            said.len() == 1 && said[0].contains("has no port of InfiniBand or RoCE that can be used");
        let is_known = emulation.contains("absent") || emulation.contains("partition");
        assert_eq!(is_told, is_known, "{emulation}: {said:?}");
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn nodes_without_a_device_make_all_use_ip() {
    all_use_ip(&["absent=h2", "on=h1,nojoin"]);
}

/// Something fails in mid-job: nothing is lost, and the report counts it.
fn nothing_is_lost(emulations: &[&str]) {
    let Some(labs) = lab(3, &[]) else { return };
    for emulation in emulations {
        let Some(job) = job(&labs, Mpi::OpenMpi, 3, "bcast_stress", emulation) else { return };
        let output = job.arguments(&["60"]).forced(FORMS[0]).expect_ok();
        let report = expect_multicast(&output, FORMS[0]);
        assert!(report.multicast("verbs_failures") > 0, "{emulation}: {}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn memberships_that_are_lost_lose_nothing() {
    nothing_is_lost(&["on=h2,down=200"]);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "make test-all: two of each kind have run"]
    fn every_hindrance_and_failure() {
        all_use_ip(&["on=h3,partition=0x7fff", "on=h0,memlock=1000"]);
        nothing_is_lost(&["on=h1,unjoin=200", "on=h1,sendfail=150"]);
    }

    /// A rank dies amid broadcasts over verbs: the others end as without.
    #[test]
    #[ignore = "make test-all: a job that is killed"]
    fn a_rank_that_is_killed() {
        let Some(labs) = lab(4, &[]) else { return };
        let Some(job) = job(&labs, Mpi::OpenMpi, 4, "bcast_killed", "roce") else { return };
        let (status, output) = job.forced(FORMS[0]).finish();
        assert!(!status.success(), "{}", output.stderr);
        assert!(!output.stderr.contains("verbs emulation:"), "{}", output.stderr);
        labs.succeeds(&["down", "--all"]);
    }

    /// The object with AddressSanitizer and UndefinedBehaviorSanitizer, in a job: its library is a copy with another object.
    #[test]
    #[ignore = "make test-all: a build with sanitizers"]
    fn jobs_are_clean() {
        let (Some(labs), Some(_)) = (lab(3, &[]), stand_ins()) else { return };
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("polycast");
        let script = "cp -r build/lib/polycast \"$1\" && cc -std=c17 -O1 -g -fPIC -fvisibility=hidden -fsanitize=address,undefined \
            -fno-sanitize-recover=all -shared doors/verbs/*.c -o \"$1/polycast-verbs.so\" -lrdmacm -libverbs && \
            readlink -f \"$(cc -print-file-name=libasan.so)\"";
        let mut command = Command::new("sh");
        let output =
            command.args(["-c", script, "sh"]).arg(&library).current_dir(checkout()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let sanitizer = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let preload = library.join("libpolycast-mpi.so");
        for emulation in
            ["roce,lose=20", "on=h1,unjoin=200", "on=h2,down=300", "on=h1,sendfail=150", "memlock=300000"]
        {
            let job = LabJob::stock(&labs, Mpi::OpenMpi, 3, "bcast_stress").arguments(&["60"]);
            let job =
                job.beside(slice::from_ref(&sanitizer)).over(emulation).beside(slice::from_ref(&preload));
            let job = job.variable("ASAN_OPTIONS", "detect_leaks=0").variable("POLYCAST_REPORT", "1");
            let job = job.variable("POLYCAST_BCAST", FORMS[0]).variable("POLYCAST_CACHE", "off");
            let report = expect_multicast(&job.expect_ok(), FORMS[0]);
            assert!(report.multicast("verbs") > 0, "{emulation}: {report:?}");
        }
        labs.succeeds(&["down", "--all"]);
    }

    #[test]
    #[ignore = "make test-all: long"]
    fn sixteen_hosts_and_every_program() {
        let Some(labs) = lab(16, &[]) else { return };
        for (program, emulation) in [
            (&["bcast_roots"][..], "roce,lose=20"),
            (&["bcast_lengths"], "ib"),
            (&["bcast_datatypes"], "roce,lose=5"),
            (&["bcast_many", "60"], "ib,lose=20"),
            (&["bcast_stress", "60"], "ib,mtu=512"),
            (&["bcast_late", "0", "300000"], "roce"),
        ] {
            for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
                for form in FORMS {
                    let Some(verbs) = over_verbs(&labs, mpi, 16, form, program, emulation) else { return };
                    assert!(verbs >= 16, "{program:?} with {emulation}: {verbs}");
                }
            }
        }
        labs.succeeds(&["down", "--all"]);
    }
}
