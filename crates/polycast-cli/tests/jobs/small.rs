//! MPI programs of a few lines, compiled for the test that runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rank 0 prints where it is and how many ranks there are. All look at messages before they end: see `CHECK_PAUSE_MS` in `tests/mpi/check.c`.
pub const WHO: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank, size, sum = 0, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, sum %d, on %s\n", size, sum, name);
    for (double until = MPI_Wtime() + 0.4; MPI_Wtime() < until; usleep(500))
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &length, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"#;

/// Rank 0 broadcasts 100 KiB, all say that they have them.
pub const BROADCAST: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    static unsigned char bytes[100 << 10];
    int rank, size, wrong = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; rank == 0 && i < (int)sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + 1);
    MPI_Bcast(bytes, sizeof bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < (int)sizeof bytes; i++) wrong += bytes[i] != (unsigned char)(i * 7 + 1);
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && sum == 0) printf("%d ranks, all bytes right\n", size);
    MPI_Finalize();
    return 0;
}
"#;

/// Compiles `source` with the `mpicc` of this family, by Debian's names.
pub fn compile(family: &str, directory: &Path, source: &str) -> PathBuf {
    let (file, program) = (directory.join("small.c"), directory.join(format!("small-{family}")));
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new(format!("mpicc.{family}"));
    let made = compiler.arg("-o").args([&program, &file]).output().unwrap();
    assert!(made.status.success(), "mpicc.{family}: {}", String::from_utf8_lossy(&made.stderr));
    program
}
