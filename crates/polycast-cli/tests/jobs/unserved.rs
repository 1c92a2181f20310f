//! What is not served is said where a report was asked for, and what is asked for is written, also of one rank, and of jobs that end early.

use std::fs;
use std::process::{Command, ExitStatus, Stdio};

use crate::cluster::TOOL;
use crate::common::job::{Job, LIMIT, Output, finish, place, timeout, wait_for};
use crate::common::library_directory;
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// `polycast run --report` of a program.
fn reported(mpi: Mpi, options: &[&str], program: &[&str]) -> (ExitStatus, Output) {
    let mut command = timeout(LIMIT);
    command.arg(TOOL).args(["run", "--mpi", mpi.name(), "--report"]).args(options).arg("--").args(program);
    let _place = place();
    finish(command.env("POLYCAST_LIBDIR", library_directory()).env("POLYCAST_CACHE", "off"))
}

fn runs_bare(program: &[&str]) -> bool {
    let mut command = timeout(LIMIT);
    command.arg(TOOL).args(["run", "--mpi", "openmpi", "--off", "-n", "3", "--"]).args(program);
    let _place = place();
    finish(&mut command).0.success()
}

/// Of the report.
fn lines(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter_map(|line| line.strip_prefix("polycast: report: ")).collect()
}

fn expect_one_line(output: &Output, words: &str) {
    match lines(output)[..] {
        [line] if line.contains(words) => {}
        _ => output.fail(&format!("expected one line of a report with `{words}`")),
    }
}

#[test]
fn a_program_without_mpi_is_one_line_and_ends_as_it_ends() {
    for mpi in ALL {
        let (status, output) = reported(mpi, &["-n", "2"], &["/bin/echo", "hi"]);
        assert_eq!((status.code(), &*output.stdout), (Some(0), "hi\nhi\n"), "{}", output.stderr);
        expect_one_line(&output, "no rank of /bin/echo came by with its MPI_Init and MPI_Finalize");
        let (status, output) = reported(mpi, &["-n", "1"], &["sh", "-c", "exit 7"]);
        assert_eq!(status.code(), Some(7));
        expect_one_line(&output, "or ended otherwise (exit status: 7)");
    }
}

#[test]
fn a_static_program_is_told_that_nothing_can_be_preloaded() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::write(folder.path().join("main.c"), "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("cc");
    let made = compiler.arg("-static").arg(folder.path().join("main.c")).arg("-o").arg(&program);
    assert!(made.status().unwrap().success());
    for mpi in ALL {
        let (status, output) = reported(mpi, &["-n", "2"], &[program.to_str().unwrap()]);
        assert!(status.success());
        expect_one_line(&output, "is linked statically, and nothing can be preloaded into such a program");
    }
}

#[test]
fn a_job_that_is_switched_off_is_told_so() {
    for mpi in ALL {
        let job = Job::stock(mpi, 2, "collective_mpmd").polycast().variable("POLYCAST", "off");
        expect_one_line(&job.run(), "the stock MPI serves every call: POLYCAST=off");
    }
}

/// Calls by handles of a library that was opened by itself go past what is preloaded, alike on all ranks. Where only half of them do, no rank
/// counts what others do not.
#[test]
fn calls_past_the_preload_are_right_and_told() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mpi/by_handle.py");
    for mode in ["local", "global", "deep"] {
        // Some interpreters have a variable of libc's in themselves, which Open MPI does not find then.
        if mode == "deep" && !runs_bare(&["python3", script, mode]) {
            continue;
        }
        let (status, output) = reported(Mpi::OpenMpi, &["-n", "3"], &["python3", script, mode]);
        assert!(status.success() && output.stdout == "OK by_handle\n", "{mode}: {}", output.stderr);
        expect_one_line(&output, "finds MPI's functions past what is preloaded");
        let (status, output) = reported(Mpi::OpenMpi, &["-n", "3"], &["python3", script, mode, "mixed"]);
        assert!(status.success() && output.stdout == "OK by_handle\n", "{mode} mixed: {}", output.stderr);
        assert!(lines(&output)[0].contains("of 150 broadcasts"), "{mode} mixed: {}", output.stderr);
    }
}

