//! Traces of real jobs: recorded under both MPIs, read by `polycast report`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::job::Job;
use crate::common::mpi::Mpi;

const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn report(arguments: &[&str], folder: &Path) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
    let output = command.arg("report").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// `bcast_mixed` broadcasts by the chain, and calls three other collectives, which the MPI serves.
#[test]
fn every_rank_of_a_job_leaves_its_calls() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("traces");
        let job = Job::stock(mpi, 3, "bcast_mixed").preload(mpi.preload()).variable("POLYCAST_CACHE", "off");
        let job =
            job.variable("POLYCAST_BCAST", "chain").variable("POLYCAST_TRACE", traces.to_str().unwrap());
        let output = job.run().expect_ok("bcast_mixed");
        assert!(!output.stderr.contains("polycast"), "{}", output.stderr);

        let summary: Value = serde_json::from_slice(&report(&["traces", "--json"], folder.path())).unwrap();
        assert_eq!((&summary["ranks"], &summary["traced_ranks"]), (&3.into(), &3.into()));
        assert_eq!(summary["notes"], Value::Array(vec![]), "{mpi:?}");
        let groups = summary["groups"].as_array().unwrap();
        for group in groups {
            assert_eq!(group["calls"], group["whole_calls"], "{group:#}");
            let expected = if group["collective"] == "bcast" { "chain" } else { "stock" };
            assert_eq!(group["choice"], expected);
        }
        let calls = |of: &str| -> u64 {
            groups
                .iter()
                .filter(|group| group["collective"] == of)
                .filter_map(|group| group["calls"].as_u64())
                .sum()
        };
        let told: Value =
            serde_json::from_str(&fs::read_to_string(traces.join("report.json")).unwrap()).unwrap();
        assert_eq!(told["rank_0"]["served"]["calls"], calls("bcast"));
        assert!(calls("barrier") > 0 && calls("allreduce") > 0);
        assert!(summary["uncounted"].to_string().contains("MPI_Ibcast"));

        report(&["traces", "-o", "page.html", "--perfetto", "events.json"], folder.path());
        let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
        assert!(page.contains("bcast_mixed on 3 ranks"));
    }
}

/// The clocks of two ranks are shifted by 1000 s, as time namespaces can; without a common clock the job would seem that long.
#[test]
fn ranks_whose_clocks_differ_are_brought_together() {
    const SHIFT: &str = "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in [12]) exec unshare -T --monotonic 1000 --fork \"$0\" ;; esac; exec \"$0\"";
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let program = ["sh".into(), "-c".into(), SHIFT.into(), mpi.built("bcast_mixed").into_os_string()];
        let job = Job::of(mpi, 3, program.into()).preload(mpi.preload()).variable("POLYCAST_CACHE", "off");
        job.variable("POLYCAST_TRACE", folder.path().to_str().unwrap()).run().expect_ok("bcast_mixed");
        let summary: Value = serde_json::from_slice(&report(&[".", "--json"], folder.path())).unwrap();
        assert_eq!((&summary["traced_ranks"], &summary["notes"]), (&3.into(), &Value::Array(vec![])));
        let number = |key: &str| summary[key].as_f64().unwrap();
        assert!(number("clock_error_us") > 0.0 && number("seconds") < 900.0, "{mpi:?}: {summary:#}");
        let whole = |group: &Value| {
            group["calls"] == group["whole_calls"] && group["skew_in_us"].as_f64() < Some(9e8)
        };
        assert!(summary["groups"].as_array().unwrap().iter().all(whole), "{mpi:?}: {summary:#}");
    }
}

/// What ranks did once, they do again: rank 1 is 30 ms late in every row.
#[test]
fn recorded_arrivals_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (file, json) = (folder.path().join("job.arrivals"), folder.path().join("points.json"));
    fs::write(&file, "polycast-arrivals 1\n# a job\nranks 3\n0 0 30000000 5\n0 0 30000000 0\n").unwrap();
    let run = |ranks: &str| {
        let fixed = ["--variants", "stock", "--sizes", "1KiB", "--time", "300ms", "--mpi", "openmpi"];
        let files = ["--arrival", file.to_str().unwrap(), "--json", json.to_str().unwrap()];
        crate::bench::run(&[&fixed[..], &files, &["-n", ranks]].concat())
    };
    let output = run("3");
    assert!(output.status.success(), "{}", crate::bench::text(&output.stderr));
    let (_, points) = crate::bench::read_json(&json);
    assert_eq!((&points[0]["arrival"], &points[0]["delay_us"]), (&"recorded".into(), &30_000.0.into()));
    // Rank 1 sleeps until it is its time, so however busy the machine is it returns later.
    assert!(points[0]["per_rank_median_us"][1].as_f64().unwrap() >= 25_000.0, "{points:?}");
    let refused = run("2");
    let said = crate::bench::text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("expected as many ranks as this job has"), "{said}");
}

/// A rank waits for one that sleeps for ever; the job is told to end.
#[test]
fn a_job_that_is_ended_leaves_its_last_calls() {
    for mpi in ALL {
        let folder = tempfile::tempdir().unwrap();
        let folder_name = folder.path().to_str().unwrap();
        let job = Job::stock(mpi, 2, "bcast_ended").preload(mpi.preload());
        let job = job.variable("POLYCAST_BCAST", "chain").variable("POLYCAST_TRACE", folder_name);
        let (status, _) = job.finish();
        assert!(!status.success());
        let summary: Value = serde_json::from_slice(&report(&[".", "--json"], folder.path())).unwrap();
        let notes = summary["notes"].to_string();
        assert!(notes.contains("were ended by SIGTERM"), "{mpi:?}: {summary:#}");
        // Ten that ended, and the one that did not.
        assert_eq!(summary["calls"], 11, "{mpi:?}: {summary:#}");
    }
}
