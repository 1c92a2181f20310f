//! The report of a real job: its sentence, its reasons, its file, and what it says of variables.

use std::fs;

use serde_json::Value;

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// Broadcasts of many sizes and `MPI_Ibcast` on three ranks of one node.
fn mixed(mpi: Mpi) -> Job {
    Job::stock(mpi, 3, "bcast_mixed").polycast()
}

/// The lines of the report, without what they all begin with.
fn lines(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter_map(|line| line.strip_prefix("polycast: report: ")).collect()
}

fn expect_line<'a>(output: &'a Output, words: &[&str]) -> &'a str {
    let is_it = |line: &&str| words.iter().all(|word| line.contains(word));
    let found = lines(output).into_iter().find(is_it);
    found.unwrap_or_else(|| output.fail(&format!("expected a line of the report with {words:?}")))
}

#[test]
fn a_served_job_is_told_in_a_sentence() {
    for mpi in ALL {
        let output = mixed(mpi).variable("POLYCAST_BCAST", "chain").run().expect_ok("bcast_mixed");
        let report = output.report();
        let (served, all) = (report.served(), report.served() + report.stock());
        let sentence = lines(&output)[0];
        let expected = format!("served {served} of {all} broadcasts (");
        if served == 0 || !sentence.starts_with(&expected) || !sentence.contains(") by chain in ") {
            output.fail(&format!("expected `{expected}…) by chain in …`, found `{sentence}`"));
        }
        expect_line(&output, &["cannot be served: ", " of MPI_Ibcast ("]);
        expect_line(&output, &["1KiB..4KiB polycast"]);
    }
}

#[test]
fn a_job_on_one_node_is_told_why_calls_were_left_to_the_mpi() {
    for mpi in ALL {
        let output = mixed(mpi).run().expect_ok("bcast_mixed");
        // Not the first 256 calls of a communicator.
        assert!(lines(&output)[0].contains(") by cells in "), "{}", output.stderr);
        expect_line(&output, &["left to the MPI: ", "within a node: short", "line "]);

        let forced = mixed(mpi).variable("POLYCAST_BCAST", "stock").run().expect_ok("bcast_mixed");
        expect_line(&forced, &["left to the MPI: ", ": POLYCAST_BCAST=stock"]);

        let job = Job::stock(mpi, 4, "bcast_communicators").arguments(&["5"]).polycast();
        let output = job.run().expect_ok("bcast_communicators");
        expect_line(&output, &["left to the MPI: ", ": on intercommunicators"]);
        expect_line(&output, &["left to the MPI: ", ": on communicators of one rank"]);
    }
}

/// Also where the library has no MPI_Bcast_c, and MPI_Bcast does its work.
#[test]
fn a_call_with_a_large_count_is_counted_once() {
    for mpi in ALL {
        let output = Job::stock(mpi, 1, "bcast_count").polycast().run().expect_ok("bcast_count");
        expect_line(&output, &["left to the MPI: 10 broadcasts (40 B)", ": on communicators of one rank"]);
    }
}

#[test]
fn the_report_goes_to_a_file_as_json() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("%h.json").to_str().unwrap().to_owned();
        let job = Job::stock(mpi, 3, "bcast_mixed").preload(mpi.preload()).variable("POLYCAST_REPORT", &name);
        let output = job.variable("POLYCAST_BCAST", "chain").run().expect_ok("bcast_mixed");
        assert!(!output.stderr.contains("polycast"), "{}", output.stderr);

        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() == 1 && !files[0].to_str().unwrap().contains('%'), "{files:?}");
        let report: Value = serde_json::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
        assert_eq!((&report["schema"], &report["schema_version"]), (&"polycast-report".into(), &1.into()));
        let calls = |of: &str| report[of]["served"]["calls"].as_u64().unwrap();
        let mine = &report["rank_0"];
        assert!(calls("rank_0") > 0 && calls("all_ranks") == 3 * calls("rank_0"), "{report:#}");
        let seconds = |value: &Value| value["seconds"].as_f64().unwrap();
        assert!(seconds(&mine["served"]) > 0.0 && seconds(&mine["algorithms"][0]) > 0.0, "{report:#}");
        assert_eq!(
            (&mine["algorithms"][0]["algorithm"], &mine["unserved"][0]["operation"]),
            (&"chain".into(), &"MPI_Ibcast".into())
        );
        let unserved = mine["unserved"].as_array().unwrap();
        let persistent = unserved.iter().find(|of| of["operation"] == "MPI_Bcast_init");
        // Debian's Open MPI is one of MPI 3.
        assert_eq!(persistent.map(|of| of["calls"] == 1), (mpi == Mpi::Mpich).then_some(true), "{report:#}");
        let unserved: u64 = unserved.iter().map(|of| of["calls"].as_u64().unwrap()).sum();
        assert_eq!(report["all_ranks"]["unserved"]["calls"].as_u64(), Some(3 * unserved));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_when_mpi_begins_and_its_sentence_when_it_ends() {
    for mpi in ALL {
        let job = Job::stock(mpi, 3, "bcast_mixed").preload(mpi.preload());
        let output = job.variable("POLYCAST_REPORT", "/nowhere/report.json").run().expect_ok("bcast_mixed");
        let said: Vec<&str> = output.stderr.lines().filter(|line| line.contains("polycast")).collect();
        let warning = "polycast: warning: report /nowhere/report.json: No such file or directory";
        let [first, last] = said[..] else { output.fail("expected two lines") };
        let is_it = first.starts_with(warning) && first.ends_with("it will be a sentence here");
        assert!(is_it && last.starts_with(warning) && last.contains("; served "), "{}", output.stderr);
    }
}

#[test]
fn words_for_off_make_no_report() {
    for mpi in ALL {
        for word in ["off", "0", "No", "false"] {
            let job = Job::stock(mpi, 2, "bcast_mixed").preload(mpi.preload());
            let output = job.variable("POLYCAST_REPORT", word).run().expect_ok("bcast_mixed");
            assert!(!output.stderr.contains("polycast"), "{word}: {}", output.stderr);
        }
    }
}

/// By one rank alone, however many have them.
#[test]
fn variables_that_nobody_reads_are_one_warning() {
    for mpi in ALL {
        let job = mixed(mpi).variable("POLYCAST_BCST", "chain").variable("POLYCAST", "maybe");
        let output = job.run().expect_ok("bcast_mixed");
        let said: Vec<&str> = output.stderr.lines().filter(|line| line.contains("warning")).collect();
        let expected = "polycast: warning: POLYCAST=maybe: expected on or off; taken for on; \
                        POLYCAST_BCST is unknown: did you mean POLYCAST_BCAST?";
        assert_eq!(said, [expected]);
    }
}
