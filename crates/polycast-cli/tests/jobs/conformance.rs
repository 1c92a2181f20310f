//! `MPI_Bcast` behind polycast keeps MPI's promises: each program of `tests/mpi` runs on the bare library, which shows
//! that the program is right, and behind polycast with several algorithms, which must have served it.

use std::num::NonZeroU64;
use std::time::Duration;

use polycast_core::algorithm::{Algorithm, Registry};
use polycast_core::collective::Collective;

use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::common::{cannot_run, checkout};
use crate::job::under_each_mpi;

/// Every algorithm; one after the other whole, in segments that divide nothing, and with waiting for children.
fn algorithms() -> Vec<String> {
    let ways =
        [(None, false), (Some(1 << 10), false), (Some(777), true), (Some(8 << 10), false), (None, true)];
    let ways = ways.into_iter().cycle();
    let samples = Registry::BUILT_IN.samples(Collective::Broadcast).into_iter().zip(ways).map(
        |(sample, (segment, ready))| {
            Algorithm { segment: segment.and_then(NonZeroU64::new), ready, ..sample }.to_string()
        },
    );
    let on_one_node = Registry::BUILT_IN.samples_on_one_node(Collective::Broadcast).into_iter();
    samples.chain(on_one_node.map(|algorithm| algorithm.to_string())).collect()
}

/// Where the subject is not the algorithm: a pipeline with many messages, and a tree with one.
const FEW_ALGORITHMS: [&str; 2] = ["chain:segment=1KiB", "binomial"];

under_each_mpi!(
    bcast_roots,
    bcast_datatypes,
    bcast_communicators,
    bcast_many,
    bcast_graph,
    bcast_beside,
    bcast_attach,
    bcast_threads,
    bcast_errors,
    bcast_choice,
    bcast_lengths,
    unwritable_warning,
    bcast_mixed,
    bcast_mpifh,
    bcast_usempi,
    bcast_f08,
    bcast_mpi4py,
    bcast_dlopen,
    bcast_idle,
    profiler,
    switched_off,
    unusable_settings,
    differing_settings,
);

/// Fails unless the forced algorithm carried broadcasts: else the run proves nothing about it.
fn expect_served(output: &Output, algorithm: &str) {
    let report = output.report();
    if report.served_by(algorithm) == 0 {
        output.fail(&format!("{algorithm} served no broadcast: {report:?}"));
    }
}

/// The program on the bare library, then behind polycast with each algorithm, then with the table's choice, with a report and as users run it.
fn conforms(program: &str, algorithms: &[&str], job: impl Fn() -> Job) {
    job().run().expect_ok(program);
    for algorithm in algorithms {
        expect_served(&job().forced(algorithm).run().expect_ok(program), algorithm);
    }
    job().polycast().run().expect_ok(program).report();
    job().unwatched().run().expect_ok(program);
}

/// The same with one launch for all algorithms, each on a communicator of its own. What is told on the way names the algorithm.
fn conforms_at_once<A: AsRef<str>>(program: &str, algorithms: &[A], job: impl Fn() -> Job) {
    job().run().expect_ok(program);
    let names: Vec<&str> = algorithms.iter().map(AsRef::as_ref).collect();
    let all = job().polycast().variable("CHECK_ALGORITHMS", &names.join(" ")).run().expect_ok(program);
    names.iter().for_each(|algorithm| expect_served(&all, algorithm));
    job().polycast().run().expect_ok(program).report();
}

fn bcast_roots(mpi: Mpi) {
    conforms_at_once("bcast_roots", &algorithms(), || Job::stock(mpi, 5, "bcast_roots"));
    // The powers of two have their own way through recursive doubling, and 2 ranks are the smallest tree.
    for (ranks, algorithm) in [(4, "scatter-doubling"), (2, "split-binary:segment=777"), (2, "scatter-ring")]
    {
        let output = Job::stock(mpi, ranks, "bcast_roots").forced(algorithm).run().expect_ok("bcast_roots");
        expect_served(&output, algorithm);
    }
}