/// Each process finds a library that nobody knows.
#[test]
fn an_unknown_mpi_is_one_line_per_job() {
    let program = Mpi::OpenMpi.built("odd/bcast_dlopen");
    for mpi in ALL {
        let job = Job::of(mpi, 3, vec![program.clone().into()]).preload(mpi.preload());
        let output = job.run();
        let said = output.stderr.matches("no MPI library that polycast knows is loaded").count();
        assert_eq!((said, output.lines_of("ODD").len()), (1, 3), "{mpi:?}: {}", output.stderr);
    }
}

#[test]
fn who_calls_mpi_abort_reports_before() {
    for mpi in ALL {
        for rank in ["0", "1"] {
            let folder = tempfile::tempdir().unwrap();
            let traces = folder.path().to_str().unwrap();
            let job = Job::stock(mpi, 2, "collective_abort").arguments(&[rank]).forced("chain");
            let (status, output) = job.variable("POLYCAST_TRACE", traces).finish();
            assert!(!status.success());
            let said = lines(&output);
            assert_eq!(
                said[0],
                format!("rank {rank} calls MPI_Abort; its own numbers:"),
                "{}",
                output.stderr
            );
            assert!(said[1].starts_with("served 20 of 20 broadcasts"), "{}", output.stderr);
            // For rank 0 that is ended its witness reports, as far as the launcher hands it on.
            let has_all = said.iter().any(|line| line.starts_with("bcast chain calls=20 "));
            assert!(has_all || rank != "0", "{}", output.stderr);
            let file = folder.path().join(format!("rank-00000{rank}.trace"));
            assert!(file.exists(), "{}: {}", file.display(), output.stderr);
        }
    }
}

/// Its calls are recorded, though nothing can be served, and the report names what the launcher expected.
#[test]
fn a_process_that_is_alone_is_recorded_and_told_whom_it_lacks() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(mpi.built("collective_singleton"));
        command.env("LD_PRELOAD", mpi.preload()).env("POLYCAST_REPORT", "1");
        command.env("POLYCAST_TRACE", folder.path()).env("SLURM_PROCID", "3").env("SLURM_NPROCS", "8");
        let (status, output) = finish(&mut command);
        let output = output.expect_ok("collective_singleton");
        assert!(status.success());
        let said = lines(&output);
        assert!(said[0].starts_with("served none of 100 broadcasts"), "{}", output.stderr);
        assert!(
            said[1].starts_with("MPI_COMM_WORLD has one rank, and SLURM_NPROCS says 8"),
            "{}",
            output.stderr
        );
        let trace = fs::read(folder.path().join("rank-000000.trace")).unwrap();
        let says = |words: &str| trace.windows(words.len()).any(|window| window == words.as_bytes());
        assert!(says("on communicators of one rank"), "{mpi:?}");
    }
}

/// The one that ends last says that the other's file goes; the report is the one's or the other's, whole.
#[test]
fn jobs_that_leave_the_same_files_beside_each_other_are_told() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let (go, report) = (folder.path().join("go"), folder.path().join("report.json"));
        let start = |words: &[&str]| {
            let mut command = Command::new(mpi.built("collective_singleton"));
            command.env("LD_PRELOAD", mpi.preload()).env("POLYCAST_REPORT", &report).args(words);
            command
                .env("POLYCAST_TRACE", folder.path().join("traces"))
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut last = start(&["linger", go.to_str().unwrap()]);
        // It has begun when it has made the folder.
        assert!(wait_for(&mut last, || folder.path().join("traces").exists()));
        let first = start(&[]).wait_with_output().unwrap();
        fs::write(&go, "").unwrap();
        let last = last.wait_with_output().unwrap();
        assert!(first.status.success() && last.status.success());
        let [first, last] = [first, last].map(|output| String::from_utf8(output.stderr).unwrap());
        assert!(!first.contains("polycast"), "{mpi:?}: {first}");
        assert!(last.contains("another job has written it since this one began"), "{mpi:?}: {last}");
        let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        assert_eq!(report["schema"], "polycast-report");
    }
}
