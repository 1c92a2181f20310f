//! What the end-to-end tests share: the MPI libraries, jobs with a time limit, and the report of a run.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod browser;
pub mod ending;
pub mod job;
pub mod lease;
pub mod mpi;
pub mod report;

use std::path::{Path, PathBuf};

/// The folder of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/polycast-cli lies in the checkout")
}

/// Processes of a program of `tests/mpi`, of this checkout.
pub fn processes_of(program: &str) -> Vec<i32> {
    let built = checkout().canonicalize().expect("the checkout exists").join("build/tests");
    let entries = std::fs::read_dir("/proc").expect("Linux has it").filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_program = |exe: PathBuf| exe.starts_with(&built) && exe.ends_with(program);
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(is_program)).collect()
}

/// The folder with `libpolycast-mpi.so` and the doors: `POLYCAST_LIBDIR`, else where `make build` puts it.
pub fn library_directory() -> PathBuf {
    let directory = std::env::var_os("POLYCAST_LIBDIR")
        .map_or_else(|| checkout().join("build/lib/polycast"), PathBuf::from);
    require(&directory.join("libpolycast-mpi.so"));
    directory
}

/// Fails unless the file is there: a test that proves nothing must not pass.
pub fn require(built: &Path) {
    assert!(built.exists(), "{} does not exist; run `make build` first", built.display());
}

/// What a test calls that finds that it cannot run what it is there for: it fails with the reason, unless
/// `POLYCAST_TESTS_ALLOW_SKIP=1` says that such tests may be left out; then it returns, and the test is to return, too.
pub fn cannot_run(reason: &str) {
    let may_be_left_out = std::env::var_os("POLYCAST_TESTS_ALLOW_SKIP").is_some_and(|value| value == "1");
    assert!(
        may_be_left_out,
        "this test cannot run here (POLYCAST_TESTS_ALLOW_SKIP=1 leaves it out): {reason}"
    );
    eprintln!("left out: {reason}");
}