fn bcast_datatypes(mpi: Mpi) {
    conforms_at_once("bcast_datatypes", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_datatypes"));
}

mod bcast_large {
    #[test]
    #[ignore = "make test-all: minutes, and 5 GB of memory"]
    fn openmpi() {
        super::bcast_large(super::Mpi::OpenMpi);
    }
    #[test]
    #[ignore = "make test-all: minutes, and 5 GB of memory"]
    fn mpich() {
        super::bcast_large(super::Mpi::Mpich);
    }
}

/// Two ranks, for the memory. A message above 2 GiB goes whole (more than an `int` can count) and in segments.
fn bcast_large(mpi: Mpi) {
    let job = || Job::stock(mpi, 2, "bcast_large").limit(Duration::from_secs(1800));
    job().run().expect_ok("bcast_large");
    for algorithm in ["binomial", "chain:segment=1MiB"] {
        expect_served(&job().forced(algorithm).run().expect_ok("bcast_large"), algorithm);
    }
}

/// The thousands run where making a communicator is cheap: MPICH needs 30 ms when ranks outnumber cores.
fn bcast_communicators(mpi: Mpi) {
    let (ranks, few) = (4, "50");
    conforms("bcast_communicators", &FEW_ALGORITHMS, || {
        Job::stock(mpi, ranks, "bcast_communicators").arguments(&[few])
    });
    let many =
        Job::stock(mpi, 2, "bcast_communicators").forced("binomial").run().expect_ok("bcast_communicators");
    let report = many.report();
    // MPI_COMM_WORLD stays attached until the report is made.
    if report.attached < 1000 || report.attached - report.released > 1 {
        many.fail("expected a thousand communicators attached, and all but MPI_COMM_WORLD released");
    }
}

/// They take nothing of the library's, so all are served.
fn bcast_many(mpi: Mpi) {
    let job = || Job::stock(mpi, 3, "bcast_many").arguments(&["300"]);
    conforms("bcast_many", &[], job);
    let output = job().forced("binomial").run().expect_ok("bcast_many");
    let report = output.report();
    // Two broadcasts on each of 300.
    if (report.served_by("binomial"), report.stock()) != (600, 0) {
        output.fail(&format!("expected 600 broadcasts served and none left to stock: {report:?}"));
    }
}

/// Open MPI's own code hung where a communicator was made at a first broadcast: in MPI_Dist_graph_create, and beside another thread's
/// MPI_Comm_create_group.
fn bcast_graph(mpi: Mpi) {
    conforms("bcast_graph", &FEW_ALGORITHMS, || Job::stock(mpi, 5, "bcast_graph").arguments(&["40"]));
}

fn bcast_beside(mpi: Mpi) {
    conforms("bcast_beside", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_beside").arguments(&["20"]));
}

fn bcast_attach(mpi: Mpi) {
    conforms("bcast_attach", &FEW_ALGORITHMS, || {
        Job::stock(mpi, 4, "bcast_attach").arguments(&["split", "9000", "100"])
    });
}

/// Without MPI_COMM_WORLD and MPI_COMM_SELF everything is left to the library, and nothing ends the job.
///
/// Open MPI 4 has no sessions.
#[test]
fn bcast_sessions() {
    let job = || Job::stock(Mpi::Mpich, 3, "bcast_sessions");
    job().run().expect_ok("bcast_sessions");
    job().forced("chain").run().expect_ok("bcast_sessions");
}

/// MPICH's waiting threads spin and hold its one lock: it gets fewer ranks and broadcasts.
fn bcast_threads(mpi: Mpi) {
    let (ranks, broadcasts) = if mpi.is_open_mpi() { (3, "200") } else { (2, "60") };
    let job = || Job::stock(mpi, ranks, "bcast_threads").arguments(&[broadcasts]);
    conforms("bcast_threads", &FEW_ALGORITHMS, job);
}

/// A caller sees the same error classes, its handler is called as often, and truncation is noticed.
fn bcast_errors(mpi: Mpi) {
    let same = |job: &dyn Fn() -> Job, algorithms: &[&str]| {
        let stock = job().run().expect_ok("bcast_errors");
        for algorithm in algorithms {
            let output = job().forced(algorithm).run().expect_ok("bcast_errors");
            assert_eq!(output.lines_of("ERR"), stock.lines_of("ERR"), "{algorithm} under {}", mpi.name());
            expect_served(&output, algorithm);
        }
    };
    same(&|| Job::stock(mpi, 3, "bcast_errors"), &FEW_ALGORITHMS);
    same(&|| Job::stock(mpi, 2, "bcast_errors").arguments(&["--truncation"]), &["binomial"]);
}

/// Also where calls before were only counted.
fn bcast_choice(mpi: Mpi) {
    let table = tempfile::NamedTempFile::new().unwrap();
    let rule = |conditions: &str, choice: &str| {
        format!("[[rule]]\ncollective = 'bcast'\n{conditions}\nuse = '{choice}'\n")
    };
    let rules = rule("bytes = '32KiB..'", "chain")
        + &rule("earlier_calls = '100..200'", "binomial")
        + &rule("earlier_calls = '200..'", "chain");
    std::fs::write(table.path(), format!("version = 1\n{rules}")).unwrap();
    for report in ["off", "on"] {
        let job = Job::stock(mpi, 2, "bcast_choice").arguments(&["100", "binomial", "200", "chain"]);
        let job = job.unwatched().variable("POLYCAST_REPORT", report);
        let job = job.variable("POLYCAST_TABLE", table.path().to_str().unwrap());
        job.variable("POLYCAST_TRIALS", "off").run().expect_ok("bcast_choice");
    }
}

/// Ranks that call with different lengths end: on the bare library this program may leave messages behind, so it is not run there.
fn bcast_lengths(mpi: Mpi) {
    let algorithms = [
        "chain:segment=2KiB",
        "chain:segment=4KiB,ready",
        "binary:segment=16KiB",
        "scatter-ring",
        "split-binary:segment=1KiB",
    ];
    for algorithm in algorithms {
        let job = Job::stock(mpi, 5, "bcast_lengths").forced(algorithm);
        expect_served(&job.run().expect_ok("bcast_lengths"), algorithm);
    }
}

/// A warning that cannot be written changes nothing: one rank that went to stock because of it would leave the others waiting.
fn unwritable_warning(mpi: Mpi) {
    let program = mpi.built("bcast_roots").into_os_string();
    // Nobody reads the pipe any more when the warning comes.
    for script in ["exec \"$0\" 2>/dev/full", "trap '' PIPE; { \"$0\" 2>&1 >&3 | :; } 3>&1"] {
        let words = vec!["sh".into(), "-c".into(), script.into(), program.clone()];
        let job = Job::of(mpi, 2, words).polycast().variable("POLYCAST_BCAST", "chian");
        job.run().expect_ok("bcast_roots");
    }
}

fn bcast_mixed(mpi: Mpi) {
    let algorithms = ["chain:segment=1KiB", "binomial", "k-nomial:k=4,ready", "scatter-ring"];
    conforms("bcast_mixed", &algorithms, || Job::stock(mpi, 4, "bcast_mixed"));
}

fn bcast_mpifh(mpi: Mpi) {
    conforms("bcast_mpifh", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_mpifh"));
}

fn bcast_usempi(mpi: Mpi) {
    conforms("bcast_usempi", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_usempi"));
}

fn bcast_f08(mpi: Mpi) {
    conforms("bcast_f08", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_f08"));
}

/// It opens `libmpi.so`, privately, and no variable helps it.
fn bcast_mpi4py(mpi: Mpi) {
    let python = match mpi.python_with_mpi4py() {
        Ok(python) => python,
        Err(reason) => return cannot_run(&reason),
    };
    let script = checkout().join("tests/mpi/bcast_mpi4py.py");
    conforms("bcast_mpi4py", &FEW_ALGORITHMS, || {
        Job::of(mpi, 3, vec![python.clone().into(), script.clone().into()])
    });
}

fn bcast_dlopen(mpi: Mpi) {
    conforms("bcast_dlopen", &FEW_ALGORITHMS, || Job::stock(mpi, 4, "bcast_dlopen"));
}

/// A rank that waits for a late root leaves its core to others, whether or not there is a core for every rank.
fn bcast_idle(mpi: Mpi) {
    const LIMIT_PERCENT: f64 = 10.0;
    for (ranks, bytes, algorithm) in
        [("2", "4096", "binomial"), ("4", "1000000", "chain:segment=8KiB"), ("16", "4096", "binomial")]
    {
        let job = Job::stock(mpi, ranks.parse().expect("a number of ranks"), "bcast_idle");
        let output = job.arguments(&[bytes, "1", "2"]).forced(algorithm).run().expect_ok("bcast_idle");
        let percent = output.number("IDLE", "max_percent");
        if percent >= LIMIT_PERCENT {
            output.fail(&format!(
                "a waiting rank used {percent} % of a core, expected below {LIMIT_PERCENT} %"
            ));
        }
        expect_served(&output, algorithm);
    }
}

/// A profiler before or behind polycast sees every call, and polycast still serves them.
fn profiler(mpi: Mpi) {
    let job = || Job::stock(mpi, 4, "bcast_mpifh");
    let in_c = || Job::stock(mpi, 4, "bcast_roots").preload(mpi.built("profiler.so"));
    let alone = in_c().run().expect_ok("bcast_roots").number("PROFILER", "calls");
    let output = in_c().forced("binomial").run().expect_ok("bcast_roots");
    if output.number("PROFILER", "calls") != alone {
        output.fail(&format!("the profiler alone counts {alone} calls"));
    }
    expect_served(&output, "binomial");
    // As one that is linked into the program.
    let first = Job::stock(mpi, 4, "bcast_roots").forced("binomial");
    let behind = first.preload(mpi.built("profiler.so")).run().expect_ok("bcast_roots");
    if behind.number("PROFILER", "calls") != alone {
        behind.fail(&format!("behind polycast the profiler does not count {alone} calls"));
    }
    expect_served(&behind, "binomial");
    // Fortran calls PMPI_Bcast under Open MPI, where the C profiler sees nothing and polycast must.
    let fortran = job().preload(mpi.built("profiler.so")).forced("binomial").run().expect_ok("bcast_mpifh");
    expect_served(&fortran, "binomial");
}

/// `POLYCAST=off` leaves everything to the MPI library.
fn switched_off(mpi: Mpi) {
    let output = Job::stock(mpi, 4, "bcast_roots").forced("binomial").variable("POLYCAST", "off").run();
    let output = output.expect_ok("bcast_roots");
    if output.stderr.contains("polycast: report: bcast binomial") {
        output.fail("polycast was switched off and served broadcasts");
    }
}

/// Settings that cannot be used never stop a job: it is said once, not by every rank.
fn unusable_settings(mpi: Mpi) {
    let table = tempfile::NamedTempFile::with_suffix(".toml").expect("a temporary file");
    std::fs::write(table.path(), "[[rule]]\ncolour = \"red\"\n").expect("a writable temporary file");
    let path = table.path().to_string_lossy().into_owned();
    for (variable, value) in [("POLYCAST_BCAST", "chian:segment=1KiB"), ("POLYCAST_TABLE", &path)] {
        let output = Job::stock(mpi, 3, "bcast_roots").polycast().variable(variable, value).run();
        let output = output.expect_ok("bcast_roots");
        let named = value.split(':').next().unwrap_or(value);
        let warnings = output.stderr.lines().filter(|line| line.contains(named)).count();
        if warnings != 1 {
            output.fail(&format!("expected one line that names {named}, found {warnings}"));
        }
    }
}

/// Where ranks have different settings, those of rank 0 count on all.
fn differing_settings(mpi: Mpi) {
    let table = tempfile::NamedTempFile::with_suffix(".toml").expect("a temporary file");
    let rules = "version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"chain\"\n";
    std::fs::write(table.path(), rules).expect("a writable temporary file");
    let table = table.path().to_string_lossy();
    let own_rank = mpi.rank_variable();
    let program = mpi.built("bcast_roots").into_os_string();
    for (name, value) in [("POLYCAST_BCAST", "chain"), ("POLYCAST_TABLE", &*table)] {
        for rank in [0, 1] {
            let script = format!("[ ${own_rank} = {rank} ] && export {name}={value}; exec \"$0\"");
            let words = vec!["sh".into(), "-c".into(), script.into(), program.clone()];
            let output = Job::of(mpi, 3, words).polycast().run().expect_ok("bcast_roots");
            let is_chain = output.report().served_by("chain") > 0;
            if is_chain != (rank == 0) {
                output.fail(&format!("{name} on rank {rank} only: chain serves: {is_chain}"));
            }
        }
    }
}
