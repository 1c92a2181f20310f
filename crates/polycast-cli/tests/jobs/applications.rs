//! `examples/applications`: the same results behind polycast.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::cluster::TOOL;
use crate::common::browser::{put_at_the_end, seen};
use crate::common::checkout;
use crate::common::job::{Job, Output};
use crate::common::mpi::Mpi;
use crate::job::{LabJob, lab, under_each_mpi};

/// Of Debian's package quantum-espresso-data.
const PSEUDOPOTENTIAL: &str = "/usr/share/espresso/pseudo/Si.pz-vbc.UPF";

under_each_mpi!(a_matrix_multiplication);

/// The matrix multiplication as this MPI's compiler makes it.
fn matmul(mpi: Mpi, folder: &Path) -> PathBuf {
    let program = folder.join("matmul");
    let source = checkout().join("examples/applications/matmul.c");
    let mut compiler = Command::new(format!("mpicc.{}", mpi.name()));
    let made =
        compiler.args(["-std=c17", "-O2", "-fopenmp", "-o"]).args([&program, &source]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn a_matrix_multiplication(mpi: Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let program = matmul(mpi, folder.path());
    // Three rows of two columns: roots of both kinds come in turns, in communicators of two sizes.
    let job = || {
        let job = Job::of(mpi, 6, vec![program.clone().into()]).arguments(&["96", "3", "2"]);
        job.variable("OMP_NUM_THREADS", "2")
    };
    let stock = job().run();
    let output = job().forced("binomial").run();
    assert_eq!(output.lines_of("RESULT"), stock.lines_of("RESULT"));
    assert!(stock.lines_of("RESULT")[0].ends_with(" wrong=0"), "{}", stock.stdout);
    // lcm(3, 2) parts of A and of B.
    assert_eq!(output.report().served(), 12, "{}", output.stderr);
}

#[test]
fn a_matrix_multiplication_between_hosts() {
    let Some(labs) = lab(4, &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = matmul(Mpi::OpenMpi, folder.path());
    let job = || {
        let job = LabJob::of(&labs, Mpi::OpenMpi, 4, &[program.to_str().unwrap()]);
        job.arguments(&["256", "2", "2"]).variable("OMP_NUM_THREADS", "1")
    };
    let stock = job().run();
    let output = job().forced("multicast-pull").run();
    assert_eq!(output.lines_of("RESULT"), stock.lines_of("RESULT"));
    assert!(stock.lines_of("RESULT")[0].ends_with(" wrong=0"), "{}", stock.stdout);
    assert!(output.report().served() > 0, "{}", output.stderr);
    labs.succeeds(&["down", "--all"]);
}

/// What the page of any job must be.
const VISIT: &str = r##"
<script>
const wrong = [];
window.addEventListener("error", (event) => wrong.push(event.message));
const want = (what, is) => { if (!is) wrong.push(what); };
const until = (is, then, tries = 40) => setTimeout(() => (is() || tries === 0 ? then() : until(is, then, tries - 1)), 100);
until(() => document.documentElement.dataset.ready === "1", () => {
  want("the script did not come to its end", document.documentElement.dataset.ready === "1");
  want("no calls are listed", document.querySelectorAll("#calls tbody tr").length > 0);
  want("the page is wider than the window", document.documentElement.scrollWidth <= innerWidth);
  const end = document.createElement("p");
  end.id = "seen";
  end.textContent = wrong.length ? "WRONG " + wrong.join("; ") : "SEEN";
  document.body.append(end);
});
</script>
"##;

/// A program of others on eight hosts, in a folder of its own with its files: the lines of what it prints that hold results are the same with and
/// without polycast, and its trace becomes a page that can be looked at.
fn same_results(folder: &Path, program: &str, is_result: impl Fn(&str) -> bool) {
    let Some(labs) = lab(8, &[]) else { return };
    // Programs look for their files where they are; ranks of a lab are elsewhere.
    let line = format!("cd {} && exec {program}", folder.display());
    let job = || {
        let job = LabJob::of(&labs, Mpi::OpenMpi, 8, &["sh", "-c", &line]);
        job.variable("OMP_NUM_THREADS", "1").limit(Duration::from_secs(900))
    };
    let results = |output: &Output| -> Vec<String> {
        output.stdout.lines().filter(|line| is_result(line)).map(str::to_owned).collect()
    };
    let stock = job().run();
    let expected = results(&stock);
    assert!(!expected.is_empty(), "{}", stock.stdout);
    let traces = folder.join("traces");
    for forced in [false, true] {
        let job = if forced { job().forced("chain:segment=4KiB") } else { job().polycast() };
        let output = job.variable("POLYCAST_TRACE", traces.to_str().unwrap()).run();
        assert_eq!(results(&output), expected, "{}", output.stderr);
        assert!(!forced || output.report().served() > 0, "{}", output.stderr);
    }
    labs.succeeds(&["down", "--all"]);
    let page = folder.join("page.html");
    let made = Command::new(TOOL).arg("report").arg(&traces).arg("-o").arg(&page).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    put_at_the_end(&page, VISIT);
    let (said, _) = seen(&page, 1280);
    assert_eq!(said, "SEEN");
}

/// A folder with files of `examples/applications`.
fn with_files(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(checkout().join("examples/applications").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
#[ignore = "make test-all: LAMMPS, a lab and a browser"]
fn lammps_has_the_same_results() {
    let folder = with_files(&["melt.in"]);
    // Step, temperature, energies, pressure.
    let is_result = |line: &str| {
        line.split_whitespace().all(|word| word.parse::<f64>().is_ok())
            && line.split_whitespace().count() == 6
    };
    same_results(folder.path(), "lmp -in melt.in -log none", is_result);
}

#[test]
#[ignore = "make test-all: Quantum ESPRESSO, a lab and a browser"]
fn quantum_espresso_has_the_same_results() {
    let folder = with_files(&["si.in"]);
    fs::copy(PSEUDOPOTENTIAL, folder.path().join("Si.pz-vbc.UPF")).unwrap();
    same_results(folder.path(), "pw.x -in si.in", |line| line.contains("total energy  "));
}

#[test]
#[ignore = "make test-all: ABINIT, a lab and a browser"]
fn abinit_has_the_same_results() {
    let folder = with_files(&["si.abi"]);
    same_results(folder.path(), "abinit si.abi", |line| line.starts_with(" ETOT "));
}

#[test]
#[ignore = "make test-all: the sources of HPL, a BLAS, a lab and a browser"]
fn hpl_with_our_patch_has_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(checkout().join("examples/applications/hpl/build.sh"));
    let built = build.arg(folder.path()).arg("mpicc.openmpi").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // A smaller problem, or it takes minutes.
    let input = fs::read_to_string(folder.path().join("hpccinf.txt")).unwrap();
    fs::write(folder.path().join("hpccinf.txt"), input.replace("2000         Ns", "600          Ns"))
        .unwrap();
    // Its first rank writes behind what is there.
    let is_first = "[ $OMPI_COMM_WORLD_RANK != 0 ] ||";
    let script = format!("{is_first} rm -f hpccoutf.txt; ./xhpl && {{ {is_first} cat hpccoutf.txt; }}");
    same_results(folder.path(), &format!("sh -c '{script}'"), |line| {
        line.contains("||Ax-b||") && line.contains("PASSED")
    });
}
