//! Ranks of one host that the system keeps apart, as runtimes of containers do: in namespaces of their own, in which all may have the same process number
//! and nobody can open another's descriptors; or refused system calls, all of them or one alone. All ranks go the same way then, and nobody waits for ever.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use crate::common::cannot_run;
use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab, under_each_mpi, warnings};

use super::{MESSAGES, NODE, SIZES, check_settings, expect_some_served};

under_each_mpi!(containers, some_in_containers, refused_calls);

const CONTAINER: &str = "unshare --user --map-root-user --pid --fork --mount-proc";

/// What a shell runs in each rank, for which `$0 "$@"` is the program, and `$rank` its number.
fn through_a_shell(mpi: Mpi, ranks: usize, script: &str, calls: usize) -> Job {
    let script = format!("rank=${}; {script}", mpi.rank_variable());
    let mut words: Vec<OsString> = ["sh", "-c", &script].map(OsString::from).to_vec();
    words.extend([mpi.built("cases/sizes").into(), calls.to_string().into()]);
    // By themselves both MPIs read other ranks' memory, and do not notice that they may not.
    let job = Job::of(mpi, ranks, words).variable("OMPI_MCA_btl", "tcp,self").variable("UCX_TLS", "tcp,self");
    // See check.c.
    job.variable("CHECK_PAUSE_MS", if mpi == Mpi::Mpich { "400" } else { "0" })
}

fn expect_well(output: Output) -> Output {
    if warnings(&output).len() > 1 {
        output.fail("expected one warning at most");
    }
    output.expect_ok("sizes")
}

/// Bare, with nothing forced, and in each way of one node; messages, at least, are to be had.
fn conforms(mpi: Mpi, ranks: usize, script: &str) -> Output {
    let job = |calls| through_a_shell(mpi, ranks, script, calls);
    job(SIZES.forced_calls).run().expect_ok("sizes");
    let output = expect_well(job(SIZES.calls).polycast().run());
    let forced = job(SIZES.forced_calls).polycast().variable("CHECK_SETTINGS", &check_settings(&NODE));
    SIZES.expect_served(&expect_well(forced.run()), &[MESSAGES]);
    output
}

/// False where this system lets nobody make such namespaces, and such tests may be left out.
fn has_namespaces(options: &str) -> bool {
    let mut words = options.split(' ');
    let made = Command::new(words.next().unwrap()).args(words).arg("true").output().unwrap();
    if !made.status.success() {
        cannot_run(&format!("{options}: {}", String::from_utf8_lossy(&made.stderr)));
    }
    made.status.success()
}

fn containers(mpi: Mpi) {
    if has_namespaces(CONTAINER) {
        let output = conforms(mpi, 3, &format!("exec {CONTAINER} \"$0\" \"$@\""));
        assert_eq!(output.lines_of("PID"), ["PID 1"; 3], "expected a namespace for each rank");
    }
}

fn some_in_containers(mpi: Mpi) {
    if has_namespaces(CONTAINER) {
        let script = format!("[ $rank != 1 ] || exec {CONTAINER} \"$0\" \"$@\"; exec \"$0\" \"$@\"");
        conforms(mpi, 3, &script);
    }
}

/// What else a runtime may do to a rank.
mod more_namespaces {
    use super::*;

    fn each(mpi: Mpi) {
        let is_root = nix::unistd::geteuid().is_root();
        let of_root = is_root.then_some("unshare --pid --fork --mount-proc");
        let of_users = [
            "unshare --user --map-root-user",
            "unshare --user --map-root-user --ipc",
            "unshare --user --map-root-user --mount sh -c \"mount -t tmpfs none /proc && exec \\\"\\$0\\\" \\\"\\$@\\\"\"",
        ];
        // UCX, below MPICH, does not begin without /proc.
        let goes = |options: &&str| mpi != Mpi::Mpich || !options.contains("none /proc");
        for options in of_users.into_iter().chain(of_root).filter(goes) {
            let plain = options.split(" sh -c").next().unwrap();
            if has_namespaces(plain) {
                for ranks in [2, 4] {
                    conforms(mpi, ranks, &format!("exec {options} \"$0\" \"$@\""));
                }
            }
        }
    }

