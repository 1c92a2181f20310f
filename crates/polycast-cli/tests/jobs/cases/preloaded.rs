//! What a site or a user preloads already, and settings of the loader, stay; polycast serves behind them.

use crate::cluster::TOOL;
use crate::common::job::{LIMIT, Output, finish, place, timeout};
use crate::common::library_directory;
use crate::common::mpi::Mpi;
use crate::job::under_each_mpi;

use super::{SIZES, expect_some_served};

under_each_mpi!(a_sites_objects_stay_in_front);

/// `polycast run` in an environment with a variable; its ranks print what they are to preload.
fn run_with(mpi: Mpi, name: &str, value: &str) -> Output {
    let mut command = timeout(LIMIT);
    command.arg(TOOL).args(["run", "--mpi", mpi.name(), "-n", "2", "--report"]);
    for prefix in ["OMPI", "PRTE"] {
        command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT"), "1");
        command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
    }
    let script = "echo \"PRELOAD $LD_PRELOAD\"; exec \"$0\" \"$@\"";
    command.args(["--", "sh", "-c", script]).arg(mpi.built("cases/sizes")).arg(SIZES.calls.to_string());
    command.env("POLYCAST_LIBDIR", library_directory()).env("POLYCAST_CACHE", "off").env(name, value);
    let _place = place();
    let (status, output) = finish(&mut command);
    if !status.success() {
        output.fail(&status.to_string());
    }
    output.expect_ok("sizes")
}

fn a_sites_objects_stay_in_front(mpi: Mpi) {
    if mpi == Mpi::OpenMpiComponent {
        return;
    }
    let ours = mpi.preload().display().to_string();
    let theirs = mpi.built("yields.so").display().to_string();
    for value in [theirs.clone(), "/not/there.so".to_owned(), format!("{theirs} /not/there.so")] {
        let output = run_with(mpi, "LD_PRELOAD", &value);
        let expected = format!("{}:{ours}", value.replace(' ', ":"));
        for line in output.lines_of("PRELOAD") {
            let objects = line.strip_prefix("PRELOAD ").unwrap();
            if objects != expected {
                output.fail(&format!("expected {expected:?} to be preloaded, found {objects:?}"));
            }
        }
        expect_some_served(&output);
    }
    expect_some_served(&run_with(mpi, "LD_BIND_NOW", "1"));
}
