//! The component for Open MPI 5, in a fresh system of the Debian that has its headers: PyPI's Open MPI opens no components.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::job::LIMIT;
use crate::common::{checkout, library_directory};
use crate::packages::{inside, succeeds};

/// With how many ranks, and arguments.
const PROGRAMS: [(&str, u32, &str); 9] = [
    ("bcast_roots", 4, ""),
    ("bcast_datatypes", 3, ""),
    ("bcast_types", 3, ""),
    ("bcast_mixed", 3, ""),
    ("bcast_errors", 3, ""),
    ("bcast_communicators", 3, "50"),
    ("collective_values", 3, "1"),
    ("collective_errors", 3, ""),
    ("collective_nonblocking", 4, "freed"),
];

const MAKE_PROGRAMS: &str = "make --silent -C /polycast/tests/mpi MPICC=mpicc OUT=/programs";
const BUILD: &str =
    "OPENMPI_HEADERS=$(echo /usr/lib/*/pmix2/include) /polycast/doors/build.sh /library mpicc";
/// PMIx, to which Open MPI 5's launcher gives the same folder, would tell that ours is none of its.
const FOUND: &str = "export POLYCAST_CACHE=off OMPI_MCA_mca_base_component_path=/library/openmpi5 \
                     PMIX_MCA_mca_base_component_path=$(echo /usr/lib/*/pmix2/lib/pmix)";
const MPIEXEC: &str = "mpiexec --allow-run-as-root --oversubscribe --mca btl ^tcp";

/// A system with Open MPI 5, its headers, and what the door and the component are built from.
fn system(root: &Path) {
    let mut bootstrap = Command::new("debootstrap");
    bootstrap.args(["--variant=minbase", "trixie"]).arg(root);
    succeeds(&mut bootstrap, Duration::from_secs(900));
    inside(root, "apt-get install -y --no-install-recommends gcc libc6-dev make openmpi-bin libopenmpi-dev");
    let copy = |from: &Path, parts: &[&str], to: &str| {
        fs::create_dir(root.join(to)).unwrap();
        let mut command = Command::new("cp");
        command.arg("-r").args(parts.iter().map(|part| from.join(part))).arg(root.join(to));
        succeeds(&mut command, LIMIT);
    };
    copy(checkout(), &["doors", "include", "bench", "tests", "Cargo.toml"], "polycast");
    copy(&library_directory(), &["libpolycast.so"], "library");
    let programs = PROGRAMS.map(|(program, ..)| format!("/programs/{program}")).join(" ");
    inside(root, &format!("{MAKE_PROGRAMS} {programs}"));
}

#[test]
#[ignore = "make test-all: needs debootstrap, root, and Debian's packages"]
fn open_mpi_5_is_served_by_its_component() {
    let root = tempfile::tempdir().unwrap();
    system(root.path());
    let run = |line: &str| inside(root.path(), line);
    let said = run(BUILD);
    assert!(said.contains("a component for Open MPI 5.0"), "{said}");
    let listed = run(&format!("{FOUND}; ompi_info --param coll polycast --level 9"));
    for name in ["priority", "bcast", "allreduce", "report"] {
        assert!(listed.contains(&format!("\"coll_polycast_{name}\"")), "{name}: {listed}");
    }
    let forced = "POLYCAST_REPORT=1 POLYCAST_BCAST=chain:segment=1KiB POLYCAST_ALLREDUCE=recursive-doubling";
    for (program, ranks, arguments) in PROGRAMS {
        let job = |environment: &str, options: &str| {
            run(&format!(
                "{environment}; {forced} {MPIEXEC} {options} -n {ranks} /programs/{program} {arguments} 2>&1"
            ))
        };
        let errors = |said: &str| -> Vec<String> {
            said.lines().filter(|line| line.starts_with("ERR ")).map(str::to_owned).collect()
        };
        let (stock, served) = (job(":", ""), job(FOUND, ""));
        assert!(stock.contains(&format!("OK {program}")) && !stock.contains("polycast: "), "{stock}");
        assert!(served.contains(&format!("OK {program}")), "{program}: {served}");
        assert_eq!(errors(&stock), errors(&served), "{program}");
        if program.starts_with("bcast_") {
            assert!(served.contains("by chain:segment=1KiB"), "{program}: {served}");
            let off = job(FOUND, "--mca coll_polycast_priority 0");
            assert!(off.contains("OK") && !off.contains("polycast: "), "{off}");
        }
    }

    // As if Open MPI had been configured otherwise: a communicator of another size.
    run("sed -i 's/^struct ompi_communicator_t {/&long added[4];/' \
         /usr/lib/*/openmpi/include/openmpi/ompi/communicator/communicator.h");
    run(BUILD);
    let said = run(&format!("{FOUND}; {forced} {MPIEXEC} -n 4 /programs/bcast_roots 2>&1"));
    assert!(said.contains("OK bcast_roots"), "{said}");
    assert_eq!(said.matches("polycast: warning: ").count(), 1, "{said}");
    assert!(said.contains("was built with headers of 5.0."), "{said}");
}