    #[test]
    #[ignore = "make test-all: ranks in containers have run"]
    fn openmpi() {
        each(Mpi::OpenMpi);
    }

    #[test]
    #[ignore = "make test-all: ranks in containers have run"]
    fn mpich() {
        each(Mpi::Mpich);
    }
}

/// What polycast asks of the kernel, and either MPI can do without all at once.
const TOGETHER: &str =
    "process_vm_readv memfd_create recvmmsg sendmmsg getrandom clock_nanosleep madvise fallocate";
/// One by one, further ones. Neither MPI goes without `sched_getaffinity`.
const MORE: &str = "prlimit64 getcpu sched_yield";
/// EPERM, as container runtimes answer, and ENOSYS, as kernels do that have no such call.
const ERRORS: [&str; 2] = ["1", "38"];

/// An MPI that stands without a system call does so for ever.
const BARE_LIMIT: Duration = Duration::from_secs(100);

/// The program behind a filter that refuses these system calls to all ranks, or (`,1`) to one.
fn denied(mpi: Mpi, whom: &str, calls: &str) -> Job {
    let deny = mpi.built("cases/deny").display().to_string();
    through_a_shell(mpi, 3, &format!("exec {deny} {whom} {calls} -- \"$0\" \"$@\""), SIZES.forced_calls)
}

/// Goes well wherever it does without polycast; false where it does not.
fn goes_as_well_as_bare(mpi: Mpi, whom: &str, calls: &str) -> bool {
    let (status, output) = denied(mpi, whom, calls).limit(BARE_LIMIT).finish();
    if !status.success() {
        eprintln!("{} goes not without {calls} ({whom}): {}", mpi.name(), output.command);
        return false;
    }
    output.expect_ok("sizes");
    denied(mpi, whom, calls).polycast().run().expect_ok("sizes");
    let settings = check_settings(&NODE);
    let output = denied(mpi, whom, calls).polycast().variable("CHECK_SETTINGS", &settings).run();
    expect_some_served(&output.expect_ok("sizes"));
    true
}

fn refused_calls(mpi: Mpi) {
    for whom in ["1", "1,1"] {
        assert!(
            goes_as_well_as_bare(mpi, whom, TOGETHER),
            "{} is expected to go without {TOGETHER}",
            mpi.name()
        );
    }
}

mod each_refused_call {
    use super::*;

    fn on_one_node(mpi: Mpi) {
        let mut went = 0;
        for error in ERRORS {
            let one_by_one = TOGETHER.split(' ').chain(MORE.split(' '));
            for calls in one_by_one.chain(["process_vm_readv memfd_create", TOGETHER]) {
                for only in ["", ",1"] {
                    went += usize::from(goes_as_well_as_bare(mpi, &format!("{error}{only}"), calls));
                }
            }
        }
        assert!(went > 40, "{went} of 52");
    }

    fn between_hosts(mpi: Mpi) {
        let Some(labs) = lab(4, &[]) else { return };
        let (deny, sizes) = (mpi.built("cases/deny"), mpi.built("cases/sizes"));
        for whom in ["1", "38,2"] {
            for calls in ["recvmmsg", "sendmmsg", "getrandom", "recvmmsg sendmmsg"] {
                let mut words = vec![deny.to_str().unwrap(), whom];
                words.extend(calls.split(' '));
                words.extend(["--", sizes.to_str().unwrap(), "40"]);
                let job = || LabJob::of(&labs, mpi, 4, &words);
                job().run().expect_ok("sizes");
                job().polycast().run().expect_ok("sizes");
                let output = job().forced("multicast-pull").run().expect_ok("sizes");
                expect_some_served(&output);
            }
        }
        labs.succeeds(&["down", "--all"]);
    }

    #[test]
    #[ignore = "make test-all: two hundred jobs"]
    fn openmpi() {
        on_one_node(Mpi::OpenMpi);
    }

    #[test]
    #[ignore = "make test-all: two hundred jobs"]
    fn mpich() {
        on_one_node(Mpi::Mpich);
    }

    #[test]
    #[ignore = "make test-all: a lab"]
    fn openmpi_hosts() {
        between_hosts(Mpi::OpenMpi);
    }

    #[test]
    #[ignore = "make test-all: a lab"]
    fn mpich_hosts() {
        between_hosts(Mpi::Mpich);
    }
}
